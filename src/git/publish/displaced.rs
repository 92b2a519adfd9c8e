//! Displaced files: the user's old versions, from the swap or deletion until they are settled.
//!
//! A displaced file first has a temporary name next to its destination. [`TemporaryFiles::settle`]
//! then compares it when no process can have it open for writing, and either moves it to
//! `undo/displaced` or gives it its name back. The next command clears `undo/displaced`
//! ([`clear_displaced`]). Three directories keep files, all below `.git/teddy/undo`:
//!
//! - `displaced`: what git can restore. The name contains the id of the content, so a late write is
//!   noticed.
//! - `replaced`: bytes that git cannot restore, because a filter drops some of them, until `teddy gc`
//!   removes undo data. The name identifies the tree entry that the file was a version of, and its
//!   path: if that entry is written to the path again, the file gets the kept bytes.
//! - `rescued`: everything with unexpected content. It is reported to the user.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context as _;
use gix::ObjectId;

use crate::git::object::large::{FileReader, LARGE};
use crate::git::parallel::map_parallel;
use crate::git::path_handle::{
    FileBody, IfMissing, OnDisk, PathHandle, RecentLookup, Top, Trace, WalkResult,
};
use crate::git::paths::{self, parent_dirs};
use crate::git::repository::Repository;
use crate::git::version::{self, Mark};
use crate::host::fault;
use crate::host::file::{TEMPORARY, make_dirs, read_regular, sync_open_file};
use crate::host::lease::Writers;

/// Why a path was left as it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Conflict {
    /// It differs from both trees.
    Changed,
    /// Another process has it open for writing.
    Busy,
    /// The user has no permission to change it, because of the file or its directory.
    Unwritable,
    /// git does not store its bytes on disk, and the change does not fit them.
    Unfit,
    /// It is new, its name differs from an existing one in case only, and git ignores case.
    CaseCollision,
    /// It is a nested repository or in one, on either side.
    Repository,
    /// The new version could not be made, for example by a filter.
    Failed(String),
}

/// A file with unexpected content that was found under one of our temporary names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvaged {
    pub path: Vec<u8>,
    /// Where the file is now, below `undo/rescued`.
    pub saved_as: PathBuf,
}

/// A replaced or deleted file that a process might still write to.
pub(super) struct Displaced {
    pub(super) path: Vec<u8>,
    pub(super) temporary: Vec<u8>,
    /// Content when the change was classified.
    pub(super) old_mark: Mark,
    /// Content that takes its place; `Absent` after a deletion. Identifies our file later, so that
    /// another program's file of the same name is never deleted.
    pub(super) new_mark: Mark,
    /// Open handle of the temporary name. Survives a rename of its directory. `None` beyond
    /// [`MOST_OPEN`].
    pub(super) handle: Option<PathHandle>,
    /// Set if git cannot restore the old bytes.
    pub(super) kept_as: Option<KeptAs>,
}

/// Limit of open handles to staged files, and of those to displaced files.
pub(super) const MOST_OPEN: usize = 64;

/// What the threads of a publication share.
pub(super) struct Shared {
    pub(super) top: Top,
    /// Part of each temporary name.
    operation: String,
    /// Number of names used.
    names: AtomicUsize,
}

impl Shared {
    pub(super) fn open(repository: &Repository, operation: &str) -> anyhow::Result<Shared> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        anyhow::ensure!(
            operation.bytes().all(plain),
            "`{operation}` cannot be part of a file name"
        );
        Ok(Shared {
            top: Top::open(repository.workdir())?,
            operation: operation.to_owned(),
            names: AtomicUsize::new(0),
        })
    }

    pub(super) fn prefix(&self) -> String {
        format!("{TEMPORARY}{}-", self.operation)
    }

    fn number(&self) -> usize {
        self.names.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Access to the user's files and our temporary names next to them, for one thread.
pub(super) struct TemporaryFiles<'repo> {
    pub(super) repository: &'repo Repository,
    pub(super) shared: Arc<Shared>,
    pub(super) recent: RecentLookup,
    /// `undo/displaced`, opened when it is first needed.
    undo_dir: Option<PathHandle>,
    pub(super) rescued: Vec<Salvaged>,
}

impl<'repo> TemporaryFiles<'repo> {
    pub(super) fn new(repository: &'repo Repository, shared: Arc<Shared>) -> TemporaryFiles<'repo> {
        TemporaryFiles {
            repository,
            shared,
            recent: RecentLookup::default(),
            undo_dir: None,
            rescued: Vec::new(),
        }
    }

    pub(super) fn walk(&mut self, path: &[u8], missing: IfMissing) -> io::Result<WalkResult> {
        self.recent.walk(&self.shared.top, path, missing)
    }

    /// Uses new temporary names until one is free: an interrupted run can have left files.
    pub(super) fn with_free_name<T>(
        &self,
        mut work: impl FnMut(&[u8]) -> io::Result<T>,
    ) -> io::Result<(Vec<u8>, T)> {
        loop {
            let name = format!("{}{}", self.shared.prefix(), self.shared.number()).into_bytes();
            match work(&name) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                done => return Ok((name, done?)),
            }
        }
    }

    /// Swaps the staged new version of `file` with the current one, which is then displaced. Returns
    /// `false` if the file was replaced in place and nothing is displaced.
    ///
    /// The old version is compared right after the swap, and again once no process has it open for
    /// writing ([`TemporaryFiles::settle`]): an editor that opened it before the swap can still save
    /// into it. A file that changed since it was classified has its name back.
    pub(super) fn exchange(
        &mut self,
        handle: &PathHandle,
        file: &Displaced,
        trace: Option<Trace>,
    ) -> anyhow::Result<Result<bool, Conflict>> {
        let temporary = handle.sibling(&file.temporary);
        match temporary.exchange(handle) {
            Ok(true) => {}
            Ok(false) => return self.replace(handle, file),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Err(Conflict::Changed)),
            Err(error) if is_refused(&error) => return Ok(Err(Conflict::Unwritable)),
            Err(error) => return Err(error).with_context(|| cannot_write(&file.path)),
        }

        // Equal metadata suffices here, because `settle` compares the bytes under a lease.
        let current = temporary.stat()?.map(|stat| Trace::of(&stat));
        let is_traced = current.is_some() && current == trace;
        if !is_traced && version::read_disk(self.repository, &temporary)?.mark != file.old_mark {
            self.restore(handle, file)?;
            return Ok(Err(Conflict::Changed));
        }
        Ok(Ok(true))
    }

    /// Replaces a file on a file system without `RENAME_EXCHANGE`.
    ///
    /// Race: a save between the comparison and the rename is overwritten.
    fn replace(
        &mut self,
        handle: &PathHandle,
        file: &Displaced,
    ) -> anyhow::Result<Result<bool, Conflict>> {
        if version::read_disk(self.repository, handle)?.mark != file.old_mark {
            return Ok(Err(Conflict::Changed));
        }
        if let Some(kept_as) = &file.kept_as {
            let copy = |free: &Path| copy_durably(handle, free);
            put_in_free_name(
                &undo_dir(self.repository, "replaced"),
                |number| kept_as.file_name(number, &file.path),
                copy,
            )?;
        }
        let replaced = handle.sibling(&file.temporary).replace(handle);
        replaced.with_context(|| cannot_write(&file.path))?;
        Ok(Ok(false))
    }

    /// Moves a file to a temporary name, where [`TemporaryFiles::settle`] compares it. Not unlinked:
    /// the file can have changed since it was classified. `None` if it does not exist.
    pub(super) fn delete(
        &mut self,
        mut file: Displaced,
        is_open: bool,
    ) -> anyhow::Result<Result<Option<Displaced>, Conflict>> {
        let WalkResult::Handle(handle) = self.walk(&file.path, IfMissing::Stop)? else {
            return Ok(Ok(None));
        };
        fault::point("publish-before-delete")?;
        match self.with_free_name(|name| handle.move_to(&handle.sibling(name))) {
            Ok((name, ())) => file.temporary = name,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Ok(None)),
            Err(error) if is_refused(&error) => return Ok(Err(Conflict::Unwritable)),
            Err(error) => return Err(error).with_context(|| cannot_write(&file.path)),
        }
        fault::point("publish-after-delete")?;
        file.handle = is_open.then(|| handle.sibling(&file.temporary));
        Ok(Ok(Some(file)))
    }

    /// Moves a displaced file to `undo/displaced`. If it changed, or a process has it open for
    /// writing, it gets its name back and the path is a conflict.
    pub(super) fn settle(&mut self, file: &Displaced) -> anyhow::Result<Option<Conflict>> {
        let WalkResult::Handle(handle) = self.walk(&file.path, IfMissing::Stop)? else {
            // Its directory was moved, and the file with it. No file matches `Other`, so bytes that
            // git cannot restore are rescued.
            let expected = match &file.kept_as {
                Some(_) => &Mark::Other,
                None => &file.old_mark,
            };
            if let Some(temporary) = &file.handle {
                self.dispose(temporary, expected, &file.path)?;
            }
            return Ok(None);
        };

        let temporary = handle.sibling(&file.temporary);
        let state = temporary.find()?;
        // Ask for writers before reading: a process that writes in between is then noticed either
        // way.
        let writers = state.writers();
        let mut conflict = Conflict::Changed;
        if version::read_state(self.repository, &state)?.mark == file.old_mark {
            if !writers.are_present() {
                self.put_away(
                    &temporary,
                    &file.old_mark,
                    file.kept_as.as_ref(),
                    &file.path,
                )?;
                return Ok(None);
            }
            conflict = Conflict::Busy;
        }

        self.restore(&handle, file)?;
        Ok(Some(conflict))
    }

    /// Gives a displaced file that had changed its name back.
    ///
    /// A newer save of the user's that has taken the name since keeps it; the displaced file is then
    /// rescued.
    fn restore(&mut self, handle: &PathHandle, file: &Displaced) -> anyhow::Result<()> {
        let temporary = handle.sibling(&file.temporary);
        if file.new_mark == Mark::Absent {
            return match temporary.move_to(handle) {
                Ok(()) => Ok(()),
                // The user saved again: that save keeps the name.
                Err(_) => self.dispose(&temporary, &Mark::Absent, &file.path),
            };
        }

        let returned = match temporary.exchange(handle) {
            Ok(returned) => returned,
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(error).with_context(|| cannot_write(&file.path)),
        };
        if returned && version::read_disk(self.repository, &temporary)?.mark != file.new_mark {
            // The user replaced our version after the swap: swap again, so the newer save keeps the
            // name.
            let _ = temporary.exchange(handle);
        }
        self.dispose(&temporary, &file.new_mark, &file.path)
    }

    /// Disposes of a temporary file: to `undo/displaced` if its content is `expected` and no process
    /// has it open for writing, else to `undo/rescued`, where the user finds it.
    pub(super) fn dispose(
        &mut self,
        temporary: &PathHandle,
        expected: &Mark,
        path: &[u8],
    ) -> anyhow::Result<()> {
        let state = temporary.find()?;
        // Ask for writers before reading, as in `settle`.
        let writers = state.writers();
        let mark = version::read_state(self.repository, &state)?.mark;
        if mark == Mark::Absent {
            return Ok(());
        }
        if mark == *expected && !writers.are_present() {
            return self.put_away(temporary, &mark, None, path);
        }
        self.rescued.push(rescue(self.repository, temporary, path)?);
        Ok(())
    }

    /// Moves a file with known content to `undo/displaced`. A link, or a file on another file system,
    /// is removed. `kept_as` is for bytes that git cannot restore: they are kept as long as undo data.
    fn put_away(
        &mut self,
        temporary: &PathHandle,
        mark: &Mark,
        kept_as: Option<&KeptAs>,
        path: &[u8],
    ) -> anyhow::Result<()> {
        let during = || {
            let path = String::from_utf8_lossy(path);
            format!("cannot remove a temporary file beside `{path}`")
        };
        let Mark::File(id, _) = mark else {
            return temporary.remove().with_context(during);
        };

        let dir = match self.undo_dir.take() {
            Some(dir) => dir,
            None => open_or_create_dir(&undo_dir(self.repository, "displaced"))?,
        };
        let suffix = kept_as.map_or_else(String::new, |kept_as| format!("-{}", kept_as.0));
        loop {
            let start = format!(
                "{id}{suffix}.{}.{}.",
                self.shared.operation,
                self.shared.number()
            );
            let name = short_name(path, id.kind().len_in_hex());
            let free = dir.sibling(&[start.as_bytes(), name].concat());
            match (temporary.move_over(&free), kept_as) {
                (Ok(true), _) => break,
                (Ok(false), Some(kept_as)) => {
                    keep_replaced(self.repository, temporary, kept_as, path)?;
                    break;
                }
                (Ok(false), None) => {
                    temporary.remove().with_context(during)?;
                    break;
                }
                // Left by an interrupted run.
                (Err(error), _) if error.kind() == ErrorKind::AlreadyExists => {}
                (Err(error), _) => return Err(error).with_context(during),
            }
        }
        self.undo_dir = Some(dir);
        Ok(())
    }

    /// Removes the directories above a path that are empty.
    pub(super) fn remove_empty_dirs(&mut self, path: &[u8]) -> io::Result<()> {
        self.recent.forget();
        self.shared.top.remove_empty_dirs(parent_dirs(path))
    }
}

pub(super) fn cannot_write(path: &[u8]) -> String {
    format!("cannot write `{}`", String::from_utf8_lossy(path))
}

/// Returns whether the kernel refuses to change a name although the earlier checks passed. Not every
/// system can answer them, and permissions can have changed since.
fn is_refused(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied | ErrorKind::ResourceBusy
    )
}

/// Deletes what earlier publications displaced.
///
/// A program that resolved a file's name before the swap can open it after our final comparison and
/// write into the old inode. A file that was written to so moves to `undo/rescued` and is returned.
/// A file that a process still has open for writing stays. The caller holds the repository lock.
pub fn clear_displaced(repository: &Repository) -> anyhow::Result<Vec<Salvaged>> {
    let dir = undo_dir(repository, "displaced");
    let top = match Top::open(&dir) {
        Ok(top) => top,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read `{}`", dir.display()));
        }
    };
    let WalkResult::Handle(inside) = top.walk(b"x", IfMissing::Stop)? else {
        return Ok(Vec::new());
    };

    let cleared = map_parallel(repository, inside.siblings()?, |repository, names| {
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

    match (mark, kept_as) {
        (Mark::File(id, _), _) if expected_id != Some(id.to_string().as_str()) => {
            return rescue(repository, handle, path).map(Some);
        }
        (Mark::File(..), Some(kept_as)) => {
            keep_replaced(repository, handle, &KeptAs(kept_as.to_owned()), path)?;
        }
        (Mark::File(..), None) => handle.remove()?,
        // Not ours: only regular files are displaced.
        _ => {}
    }
    Ok(None)
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

/// Opens a directory, creating it if necessary. Use siblings of the returned handle: its name is a
/// dummy.
fn open_or_create_dir(dir: &Path) -> anyhow::Result<PathHandle> {
    make_dirs(dir)
        .and_then(|()| Top::open(dir))
        .and_then(|top| top.handle(b"x"))
        .with_context(|| format!("cannot make `{}`", dir.display()))
}

fn undo_dir(repository: &Repository, name: &str) -> PathBuf {
    repository.teddy_dir().join("undo").join(name)
}

/// Hexadecimal digits of a path's hash in a name.
const PATH_DIGITS: usize = 12;

/// Bytes of two ids and the file's own name in a name below `undo`. Most file systems limit names to
/// 255 bytes, and counters come on top.
const MAX_NAME: usize = 200;

/// Bytes of the file's own name in the name of a rescued file.
const MAX_RESCUED_NAME: usize = 240;

/// Returns the name of a file, cut so that it fits beside two ids of a length.
fn short_name(path: &[u8], id_length: usize) -> &[u8] {
    let (_, name) = paths::split(path);
    &name[..name.len().min(MAX_NAME.saturating_sub(2 * id_length))]
}

/// Identifies the tree entry and path that a file was a version of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeptAs(String);

impl KeptAs {
    pub(super) fn of(
        repository: &Repository,
        entry: ObjectId,
        path: &[u8],
    ) -> anyhow::Result<KeptAs> {
        let hash = repository.blob_id(path)?.to_string();
        Ok(KeptAs(format!("{entry}-{}", &hash[..PATH_DIGITS])))
    }

    fn file_name(&self, number: usize, path: &[u8]) -> OsString {
        let mut name = format!("{}.{number}.", self.0).into_bytes();
        let entry_length = self.0.len().saturating_sub(1 + PATH_DIGITS);
        name.extend(short_name(path, entry_length));
        OsString::from_vec(name)
    }
}

fn keep_replaced(
    repository: &Repository,
    file: &PathHandle,
    kept_as: &KeptAs,
    path: &[u8],
) -> anyhow::Result<()> {
    put_in_free_name(
        &undo_dir(repository, "replaced"),
        |number| kept_as.file_name(number, path),
        |free| move_or_copy(file, free),
    )?;
    Ok(())
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
    put_in_free_name(
        &undo_dir(repository, "replaced"),
        |number| kept_as.file_name(number, path),
        |free| write_private(free, &mut &*bytes),
    )?;
    Ok(())
}

pub(super) fn newest_replaced(
    repository: &Repository,
    kept_as: &KeptAs,
    path: &[u8],
) -> Option<Vec<u8>> {
    let dir = undo_dir(repository, "replaced");
    let files = (1..).map(|number| dir.join(kept_as.file_name(number, path)));
    let last = files.take_while(|file| file.exists()).last()?;
    read_regular(&last, LARGE).ok()
}

/// Moves a file to `undo/rescued`.
///
/// A rename keeps the inode, so what a process still writes to it is kept too. Across file systems
/// it is a copy, which misses later writes.
fn rescue(repository: &Repository, file: &PathHandle, path: &[u8]) -> anyhow::Result<Salvaged> {
    let name = |number: usize| {
        let (_, name) = paths::split(path);
        let name = &name[..name.len().min(MAX_RESCUED_NAME)];
        OsString::from_vec([format!("{number}-").as_bytes(), name].concat())
    };
    Ok(Salvaged {
        path: path.to_vec(),
        saved_as: put_in_free_name(&undo_dir(repository, "rescued"), name, |free| {
            move_or_copy(file, free)
        })?,
    })
}

/// Runs `put` with numbered names in a directory until one is free, and returns it.
fn put_in_free_name(
    dir: &Path,
    name: impl Fn(usize) -> OsString,
    put: impl Fn(&Path) -> io::Result<()>,
) -> anyhow::Result<PathBuf> {
    make_dirs(dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
    let mut number = 1;
    loop {
        let free = dir.join(name(number));
        match put(&free) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            done => {
                done.with_context(|| format!("cannot keep bytes in `{}`", dir.display()))?;
                return Ok(free);
            }
        }
    }
}

/// Moves a file to a name that is free, or copies it to another file system: makes the copy durable,
/// and only then removes the original.
fn move_or_copy(file: &PathHandle, destination: &Path) -> io::Result<()> {
    if file.move_out(destination)? {
        return Ok(());
    }
    copy_durably(file, destination)?;
    file.remove()
}

/// Copies a file to a name that is free, durably.
fn copy_durably(file: &PathHandle, destination: &Path) -> io::Result<()> {
    match file.read()? {
        OnDisk::Link(target) => std::os::unix::fs::symlink(OsStr::from_bytes(&target), destination),
        OnDisk::File { body, .. } => match body {
            FileBody::Bytes(bytes) => write_private(destination, &mut bytes.as_slice()),
            FileBody::Large { file, .. } => {
                write_private(destination, &mut FileReader::start(&file))
            }
        },
        OnDisk::Absent | OnDisk::Dir | OnDisk::Other => Err(ErrorKind::Unsupported.into()),
    }
}

/// Writes a new file that only the user can read.
fn write_private(path: &Path, bytes: &mut dyn Read) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    io::copy(bytes, &mut file)?;
    sync_open_file(&file)
}
