//! Reads what is at a name, and whether it can be changed.

use std::fs::File;
use std::io;
use std::sync::Arc;

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{FileBody, OnDisk, PathHandle};
use crate::git::object::large::LARGE;
use crate::host::file::{openat, read_sized};
use crate::host::lease::Writers;

/// Larger files are not compared; they count as different from any blob.
const MAX_COMPARED: u64 = 4 << 30;

impl PathHandle {
    pub(in crate::git) fn file_type(&self) -> io::Result<Option<FileType>> {
        Ok(self
            .stat()?
            .map(|stat| FileType::from_raw_mode(stat.st_mode)))
    }

    /// Returns the stat; `None` if the name does not exist.
    pub(in crate::git) fn stat(&self) -> io::Result<Option<Stat>> {
        match rustix::fs::statat(&self.dir, self.name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the content. A large file is only opened.
    pub(in crate::git) fn read(&self) -> io::Result<OnDisk> {
        self.find()?.read()
    }

    /// Determines the type of the name. A regular file is opened.
    pub(in crate::git) fn find(&self) -> io::Result<NameState> {
        // The file can be replaced between both calls, so retry.
        for _ in 0..8 {
            match self.file_type()? {
                None => return Ok(NameState::Absent),
                Some(FileType::Directory) => return Ok(NameState::Dir),
                Some(FileType::RegularFile) => {
                    if let Some(state) = self.find_file()? {
                        return Ok(state);
                    }
                }
                Some(FileType::Symlink) => {
                    match rustix::fs::readlinkat(&self.dir, self.name.as_slice(), Vec::new()) {
                        Ok(target) => return Ok(NameState::Link(target.into_bytes())),
                        Err(Errno::NOENT | Errno::INVAL) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Some(_) => return Ok(NameState::Other),
            }
        }

        Ok(NameState::Other)
    }

    /// Returns whether the name can be replaced or created: the directory is writable, and the file
    /// is neither immutable nor protected by a sticky bit or a mount.
    pub(in crate::git) fn is_free(&self) -> io::Result<bool> {
        self.is_free_in(self.rights()?)
    }

    /// Like [`PathHandle::is_free`], with the known rights in the directory.
    pub(super) fn is_free_in(&self, rights: DirRights) -> io::Result<bool> {
        match rights {
            DirRights::ReadOnly => Ok(false),
            DirRights::Shared if self.is_others()? => Ok(false),
            DirRights::Open | DirRights::Shared => Ok(!self.is_fixed()?),
        }
    }

    pub(super) fn rights(&self) -> io::Result<DirRights> {
        let access = Access::WRITE_OK | Access::EXEC_OK;
        match rustix::fs::accessat(&self.dir, ".", access, AtFlags::empty()) {
            Ok(()) => {}
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => return Ok(DirRights::ReadOnly),
            Err(error) => return Err(error.into()),
        }

        let (dir, own) = (rustix::fs::fstat(&self.dir)?, rustix::process::geteuid());
        let is_sticky = Mode::from_raw_mode(dir.st_mode).contains(Mode::SVTX);
        if is_sticky && !own.is_root() && dir.st_uid != own.as_raw() {
            Ok(DirRights::Shared)
        } else {
            Ok(DirRights::Open)
        }
    }

    fn is_others(&self) -> io::Result<bool> {
        let own = rustix::process::geteuid().as_raw();
        Ok(self.stat()?.is_some_and(|stat| stat.st_uid != own))
    }

    /// Returns whether the file cannot be changed: immutable, append-only or a mount point.
    #[cfg(target_os = "linux")]
    fn is_fixed(&self) -> io::Result<bool> {
        use rustix::fs::{StatxAttributes, StatxFlags};

        let fixed =
            StatxAttributes::IMMUTABLE | StatxAttributes::APPEND | StatxAttributes::MOUNT_ROOT;
        match rustix::fs::statx(
            &self.dir,
            self.name.as_slice(),
            AtFlags::SYMLINK_NOFOLLOW,
            StatxFlags::TYPE,
        ) {
            Ok(attributes) => Ok(attributes.stx_attributes.intersects(fixed)),
            // A container can forbid the call. The attempt to write decides then.
            Err(Errno::NOENT | Errno::NOSYS | Errno::PERM) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn is_fixed(&self) -> io::Result<bool> {
        Ok(false)
    }

    /// Opens the file without following a symlink or blocking on a pipe.
    pub(super) fn open(&self, access: OFlags) -> Result<File, Errno> {
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        openat(&self.dir, self.name.as_slice(), flags, Mode::empty()).map(File::from)
    }

    /// Opens a regular file; `None` if it was replaced by something else.
    fn find_file(&self) -> io::Result<Option<NameState>> {
        let file = match self.open(OFlags::RDONLY) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::LOOP) => return Ok(None),
            Err(Errno::ACCESS | Errno::PERM) => return Ok(Some(NameState::Other)),
            Err(error) => return Err(error.into()),
        };
        let stat = rustix::fs::fstat(&file)?;
        let is_regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let file = Arc::new(file);

        Ok(is_regular.then_some(NameState::File { file, stat }))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DirRights {
    ReadOnly,
    Open,
    /// Only own files can be renamed or deleted: a sticky directory such as `/tmp`.
    Shared,
}

/// What is at a name, not read yet.
#[derive(Debug)]
pub(in crate::git) enum NameState {
    Absent,
    File {
        file: Arc<File>,
        stat: Stat,
    },
    Link(Vec<u8>),
    Dir,
    /// A special or unreadable file.
    Other,
}

impl NameState {
    /// Asks whether a process has the file open for writing. While the result lives, a new writer
    /// has to wait.
    pub(in crate::git) fn writers(&self) -> Writers {
        match self {
            NameState::File { file, .. } => Writers::of(Arc::clone(file)),
            _ => Writers::Unknown,
        }
    }

    /// Returns `None` if this is not a regular file.
    pub(in crate::git) fn trace(&self) -> Option<Trace> {
        match self {
            NameState::File { stat, .. } => Some(Trace::of(stat)),
            _ => None,
        }
    }

    /// Reads the content. A large file is only passed on.
    pub(in crate::git) fn read(&self) -> io::Result<OnDisk> {
        let (file, stat) = match self {
            NameState::Absent => return Ok(OnDisk::Absent),
            NameState::Dir => return Ok(OnDisk::Dir),
            NameState::Other => return Ok(OnDisk::Other),
            NameState::Link(target) => return Ok(OnDisk::Link(target.clone())),
            NameState::File { file, stat } => (file, stat),
        };
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        if size > MAX_COMPARED {
            return Ok(OnDisk::Other);
        }

        let permissions = stat.st_mode & 0o7777;
        let body = if size > LARGE {
            let file = Arc::clone(file);
            FileBody::Large { file, size }
        } else {
            FileBody::Bytes(read_sized(file, size, MAX_COMPARED)?)
        };
        Ok(OnDisk::File { body, permissions })
    }
}

/// Stat of a file without the fields that a rename changes. Two writes within one clock tick can
/// have the same trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) struct Trace {
    number: (u64, u64),
    mode: u32,
    size: i64,
    changed: (i64, i64),
}

impl Trace {
    #[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
    pub(in crate::git) fn of(stat: &Stat) -> Trace {
        Trace {
            number: (stat.st_dev as u64, stat.st_ino as u64),
            mode: stat.st_mode as u32,
            size: stat.st_size as i64,
            changed: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        }
    }
}
