//! Connects the sockets of a command that has a network of its own.
//!
//! Local sockets have paths, which a network namespace does not separate. A filter sees no address,
//! and a process could change it, or the socket behind a descriptor, after a check. So the kernel
//! passes each `connect` to the supervisor, which copies the address, duplicates the socket, and
//! connects the duplicate itself. Needs Linux 5.6. No safe crate offers these calls, so this file
//! contains unsafe code (docs/decisions/0024-sandbox.md).

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, connect};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use seccompiler::BpfProgram;

use crate::host::fault;
use crate::host::file::openat;

/// What seccompiler writes for `SeccompAction::Trace(0)`; it has no action for a listener.
const RET_TRACE: u32 = 0x7ff0_0000;
/// Length of the largest address, as the kernel limits it.
const MAX_ADDRESS: usize = 128;
/// Start of a local address: its family.
const FAMILY_LENGTH: usize = 2;

/// Connections that a command asks for, from its start to its end.
#[derive(Debug)]
pub(super) struct Connections {
    listener: Arc<OwnedFd>,
}

impl Connections {
    /// Makes this thread and what it starts ask for each call that `program` traces. Returns `None`
    /// if the kernel does not offer that.
    pub(super) fn intercept(mut program: BpfProgram) -> Option<Connections> {
        if fault::emulated("no-intercepted-connections").is_some() || !can_take_sockets() {
            return None;
        }
        for instruction in &mut program {
            if instruction.k == RET_TRACE {
                instruction.k = libc::SECCOMP_RET_USER_NOTIF;
            }
        }

        // Without the first flag, a signal repeats a call that was already carried out. It needs
        // Linux 5.19.
        let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        let listener = system::filter(
            &program,
            flags | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
        )
        .or_else(|_| system::filter(&program, flags));
        Some(Connections {
            listener: Arc::new(listener.ok()?),
        })
    }

    /// Connects until the last process of the command has ended. Local sockets must be below one of
    /// the directories `sockets`.
    pub(super) fn serve(self, sockets: &[PathBuf]) {
        let sockets: Vec<_> = sockets.iter().flat_map(fs::canonicalize).collect();
        let sockets: Arc<[PathBuf]> = sockets.into();
        while self.has_more() {
            // Fails if the process was killed meanwhile.
            let Ok(request) = system::receive(&self.listener) else {
                continue;
            };
            let id = request.id;
            let (listener, sockets) = (Arc::clone(&self.listener), Arc::clone(&sockets));
            // A connection can block.
            let spawned = std::thread::Builder::new().spawn(move || {
                let result = answer(&listener, &request, &sockets);
                system::send(&listener, id, result);
            });
            if spawned.is_err() {
                system::send(&self.listener, id, Err(Errno::AGAIN));
            }
        }
    }

    /// Waits for a request. Returns `false` if there will be none.
    fn has_more(&self) -> bool {
        let mut source = [PollFd::new(&self.listener, PollFlags::IN)];
        match poll(&mut source, None) {
            Ok(_) => source[0].revents().contains(PollFlags::IN),
            Err(error) => error == Errno::INTR,
        }
    }
}

/// Tries the calls of [`answer`] on this process. Profiles of containers deny `pidfd_getfd`, and
/// kernels before 5.6 do not have it.
fn can_take_sockets() -> bool {
    let own = || {
        let pidfd = pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
        pidfd_getfd(&pidfd, pidfd.as_raw_fd(), PidfdGetfdFlags::empty())
    };
    own().is_ok() && fs::File::open("/proc/self/mem").is_ok()
}

fn answer(
    listener: &OwnedFd,
    request: &system::ConnectRequest,
    sockets: &[PathBuf],
) -> Result<(), Errno> {
    let [descriptor, address, length] = request.arguments;
    let task = fs::read_to_string(format!("/proc/{}/status", request.task));
    let process = task
        .ok()
        .and_then(|status| parse_process(&status))
        .ok_or(Errno::SRCH)?;
    let process = Pid::from_raw(process).ok_or(Errno::SRCH)?;
    let pidfd = pidfd_open(process, PidfdFlags::empty())?;
    let memory = fs::File::open(format!("/proc/{}/mem", request.task)).map_err(|e| errno(&e))?;
    // The ids could belong to another process by now. From here on both handles are of the one that
    // asked.
    if !system::is_waiting(listener, request.id) {
        return Err(Errno::SRCH);
    }

    let length = usize::try_from(length).map_err(|_| Errno::INVAL)?;
    if !(FAMILY_LENGTH..=MAX_ADDRESS).contains(&length) {
        return Err(Errno::INVAL);
    }
    let mut bytes = vec![0; length];
    memory
        .read_exact_at(&mut bytes, address)
        .map_err(|_| Errno::FAULT)?;
    let descriptor = i32::try_from(descriptor).map_err(|_| Errno::BADF)?;
    let socket = pidfd_getfd(&pidfd, descriptor, PidfdGetfdFlags::empty())?;

    match local_path(&bytes) {
        Some(path) => connect_local(&socket, &absolute(path, request.task), sockets),
        None => system::connect(&socket, &bytes),
    }
}

/// Returns the id of the process to which a thread belongs.
fn parse_process(status: &str) -> Option<i32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// Returns the path of a local socket. `None` for other families, and for names without a path,
/// which the network namespace separates.
fn local_path(address: &[u8]) -> Option<&Path> {
    let (family, path) = address.split_at(FAMILY_LENGTH);
    let path = path.split(|byte| *byte == 0).next()?;
    let is_local = family == u16::try_from(libc::AF_UNIX).ok()?.to_ne_bytes();
    (is_local && !path.is_empty()).then(|| Path::new(OsStr::from_bytes(path)))
}

/// Resolves a path as the thread does.
fn absolute(path: &Path, task: u32) -> PathBuf {
    match path.strip_prefix("/proc/self") {
        Ok(rest) => Path::new("/proc").join(task.to_string()).join(rest),
        Err(_) => PathBuf::from(format!("/proc/{task}/cwd")).join(path),
    }
}

fn connect_local(socket: &OwnedFd, path: &Path, dirs: &[PathBuf]) -> Result<(), Errno> {
    let path = fs::canonicalize(path).map_err(|e| errno(&e))?;
    let file = openat(CWD, &path, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())?;
    // The file that is open, not its path: a command can exchange a directory for a link meanwhile.
    let opened = format!("/proc/self/fd/{}", file.as_raw_fd());
    let path = fs::read_link(&opened).map_err(|e| errno(&e))?;
    if !dirs.iter().any(|dir| path.starts_with(dir)) {
        return Err(Errno::ACCESS);
    }
    connect(socket, &SocketAddrUnix::new(opened.as_str())?)
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

mod system {
    use super::*;

    /// A `connect` that waits for an answer.
    pub(super) struct ConnectRequest {
        pub id: u64,
        /// Id of the thread.
        pub task: u32,
        /// Descriptor, address of the address, and its length.
        pub arguments: [u64; 3],
    }

    /// `struct seccomp_notif` of the kernel.
    #[repr(C)]
    #[derive(Default)]
    struct Notification {
        id: u64,
        task: u32,
        flags: u32,
        call: i32,
        architecture: u32,
        instruction: u64,
        arguments: [u64; 6],
    }

    /// `struct seccomp_notif_resp` of the kernel.
    #[repr(C)]
    struct Response {
        id: u64,
        value: i64,
        error: i32,
        flags: u32,
    }

    // `SECCOMP_IOCTL_NOTIF_RECV`, `_SEND` and `_ID_VALID`.
    const RECEIVE: u32 = 0xc050_2100;
    const SEND: u32 = 0xc018_2101;
    const ID_VALID: u32 = 0x4008_2102;

    #[expect(unsafe_code, reason = "no safe crate has this call")]
    pub(super) fn filter(program: &BpfProgram, flags: libc::c_ulong) -> Result<OwnedFd, Errno> {
        let filter = libc::sock_fprog {
            len: u16::try_from(program.len()).map_err(|_| Errno::TOOBIG)?,
            filter: program.as_ptr().cast_mut().cast(),
        };
        // SAFETY: `filter` and the program, which has the kernel's layout, outlive the call, which
        // only reads them.
        let descriptor = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const filter,
            )
        };
        let descriptor = i32::try_from(descriptor).map_err(|_| Errno::BADF)?;
        if descriptor < 0 {
            return Err(last_error());
        }
        // SAFETY: the kernel made this descriptor for us.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }

    pub(super) fn receive(listener: &OwnedFd) -> Result<ConnectRequest, Errno> {
        let mut notification = Notification::default();
        control(listener, RECEIVE, &mut notification)?;
        let [descriptor, address, length, ..] = notification.arguments;
        Ok(ConnectRequest {
            id: notification.id,
            task: notification.task,
            // The kernel reads the first and the third as 32 bits.
            arguments: [descriptor & 0xffff_ffff, address, length & 0xffff_ffff],
        })
    }

    /// Lets the call return.
    pub(super) fn send(listener: &OwnedFd, id: u64, result: Result<(), Errno>) {
        let mut response = Response {
            id,
            value: 0,
            error: result.map_or_else(|error| -error.raw_os_error(), |()| 0),
            flags: 0,
        };
        // Fails if the process was killed meanwhile.
        let _ = control(listener, SEND, &mut response);
    }

    /// Returns whether the thread that asked is still waiting.
    pub(super) fn is_waiting(listener: &OwnedFd, mut id: u64) -> bool {
        control(listener, ID_VALID, &mut id).is_ok()
    }

    #[expect(unsafe_code, reason = "no safe crate has these requests")]
    fn control<T>(listener: &OwnedFd, request: u32, argument: &mut T) -> Result<(), Errno> {
        // SAFETY: each request of this file is used with the type that it reads and writes.
        let result = unsafe { libc::ioctl(listener.as_raw_fd(), request as _, &raw mut *argument) };
        if result < 0 {
            Err(last_error())
        } else {
            Ok(())
        }
    }

    #[expect(unsafe_code, reason = "the address can be of any family")]
    pub(super) fn connect(socket: &OwnedFd, address: &[u8]) -> Result<(), Errno> {
        let length = libc::socklen_t::try_from(address.len()).map_err(|_| Errno::INVAL)?;
        // SAFETY: the kernel reads `length` bytes of the address, of any alignment.
        let result = unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), length) };
        if result < 0 {
            Err(last_error())
        } else {
            Ok(())
        }
    }

    fn last_error() -> Errno {
        errno(&io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_local_address_with_a_path_has_a_path() {
        let family = |family: i32| u16::try_from(family).unwrap().to_ne_bytes();
        let check = |family: [u8; 2], rest: &[u8], expected: Option<&str>| {
            let address = [&family[..], rest].concat();
            assert_eq!(local_path(&address), expected.map(Path::new), "{address:?}");
        };
        check(family(libc::AF_UNIX), b"/run/x\0junk", Some("/run/x"));
        check(family(libc::AF_UNIX), b"x", Some("x"));
        check(family(libc::AF_UNIX), b"\0name", None);
        check(family(libc::AF_UNIX), b"", None);
        check(family(libc::AF_INET), b"/run/x", None);
    }

    #[test]
    fn a_path_is_resolved_as_the_thread_does() {
        for (path, expected) in [
            ("/run/x", "/run/x"),
            ("x", "/proc/7/cwd/x"),
            ("/proc/self/fd/3/x", "/proc/7/fd/3/x"),
        ] {
            assert_eq!(absolute(Path::new(path), 7), Path::new(expected));
        }
    }
}
