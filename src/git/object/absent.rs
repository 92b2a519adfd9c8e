//! Missing objects: only the server of a partial clone has them, or the repository is damaged.

use std::fmt::Display;
use std::time::Duration;

use gix::ObjectId;

/// An object does not exist in the object database.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("object {0} is missing")]
pub struct MissingObject(ObjectId);

/// gix's words before the id of a missing object.
const WORDS: &str = "An object with id ";

/// Delays before each new attempt to find an object.
const PAUSES: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_millis(1),
    Duration::from_millis(10),
];

/// Looks an object up, retrying if it is missing.
///
/// Another process can have replaced its pack by a new one, and gix rereads the pack directory only
/// once per lookup.
pub(in crate::git) fn find<T, E: Display>(look: impl Fn() -> Result<T, E>) -> Result<T, E> {
    for pause in PAUSES {
        match look() {
            Err(error) if MissingObject::named_in(&error.to_string()).is_some() => {
                std::thread::sleep(pause);
            }
            found => return found,
        }
    }

    look()
}

impl MissingObject {
    /// Extracts the missing object from a message of gix, which has no typed error for it.
    pub(in crate::git) fn named_in(error: &str) -> Option<MissingObject> {
        let (_, rest) = error.split_once(WORDS)?;
        let name = rest.split(' ').next()?;
        ObjectId::from_hex(name.as_bytes()).ok().map(MissingObject)
    }

    /// Returns a hint for the user.
    pub fn hint(&self) -> String {
        format!(
            "try again if `git gc` or `git repack` ran meanwhile; `git cat-file -e {}` fetches it in a partial clone, and `git fsck` shows what is missing; if all refs were rewritten (`git filter-repo`, `git filter-branch -- --all`), TeDDy's record names commits that are gone: `git fetch` it from a clone that has them, or start a new session",
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
    fn an_object_that_comes_while_it_is_looked_for_is_found() {
        let missing = || Err(format!("{WORDS}{} is gone", "1".repeat(40)));
        let check = |misses: usize, expected: bool, looks: usize| {
            let asked = std::cell::Cell::new(0);
            let found = find(|| {
                asked.set(asked.get() + 1);
                if asked.get() > misses {
                    Ok(())
                } else {
                    missing()
                }
            });
            assert_eq!((found.is_ok(), asked.get()), (expected, looks));
        };
        check(0, true, 1);
        check(1, true, 2);
        check(PAUSES.len(), true, PAUSES.len() + 1);
        check(PAUSES.len() + 1, false, PAUSES.len() + 1);
    }

    #[test]
    fn other_errors_name_no_missing_object() {
        assert_eq!(MissingObject::named_in("the disk is full"), None);
        assert_eq!(MissingObject::named_in("An object with id x is"), None);
    }
}
