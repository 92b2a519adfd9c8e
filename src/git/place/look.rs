//! Looking at a place: what is there, and who writes to it.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{Body, Place, Seen};
use crate::git::large::LARGE;
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
    pub(in crate::git) fn look(&self) -> io::Result<Seen> {
        // It may become something else between the two calls: then it is looked at once more.
        for _ in 0..8 {
            match self.look_kind()? {
                None => return Ok(Seen::Absent),
                Some(FileType::Directory) => return Ok(Seen::Folder),
                Some(FileType::RegularFile) => {
                    if let Some(seen) = self.read_file()? {
                        return Ok(seen);
                    }
                }
                Some(FileType::Symlink) => {
                    match rustix::fs::readlinkat(&self.folder, self.name.as_slice(), Vec::new()) {
                        Ok(target) => return Ok(Seen::Link(target.into_bytes())),
                        Err(Errno::NOENT | Errno::INVAL) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Some(_) => return Ok(Seen::Other),
            }
        }
        Ok(Seen::Other)
    }

    /// Returns whether what is here may be exchanged, moved or made: the folder can be written to,
    /// and nothing holds a file in its place.
    pub(in crate::git) fn is_free(&self) -> io::Result<bool> {
        match rustix::fs::accessat(
            &self.folder,
            ".",
            Access::WRITE_OK | Access::EXEC_OK,
            AtFlags::empty(),
        ) {
            Ok(()) => Ok(!self.is_others_in_shared_folder()? && !self.is_fixed()?),
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether this is somebody else's in a folder such as `/tmp`, where everyone may only
    /// move their own.
    fn is_others_in_shared_folder(&self) -> io::Result<bool> {
        let (folder, own) = (rustix::fs::fstat(&self.folder)?, rustix::process::geteuid());
        if !Mode::from_raw_mode(folder.st_mode).contains(Mode::SVTX)
            || own.is_root()
            || folder.st_uid == own.as_raw()
        {
            return Ok(false);
        }
        Ok(self.stat()?.is_some_and(|stat| stat.st_uid != own.as_raw()))
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

    /// Reads a regular file; nothing where it is none any more.
    fn read_file(&self) -> io::Result<Option<Seen>> {
        let file = match self.open() {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::LOOP) => return Ok(None),
            Err(Errno::ACCESS | Errno::PERM) => return Ok(Some(Seen::Other)),
            Err(error) => return Err(error.into()),
        };
        let stat = rustix::fs::fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(None);
        }
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        if size > MAX_COMPARED {
            return Ok(Some(Seen::Other));
        }
        let permissions = stat.st_mode & 0o7777;
        if size > LARGE {
            let file = Arc::new(file);
            let body = Body::Large { file, size };
            return Ok(Some(Seen::File { body, permissions }));
        }

        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        file.take(MAX_COMPARED).read_to_end(&mut bytes)?;
        let body = Body::Bytes(bytes);
        Ok(Some(Seen::File { body, permissions }))
    }

    /// Asks who has the regular file here open for writing.
    pub(in crate::git) fn writers(&self) -> io::Result<Writers> {
        if self.look_kind()? != Some(FileType::RegularFile) {
            return Ok(Writers::Unknown);
        }
        match self.open() {
            Ok(file) => Ok(Writers::of(file)),
            Err(Errno::NOENT | Errno::LOOP | Errno::ACCESS | Errno::PERM) => Ok(Writers::Unknown),
            Err(error) => Err(error.into()),
        }
    }
}
