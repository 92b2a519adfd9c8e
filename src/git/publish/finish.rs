//! Compares displaced files a final time, when no process can have them open for writing, and
//! restores those that changed.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::sync::Arc;

use anyhow::Context as _;

use super::{Publisher, cannot_write};
use crate::git::path_handle::{IfMissing, PathHandle, WalkResult};
use crate::git::publish::displaced_files;
use crate::git::publish::replaced::KeptAs;
use crate::git::publish::undo_dir;
use crate::git::version;
use crate::git::version::Mark;

/// A replaced or deleted file that a process might still write to.
pub(super) struct DisplacedFile {
    pub(super) path: Vec<u8>,
    pub(super) temporary: Vec<u8>,
    /// Content when the change was judged.
    pub(super) old_mark: Mark,
    /// Content that we put in its place; `Absent` after a deletion.
    pub(super) new_mark: Mark,
    /// Open handle, as in `StagedVersion`.
    pub(super) handle: Option<Arc<PathHandle>>,
    /// Set if git cannot make its bytes again.
    pub(super) kept_as: Option<KeptAs>,
}

/// Moves displaced files to `undo/displaced`. A file that changed, or that a process has open for
/// writing, gets its name back and becomes a conflict.
pub(super) fn finish_displaced(publisher: &mut Publisher<'_>) -> anyhow::Result<()> {
    let displaced_files = std::mem::take(&mut publisher.displaced_files);
    // Displaced files are compared with their own mark, so the trees are not needed.
    let results = publisher.run_parallel(
        displaced_files,
        |_| Vec::new(),
        |part, files| {
            let mut undone = Vec::new();
            let outcome = finish_each_displaced(part, files, &mut undone);
            (undone, outcome)
        },
    )?;
    let (undone, outcomes): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    let undone: HashSet<Vec<u8>> = undone.into_iter().flatten().collect();

    for paths in [
        &mut publisher.published.deleted,
        &mut publisher.published.written,
    ] {
        paths.retain(|path| !undone.contains(path));
    }

    outcomes.into_iter().collect()
}

/// `undone` collects the paths of restored files, also if an error follows.
fn finish_each_displaced(
    publisher: &mut Publisher<'_>,
    all: Vec<DisplacedFile>,
    undone: &mut Vec<Vec<u8>>,
) -> anyhow::Result<()> {
    for file in all {
        let WalkResult::Handle(handle) = publisher.walk(&file.path, IfMissing::Stop)? else {
            // Its directory was moved away with it. Bytes that git cannot make again are named.
            let expected = match &file.kept_as {
                Some(_) => &Mark::Other,
                None => &file.old_mark,
            };
            file.handle.as_ref().map_or(Ok(()), |lies| {
                displaced_files::discard_file(publisher, lies, expected, &file.path)
            })?;
            continue;
        };

        let temporary = handle.sibling(&file.temporary);
        let state = temporary.find()?;
        // Ask for writers before reading: a process that writes in between is then noticed either
        // way.
        let writers = state.writers();
        if version::read_state(publisher.repository, &state)?.mark == file.old_mark {
            if !writers.are_present() {
                let kept_as = file.kept_as.as_ref();
                undo_dir::move_to_undo(publisher, &temporary, &file.old_mark, kept_as, &file.path)?;
                continue;
            }
            publisher.published.busy.push(file.path.clone());
        }

        restore_original(publisher, &handle, &temporary, &file)?;
        publisher.conflict(&file.path);
        undone.push(file.path);
    }

    Ok(())
}

/// Restores the user's file after a swap or deletion of a file that had changed.
///
/// A newer save of the user's that has taken the name since keeps it; the file in `temporary` is
/// then rescued.
pub(super) fn restore_original(
    publisher: &mut Publisher<'_>,
    handle: &PathHandle,
    temporary: &PathHandle,
    file: &DisplacedFile,
) -> anyhow::Result<()> {
    if file.new_mark == Mark::Absent {
        return match temporary.move_to(handle) {
            Ok(()) => Ok(()),
            // The user saved again: that save keeps the name.
            Err(_) => {
                displaced_files::discard_file(publisher, temporary, &Mark::Absent, &file.path)
            }
        };
    }

    let returned = match temporary.exchange(handle) {
        Ok(returned) => returned,
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => return Err(error).with_context(|| cannot_write(&file.path)),
    };
    if returned && version::read_disk(publisher.repository, temporary)?.mark != file.new_mark {
        // The user replaced our version after the swap: swap again, so the newer save keeps the
        // name.
        let _ = temporary.exchange(handle);
    }

    displaced_files::discard_file(publisher, temporary, &file.new_mark, &file.path)
}
