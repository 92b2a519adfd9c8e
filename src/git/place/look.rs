//! Looking at a place: what is there, and who writes to it.

use std::fs::File;
use std::io;
use std::sync::Arc;

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{FileBody, OnDisk, Place};
use crate::git::object::large::LARGE;
use crate::host::file::read_sized;
use crate::host::lease::Writers;

/// The largest file that is compared; a larger one counts as something else than what git holds.
const MAX_COMPARED: u64 = 4 << 30;

impl Place {
    /// Returns what kind of thing is here, without reading it.
    pub(in crate::git) fn look_kind(&self) -> io::Result<Option<FileType>> {
        Ok(self
            .stat()?
            .map(|stat| FileType::from_raw_mode(stat.st_mode)))
    }

    /// Returns the times and numbers of what is here.
    pub(in crate::git) fn stat(&self) -> io::Result<Option<Stat>> {
        match rustix::fs::statat(
            &self.folder,
            self.name.as_slice(),
            AtFlags::SYMLINK_NOFOLLOW,
        ) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads what is here; a large file is only opened.
    pub(in crate::git) fn look(&self) -> io::Result<OnDisk> {
        self.find()?.read()
    }

    /// Finds out what is here, and opens it if it is a regular file.
    pub(in crate::git) fn find(&self) -> io::Result<NameState> {
        // It may become something else between the two calls: then it is looked at once more.
        for _ in 0..8 {
            match self.look_kind()? {
                None => return Ok(NameState::Absent),
                Some(FileType::Directory) => return Ok(NameState::Folder),
                Some(FileType::RegularFile) => {
                    if let Some(found) = self.find_file()? {
                        return Ok(found);
                    }
                }
                Some(FileType::Symlink) => {
                    match rustix::fs::readlinkat(&self.folder, self.name.as_slice(), Vec::new()) {
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

    /// Returns whether what is here may be exchanged, moved or made: the folder can be written to,
    /// and nothing holds a file in its place.
    pub(in crate::git) fn is_free(&self) -> io::Result<bool> {
        self.is_free_in(self.room()?)
    }

    /// Returns what [`Place::is_free`] does, if this is known of the folder.
    pub(super) fn is_free_in(&self, room: FolderRights) -> io::Result<bool> {
        match room {
            FolderRights::Closed => Ok(false),
            FolderRights::Shared if self.is_others()? => Ok(false),
            FolderRights::Open | FolderRights::Shared => Ok(!self.is_fixed()?),
        }
    }

    /// Returns what may be changed in the folder.
    pub(super) fn room(&self) -> io::Result<FolderRights> {
        let access = Access::WRITE_OK | Access::EXEC_OK;
        match rustix::fs::accessat(&self.folder, ".", access, AtFlags::empty()) {
            Ok(()) => {}
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => return Ok(FolderRights::Closed),
            Err(error) => return Err(error.into()),
        }

        let (folder, own) = (rustix::fs::fstat(&self.folder)?, rustix::process::geteuid());
        let is_sticky = Mode::from_raw_mode(folder.st_mode).contains(Mode::SVTX);
        if is_sticky && !own.is_root() && folder.st_uid != own.as_raw() {
            Ok(FolderRights::Shared)
        } else {
            Ok(FolderRights::Open)
        }
    }

    /// Returns whether this is somebody else's.
    fn is_others(&self) -> io::Result<bool> {
        let own = rustix::process::geteuid().as_raw();
        Ok(self.stat()?.is_some_and(|stat| stat.st_uid != own))
    }

    /// Returns whether the file system keeps what is here as it is: immutable, only to be appended
    /// to, or mounted here.
    #[cfg(target_os = "linux")]
    fn is_fixed(&self) -> io::Result<bool> {
        use rustix::fs::{StatxAttributes, StatxFlags};

        let fixed =
            StatxAttributes::IMMUTABLE | StatxAttributes::APPEND | StatxAttributes::MOUNT_ROOT;
        match rustix::fs::statx(
            &self.folder,
            self.name.as_slice(),
            AtFlags::SYMLINK_NOFOLLOW,
            StatxFlags::TYPE,
        ) {
            Ok(told) => Ok(told.stx_attributes.intersects(fixed)),
            // A container may forbid the question; then the attempt tells.
            Err(Errno::NOENT | Errno::NOSYS | Errno::PERM) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns false: the system is not asked.
    #[cfg(not(target_os = "linux"))]
    fn is_fixed(&self) -> io::Result<bool> {
        Ok(false)
    }

    /// Opens what is here to be read; a link is not followed, a pipe not waited for.
    pub(super) fn open(&self) -> Result<File, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        rustix::fs::openat(&self.folder, self.name.as_slice(), flags, Mode::empty()).map(File::from)
    }

    /// Opens a regular file; nothing if it is not one any more.
    fn find_file(&self) -> io::Result<Option<NameState>> {
        let file = match self.open() {
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

/// What may be changed in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FolderRights {
    /// Nothing.
    Closed,
    /// Everything.
    Open,
    /// One's own: a folder such as `/tmp`, where everyone may only move their own.
    Shared,
}

/// What is at a name, before it is read.
#[derive(Debug)]
pub(in crate::git) enum NameState {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// The file, open to be read.
        file: Arc<File>,
        /// What the system told of it when it was opened.
        stat: Stat,
    },
    /// A link and its target.
    Link(Vec<u8>),
    /// A folder.
    Folder,
    /// A device, a pipe, or a file that may not be read.
    Other,
}

impl NameState {
    /// Asks who has the file open for writing; while the answer is kept, who wants to has to wait.
    pub(in crate::git) fn writers(&self) -> Writers {
        match self {
            NameState::File { file, .. } => Writers::of(Arc::clone(file)),
            _ => Writers::Unknown,
        }
    }

    /// Returns how the file is told from another one, or from a later state of its own.
    pub(in crate::git) fn trace(&self) -> Option<Trace> {
        match self {
            NameState::File { stat, .. } => Some(Trace::of(stat)),
            _ => None,
        }
    }

    /// Reads it; a large file is only handed on.
    pub(in crate::git) fn read(&self) -> io::Result<OnDisk> {
        let (file, stat) = match self {
            NameState::Absent => return Ok(OnDisk::Absent),
            NameState::Folder => return Ok(OnDisk::Folder),
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

/// What the system tells of a file without reading it, but for what a rename changes. A file that
/// was written to within the same tick of the clock has the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) struct Trace {
    /// Its file system and number there.
    number: (u64, u64),
    /// Its kind and permissions.
    mode: u32,
    /// Its size.
    size: i64,
    /// When its bytes were last changed.
    changed: (i64, i64),
}

impl Trace {
    /// Takes what matters.
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
