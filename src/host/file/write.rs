//! Creates and replaces files below a root. A file gets its name only when it is complete.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawMode, RenameFlags, Stat};
use rustix::io::Errno;
use tempfile::TempPath;

use super::{
    FileInfo, FileKind, FileMode, PRIVATE_FILE, Root, TEMPORARY, beneath, not_regular,
    open_regular, split,
};
use crate::host::file::failure;
use crate::host::lease::Writers;

static TEMPORARY_COUNT: AtomicU64 = AtomicU64::new(0);

impl Root {
    /// Creates a file and its parent directories. Fails with `AlreadyExists` if the path exists,
    /// even as a dangling link.
    pub fn create_new(&self, path: &Path, bytes: &[u8], mode: FileMode) -> io::Result<()> {
        let (dir, name) = self.make_parent(path)?;
        let temporary = write_temporary(&dir, bytes, Permissions::New(mode))
            .map_err(|e| failure("create", path, e))?;
        rename_temporary(&dir, &temporary, name, false).map_err(|e| self.fail("create", path, e))
    }

    /// Like [`Root::create_new`], but writes directly under the final name, which is cheaper. For a
    /// directory that no other process uses yet.
    pub fn create_aside(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let (dir, name) = self.make_parent(path)?;
        let written = write_file(&dir, name, bytes, Permissions::New(FileMode::Plain));
        written.map_err(|e| failure("create", path, e))
    }

    /// Replaces the content of a regular file, and keeps its permissions. Other hard links keep the
    /// old content.
    pub fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let (dir, name) = self.parent(path).map_err(|e| self.fail("write", path, e))?;
        let Some(FileInfo {
            kind: FileKind::File(_),
            permissions,
            ..
        }) = self.entry(path)?
        else {
            return Err(not_regular("write", path));
        };

        let temporary = write_temporary(&dir, bytes, Permissions::Exactly(permissions))
            .map_err(|e| failure("write", path, e))?;
        rename_temporary(&dir, &temporary, name, true).map_err(|e| self.fail("write", path, e))
    }

    /// Unique among the names of this process.
    fn temporary_name() -> OsString {
        format!(
            "{TEMPORARY}{}-{}",
            std::process::id(),
            TEMPORARY_COUNT.fetch_add(1, Ordering::Relaxed)
        )
        .into()
    }

    /// Like [`Root::parent`], but creates missing directories.
    fn make_parent<'p>(&self, path: &'p Path) -> io::Result<(OwnedFd, &'p OsStr)> {
        let opened = split(path)
            .and_then(|(parent, name)| Ok((beneath::make_dir(&self.dir, parent)?, name)));
        opened.map_err(|e| self.fail("create", path, e))
    }
}

enum Permissions {
    /// Default permissions, reduced by the umask.
    New(FileMode),
    /// Permission bits copied from another file.
    Exactly(u32),
}

/// Creates a file and fills it. Removes it again on failure. Fails if the name exists.
pub fn create_file<T>(
    dir: &OwnedFd,
    name: &OsStr,
    mode: RawMode,
    fill: impl FnOnce(&mut File) -> io::Result<T>,
) -> io::Result<T> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(super::openat(dir, name, flags, Mode::from_raw_mode(mode))?);
    let filled = fill(&mut file);
    if filled.is_err() {
        let _ = rustix::fs::unlinkat(dir, name, AtFlags::empty());
    }

    filled
}

fn write_file(
    dir: &OwnedFd,
    name: &OsStr,
    bytes: &[u8],
    permissions: Permissions,
) -> io::Result<()> {
    // With `Exactly`, no other user can read the file before `fchmod`.
    let first = match permissions {
        Permissions::New(FileMode::Plain) => 0o666,
        Permissions::New(FileMode::Executable) => 0o777,
        Permissions::Exactly(_) => 0o600,
    };
    create_file(dir, name, first, |file| {
        file.write_all(bytes)?;
        match permissions {
            Permissions::New(_) => Ok(()),
            Permissions::Exactly(bits) => Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(bits))?),
        }
    })
}

/// Returns the name of a new file with this content.
fn write_temporary(dir: &OwnedFd, bytes: &[u8], permissions: Permissions) -> io::Result<OsString> {
    let name = Root::temporary_name();
    write_file(dir, &name, bytes, permissions)?;
    Ok(name)
}

/// Renames a temporary file to its final name. Removes it on failure.
fn rename_temporary(
    dir: &OwnedFd,
    temporary: &OsStr,
    name: &OsStr,
    replaces: bool,
) -> rustix::io::Result<()> {
    let renamed = match replaces {
        true => rustix::fs::renameat(dir, temporary, dir, name),
        false => rename_to_free_name(dir, temporary, dir, name),
    };
    if renamed.is_err() {
        let _ = rustix::fs::unlinkat(dir, temporary, AtFlags::empty());
    }

    renamed
}

/// Renames a file or directory. Fails with `EEXIST` if the new name is taken.
///
/// Uses `renameat2(RENAME_NOREPLACE)`. On file systems without it, a hard link followed by an
/// unlink: the file has two names for a moment. For directories, and on file systems without hard
/// links, a check followed by a rename: a file created in between is lost.
pub fn rename_to_free_name(
    dir: &OwnedFd,
    from: &OsStr,
    to_dir: &OwnedFd,
    to: &OsStr,
) -> rustix::io::Result<()> {
    match rustix::fs::renameat_with(dir, from, to_dir, to, RenameFlags::NOREPLACE) {
        Err(e) if is_unsupported_call(e) => rename_to_free_name_in_steps(dir, from, to_dir, to),
        result => result,
    }
}

pub(super) fn rename_to_free_name_in_steps(
    dir: &OwnedFd,
    from: &OsStr,
    to_dir: &OwnedFd,
    to: &OsStr,
) -> rustix::io::Result<()> {
    match rustix::fs::linkat(dir, from, to_dir, to, AtFlags::empty()) {
        Ok(()) => return rustix::fs::unlinkat(dir, from, AtFlags::empty()),
        Err(Errno::EXIST) => return Err(Errno::EXIST),
        Err(_) => {}
    }
    match rustix::fs::statat(to_dir, to, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => rustix::fs::renameat(dir, from, to_dir, to),
        Ok(_) => Err(Errno::EXIST),
        Err(e) => Err(e),
    }
}

/// Returns whether the kernel or the file system lacks the call.
pub fn is_unsupported_call(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP | Errno::NOTTY
    )
}

pub fn read_link(root: &Root, path: &Path) -> io::Result<Vec<u8>> {
    let read = || {
        let (dir, name) = root.parent(path)?;
        rustix::fs::readlinkat(&dir, name, Vec::new())
    };
    let target = read().map_err(|errno| root.fail("read", path, errno))?;
    Ok(target.into_bytes())
}

/// Replaces a file or link by a new file, which gets default permissions. A link is replaced
/// itself, not followed. Fails if there is neither.
pub fn replace_entry(root: &Root, path: &Path, bytes: &[u8], mode: FileMode) -> io::Result<()> {
    require_leaf(root, path)?;
    let (dir, name) = root.parent(path).map_err(|e| root.fail("write", path, e))?;
    let temporary = write_temporary(&dir, bytes, Permissions::New(mode))
        .map_err(|e| failure("write", path, e))?;
    rename_temporary(&dir, &temporary, name, true).map_err(|e| root.fail("write", path, e))
}

/// Creates a link and its parent directories. With `replaces`, replaces a file or link and fails if
/// there is neither. Otherwise fails with `AlreadyExists` if the path exists.
pub fn write_link(root: &Root, path: &Path, target: &[u8], replaces: bool) -> io::Result<()> {
    if replaces {
        require_leaf(root, path)?;
    }

    let (dir, name) = root.make_parent(path)?;
    let temporary = Root::temporary_name();
    rustix::fs::symlinkat(std::ffi::OsStr::from_bytes(target), &dir, &temporary)
        .map_err(|e| root.fail("create", path, e))?;
    rename_temporary(&dir, &temporary, name, replaces).map_err(|e| root.fail("create", path, e))
}

/// Removes a file or link. Fails if there is neither.
pub fn remove_file(root: &Root, path: &Path) -> io::Result<()> {
    require_leaf(root, path)?;
    let removed = root
        .parent(path)
        .and_then(|(dir, name)| rustix::fs::unlinkat(dir, name, AtFlags::empty()));
    removed.map_err(|errno| root.fail("remove", path, errno))
}

/// Removes the parent directories of `path` that are empty, innermost first.
pub fn remove_empty_above(root: &Root, path: &Path) -> io::Result<()> {
    for dir in path.ancestors().skip(1) {
        if dir.as_os_str().is_empty() {
            break;
        }
        let removed = root
            .parent(dir)
            .and_then(|(above, name)| rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR));
        match removed {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::NOTEMPTY | Errno::EXIST) => break,
            Err(errno) => return Err(root.fail("remove", dir, errno)),
        }
    }
    Ok(())
}

fn require_leaf(root: &Root, path: &Path) -> io::Result<()> {
    match root.kind(path)? {
        Some(FileKind::File(_) | FileKind::Link) => Ok(()),
        _ => {
            let error = io::Error::new(
                io::ErrorKind::InvalidInput,
                "there is neither a file nor a link",
            );
            Err(failure("write", path, error))
        }
    }
}

/// Writes a file atomically and durably: temporary file, fsync, rename, fsync of the directory.
/// Creates missing parents, and keeps the permissions of an existing file.
///
/// Follows links in `path`. For our own files only, not for files of a project.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_state(path, bytes, true).map_err(|e| failure("write", path, e))
}

/// Like [`write_atomic`] without the fsyncs. After a power cut the file can be empty or damaged, so
/// only use it for data that is rebuilt then.
pub fn write_cache(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_state(path, bytes, false).map_err(|e| failure("write", path, e))
}

/// Errors do not name the file.
fn write_state(path: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    super::make_dirs(parent)?;
    let folder = super::openat(
        CWD,
        parent,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let temporary = format!(
        "{TEMPORARY}{}-{}",
        std::process::id(),
        name.to_string_lossy()
    );
    let temporary = temporary.as_ref();

    // Left by a crashed process with the same id.
    let _ = rustix::fs::unlinkat(&folder, temporary, AtFlags::empty());
    let permissions = rustix::fs::statat(&folder, name, AtFlags::empty())
        .map_or(PRIVATE_FILE, |old| FileInfo::from(&old).permissions);
    create_file(&folder, temporary, PRIVATE_FILE, |file| {
        file.write_all(bytes)?;
        rustix::fs::fchmod(&*file, Mode::from_raw_mode(permissions))?;
        match durable {
            true => super::sync_open_file(file),
            false => Ok(()),
        }
    })?;
    rustix::fs::renameat(&folder, temporary, &folder, name)?;
    if durable {
        // Otherwise a power cut can undo the rename.
        super::sync_open_file(&File::from(folder))?;
    }

    Ok(())
}

// Writes a file that gets its name only when it is complete (`O_TMPFILE`). If the process is
// killed, nothing is left behind.
//
// File systems without `O_TMPFILE` get a temporary file next to the destination.

/// A file that is being written. Only the user can read it.
#[derive(Debug)]
pub struct UnnamedFile {
    file: File,
    dir: PathBuf,
    /// The temporary file, if there is no `O_TMPFILE`.
    temporary: Option<TempPath>,
}

impl UnnamedFile {
    /// Creates a file in the file system of `dir`, in which it is going to be named.
    pub fn make(dir: &Path) -> io::Result<UnnamedFile> {
        let (file, temporary) = match create_unnamed(dir) {
            Some(file) => (file, None),
            None => {
                let mut builder = tempfile::Builder::new();
                let (file, path) = builder.prefix(TEMPORARY).tempfile_in(dir)?.into_parts();
                (file, Some(path))
            }
        };
        Ok(UnnamedFile {
            file,
            dir: dir.to_owned(),
            temporary,
        })
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name. Fails with `AlreadyExists` if the name is taken.
    pub fn name(self, path: &Path) -> io::Result<()> {
        match self.temporary {
            Some(temporary) => Ok(temporary.persist_noclobber(path)?),
            None => link_unnamed(&self.file, path),
        }
    }

    /// Gives the file its name. Replaces an existing file.
    pub fn replace(self, path: &Path) -> io::Result<()> {
        let temporary = match self.temporary {
            Some(temporary) => temporary,
            None => match link_unnamed(&self.file, path) {
                // `linkat` cannot replace a file, so link to a temporary name and rename that.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let sibling = self.dir.join(Root::temporary_name());
                    link_unnamed(&self.file, &sibling)?;
                    TempPath::try_from_path(sibling)?
                }
                result => return result,
            },
        };
        Ok(temporary.persist(path)?)
    }
}

/// Flushes a regular file. Succeeds if it no longer exists.
pub fn sync_file(path: &Path) -> io::Result<()> {
    match open_regular(path) {
        Ok(file) => super::sync_open_file(&file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns `None` if the system or the file system cannot do this.
#[cfg(target_os = "linux")]
fn create_unnamed(dir: &Path) -> Option<File> {
    use rustix::fs::{CWD, Mode, OFlags};

    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    let file = super::openat(CWD, dir, flags, Mode::RUSR | Mode::WUSR).ok()?;
    let file = File::from(file);
    // `link` needs `/proc`.
    descriptor_path(&file).exists().then_some(file)
}

#[cfg(not(target_os = "linux"))]
fn create_unnamed(_dir: &Path) -> Option<File> {
    None
}

fn link_unnamed(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD};

    let from = descriptor_path(file);
    let flags = AtFlags::SYMLINK_FOLLOW;
    Ok(rustix::fs::linkat(CWD, &from, CWD, path, flags)?)
}

fn descriptor_path(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd as _;

    // `linkat` of the descriptor itself (`AT_EMPTY_PATH`) needs a privilege.
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Replaces a file that has exactly the bytes `expected`, or removes it if `new` is `None`. Keeps
/// its permissions. Returns `false` without a change if the file has other bytes, or if a program
/// has it open for writing. Limitation: on a file system that cannot exchange two names, a save
/// between the comparison and the rename is lost.
pub fn replace_if(
    root: &Root,
    path: &Path,
    expected: &[u8],
    new: Option<&[u8]>,
) -> io::Result<bool> {
    let (file, _) = root.open_regular(path)?;
    let file = Arc::new(file);
    // A program that opens the file for writing from here on waits until the lease is dropped.
    let writers = Writers::of(file.clone());
    if writers.are_present() || !has(&file, expected)? {
        return Ok(false);
    }

    let stat = rustix::fs::fstat(&*file)?;
    let (dir, name) = root.parent(path).map_err(|e| root.fail("write", path, e))?;
    let temporary = Root::temporary_name();
    let permissions = Permissions::Exactly(FileInfo::from(&stat).permissions);
    write_file(&dir, &temporary, new.unwrap_or_default(), permissions)
        .map_err(|e| failure("write", path, e))?;
    // The exchange keeps the old file: it is checked again and can be swapped back.
    match exchange(&dir, name, &temporary) {
        Ok(()) => {}
        Err(errno) if is_unsupported_call(errno) => {
            let replaced = match new {
                Some(_) => rustix::fs::renameat(&dir, &temporary, &dir, name),
                None => remove(&dir, name).and_then(|()| remove(&dir, &temporary)),
            };
            replaced.map_err(|e| root.fail("write", path, e))?;
            return Ok(true);
        }
        Err(errno) => {
            let _ = remove(&dir, &temporary);
            return Err(root.fail("write", path, errno));
        }
    }

    // The program renamed another file to the name, or is about to write to the one we read.
    let moved = stat_at(&dir, &temporary);
    let is_read = moved.is_ok_and(|moved| are_same(&moved, &stat));
    if !is_read || writers.are_present() {
        swap_back(&dir, name, &temporary)?;
        return Ok(false);
    }

    if new.is_none() {
        remove(&dir, name)?;
    }
    remove(&dir, &temporary)?;
    Ok(true)
}

/// Gives the name back to the file of the other program, and removes ours.
fn swap_back(dir: &OwnedFd, name: &OsStr, temporary: &OsStr) -> rustix::io::Result<()> {
    let own = stat_at(dir, name)?;
    exchange(dir, name, temporary)?;
    if !are_same(&stat_at(dir, temporary)?, &own) {
        // The program saved once more meanwhile. Its newest version gets the name.
        exchange(dir, name, temporary)?;
    }
    remove(dir, temporary)
}

fn exchange(dir: &OwnedFd, one: &OsStr, other: &OsStr) -> rustix::io::Result<()> {
    rustix::fs::renameat_with(dir, one, dir, other, RenameFlags::EXCHANGE)
}

fn remove(dir: &OwnedFd, name: &OsStr) -> rustix::io::Result<()> {
    rustix::fs::unlinkat(dir, name, AtFlags::empty())
}

fn stat_at(dir: &OwnedFd, name: &OsStr) -> rustix::io::Result<Stat> {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
}

fn are_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

fn has(file: &std::fs::File, expected: &[u8]) -> io::Result<bool> {
    let mut bytes = Vec::with_capacity(expected.len() + 1);
    file.take(expected.len() as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes == expected)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    fn written(dir: &Path, text: &str, with_name: bool) -> UnnamedFile {
        let mut unnamed = UnnamedFile::make(dir).unwrap();
        if with_name {
            let (file, path) = tempfile::NamedTempFile::new_in(dir).unwrap().into_parts();
            (unnamed.file, unnamed.temporary) = (file, Some(path));
        }
        unnamed.file.write_all(text.as_bytes()).unwrap();
        unnamed
    }

    #[test]
    fn it_has_its_name_once_it_is_whole_and_nothing_else_is_left() {
        for with_name in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("a");
            let read = || std::fs::read_to_string(&path).unwrap();
            drop(written(dir.path(), "gone", with_name));
            written(dir.path(), "one", with_name).name(&path).unwrap();
            let result = written(dir.path(), "two", with_name).name(&path);
            assert_eq!(result.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(read(), "one");

            written(dir.path(), "three", with_name)
                .replace(&path)
                .unwrap();
            assert_eq!(read(), "three");
            assert_eq!(names(dir.path()), ["a"]);
        }
    }

    #[test]
    fn one_that_is_being_written_is_not_seen() {
        let dir = tempfile::tempdir().unwrap();
        // Without `O_TMPFILE`, the temporary file is visible.
        if create_unnamed(dir.path()).is_some() {
            let _file = written(dir.path(), "half", false);
            assert_eq!(names(dir.path()), [""; 0]);
        }
    }

    #[test]
    fn a_file_is_replaced_only_with_the_expected_bytes_and_without_a_writer() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let (path, file) = (Path::new("a"), dir.path().join("a"));
        std::fs::write(&file, "one").unwrap();
        assert!(!replace_if(&root, path, b"two", Some(b"x")).unwrap());
        assert!(!replace_if(&root, path, b"on", Some(b"x")).unwrap());
        assert!(replace_if(&root, path, b"one", Some(b"two")).unwrap());
        assert_eq!(std::fs::read(&file).unwrap(), b"two");

        let mut writer = std::fs::File::options().append(true).open(&file).unwrap();
        if cfg!(target_os = "linux") {
            assert!(!replace_if(&root, path, b"two", Some(b"x")).unwrap());
        }
        writer.write_all(b"!").unwrap();
        drop(writer);
        assert_eq!(std::fs::read(&file).unwrap(), b"two!");
        assert!(replace_if(&root, path, b"two!", None).unwrap());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
