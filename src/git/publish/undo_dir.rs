//! Keeps replaced and deleted files in `undo/displaced` until the next command.
//!
//! A program that resolved a file's name before the swap can open it after our final comparison and
//! write into the old inode. So the old file is not unlinked but moved. Its new name contains the
//! id of its content; if the content differs when the next command clears the directory, the user
//! wrote to it, and it is rescued instead of deleted.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::replaced::{self, KeptAs};
use super::salvaged;
use super::{Publisher, Salvaged};
use crate::git::parallel::map_parallel;
use crate::git::path_handle::{IfMissing, PathHandle, Top, WalkResult};
use crate::git::repository::Repository;
use crate::git::version;
use crate::git::version::Mark;
use crate::host::file::make_dirs;
use crate::host::lease::Writers;

/// Bytes of the file's own name that its displaced name contains.
const MAX_DISPLACED_NAME: usize = 120;

pub(super) fn displaced_dir(repository: &Repository) -> PathBuf {
    repository.teddy_dir().join("undo").join("displaced")
}

/// Deletes what earlier publications displaced.
///
/// A file that was written to since then moves to `undo/rescued` and is returned. A file that a
/// process still has open for writing stays. The caller holds the repository lock.
pub fn clear_displaced(repository: &Repository) -> anyhow::Result<Vec<Salvaged>> {
    let top = match Top::open(&displaced_dir(repository)) {
        Ok(top) => top,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(error)
                .with_context(|| format!("cannot read `{}`", displaced_dir(repository).display()));
        }
    };
    let WalkResult::Handle(inside) = top.walk(b"x", IfMissing::Stop)? else {
        return Ok(Vec::new());
    };

    let cleared = map_parallel(repository, inside.siblings()?, |repository, _, names| {
        let mut rescued = Vec::new();
        for name in names {
            rescued.extend(clear_displaced_file(repository, &inside.sibling(&name))?);
        }
        Ok(rescued)
    })?;
    Ok(cleared.into_iter().flatten().collect())
}

fn clear_displaced_file(
    repository: &Repository,
    handle: &PathHandle,
) -> anyhow::Result<Option<Salvaged>> {
    let state = handle.find()?;
    let writers = state.writers();
    if matches!(writers, Writers::Present) {
        return Ok(None);
    }

    let (expected_id, kept_as, path) = parse_displaced_name(handle.name());
    let mark = version::read_state(repository, &state)?.mark;
    // Asked a second time: a process can have opened the file while it was hashed.
    if writers.are_present() {
        return Ok(None);
    }

    match mark {
        Mark::File(id, _) if expected_id == Some(id.to_string().as_str()) => match kept_as {
            Some(kept_as) => {
                replaced::keep_replaced(repository, handle, &KeptAs::parse(kept_as), path)?
            }
            None => handle.remove()?,
        },
        Mark::File(..) => {
            return Ok(Some(Salvaged {
                path: path.to_vec(),
                saved_as: salvaged::salvage_file(repository, handle, path)?,
            }));
        }
        // Not ours: only regular files are displaced.
        _ => {}
    }

    Ok(None)
}

/// Puts a file away whose bytes are known; a link, or a file on another file system, is
/// removed. `kept_as` is for bytes that git cannot make again: they are kept for the time of undo
/// data.
pub(super) fn move_to_undo(
    publisher: &mut Publisher<'_>,
    temporary: &PathHandle,
    mark: &Mark,
    kept_as: Option<&KeptAs>,
    path: &[u8],
) -> anyhow::Result<()> {
    let during = || {
        format!(
            "cannot remove a temporary file beside `{}`",
            String::from_utf8_lossy(path)
        )
    };
    let Mark::File(id, _) = mark else {
        return temporary.remove().with_context(during);
    };

    let dir = match publisher.undo_dir.take() {
        Some(dir) => dir,
        None => open_or_create_dir(&displaced_dir(publisher.repository))?,
    };
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    // Most file systems limit names to 255 bytes, and the id and counters come on top.
    let name = &name[..name.len().min(MAX_DISPLACED_NAME)];

    loop {
        publisher.undo_count += 1;
        let suffix = kept_as.map_or_else(String::new, |kept_as| format!("-{}", kept_as.as_str()));
        let operation = &publisher.guard.operation;
        let start = format!("{id}{suffix}.{operation}.{}.", publisher.undo_count);
        let free = dir.sibling(&[start.as_bytes(), name].concat());
        match temporary.move_over(&free) {
            Ok(true) => break,
            Ok(false) => {
                match kept_as {
                    Some(kept_as) => {
                        replaced::keep_replaced(publisher.repository, temporary, kept_as, path)?
                    }
                    None => temporary.remove().with_context(during)?,
                }
                break;
            }
            // Left by an interrupted run.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(during),
        }
    }

    publisher.undo_dir = Some(dir);
    Ok(())
}

/// Opens a directory, creating it if necessary. The name of the returned place is a dummy; callers
/// use its siblings.
fn open_or_create_dir(dir: &Path) -> anyhow::Result<PathHandle> {
    make_dirs(dir)
        .and_then(|()| Top::open(dir))
        .and_then(|top| top.handle(b"x"))
        .with_context(|| format!("cannot make `{}`", dir.display()))
}

/// Returns the id of the bytes, what they are kept as, and the file's own name, as the name says
/// them.
fn parse_displaced_name(name: &[u8]) -> (Option<&str>, Option<&str>, &[u8]) {
    let mut parts = name.splitn(4, |&byte| byte == b'.');
    let ids = parts.next().and_then(|ids| str::from_utf8(ids).ok());
    let ids = ids.map(|ids| {
        ids.split_once('-')
            .map_or((ids, None), |(id, as_)| (id, Some(as_)))
    });
    let (id, kept_as) = ids.unzip();
    (id, kept_as.flatten(), parts.nth(2).unwrap_or(name))
}
