//! Remembers that all of TeDDy's refs were readable, so that thousands of them are not listed and
//! read before every command.
//!
//! The note is valid until the system restarts, because only power loss is expected to damage refs.
//! A full check (`RefScan::Whole`) ignores it.

use crate::git::repository::Repository;
use crate::host::file::{read_regular_text, write_cache};
use crate::host::machine;

const READABLE_NOTE: &str = "readable";
const MAX_NOTE: u64 = 4096;
/// Up to this number, refs are simply read each time.
const MAX_UNNOTED_REFS: usize = 64;

pub(super) fn is_noted_readable(repository: &Repository) -> bool {
    let Some(id) = machine::boot_id() else {
        return false;
    };
    let text = read_regular_text(&repository.teddy_dir().join(READABLE_NOTE), MAX_NOTE);
    text.is_ok_and(|text| text.trim() == id)
}

/// Writes the note if there are enough refs to make it worthwhile. Ignores errors: the refs are
/// checked again then.
pub(super) fn note_readable(repository: &Repository, refs: usize) {
    let id = machine::boot_id().filter(|_| refs > MAX_UNNOTED_REFS && !repository.read_only);
    if let Some(id) = id {
        let _ = write_cache(
            &repository.teddy_dir().join(READABLE_NOTE),
            format!("{id}\n").as_bytes(),
        );
    }
}
