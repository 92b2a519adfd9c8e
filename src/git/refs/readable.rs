//! That all refs of ours could be read when they were last looked at, where there are many: to list
//! thousands of refs and read their commits before every command would make each of them slow.
//!
//! Only a note: it holds until the machine goes down, which is what takes the bytes of a ref or of
//! a commit. Whoever looks for damage looks at everything all the same.

use crate::git::repository::Repository;
use crate::host::boot;
use crate::host::file::{read_regular_text, write_cache};

/// The file, below `.git/teddy`.
const FILE: &str = "readable";
/// An id of a start of the system.
const MAX_BYTES: u64 = 4096;
/// As many refs are read each time without a note.
const FEW: usize = 64;

/// Returns whether that was so since the machine started.
pub(super) fn is_noted(repository: &Repository) -> bool {
    let Some(id) = boot::id() else {
        return false;
    };
    let text = read_regular_text(&repository.teddy_dir().join(FILE), MAX_BYTES);
    text.is_ok_and(|text| text.trim() == id)
}

/// Notes it of so many refs, if that saves anything. What cannot be written is looked at again.
pub(super) fn note(repository: &Repository, refs: usize) {
    let id = boot::id().filter(|_| refs > FEW && !repository.read_only);
    if let Some(id) = id {
        let _ = write_cache(
            &repository.teddy_dir().join(FILE),
            format!("{id}\n").as_bytes(),
        );
    }
}
