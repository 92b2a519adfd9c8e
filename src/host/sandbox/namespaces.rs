//! Folders of shared memory that are a command's own: a memory file system mounted over them where
//! nobody else sees it.
//!
//! Names in `/dev/shm` are how programs share memory, those of other programs of the user too, and
//! Landlock cannot tell one's own from theirs. Without root this needs a user namespace, in which
//! the user keeps number and group, and other users' files look like nobody's.

use std::path::PathBuf;

use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{getegid, geteuid};
use rustix::thread::UnshareFlags;

use crate::host::fault;

/// Mounts the folders; returns whether that is possible here. This process must have one thread.
///
/// # Errors
/// The process is left halfway, and must not go on.
pub(super) fn hide(folders: &[PathBuf]) -> Result<bool, String> {
    let folders: Vec<PathBuf> = folders
        .iter()
        .filter_map(|folder| folder.canonicalize().ok())
        .filter(|folder| folder.is_dir())
        .collect();
    if folders.is_empty() {
        return Ok(true);
    }

    if !leave()? {
        return Ok(false);
    }

    if fault::emulated("namespaces-halfway").is_some() {
        return Err("no mounts here".to_owned());
    }

    let words = |what: &str, error: Errno| format!("{what}: {error}");
    // What is mounted here must not appear outside; what is mounted outside may appear here.
    let propagation = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", propagation).map_err(|e| words("leaving the mounts", e))?;
    for folder in folders {
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("tmpfs", &folder, "tmpfs", flags, c"mode=1777")
            .map_err(|e| words("mounting shared memory", e))?;
    }

    Ok(true)
}

/// Leaves the namespaces of mounts and of shared memory segments; returns whether it may.
fn leave() -> Result<bool, String> {
    let flags = UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
    if unshare(flags).is_ok() {
        return Ok(true);
    }

    // Root without the right to do so is in a container. It would lose what root has over files of
    // others there.
    let (user, group) = (geteuid(), getegid());
    if user.is_root() || unshare(flags | UnshareFlags::NEWUSER).is_err() {
        return Ok(false);
    }

    let write = |file: &str, text: String| {
        std::fs::write(format!("/proc/self/{file}"), text)
            .map_err(|error| format!("keeping the user: {error}"))
    };
    write("setgroups", "deny".to_owned())?;
    let (user, group) = (user.as_raw(), group.as_raw());
    write("uid_map", format!("{user} {user} 1"))?;
    write("gid_map", format!("{group} {group} 1"))?;

    Ok(true)
}

/// Leaves namespaces.
fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    #[expect(
        deprecated,
        reason = "it became unsafe for one flag, which is not used here"
    )]
    rustix::thread::unshare(flags)
}
