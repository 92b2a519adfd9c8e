//! Renaming that never overwrites by accident: to a free name, or two files exchanged.
//!
//! Each is one atomic call where the file system has it. Elsewhere the nearest sequence stands
//! in, in which a path always has one of the two contents; its window is said at the function.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;

use super::{Root, beneath, split};

/// One end of a renaming: an open folder and a name in it.
pub(super) struct End<'p> {
    /// The folder.
    pub(super) folder: OwnedFd,
    /// The name.
    pub(super) name: &'p OsStr,
}

impl Root {
    /// Renames a file; what is at `to` is replaced.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.ends(from, to).and_then(|(from, to)| over(&from, &to)).map_err(|e| self.fail("rename", from, e))
    }

    /// Renames a file to a name that is free; the folders of `to` are made.
    ///
    /// Where the system cannot do it in one step, the file has both names for a moment; where it
    /// has no hard links either, a file that appears at `to` in that moment is lost.
    ///
    /// # Errors
    /// `AlreadyExists` if there is something at `to`.
    pub fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (parent, _) = split(to).map_err(|e| self.fail("create", to, e))?;
        beneath::make_folder(&self.folder, parent).map_err(|e| self.fail("create", to, e))?;
        self.ends(from, to).and_then(|(from, to)| to_free_name(&from, &to)).map_err(|e| self.fail("create", to, e))
    }

    /// Exchanges two files.
    ///
    /// Where the system cannot do it in one step, a third name holds `b` meanwhile; what another
    /// program saves at `b` in that moment is lost.
    ///
    /// # Errors
    /// One of the two does not exist.
    pub fn exchange(&self, a: &Path, b: &Path) -> io::Result<()> {
        let (from, to) = self.ends(a, b).map_err(|e| self.fail("exchange", b, e))?;
        match rustix::fs::renameat_with(&from.folder, from.name, &to.folder, to.name, RenameFlags::EXCHANGE) {
            Err(e) if unsupported(e) => self.exchange_in_steps(&from, &to).map_err(|e| self.fail("exchange", b, e)),
            done => done.map_err(|e| self.fail("exchange", b, e)),
        }
    }

    /// Exchanges two files with a third name.
    pub(super) fn exchange_in_steps(&self, a: &End<'_>, b: &End<'_>) -> rustix::io::Result<()> {
        let third = self.temporary_name();
        let aside = End { folder: rustix::io::fcntl_dupfd_cloexec(&a.folder, 0)?, name: &third };
        match rustix::fs::linkat(&b.folder, b.name, &aside.folder, aside.name, AtFlags::empty()) {
            // A link needs its own kind of copy, and some file systems have no second names at all.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::MLINK | Errno::NOSYS) => over(b, &aside)?,
            linked => linked?,
        }
        over(a, b)?;
        over(&aside, a)
    }

    /// Opens the folders of two paths.
    fn ends<'p>(&self, from: &'p Path, to: &'p Path) -> rustix::io::Result<(End<'p>, End<'p>)> {
        let (folder, name) = self.parent(from)?;
        let from = End { folder, name };
        let (folder, name) = self.parent(to)?;
        Ok((from, End { folder, name }))
    }
}

/// Renames, replacing.
pub(super) fn over(from: &End<'_>, to: &End<'_>) -> rustix::io::Result<()> {
    rustix::fs::renameat(&from.folder, from.name, &to.folder, to.name)
}

/// Renames to a name that is free.
pub(super) fn to_free_name(from: &End<'_>, to: &End<'_>) -> rustix::io::Result<()> {
    match rustix::fs::renameat_with(&from.folder, from.name, &to.folder, to.name, RenameFlags::NOREPLACE) {
        Err(e) if unsupported(e) => to_free_name_in_steps(from, to),
        done => done,
    }
}

/// Renames to a name that is free by giving the file a second name first.
pub(super) fn to_free_name_in_steps(from: &End<'_>, to: &End<'_>) -> rustix::io::Result<()> {
    match rustix::fs::linkat(&from.folder, from.name, &to.folder, to.name, AtFlags::empty()) {
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::MLINK | Errno::NOSYS) => {
            match rustix::fs::statat(&to.folder, to.name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => over(from, to),
                Ok(_) => Err(Errno::EXIST),
                Err(e) => Err(e),
            }
        }
        linked => {
            linked?;
            rustix::fs::unlinkat(&from.folder, from.name, AtFlags::empty())
        }
    }
}

/// Returns whether the error says that this file system or kernel does not know the call.
fn unsupported(errno: Errno) -> bool {
    matches!(errno, Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP | Errno::NOTTY)
}
