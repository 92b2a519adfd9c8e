//! An object that is not there: only the server has it, or the repository is damaged.

use gix::ObjectId;

/// An object is not there.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("object {0} is missing")]
pub struct MissingObject(ObjectId);

/// What gix puts in front of the name of an object that it does not find.
const WORDS: &str = "An object with id ";

impl MissingObject {
    /// Reads which object is missing from an error of gix, which says so in words only.
    pub(in crate::git) fn named_in(error: &str) -> Option<MissingObject> {
        let (_, rest) = error.split_once(WORDS)?;
        let name = rest.split(' ').next()?;
        ObjectId::from_hex(name.as_bytes()).ok().map(MissingObject)
    }

    /// Returns what the user can do about it.
    pub fn hint(&self) -> String {
        format!(
            "try again if `git gc` or `git repack` ran meanwhile; `git cat-file -e {}` fetches it in a partial clone, and `git fsck` shows what is missing",
            self.0
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::git::object::TreeId;
    use crate::git::repository::Repository;

    use super::*;

    #[test]
    fn an_object_that_is_missing_is_told_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        gix::init(folder.path()).unwrap();
        let repository = Repository::open(folder.path()).unwrap();
        let id = ObjectId::from_hex(b"1111111111111111111111111111111111111111").unwrap();

        let error = repository.leaves(TreeId(id)).unwrap_err();
        let found = error.chain().find_map(|cause| cause.downcast_ref());
        assert_eq!(found, Some(&MissingObject(id)));
        assert_eq!(
            format!("{error:#}"),
            format!("reading tree {id}: object {id} is missing")
        );
    }

    #[test]
    fn other_errors_name_no_missing_object() {
        assert_eq!(MissingObject::named_in("the disk is full"), None);
        assert_eq!(MissingObject::named_in("An object with id x is"), None);
    }
}
