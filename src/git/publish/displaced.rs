//! What was replaced or deleted is put away until the next command, not removed: a program that
//! found a file before it was exchanged can write to it after the last look.
//!
//! The name says what the bytes were. What is found to be different is the user's and is kept.

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

/// How many bytes of a file's own name are part of the name under which it is put away.
const MAX_NAME: usize = 120;

/// Returns the folder of what was put away.
pub(super) fn displaced(repository: &Repository) -> PathBuf {
    repository.teddy_dir().join("undo").join("displaced")
}

/// Removes what earlier publications put away, unless somebody has written to it since: that is
/// kept and named. What somebody still has open for writing stays. The caller holds the lock.
///
/// # Errors
/// Where a file cannot be read, moved or removed.
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

/// Removes a file that was put away, unless somebody writes to it; one that was written to is
/// kept and returned.
fn clear(repository: &Repository, place: &Place) -> anyhow::Result<Option<Rescued>> {
    let found = place.find()?;
    let writers = found.writers();
    if matches!(writers, Writers::Somebody) {
        return Ok(None);
    }

    let (known, kept_as, path) = parsed(place.name());
    let mark = version::look_at(repository, &found)?.mark;
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
        // Nothing of ours: only files are put away.
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
            // Put away by a run that was interrupted.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(during),
        }
    }

    publisher.away_folder = Some(folder);
    Ok(())
}

/// Returns a place in a folder, which is made if it is not there.
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
