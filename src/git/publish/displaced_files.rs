//! Names temporary files, and disposes of them without losing bytes of the user's.

use std::collections::{BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use gix::ObjectId;

use super::{Guard, Publisher, Salvaged};
use crate::git::diff::TreeChange;
use crate::git::object::large::{FileReader, LARGE};
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::parallel::map_parallel;
use crate::git::path_handle::{FileBody, IfMissing, OnDisk, PathHandle, Top, WalkResult};
use crate::git::repository::Repository;
use crate::git::version::{self, Mark};
use crate::host::file::{make_dirs, read_regular};
use crate::host::lease::Writers;

/// Prefix of every temporary file in the user's worktree.
pub const TEMPORARY_PREFIX: &str = ".teddy-tmp-";

/// Removes the temporary files of an interrupted publication. No other publication may run.
///
/// A file whose content is in neither tree is a save of the user's that was displaced. It moves to
/// `undo/rescued` and is returned.
pub fn discard_temporaries(
    repository: &Repository,
    from: TreeId,
    to: TreeId,
    guard: &Guard,
) -> anyhow::Result<Vec<Salvaged>> {
    let (mut publisher, changes) = super::publisher(repository, from, to, guard)?;
    let prefix = temporary_prefix(&publisher);
    let change_ids: HashSet<gix::ObjectId> = changes
        .iter()
        .flat_map(|change| [&change.old, &change.new])
        .flatten()
        .map(|entry| entry.id)
        .collect();
    let mut dirs = BTreeSet::new();

    for change in &changes {
        dirs.extend(parent_dirs(&change.path).map(<[u8]>::to_vec));
    }

    for dir in dirs {
        let WalkResult::Handle(inside) = publisher
            .top
            .walk(&[dir.as_slice(), b"x"].concat(), IfMissing::Stop)?
        else {
            continue;
        };
        let names: Vec<_> = inside
            .siblings()?
            .into_iter()
            .filter(|name| name.starts_with(&prefix))
            .collect();

        for name in &names {
            discard_temporary(
                &mut publisher,
                &inside.sibling(name),
                &[dir.as_slice(), name].concat(),
                &changes,
                &change_ids,
            )?;
        }

        // The temporary file kept its directory from being removed.
        if !names.is_empty() {
            publisher.remove_empty_dirs(&[dir.as_slice(), b"x"].concat())?;
        }
    }

    Ok(publisher.published.salvaged)
}

pub(super) fn next_temporary_name(publisher: &mut Publisher<'_>) -> Vec<u8> {
    publisher.names += 1;
    [
        temporary_prefix(publisher),
        publisher.names.to_string().into_bytes(),
    ]
    .concat()
}

fn temporary_prefix(publisher: &Publisher<'_>) -> Vec<u8> {
    format!("{TEMPORARY_PREFIX}{}-", publisher.guard.operation).into_bytes()
}

/// Disposes of a temporary file: to `undo/displaced` if its content is `expected` and no process
/// has it open for writing, else to `undo/rescued`, where the user finds it.
pub(super) fn discard_file(
    publisher: &mut Publisher<'_>,
    temporary: &PathHandle,
    expected: &Mark,
    path: &[u8],
) -> anyhow::Result<()> {
    let state = temporary.find()?;
    // Ask for writers before reading, as in `finish_each_displaced`.
    let writers = state.writers();
    let mark = version::read_state(publisher.repository, &state)?.mark;
    if mark == Mark::Absent {
        return Ok(());
    }

    if mark != *expected || writers.are_present() {
        let saved_as = salvage_file(publisher.repository, temporary, path)?;
        publisher.published.salvaged.push(Salvaged {
            path: path.to_vec(),
            saved_as,
        });
        return Ok(());
    }

    move_to_undo(publisher, temporary, &mark, None, path)
}

/// Disposes of one temporary file of an interrupted run.
///
/// Its name doesn't tell which change it belongs to. Its content usually does, by blob id; only the
/// output of filters must be compared with each change. An empty file is one that was not written
/// yet.
fn discard_temporary(
    publisher: &mut Publisher<'_>,
    temporary: &PathHandle,
    path: &[u8],
    changes: &[TreeChange],
    ids: &HashSet<gix::ObjectId>,
) -> anyhow::Result<()> {
    let current = version::read_disk(publisher.repository, temporary)?;
    let mut is_known = match (&current.on_disk, &current.mark) {
        (
            OnDisk::File {
                body: FileBody::Bytes(bytes),
                ..
            },
            _,
        ) if bytes.is_empty() => true,
        (_, Mark::File(id, _) | Mark::Link(id)) => ids.contains(id),
        _ => false,
    };

    if let Mark::File(id, _) = current.mark {
        is_known = is_known
            || changes
                .iter()
                .any(|change| is_either_version(publisher, change, id));
    }

    let mark = if is_known { current.mark } else { Mark::Other };
    discard_file(publisher, temporary, &mark, path)
}

/// Returns whether a file has the bytes that a checkout writes for either version of a change. Bytes
/// that git merely stores as one of them are the user's.
fn is_either_version(
    publisher: &mut Publisher<'_>,
    change: &TreeChange,
    id: gix::ObjectId,
) -> bool {
    let path = &change.path;
    let entries = [&change.old, &change.new].into_iter().flatten();
    let mut files = entries.filter(|entry| is_file(entry));
    files.any(|entry| {
        publisher.old.checked_out_id(path, entry).ok() == Some(id)
            || publisher.new.checked_out_id(path, entry).ok() == Some(id)
    })
}

fn is_file(entry: &TreeEntry) -> bool {
    matches!(entry.mode, EntryMode::File | EntryMode::Executable)
}

/// Returns the directories of a path, each with a final `/`. The first is the top, an empty path.
fn parent_dirs(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = path
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'/')
        .map(|(at, _)| at + 1);
    [0].into_iter().chain(ends).map(|end| &path[..end])
}

// Keeps replaced and deleted files in `undo/displaced` until the next command.
//
// A program that resolved a file's name before the swap can open it after our final comparison and
// write into the old inode. So the old file is not unlinked but moved. Its new name contains the
// id of its content; if the content differs when the next command clears the directory, the user
// wrote to it, and it is rescued instead of deleted.

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
            Some(kept_as) => keep_replaced(repository, handle, &KeptAs::parse(kept_as), path)?,
            None => handle.remove()?,
        },
        Mark::File(..) => {
            return Ok(Some(Salvaged {
                path: path.to_vec(),
                saved_as: salvage_file(repository, handle, path)?,
            }));
        }
        // Not ours: only regular files are displaced.
        _ => {}
    }

    Ok(None)
}

/// Moves a file with known content to `undo/displaced`. A link, or a file on another file system,
/// is removed. `kept_as` is for bytes that git cannot restore: they are kept as long as undo data.
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
                    Some(kept_as) => keep_replaced(publisher.repository, temporary, kept_as, path)?,
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

/// Opens a directory, creating it if necessary. Use siblings of the returned handle: its name is a
/// dummy.
fn open_or_create_dir(dir: &Path) -> anyhow::Result<PathHandle> {
    make_dirs(dir)
        .and_then(|()| Top::open(dir))
        .and_then(|top| top.handle(b"x"))
        .with_context(|| format!("cannot make `{}`", dir.display()))
}

/// Splits a displaced name into the id of the content, the [`KeptAs`] and the file's own name.
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

// Files that were replaced or deleted and whose bytes git does not store, because a filter drops
// some of them. They stay in `undo/replaced` until `teddy gc` removes undo data.
//
// The name identifies the tree entry that the file was a version of, and its path. If that entry is
// written to the path again, the file gets the kept bytes.

/// Hexadecimal digits of a path's hash in a name.
const PATH_DIGITS: usize = 12;

/// Bytes of the file's own name in a name.
const MAX_REPLACED_NAME: usize = 120;

/// Maximum number of kept versions of an entry.
const MAX_REPLACED_VERSIONS: usize = 100;

/// Identifies the tree entry and path that a file was a version of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::git) struct KeptAs(String);

impl KeptAs {
    pub(in crate::git) fn of(
        repository: &Repository,
        entry: ObjectId,
        path: &[u8],
    ) -> anyhow::Result<KeptAs> {
        let hash = repository.blob_id(path)?.to_string();
        Ok(KeptAs(format!("{entry}-{}", &hash[..PATH_DIGITS])))
    }

    pub(super) fn parse(text: &str) -> KeptAs {
        KeptAs(text.to_owned())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

pub(super) fn keep_replaced(
    repository: &Repository,
    file: &PathHandle,
    kept_as: &KeptAs,
    name: &[u8],
) -> anyhow::Result<()> {
    let dir = replaced_dir(repository);
    make_dirs(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
    for number in 1.. {
        match move_or_copy(file, &dir.join(replaced_file_name(kept_as, number, name))) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            moved => {
                return moved.with_context(|| format!("cannot keep bytes in `{}`", dir.display()));
            }
        }
    }
    anyhow::bail!("no free name in `{}`", dir.display())
}

/// Keeps bytes that a command wrote and that git does not store, until they are written to the
/// user's file.
pub(in crate::git) fn keep_replaced_bytes(
    repository: &Repository,
    entry: ObjectId,
    path: &[u8],
    bytes: &[u8],
) -> anyhow::Result<()> {
    let kept_as = KeptAs::of(repository, entry, path)?;
    if newest_replaced(repository, &kept_as, path).as_deref() == Some(bytes) {
        return Ok(());
    }
    let dir = replaced_dir(repository);
    make_dirs(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
    for number in 1..=MAX_REPLACED_VERSIONS {
        match write_private(
            &dir.join(replaced_file_name(&kept_as, number, path)),
            &mut &*bytes,
        ) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            written => {
                return written.with_context(|| format!("cannot write in `{}`", dir.display()));
            }
        }
    }
    Ok(())
}

pub(super) fn newest_replaced(
    repository: &Repository,
    kept_as: &KeptAs,
    path: &[u8],
) -> Option<Vec<u8>> {
    let dir = replaced_dir(repository);
    let files = (1..=MAX_REPLACED_VERSIONS)
        .map(|number| dir.join(replaced_file_name(kept_as, number, path)));
    let last = files.take_while(|file| file.exists()).last()?;
    read_regular(&last, LARGE).ok()
}

fn replaced_dir(repository: &Repository) -> PathBuf {
    repository.teddy_dir().join("undo").join("replaced")
}

fn replaced_file_name(kept_as: &KeptAs, number: usize, path: &[u8]) -> OsString {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    let mut file = format!("{}.{number}.", kept_as.0).into_bytes();
    file.extend(&name[..name.len().min(MAX_REPLACED_NAME)]);
    OsString::from_vec(file)
}

/// Copies a file to `undo/replaced`, for a file system on which it is replaced in place.
pub(super) fn copy_replaced(
    repository: &Repository,
    file: &PathHandle,
    kept_as: &KeptAs,
    path: &[u8],
) -> anyhow::Result<()> {
    let dir = replaced_dir(repository);
    make_dirs(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
    let free = (1..).map(|number| dir.join(replaced_file_name(kept_as, number, path)));
    let is_free = |file: &PathBuf| file.symlink_metadata().is_err();
    let target = { free }.find(is_free).context("no name is free")?;
    copy_replaced_to(file, &target)
}

fn copy_replaced_to(file: &PathHandle, target: &Path) -> anyhow::Result<()> {
    copy_durably(file, target).with_context(|| format!("cannot write `{}`", target.display()))
}

pub(super) fn salvage_file(
    repository: &Repository,
    file: &PathHandle,
    path: &[u8],
) -> anyhow::Result<PathBuf> {
    let dir = repository.teddy_dir().join("undo").join("rescued");
    make_dirs(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
    move_to_free_name(&dir, file, path)
}

/// Moves a file to a free name.
///
/// A rename keeps the inode, so what a process still writes to it is kept too. Across file systems
/// it is a copy, which misses later writes.
fn move_to_free_name(dir: &Path, temporary: &PathHandle, path: &[u8]) -> anyhow::Result<PathBuf> {
    let name = OsStr::from_bytes(path.rsplit(|&byte| byte == b'/').next().unwrap_or(path));
    for number in 1.. {
        let mut free = OsString::from(format!("{number}-"));
        free.push(name);
        let destination = dir.join(free);
        match move_or_copy(temporary, &destination) {
            Ok(()) => return Ok(destination),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("cannot keep bytes in `{}`", dir.display()));
            }
        }
    }

    anyhow::bail!("no free name in `{}`", dir.display())
}

/// Moves a file to a name that is free, or copies it to another file system: makes the copy durable,
/// and only then removes the original.
pub(super) fn move_or_copy(file: &PathHandle, destination: &Path) -> std::io::Result<()> {
    if file.move_out(destination)? {
        return Ok(());
    }
    copy_durably(file, destination)?;
    file.remove()
}

/// Copies a file to a name that is free, durably.
pub(super) fn copy_durably(file: &PathHandle, destination: &Path) -> std::io::Result<()> {
    match file.read()? {
        OnDisk::Link(target) => {
            std::os::unix::fs::symlink(OsStr::from_bytes(&target), destination)?
        }
        OnDisk::File { body, .. } => match body {
            FileBody::Bytes(bytes) => write_private(destination, &mut bytes.as_slice())?,
            FileBody::Large { file, .. } => {
                write_private(destination, &mut FileReader::start(&file))?
            }
        },
        OnDisk::Absent | OnDisk::Dir | OnDisk::Other => {
            return Err(ErrorKind::Unsupported.into());
        }
    }
    Ok(())
}

/// Writes a new file that only the user can read.
pub(super) fn write_private(path: &Path, bytes: &mut dyn Read) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    std::io::copy(bytes, &mut file)?;
    file.sync_all()
}
