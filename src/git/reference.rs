//! Refs: read, list, and move by compare-and-swap, one at a time.

use gix::refs::Target;
use gix::refs::transaction::{Change, LogChange, PreviousValue, RefEdit, RefLog};

use super::During;
use super::object::CommitId;
use super::repository::Repository;

/// How often a ref that is what it should be is tried to be moved.
const MOST_ATTEMPTS: u32 = 3;
/// How long the first pause between two tries is.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

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
        // gix tells a new `packed-refs` from the one that it has read by the time alone: of two that git writes within
        // a tick of the clock it would go on with the first, and a turn on an older one would be lost. There may be none.
        let _ = self.gix.refs.force_refresh_packed_buffer();
        let Some(mut reference) = self.gix.try_find_reference(name).during(format_args!("reading `{name}`"))? else {
            return Ok(None);
        };
        Ok(Some(CommitId(reference.peel_to_commit().during(format_args!("reading `{name}`"))?.id)))
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
                found.push(Reference { name: reference.name().as_bstr().to_string(), target: CommitId(id.to_owned()) });
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// Moves a ref, if it is still what the caller saw; its log gets a line.
    ///
    /// # Errors
    /// [`MoveError::Moved`] where it is not, and nothing is changed.
    pub fn move_reference(&self, name: &str, expected: Expected, new: CommitId, log: &str) -> Result<(), MoveError> {
        let change = Change::Update {
            log: LogChange { mode: RefLog::AndReference, force_create_reflog: true, message: log.into() },
            expected: previous(expected),
            new: Target::Object(new.0),
        };
        self.edit(name, expected, change)
    }

    /// Deletes a ref, if it is still what the caller saw.
    ///
    /// # Errors
    /// As for [`Repository::move_reference`].
    pub fn delete_reference(&self, name: &str, expected: Expected) -> Result<(), MoveError> {
        self.edit(name, expected, Change::Delete { expected: previous(expected), log: RefLog::AndReference })
    }

    /// Makes one edit, and finds out whether a failure means that the ref has moved.
    fn edit(&self, name: &str, expected: Expected, change: Change) -> Result<(), MoveError> {
        let full = gix::refs::FullName::try_from(name).map_err(|e| anyhow::anyhow!("{e}").context(format!("the ref name `{name}`")))?;
        let time = gix::date::Time { seconds: crate::host::clock::now().timestamp().as_second(), offset: 0 };
        let (_, committer) = self.signatures(time);
        let mut buffer = gix::date::parse::TimeBuf::default();
        let edit = RefEdit { change, name: full, deref: false };
        let mut attempt = 1;
        loop {
            let tried = self.gix.edit_references_as(Some(edit.clone()), Some(committer.to_ref(&mut buffer)));
            let Err(error) = tried else { return Ok(()) };
            let now = self.reference(name).ok().flatten();
            let (moved, as_seen) = match expected {
                Expected::Absent => (now.is_some(), false),
                Expected::At(commit) => (now != Some(commit), now == Some(commit)),
                Expected::Any => (false, false),
            };
            if moved {
                return Err(MoveError::Moved { name: name.to_owned() });
            }
            // While git packs refs, an older value can show for a moment.
            if !as_seen || attempt == MOST_ATTEMPTS {
                return Err(MoveError::Store(anyhow::anyhow!("{error:#}").context(format!("cannot write `{name}`"))));
            }
            std::thread::sleep(PAUSE * attempt);
            attempt += 1;
        }
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
