//! Refs: read, listed and deleted; `loose` moves them.

use gix::refs::Target;
use gix::refs::transaction::{Change, PreviousValue, RefEdit, RefLog};

use super::During;
use super::object::CommitId;
use super::repository::Repository;

/// How often a ref is looked up until two looks agree.
const LOOKS: u32 = 5;

/// A ref and what it points at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The full name.
    pub name: String,
    /// The commit.
    pub target: CommitId,
}

/// What a ref must be before it is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// It must not exist.
    Absent,
    /// It must point here.
    At(CommitId),
    /// It may be anything.
    Any,
}

/// Why a ref was not moved.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// Someone else moved it meanwhile.
    #[error("`{name}` was moved by someone else meanwhile")]
    Moved {
        /// The ref.
        name: String,
    },
    /// The ref store cannot be written.
    #[error(transparent)]
    Store(#[from] anyhow::Error),
}

impl Repository {
    /// Returns the commit that a ref points at, or nothing where there is no such ref.
    ///
    /// # Errors
    /// Where the ref cannot be read or points at something else than a commit.
    pub fn reference(&self, name: &str) -> anyhow::Result<Option<CommitId>> {
        let mut found = self.look_up(name)?;

        // While git packs refs, one can leave its own file after `packed-refs` was read and before
        // the file was looked for: it seems to be gone, or older than it is.
        for _ in 0..LOOKS {
            let again = self.look_up(name)?;
            if again == found {
                break;
            }
            found = again;
        }
        Ok(found)
    }

    /// Looks a ref up once.
    fn look_up(&self, name: &str) -> anyhow::Result<Option<CommitId>> {
        // gix tells a new `packed-refs` from the one that it has read by the time alone: of two
        // that git writes within a tick of the clock it would go on with the first, and a turn on
        // an older one would be lost. There may be none.
        let _ = self.gix.refs.force_refresh_packed_buffer();
        let Some(mut reference) = self
            .gix
            .try_find_reference(name)
            .during(format_args!("reading `{name}`"))?
        else {
            return Ok(None);
        };
        Ok(Some(CommitId(
            reference
                .peel_to_commit()
                .during(format_args!("reading `{name}`"))?
                .id,
        )))
    }

    /// Returns the refs below a prefix such as `refs/teddy/sessions/`, sorted by name.
    ///
    /// # Errors
    /// Where the ref store cannot be read; a single damaged ref is left out.
    pub fn references(&self, prefix: &str) -> anyhow::Result<Vec<Reference>> {
        let platform = self.gix.references().during("listing refs")?;
        let mut found = Vec::new();
        for reference in platform.prefixed(prefix).during("listing refs")? {
            let Ok(reference) = reference else { continue };
            if let Some(id) = reference.target().try_id() {
                found.push(Reference {
                    name: reference.name().as_bstr().to_string(),
                    target: CommitId(id.to_owned()),
                });
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// Deletes a ref, packed or not, if it is still what the caller saw.
    ///
    /// # Errors
    /// [`MoveError::Moved`] where it is not, and nothing is changed.
    pub fn delete_reference(&self, name: &str, expected: Expected) -> Result<(), MoveError> {
        let full = gix::refs::FullName::try_from(name)
            .map_err(|e| anyhow::anyhow!("{e}").context(format!("the ref name `{name}`")))?;
        let change = Change::Delete {
            expected: previous(expected),
            log: RefLog::AndReference,
        };
        let Err(error) = self.gix.edit_reference(RefEdit {
            change,
            name: full,
            deref: false,
        }) else {
            return Ok(());
        };
        let now = self.reference(name).ok().flatten();
        if matches!(expected, Expected::At(commit) if now != Some(commit)) {
            return Err(MoveError::Moved {
                name: name.to_owned(),
            });
        }
        Err(MoveError::Store(
            anyhow::anyhow!("{error:#}").context(format!("cannot delete `{name}`")),
        ))
    }
}

/// Returns gix's form of an expectation.
fn previous(expected: Expected) -> PreviousValue {
    match expected {
        Expected::Absent => PreviousValue::MustNotExist,
        Expected::At(commit) => PreviousValue::MustExistAndMatch(Target::Object(commit.0)),
        Expected::Any => PreviousValue::Any,
    }
}
