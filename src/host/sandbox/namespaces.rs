//! Private mounts for commands: an empty `/dev/shm`, and the overlay over the user's files.
//!
//! Programs share memory through names in `/dev/shm`. Landlock cannot separate a command's names
//! from those of the user's other programs, so the command gets its own `/dev/shm`. Without root
//! this needs a user namespace, in which the user keeps uid and gid, and files of other users
//! appear to belong to `nobody`.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{getegid, geteuid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use super::OverlayDirs;
use super::files::existing;
use crate::host::fault;
use crate::host::file::openat;

/// Mounts an empty tmpfs on each directory. Returns `false` if the system allows no namespace.
/// After an error the process is in an undefined state and must exit. It must have a single thread.
pub(super) fn hide(dirs: &[PathBuf]) -> Result<bool, String> {
    let mut folders = existing(dirs)?;
    folders.retain(|folder| folder.is_dir());
    if folders.is_empty() {
        return Ok(true);
    }

    if !enter_new(UnshareFlags::NEWNS | UnshareFlags::NEWIPC)? {
        return Ok(false);
    }

    if fault::emulated("namespaces-halfway").is_some() {
        return Err("no mounts here".to_owned());
    }

    keep_mounts_inside()?;
    for dir in folders {
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("tmpfs", &dir, "tmpfs", flags, c"mode=1777")
            .map_err(|e| describe("mounting shared memory", e))?;
    }

    Ok(true)
}

/// The process must have a single thread.
pub(super) fn mount_overlay(dirs: &OverlayDirs) -> Result<(), String> {
    if !enter_new(UnshareFlags::NEWNS)? {
        return Err("no namespace of mounts".to_owned());
    }
    keep_mounts_inside()?;

    // Pass descriptors and not paths: mount options would interpret `,` and `:` in a path.
    let open = |path: &Path| -> Result<OwnedFd, String> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        openat(CWD, path, flags, Mode::empty()).map_err(|e| describe("opening a folder", e))
    };
    let (lower, upper) = (open(&dirs.lower)?, open(&dirs.upper)?);
    let (work, at) = (open(&dirs.work)?, open(&dirs.at)?);
    let name = |dir: &OwnedFd| format!("/proc/self/fd/{}", dir.as_raw_fd());
    let options = format!(
        "userxattr,lowerdir={},upperdir={},workdir={}",
        name(&lower),
        name(&upper),
        name(&work)
    );
    let options = CString::new(options).map_err(|error| error.to_string())?;

    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("overlay", name(&at), "overlay", flags, &*options)
        .map_err(|e| describe("mounting an overlay", e))
}

/// Enters the user and mount namespaces of another process of the same user. This process must have
/// a single thread.
pub(super) fn enter(process: u32) -> Result<(), String> {
    let kinds = [
        ("user", LinkNameSpaceType::User),
        ("mnt", LinkNameSpaceType::Mount),
    ];
    for (name, kind) in kinds {
        let [other_link, own_link] = [process.to_string(), "self".to_owned()]
            .map(|process| PathBuf::from(format!("/proc/{process}/ns/{name}")));
        let target = |path: &Path| std::fs::read_link(path).map_err(|error| error.to_string());
        // Entering the own user namespace fails with `EINVAL`.
        if target(&other_link)? == target(&own_link)? {
            continue;
        }
        let namespace = File::open(&other_link).map_err(|error| error.to_string())?;
        move_into_link_name_space(namespace.as_fd(), Some(kind))
            .map_err(|e| describe("entering the view of the files", e))?;
    }

    Ok(())
}

fn describe(step: &str, error: Errno) -> String {
    format!("{step}: {error}")
}

fn keep_mounts_inside() -> Result<(), String> {
    // Mounts outside still propagate into the namespace, but not ours to the outside.
    let propagation = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", propagation).map_err(|e| describe("leaving the mounts", e))
}

/// Unshares namespaces, together with the user namespace if that is needed. Returns `false` if the
/// system does not allow it.
fn enter_new(flags: UnshareFlags) -> Result<bool, String> {
    if unshare(flags).is_ok() {
        return Ok(true);
    }

    // Root without `CAP_SYS_ADMIN` runs in a container. In a user namespace it would lose its
    // access to files of other users.
    let (user, group) = (geteuid(), getegid());
    if user.is_root() || unshare(flags | UnshareFlags::NEWUSER).is_err() {
        return Ok(false);
    }

    let write = |file: &str, text: String| {
        std::fs::write(format!("/proc/self/{file}"), text)
            .map_err(|error| format!("keeping the user: {error}"))
    };
    // Required before an unprivileged process can write `gid_map`.
    write("setgroups", "deny".to_owned())?;
    let (user, group) = (user.as_raw(), group.as_raw());
    write("uid_map", format!("{user} {user} 1"))?;
    write("gid_map", format!("{group} {group} 1"))?;
    // Commands create no user namespace below this one, even if system calls cannot be filtered.
    // The setting is that of the namespace. In some containers it is read-only.
    let _ = std::fs::write("/proc/sys/user/max_user_namespaces", "0");

    Ok(true)
}

fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    #[expect(
        deprecated,
        reason = "it became unsafe for one flag, which is not used here"
    )]
    rustix::thread::unshare(flags)
}
