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
use super::rescued;
use super::{Publisher, Rescued};
use crate::git::place::{IfMissing, Place, Top, WalkResult};
use crate::git::repository::Repository;
use crate::git::spread::spread;
use crate::git::version;
use crate::git::version::Mark;
use crate::host::file::make_folders;
use crate::host::lease::Writers;

/// Bytes of the file's own name that its displaced name contains.
const MAX_NAME: usize = 120;

pub(super) fn displaced(repository: &Repository) -> PathBuf {
    repository.teddy_dir().join("undo").join("displaced")
}

/// Deletes what earlier publications displaced.
///
/// A file that was written to since then moves to `undo/rescued` and is returned. A file that a
/// process still has open for writing stays. The caller holds the repository lock.
pub fn clear_displaced(repository: &Repository) -> anyhow::Result<Vec<Rescued>> {
    let top = match Top::open(&displaced(repository)) {
        Ok(top) => top,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(error)
                .with_context(|| format!("cannot read `{}`", displaced(repository).display()));
        }
    };
    let WalkResult::Place(inside) = top.walk(b"x", IfMissing::Stop)? else {
        return Ok(Vec::new());
    };

    let cleared = spread(repository, inside.siblings()?, |repository, _, names| {
        let mut rescued = Vec::new();
        for name in names {
            rescued.extend(clear(repository, &inside.sibling(&name))?);
        }
        Ok(rescued)
    })?;
    Ok(cleared.into_iter().flatten().collect())
}

fn clear(repository: &Repository, place: &Place) -> anyhow::Result<Option<Rescued>> {
    let found = place.find()?;
    let writers = found.writers();
    if matches!(writers, Writers::Somebody) {
        return Ok(None);
    }

    let (known, kept_as, path) = parsed(place.name());
    let mark = version::look_at(repository, &found)?.mark;
    // Asked a second time: a process can have opened the file while it was hashed.
    if writers.are_there() {
        return Ok(None);
    }

    match mark {
        Mark::File(id, _) if known == Some(id.to_string().as_str()) => match kept_as {
            Some(kept_as) => replaced::keep(repository, place, &KeptAs::parse(kept_as), path)?,
            None => place.remove()?,
        },
        Mark::File(..) => {
            return Ok(Some(Rescued {
                path: path.to_vec(),
                kept: rescued::rescue(repository, place, path)?,
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
pub(super) fn put_away(
    publisher: &mut Publisher<'_>,
    temporary: &Place,
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

    let folder = match publisher.away_folder.take() {
        Some(folder) => folder,
        None => open_or_make(&displaced(publisher.repository))?,
    };
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    // Most file systems limit names to 255 bytes, and the id and counters come on top.
    let name = &name[..name.len().min(MAX_NAME)];

    loop {
        publisher.away += 1;
        let kept = kept_as.map_or_else(String::new, |kept_as| format!("-{}", kept_as.as_str()));
        let operation = &publisher.guard.operation;
        let start = format!("{id}{kept}.{operation}.{}.", publisher.away);
        let free = folder.sibling(&[start.as_bytes(), name].concat());
        match temporary.move_over(&free) {
            Ok(true) => break,
            Ok(false) => {
                match kept_as {
                    Some(kept_as) => {
                        replaced::keep(publisher.repository, temporary, kept_as, path)?
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

    publisher.away_folder = Some(folder);
    Ok(())
}

/// Opens a directory, creating it if necessary. The name of the returned place is a dummy; callers
/// use its siblings.
fn open_or_make(folder: &Path) -> anyhow::Result<Place> {
    make_folders(folder)
        .and_then(|()| Top::open(folder))
        .and_then(|top| top.place(b"x"))
        .with_context(|| format!("cannot make `{}`", folder.display()))
}

/// Returns the id of the bytes, what they are kept as, and the file's own name, as the name says
/// them.
fn parsed(name: &[u8]) -> (Option<&str>, Option<&str>, &[u8]) {
    let mut parts = name.splitn(4, |&byte| byte == b'.');
    let ids = parts.next().and_then(|ids| str::from_utf8(ids).ok());
    let ids = ids.map(|ids| {
        ids.split_once('-')
            .map_or((ids, None), |(id, as_)| (id, Some(as_)))
    });
    let (id, kept_as) = ids.unzip();
    (id, kept_as.flatten(), parts.nth(2).unwrap_or(name))
}
