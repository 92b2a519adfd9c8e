//! Which refs of ours named something that could be read when they were last looked at, where there
//! are many: to read thousands of commits before every command would make each of them slow.
//!
//! Only a note: it holds until the machine goes down, which is what takes the bytes of a commit,
//! and nobody believes it for a ref that has moved since.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::store::Reference;
use crate::git::repository::Repository;
use crate::host::boot;
use crate::host::file::{read_regular_text, write_cache};

/// The file, below `.git/teddy`.
const FILE: &str = "readable";
/// A million refs take no more.
const MAX_BYTES: u64 = 256 << 20;
/// As many refs are read each time without a note.
pub(super) const FEW: usize = 256;

/// The refs of which that is known.
pub(super) struct ReadableRefs {
    /// The note.
    text: String,
}

impl ReadableRefs {
    /// Reads the note; an empty one where there is none, or the machine went down since.
    pub(super) fn noted(repository: &Repository) -> ReadableRefs {
        let text = read_regular_text(&repository.teddy_dir().join(FILE), MAX_BYTES);
        let text = text.unwrap_or_default();
        let is_current = boot::id().is_some_and(|id| text.lines().next() == Some(id.trim()));
        ReadableRefs {
            text: if is_current { text } else { String::new() },
        }
    }

    /// Returns those refs of which it is not known.
    pub(super) fn unknown(&self, listed: Vec<Reference>) -> Vec<Reference> {
        if self.text.is_empty() {
            return listed;
        }

        let known: HashSet<&str> = self.text.lines().skip(1).collect();
        let is_unknown = |reference: &Reference| !known.contains(line(reference).as_str());
        listed.into_iter().filter(is_unknown).collect()
    }

    /// Notes that all of these can be read. What cannot be written is looked at again.
    pub(super) fn note(repository: &Repository, listed: &[Reference]) {
        let Some(id) = boot::id().filter(|_| !repository.read_only) else {
            return;
        };
        let mut text = id.trim().to_owned();
        for reference in listed {
            let _ = write!(text, "\n{}", line(reference));
        }
        let _ = write_cache(&repository.teddy_dir().join(FILE), text.as_bytes());
    }
}

/// Returns what is noted of a ref.
fn line(reference: &Reference) -> String {
    format!("{} {}", reference.target, reference.name)
}
