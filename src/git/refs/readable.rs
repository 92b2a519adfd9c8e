//! Remembers that all of TeDDy's refs were readable, so that thousands of them are not listed and
//! read before every command.
//!
//! The note is valid until the system restarts, because only power loss is expected to damage refs.
//! A full check (`RefScan::Whole`) ignores it.

use crate::git::repository::Repository;
use crate::host::boot;
use crate::host::file::{read_regular_text, write_cache};

const FILE: &str = "readable";
const MAX_BYTES: u64 = 4096;
/// Up to this number, refs are simply read each time.
const FEW: usize = 64;

pub(super) fn is_noted(repository: &Repository) -> bool {
    let Some(id) = boot::id() else {
        return false;
    };
    let text = read_regular_text(&repository.teddy_dir().join(FILE), MAX_BYTES);
    text.is_ok_and(|text| text.trim() == id)
}

/// Writes the note if there are enough refs to make it worthwhile. Ignores errors: the refs are
/// checked again then.
pub(super) fn note(repository: &Repository, refs: usize) {
    let id = boot::id().filter(|_| refs > FEW && !repository.read_only);
    if let Some(id) = id {
        let _ = write_cache(
            &repository.teddy_dir().join(FILE),
            format!("{id}\n").as_bytes(),
        );
    }
}
