//! Missing objects: only the server of a partial clone has them, or the repository is damaged.

use std::fmt::Display;
use std::time::Duration;

use gix::ObjectId;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("object {0} is missing")]
pub struct MissingObject(ObjectId);

/// Start of gix's message about a missing object.
const MESSAGE: &str = "An object with id ";

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
pub(in crate::git) fn find<T, E: Display>(lookup: impl Fn() -> Result<T, E>) -> Result<T, E> {
    for pause in PAUSES {
        match lookup() {
            Err(error) if MissingObject::in_message(&error.to_string()).is_some() => {
                std::thread::sleep(pause);
            }
            result => return result,
        }
    }

    lookup()
}

impl MissingObject {
    /// Extracts the missing object from a message of gix, which has no typed error for it.
    pub(in crate::git) fn in_message(error: &str) -> Option<MissingObject> {
        let (_, tail) = error.split_once(MESSAGE)?;
        let name = tail.split(' ').next()?;
        ObjectId::from_hex(name.as_bytes()).ok().map(MissingObject)
    }

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

    use super::*;
    use crate::git::sample;

    #[test]
    fn an_object_that_is_missing_is_told_by_its_name() {
        let (_dir, repository) = sample::repository();
        let id = ObjectId::from_hex(b"1111111111111111111111111111111111111111").unwrap();

        let error = repository.leaves(TreeId(id)).unwrap_err();
        let actual = error.chain().find_map(|cause| cause.downcast_ref());
        assert_eq!(actual, Some(&MissingObject(id)));
        assert_eq!(
            format!("{error:#}"),
            format!("reading tree {id}: object {id} is missing")
        );
    }

    #[test]
    fn an_object_that_comes_while_it_is_looked_for_is_found() {
        let missing = || Err(format!("{MESSAGE}{} is gone", "1".repeat(40)));
        let check = |misses: usize, expected: bool, lookups: usize| {
            let attempts = std::cell::Cell::new(0);
            let result = find(|| {
                attempts.set(attempts.get() + 1);
                if attempts.get() > misses {
                    Ok(())
                } else {
                    missing()
                }
            });
            assert_eq!((result.is_ok(), attempts.get()), (expected, lookups));
        };
        check(0, true, 1);
        check(1, true, 2);
        check(PAUSES.len(), true, PAUSES.len() + 1);
        check(PAUSES.len() + 1, false, PAUSES.len() + 1);
    }

    #[test]
    fn other_errors_name_no_missing_object() {
        assert_eq!(MissingObject::in_message("the disk is full"), None);
        assert_eq!(MissingObject::in_message("An object with id x is"), None);
    }
}
