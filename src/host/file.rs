//! Access to the files below a directory, without following symbolic links.
//!
//! A [`Root`] is a directory that is opened once. All paths given to it are relative. Each use
//! opens every directory on the path without following a link. A link that replaces a directory
//! after a check therefore cannot lead out of the project. Paths are bytes, because repositories
//! contain names that are not UTF-8. Errors name the file and keep the kind of the system's error.

mod beneath;
mod dirs;
mod output_dir;
mod reading;
mod write;

use std::ffi::OsStr;
use std::fmt;
use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Access, AtFlags, FileType, Mode as Bits, OFlags, Stat};
use rustix::io::Errno;

pub use beneath::{Mounts, open_beneath, openat, uninterrupted};
pub use dirs::{make_writable, open_up_below, remove_at, remove_at_path, remove_below};
pub use output_dir::OutputDir;
pub use reading::{
    FileEnd, append_regular, append_shared, is_null_device, open_own, open_regular, read_end,
    read_named, read_regular, read_regular_text, read_sized,
};
pub use write::{
    UnnamedFile, create_file, is_unsupported_call, read_link, remove_empty_above, remove_file,
    rename_to_free_name, replace_entry, replace_if, sync_file, write_atomic, write_cache,
    write_link,
};

use super::{env, fault};
use crate::text::sanitize;

/// An open directory, and access to everything below it.
#[derive(Debug)]
pub struct Root {
    dir: OwnedFd,
}

/// Prefix of the names of our temporary files.
pub const TEMPORARY: &str = ".teddy-tmp-";

/// The part of a file's permissions that git records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileMode {
    Plain,
    Executable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    File(FileMode),
    Link,
    Dir,
    /// FIFO, socket or device.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileInfo {
    pub kind: FileKind,
    /// Size in bytes.
    pub size: u64,
    pub links: u64,
    /// Permission bits, without setuid, setgid and sticky.
    pub permissions: u32,
    /// Modification time, in nanoseconds since 1970.
    pub modified: i64,
}

impl Root {
    /// Opens a directory. Links in `path` itself are followed.
    pub fn open(path: &Path) -> io::Result<Root> {
        let dir = beneath::open_root(path).map_err(|e| failure("open", path, e.into()))?;
        Ok(Root { dir })
    }

    /// Returns the type of a file, or `None` if it does not exist. Does not follow a link.
    pub fn kind(&self, path: &Path) -> io::Result<Option<FileKind>> {
        Ok(self.entry(path)?.map(|entry| entry.kind))
    }

    /// Returns the type and attributes of a file, or `None` if it does not exist. The empty path is
    /// the directory itself.
    pub fn entry(&self, path: &Path) -> io::Result<Option<FileInfo>> {
        if path.as_os_str().is_empty() {
            let stat = rustix::fs::fstat(&self.dir);
            return stat
                .map(|stat| Some(FileInfo::from(&stat)))
                .map_err(|e| self.fail("look at", path, e));
        }
        match self.stat(path) {
            Ok(stat) => Ok(Some(FileInfo::from(&stat))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(e) => Err(self.fail("look at", path, e)),
        }
    }

    /// Returns the number of further hard links of a regular file. 0 if it does not exist.
    pub fn other_links(&self, path: &Path) -> u64 {
        let info = self.entry(path).ok().flatten();
        let file = info.filter(|info| matches!(info.kind, FileKind::File(_)));
        file.map_or(0, |info| info.links.saturating_sub(1))
    }

    fn open_regular(&self, path: &Path) -> io::Result<(std::fs::File, u64)> {
        // Opening a device can have side effects, so the type is checked first. It is checked again
        // after opening because the file can change in between.
        let before = self.stat(path).map_err(|e| self.fail("read", path, e))?;
        regular_size("read", path, &before)?;

        let file = self
            .open_file(path)
            .map_err(|e| self.fail("read", path, e))?;
        let after = rustix::fs::fstat(&file).map_err(|e| self.fail("read", path, e))?;
        Ok((file.into(), regular_size("read", path, &after)?))
    }

    /// Reads a regular file. Fails with `FileTooLarge` if it has more than `limit` bytes. Never
    /// blocks on a FIFO.
    pub fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        let (file, size) = self.open_regular(path)?;
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0).min(1 << 24));
        // `take` enforces the limit even if the file grows while it is read.
        let read = file.take(limit.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|e| failure("read", path, e))?;

        if bytes.len() as u64 > limit {
            let why = format!("it is larger than {limit} bytes");
            let error = io::Error::new(io::ErrorKind::FileTooLarge, why);
            return Err(failure("read", path, error));
        }

        Ok(bytes)
    }

    fn open_file(&self, path: &Path) -> rustix::io::Result<OwnedFd> {
        let (dir, name) = self.parent(path)?;
        // A FIFO must not block, and a terminal must not become ours.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        openat(&dir, name, flags, Bits::empty())
    }

    fn stat(&self, path: &Path) -> rustix::io::Result<Stat> {
        let (dir, name) = self.parent(path)?;
        rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Returns the open parent directory and the last component.
    fn parent<'p>(&self, path: &'p Path) -> rustix::io::Result<(OwnedFd, &'p OsStr)> {
        let (parent, name) = split(path)?;
        Ok((beneath::open_dir(&self.dir, parent)?, name))
    }

    fn fail(&self, verb: &'static str, path: &Path, errno: Errno) -> io::Error {
        // `ELOOP` does not say which component is the link, so it is looked up for the message.
        if errno == Errno::LOOP
            && let Some(link) = path
                .ancestors()
                .skip(1)
                // The answer can be outdated.
                .find(|above| {
                    self.stat(above)
                        .is_ok_and(|stat| FileInfo::from(&stat).kind == FileKind::Link)
                })
        {
            let message = format!("`{}` is a link", show_path(link));
            return failure(
                verb,
                path,
                io::Error::new(io::ErrorKind::NotADirectory, message),
            );
        }
        failure(verb, path, errno.into())
    }
}

impl From<&Stat> for FileInfo {
    #[allow(
        clippy::unnecessary_cast,
        reason = "the fields differ from system to system"
    )]
    fn from(stat: &Stat) -> FileInfo {
        let permissions = stat.st_mode as u32 & 0o777;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if permissions & 0o100 != 0 => {
                FileKind::File(FileMode::Executable)
            }
            FileType::RegularFile => FileKind::File(FileMode::Plain),
            FileType::Symlink => FileKind::Link,
            FileType::Directory => FileKind::Dir,
            _ => FileKind::Other,
        };
        FileInfo {
            kind,
            size: stat.st_size as u64,
            links: stat.st_nlink as u64,
            permissions,
            modified: (stat.st_mtime as i64)
                .saturating_mul(1_000_000_000)
                .saturating_add(stat.st_mtime_nsec as i64),
        }
    }
}

/// Size of a regular file. Fails with `InvalidInput` for other types.
fn regular_size(verb: &'static str, path: &Path, stat: &Stat) -> io::Result<u64> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(stat.st_size.try_into().unwrap_or(0)),
        _ => Err(not_regular(verb, path)),
    }
}

fn not_regular(verb: &'static str, path: &Path) -> io::Error {
    let error = io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
    failure(verb, path, error)
}

/// Splits off the last component. Fails unless all components are plain names (no `..`, no `/`).
fn split(path: &Path) -> rustix::io::Result<(&Path, &OsStr)> {
    if path
        .components()
        .any(|c| !matches!(c, Component::Normal(_)))
    {
        return Err(Errno::INVAL);
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok((parent, name)),
        _ => Err(Errno::INVAL),
    }
}

/// Permissions of a directory that only this user can enter.
pub const PRIVATE: u32 = 0o700;

pub const PRIVATE_FILE: u32 = 0o600;

/// Reduced by the umask.
const SHARED_DIR: u32 = 0o777;

/// Creates a directory and its parents for this user alone. Fails if the path is below a `.git` that
/// does not exist.
pub fn make_dirs(path: &Path) -> io::Result<()> {
    make_with_mode(path, PRIVATE)
}

/// Like [`make_dirs`], with the permissions of the umask: for directories of git's and of the
/// user's.
pub fn make_shared_dirs(path: &Path) -> io::Result<()> {
    make_with_mode(path, SHARED_DIR)
}

fn make_with_mode(path: &Path, mode: u32) -> io::Result<()> {
    let git = path
        .ancestors()
        .find(|dir| dir.file_name() == Some(OsStr::new(".git")));
    match git {
        // The user might have moved the git directory away. A new one with only our files would be
        // in the way when they move it back.
        Some(git) if !git.exists() => Err(missing_git_dir(git)),
        _ => DirBuilder::new().recursive(true).mode(mode).create(path),
    }
}

pub fn missing_git_dir(git: &Path) -> io::Error {
    let why = format!("the git directory `{}` is gone", git.display());
    io::Error::new(io::ErrorKind::NotFound, why)
}

/// Payload of an `io::Error` of the same kind as `why`.
#[derive(Debug)]
struct FileError {
    /// As in "cannot {verb} ...".
    verb: &'static str,
    path: PathBuf,
    why: io::Error,
}

/// Prefixes an error with "cannot {verb} `{path}`". Keeps its kind.
pub fn failure(verb: &'static str, path: &Path, why: io::Error) -> io::Error {
    io::Error::new(
        why.kind(),
        FileError {
            verb,
            path: path.to_owned(),
            why,
        },
    )
}

/// Returns an error's message as the end of a sentence: lower case, without "(os error N)".
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error ").next().unwrap_or_default();
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => "unknown reason".to_owned(),
    }
}

/// Returns whether an error says that a file could not be read, in contrast to a file that is not
/// there or was read and is wrong.
pub fn is_out_of_reach(error: &io::Error) -> bool {
    !matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::InvalidData
            | io::ErrorKind::FileTooLarge
            | io::ErrorKind::UnexpectedEof
    )
}

/// Sanitizes a path for display.
fn show_path(path: &Path) -> String {
    sanitize::sanitize_line(&sanitize::sanitize_bytes(path.as_os_str().as_bytes())).into_owned()
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot {} `{}`: {}",
            self.verb,
            show_path(&self.path),
            reason(&self.why)
        )
    }
}

impl std::error::Error for FileError {}

/// Flushes the file system that contains `inside`. Returns `false` if the system cannot. After an
/// error the data is lost, even if a retry succeeds.
pub fn sync_whole(inside: &Path) -> io::Result<bool> {
    if fault::emulated("no-syncfs").is_some() {
        return Ok(false);
    }
    let dir = File::open(inside)?;
    if fault::skips_flushes() {
        return Ok(true);
    }
    sync_file_system(&dir)
}

/// Returns whether [`sync_whole`] works on this system.
pub fn can_sync_whole() -> bool {
    // `/proc` has nothing to flush.
    sync_whole(Path::new("/proc")).unwrap_or(false)
}

/// Flushes a file, or the names in a directory.
#[expect(clippy::disallowed_methods, reason = "this is its one home")]
pub fn sync_open_file(file: &File) -> io::Result<()> {
    if fault::skips_flushes() {
        return Ok(());
    }
    file.sync_all()
}

/// Flushes the names in a directory. Returns `false` if the file system cannot flush a single one.
#[expect(clippy::disallowed_methods, reason = "this is its one home")]
pub fn sync_dir(dir: impl std::os::fd::AsFd) -> io::Result<bool> {
    if fault::skips_flushes() {
        return Ok(true);
    }
    match rustix::io::retry_on_intr(|| rustix::fs::fsync(&dir)) {
        Ok(()) => Ok(true),
        // For example shared directories of virtual machines.
        Err(rustix::io::Errno::INVAL) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "this is its one home")]
fn sync_file_system(dir: &File) -> io::Result<bool> {
    use rustix::io::Errno;

    match rustix::io::retry_on_intr(|| rustix::fs::syncfs(dir)) {
        Ok(()) => Ok(true),
        // Missing in this kernel, or denied by a seccomp filter.
        Err(Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP | Errno::PERM) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn sync_file_system(_dir: &File) -> io::Result<bool> {
    Ok(false)
}

/// Returns the nearest directory of a path, or the path itself, that this user can see, if it belongs to
/// another user. `None` for root, whom no permissions stop.
pub fn foreign_owner(path: &Path) -> Option<ForeignOwner> {
    let (at, owner) = path.ancestors().find_map(|at| {
        let metadata = at.symlink_metadata().ok()?;
        Some((at, std::os::unix::fs::MetadataExt::uid(&metadata)))
    })?;
    let user = rustix::process::geteuid();
    (!user.is_root() && owner != user.as_raw()).then(|| ForeignOwner {
        path: at.to_owned(),
        user: owner,
    })
}

/// A file or directory of another user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` belongs to another user (id {user}); a clone has sessions of its own", path.display())]
pub struct ForeignOwner {
    path: PathBuf,
    user: u32,
}

/// The work tree of the project that was opened last.
static WORK_TREE: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Keeps temporary files out of a work tree: commands see another version of it, and a snapshot would
/// record the files.
pub fn keep_temporary_files_outside(work_tree: &Path) {
    let work_tree = work_tree.canonicalize().ok();
    *WORK_TREE.lock().unwrap_or_else(PoisonError::into_inner) = work_tree;
}

/// Returns the directory for temporary files: `TMPDIR`, if it is an absolute path of a directory
/// outside the project in which files can be made, else one of the system.
pub fn temporary_parent() -> PathBuf {
    let work_tree = WORK_TREE.lock().unwrap_or_else(PoisonError::into_inner);
    let is_usable = |dir: &PathBuf| {
        let is_inside = |dir: PathBuf| work_tree.as_ref().is_some_and(|top| dir.starts_with(top));
        let access = Access::WRITE_OK | Access::EXEC_OK;
        dir.canonicalize().is_ok_and(|dir| !is_inside(dir))
            && dir.is_dir()
            && rustix::fs::access(dir, access).is_ok()
    };
    let system = ["/tmp", "/var/tmp"].map(PathBuf::from);
    let mut dirs = env::dir_var("TMPDIR").into_iter().chain(system);
    dirs.find(is_usable).unwrap_or_else(|| "/tmp".into())
}

/// Creates a directory in [`temporary_parent`] that only this user can read. The error names it.
pub fn temporary_dir() -> io::Result<tempfile::TempDir> {
    prefixed_temporary_dir("teddy-")
}

pub fn prefixed_temporary_dir(prefix: &str) -> io::Result<tempfile::TempDir> {
    let parent = temporary_parent();
    let created = tempfile::Builder::new()
        .prefix(prefix)
        .permissions(Permissions::from_mode(PRIVATE))
        .tempdir_in(&parent);
    created.map_err(|error| {
        let kind = error.kind();
        let message = format!(
            "no temporary directory can be made in `{}` (`TMPDIR`): {kind}",
            parent.display()
        );
        io::Error::new(kind, message)
    })
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod make_tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Result<(), &str>) {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(top.path().join("there/.git")).unwrap();
        let result = make_dirs(&top.path().join(path)).map_err(|error| {
            let message = error.to_string();
            message.replace(&format!("{}/", top.path().display()), "")
        });
        assert_eq!(
            result.as_ref().map_err(String::as_str),
            expected.as_ref().map_err(|message| *message),
            "{path}"
        );
        assert_eq!(top.path().join(path).is_dir(), expected.is_ok(), "{path}");
    }

    #[test]
    fn directories_of_ours_are_private() {
        let top = tempfile::tempdir().unwrap();
        let mode = |path: &str| {
            let metadata = std::fs::metadata(top.path().join(path)).unwrap();
            std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777
        };
        make_dirs(&top.path().join("a/b")).unwrap();
        assert_eq!([mode("a"), mode("a/b")], [PRIVATE; 2]);
        std::fs::create_dir(top.path().join("c")).unwrap();
        make_shared_dirs(&top.path().join("d")).unwrap();
        assert_eq!(mode("c"), mode("d"));
    }

    #[test]
    fn a_git_directory_is_never_made() {
        check("a/b/c", Ok(()));
        check("there/.git/teddy/index", Ok(()));
        check(
            "gone/.git/teddy",
            Err("the git directory `gone/.git` is gone"),
        );
        check("gone/.git", Err("the git directory `gone/.git` is gone"));
    }
}

#[cfg(test)]
mod sync_tests {
    use super::*;

    #[test]
    fn a_file_is_made_durable_and_one_that_is_gone_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        std::fs::write(&file, "x").unwrap();
        sync_file(&file).unwrap();
        sync_file(&dir.path().join("gone")).unwrap();
        assert!(sync_dir(File::open(dir.path()).unwrap()).unwrap());
    }

    #[test]
    fn a_folder_that_is_gone_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let error = sync_whole(&dir.path().join("gone")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
