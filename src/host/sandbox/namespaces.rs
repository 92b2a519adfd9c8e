//! Private namespaces for commands: read-only file systems, an empty `/dev/shm`, pseudo-terminals, a
//! network that has only loopback, and the overlay over the user's files.
//!
//! Landlock has no rule for permissions, owners, times and extended attributes, so a command could
//! make the user's git directory unusable with one `chmod`. On a read-only mount, the kernel refuses
//! all of them. Programs share memory through names in `/dev/shm`, and terminals through numbers in
//! `/dev/pts`. Landlock cannot separate a command's names from those of the user's other programs, so
//! the command gets its own.
//!
//! Without root this needs a user namespace, in which the user keeps uid and gid, and files of other
//! users appear to belong to uid 65534.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    mount_remount,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, sendto,
    socket_with,
};
use rustix::process::{getegid, geteuid};
use rustix::pty::{OpenptFlags, openpt, ptsname};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use super::files::{denied, existing};
use super::{Isolation, Network, OverlayDirs, Policy};
use crate::host::fault;
use crate::host::file::{openat, reason};

const TERMINALS: &str = "/dev/pts";
/// Ports below this need a privilege. The network is the command's own, so none does.
const FIRST_UNPRIVILEGED_PORT: &str = "/proc/sys/net/ipv4/ip_unprivileged_port_start";

/// Makes everything but the writable paths of a policy read-only, mounts a tmpfs on each of the
/// `private` directories and a private `/dev/pts`, and enters a network of its own if the network is
/// off. Removes from the policy hidden paths that no longer exist. Returns no isolation if the
/// system allows no namespace.
///
/// After an error the process is in an undefined state and must exit. It must have a single thread.
pub(super) fn isolate(policy: &mut Policy, private: &[PathBuf]) -> Result<Isolation, String> {
    let mut private = existing(private)?;
    private.retain(|dir| dir.is_dir());
    let writable = existing(&[&policy.write[..], &policy.add].concat())?;
    let opened = [writable.clone(), existing(&policy.read)?].concat();
    let mut hidden = denied(&policy.hidden)?;

    let flags = UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
    let has_network = policy.network == Network::Off
        && fault::emulated("no-network-namespace").is_none()
        && enter_new(flags | UnshareFlags::NEWNET)?;
    if !has_network && !enter_new(flags)? {
        return Ok(Isolation::default());
    }
    // Before `/proc/sys` becomes read-only.
    let network = has_network && raise_loopback();

    if fault::emulated("namespaces-halfway").is_some() {
        return Err("no mounts here".to_owned());
    }

    keep_mounts_inside()?;
    protect_all_but(writable)?;
    for dir in &private {
        mount_private(dir, &opened)?;
    }
    // Of a hidden directory above an opened path, only that path is left. If it were still hidden,
    // commands could not create files in the private directory.
    hidden.retain(|path| {
        let is_below = |dir: &PathBuf| path != dir && path.starts_with(dir);
        !private.iter().any(|dir| path.starts_with(dir)) || opened.iter().any(is_below)
    });
    policy.hidden = hidden;

    Ok(Isolation {
        mounts: true,
        network,
        terminals: mount_terminals(),
    })
}

/// Mounts a tmpfs on a directory. Only the `opened` paths in it stay visible, for example those of a
/// project in `/dev/shm`.
fn mount_private(dir: &Path, opened: &[PathBuf]) -> Result<(), String> {
    let inside = opened.iter().filter(|path| path.starts_with(dir));
    let open = |path: &PathBuf| -> Result<(PathBuf, OwnedFd), String> {
        let opened = openat(CWD, path, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty());
        let opened = opened.map_err(|e| describe("opening a directory for commands", e))?;
        Ok((path.clone(), opened))
    };
    let mut kept = inside.map(open).collect::<Result<Vec<_>, _>>()?;
    // Parents first: mounting one also provides its children.
    kept.sort_by(|(a, _), (b, _)| a.cmp(b));

    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", dir, "tmpfs", flags, c"mode=1777")
        .map_err(|e| describe("mounting shared memory", e))?;
    for (path, opened) in kept.iter().filter(|(path, _)| !path.exists()) {
        let source = format!("/proc/self/fd/{}", opened.as_raw_fd());
        let parent = path.parent().unwrap_or(dir);
        let made =
            std::fs::create_dir_all(parent).and_then(|()| match Path::new(&source).is_dir() {
                true => std::fs::create_dir(path),
                false => File::create_new(path).map(drop),
            });
        made.map_err(|error| format!("making `{}`: {}", path.display(), reason(&error)))?;
        mount_bind_recursive(&source, path)
            .map_err(|e| describe("opening a directory for commands", e))?;
    }
    Ok(())
}

/// Mounts a new instance of devpts, in which the user's terminals have no name. Returns `false` if
/// the system does not allow it.
fn mount_terminals() -> bool {
    if fault::emulated("no-terminals").is_some() || !Path::new(TERMINALS).is_dir() {
        return false;
    }
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    // `max`: a command cannot use up the terminals of the machine.
    let options = c"newinstance,ptmxmode=0666,mode=0600,max=256";
    if mount("devpts", TERMINALS, "devpts", flags, options).is_err() {
        return false;
    }

    // `/dev/ptmx` opens the instance that is mounted next to it, but not on every system: it can be
    // a bind mount of another instance.
    let opens_own = || {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).ok()?;
        let name = ptsname(&terminal, Vec::new()).ok()?;
        Some(Path::new(OsStr::from_bytes(name.as_bytes())).exists())
    };
    opens_own() == Some(true)
        || (mount_bind("/dev/pts/ptmx", "/dev/ptmx").is_ok() && opens_own() == Some(true))
}

/// Brings up the loopback interface of a new network namespace. Returns `false` if the system does
/// not allow it.
fn raise_loopback() -> bool {
    // Fails in containers whose `/proc/sys` is read-only.
    let _ = std::fs::write(FIRST_UNPRIVILEGED_PORT, "0");
    request_loopback().is_ok_and(|answer| answer.first_chunk::<20>().is_some_and(is_accepted))
}

/// Sends `RTM_NEWLINK` for interface 1 and returns the kernel's answer.
fn request_loopback() -> Result<Vec<u8>, Errno> {
    const LENGTH: u32 = 32;
    const RTM_NEWLINK: u16 = 16;
    const REQUEST_AND_ACKNOWLEDGE: u16 = 1 | 4;
    const LOOPBACK: u32 = 1;
    const IFF_UP: u32 = 1;

    let [kind, flags] = [RTM_NEWLINK, REQUEST_AND_ACKNOWLEDGE].map(u16::to_ne_bytes);
    let number = |value: u32| value.to_ne_bytes();
    let header = [&number(LENGTH)[..], &kind, &flags, &number(1), &number(0)];
    // Any family and type, the interface, its flags, and which of them change.
    let interface = [
        &number(0)[..],
        &number(LOOPBACK),
        &number(IFF_UP),
        &number(IFF_UP),
    ];
    let message: Vec<u8> = header
        .concat()
        .into_iter()
        .chain(interface.concat())
        .collect();

    // Protocol 0 is `NETLINK_ROUTE`.
    let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
    let socket = socket_with(AddressFamily::NETLINK, kind, flags, None)?;
    let kernel = netlink::SocketAddrNetlink::new(0, 0);
    sendto(&socket, &message, SendFlags::empty(), &kernel)?;
    let mut answer = vec![0; 512];
    let (length, _) = recv(&socket, answer.as_mut_slice(), RecvFlags::empty())?;
    answer.truncate(length);
    Ok(answer)
}

/// Returns whether an answer is `NLMSG_ERROR` with the error 0.
fn is_accepted(answer: &[u8; 20]) -> bool {
    const NLMSG_ERROR: u16 = 2;

    answer[4..6] == NLMSG_ERROR.to_ne_bytes() && answer[16..20] == [0; 4]
}

/// A line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MountPoint {
    path: PathBuf,
    flags: MountFlags,
    /// A server can be unreachable, and then each access waits for it. Such mounts stay as they are.
    is_remote: bool,
}

/// File systems whose files a server or a program provides.
const REMOTE: [&str; 12] = [
    "9p", "afs", "autofs", "ceph", "cifs", "fuse", "fuseblk", "nfs", "nfs4", "smb3", "smbfs",
    "virtiofs",
];

impl MountPoint {
    fn parse(line: &str) -> Option<MountPoint> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(4);
        let (path, options) = (fields.next()?, fields.next()?);
        let kind = file_system.split(' ').next()?;

        let mut flags = MountFlags::empty();
        for option in options.split(',') {
            flags |= match option {
                "ro" => MountFlags::RDONLY,
                "nosuid" => MountFlags::NOSUID,
                "nodev" => MountFlags::NODEV,
                "noexec" => MountFlags::NOEXEC,
                "noatime" => MountFlags::NOATIME,
                "nodiratime" => MountFlags::NODIRATIME,
                "relatime" => MountFlags::RELATIME,
                "nosymfollow" => MountFlags::NOSYMFOLLOW,
                _ => MountFlags::empty(),
            };
        }
        if !flags.intersects(MountFlags::NOATIME | MountFlags::RELATIME) {
            flags |= MountFlags::STRICTATIME;
        }

        Some(MountPoint {
            path: unescape(path),
            flags,
            is_remote: REMOTE.contains(&kind) || kind.starts_with("fuse."),
        })
    }

    fn is_protected(&self) -> bool {
        !self.is_remote && !self.flags.contains(MountFlags::RDONLY)
    }

    /// Sets the flags of the mount, of which a user namespace allows none to be cleared.
    fn remount(&self, path: &Path, more: MountFlags) -> Result<(), Errno> {
        mount_remount(path, MountFlags::BIND | self.flags | more, c"")
    }
}

/// Decodes the octal escapes of blanks and backslashes.
fn unescape(field: &str) -> PathBuf {
    let bytes = field.as_bytes();
    let mut path = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = field.get(at + 1..at + 4).filter(|_| bytes[at] == b'\\');
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                path.push(byte);
                at += 4;
            }
            None => {
                path.push(bytes[at]);
                at += 1;
            }
        }
    }

    PathBuf::from(OsString::from_vec(path))
}

/// Makes every mount of this namespace read-only, except below the `writable` paths. A remote mount
/// and one that the kernel refuses to change stay as they are: there only Landlock applies.
fn protect_all_but(mut writable: Vec<PathBuf>) -> Result<(), String> {
    let table = std::fs::read("/proc/self/mountinfo")
        .map_err(|error| format!("reading the mounts: {}", reason(&error)))?;
    let table = String::from_utf8_lossy(&table);
    let mounts: Vec<_> = table.lines().filter_map(MountPoint::parse).collect();

    // Devices can be written on a read-only mount.
    writable.retain(|path| path.is_dir() || path.is_file());
    writable.sort();
    writable.dedup();
    let outermost = |path: &PathBuf| {
        let is_above = |other: &PathBuf| path != other && path.starts_with(other);
        !writable.iter().any(is_above)
    };
    let writable: Vec<PathBuf> = writable.iter().filter(|p| outermost(p)).cloned().collect();

    let is_inside = |path: &Path| writable.iter().any(|dir| path.starts_with(dir));
    let protected = mounts.iter().filter(|mount| mount.is_protected());
    for mount in protected.filter(|mount| !is_inside(&mount.path)) {
        let _ = mount.remount(&mount.path, MountFlags::RDONLY);
    }

    for path in &writable {
        // The last mount of a path covers the others.
        let above = mounts.iter().filter(|mount| path.starts_with(&mount.path));
        let Some(mount) = above.max_by_key(|mount| mount.path.as_os_str().len()) else {
            continue;
        };
        if mount.path != *path && mount.is_protected() {
            mount_bind_recursive(path, path)
                .and_then(|()| mount.remount(path, MountFlags::empty()))
                .map_err(|e| describe("opening a directory for commands", e))?;
        }
    }

    Ok(())
}

/// Mounts an overlay in a new mount namespace of this process, which must have a single thread.
pub fn mount_overlay(dirs: &OverlayDirs) -> Result<(), String> {
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
    // Before the overlay covers them.
    let shared = dirs.shared.iter().map(|(from, to)| Ok((open(from)?, to)));
    let shared = shared.collect::<Result<Vec<_>, String>>()?;
    let name = |dir: &OwnedFd| format!("/proc/self/fd/{}", dir.as_raw_fd());
    // `volatile`: otherwise unmounting would flush the whole file system of the layer, for 10 ms and
    // more. A turn flushes it once, with its objects.
    let options = format!(
        "userxattr,volatile,lowerdir={},upperdir={},workdir={}",
        name(&lower),
        name(&upper),
        name(&work)
    );
    let options = CString::new(options).map_err(|error| error.to_string())?;

    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("overlay", name(&at), "overlay", flags, &*options)
        .map_err(|e| describe("mounting an overlay", e))?;
    for (from, to) in &shared {
        mount_bind(name(from), name(&open(to)?))
            .map_err(|e| describe("mounting what git needs", e))?;
    }
    // Commands enter it later. Where that is forbidden, there is no view for them.
    enter_one("/proc/self/ns/mnt", LinkNameSpaceType::Mount)
}

/// Enters the user and mount namespaces of another process of the same user. This process must have
/// a single thread.
pub fn enter_namespaces(process: u32) -> Result<(), String> {
    let kinds = [
        ("user", LinkNameSpaceType::User),
        ("mnt", LinkNameSpaceType::Mount),
    ];
    for (name, kind) in kinds {
        let [other_link, own_link] = [process.to_string(), "self".to_owned()]
            .map(|process| format!("/proc/{process}/ns/{name}"));
        let target = |path: &str| std::fs::read_link(path).map_err(|error| error.to_string());
        // Entering the own user namespace fails with `EINVAL`.
        if target(&other_link)? != target(&own_link)? {
            enter_one(&other_link, kind)?;
        }
    }

    Ok(())
}

fn enter_one(link: &str, kind: LinkNameSpaceType) -> Result<(), String> {
    let namespace = File::open(link).map_err(|error| error.to_string())?;
    move_into_link_name_space(namespace.as_fd(), Some(kind))
        .map_err(|e| describe("entering the view of the files", e))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_with_their_flags() {
        let check = |line: &str, path: &str, flags: MountFlags, is_remote: bool| {
            let expected = MountPoint {
                path: path.into(),
                flags,
                is_remote,
            };
            assert_eq!(MountPoint::parse(line), Some(expected), "{line}");
        };
        check(
            "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard",
            "/",
            MountFlags::RELATIME,
            false,
        );
        check(
            r"28 27 0:25 /x /mnt/a\040b\134 ro,nosuid,nodev,noexec - tmpfs t rw",
            r"/mnt/a b\",
            MountFlags::RDONLY
                | MountFlags::NOSUID
                | MountFlags::NODEV
                | MountFlags::NOEXEC
                | MountFlags::STRICTATIME,
            false,
        );
        for kind in ["nfs4", "fuse.sshfs"] {
            let line = format!("29 27 0:26 / /net rw,noatime - {kind} server:/ rw");
            check(&line, "/net", MountFlags::NOATIME, true);
        }
        assert_eq!(MountPoint::parse("29 27"), None);
    }
}
