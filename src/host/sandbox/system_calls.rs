//! What Landlock does not cover, under seccomp: the network, and calls that reach other processes
//! or files past it.
//!
//! Connecting is denied for local sockets too: behind one may be a service (a container engine,
//! the user's session bus) that would do for the script what the sandbox forbids. Sockets for
//! datagrams are denied because they need no connection to reach one.

use std::collections::BTreeMap;

use libc::{c_int, c_long};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use super::kernel::{Kernel, SCOPE, TRUNCATE};
use super::{Network, Policy};

/// The bit that marks the second set of call numbers (x32) that a 64-bit kernel may have.
const X32: c_long = 0x4000_0000;

/// Calls on the user's keys, which the kernel keeps for all processes of the user.
const KEYS: [c_long; 3] = [libc::SYS_add_key, libc::SYS_keyctl, libc::SYS_request_key];
/// Calls that reach the network whatever their arguments. With a ring, a program asks for sockets
/// without making calls.
const CONNECTING: [c_long; 4] = [
    libc::SYS_connect,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];
/// Kinds of sockets that stay: local ones, and those that ask the kernel about itself.
const LOCAL: [c_int; 2] = [libc::AF_UNIX, libc::AF_NETLINK];
/// The bits of a socket's type that are not flags.
const TYPE: u64 = 0xf;
/// The kinds of local sockets that carry datagrams; the second is another name of the first.
const DATAGRAMS: [c_int; 2] = [libc::SOCK_DGRAM, libc::SOCK_RAW];

/// All processes of a user, for `setpriority`.
const PRIO_USER: u64 = 2;
/// The same for `ioprio_set`.
const IOPRIO_WHO_USER: u64 = 3;

/// Commands of `fcntl` that have a signal sent to a process, and those of `ioctl`.
const OWNERS: [u64; 2] = [8, 15];
/// `FIOSETOWN`, `SIOCSPGRP`.
const OWNING: [u64; 2] = [0x8901, 0x8902];

/// The bits of an open file's flags that say what it is opened for, and that it is emptied.
const MODE_AND_TRUNCATE: u64 = (libc::O_ACCMODE | libc::O_TRUNC) as u64;

/// The rules for each call; a call without any is denied whatever its arguments.
#[derive(Default)]
struct Denied {
    /// By number.
    calls: BTreeMap<c_long, Vec<SeccompRule>>,
    /// What could not be said.
    error: Option<String>,
}

impl Denied {
    /// Denies calls whatever their arguments.
    fn all(&mut self, calls: &[c_long]) {
        self.calls
            .extend(calls.iter().map(|call| (*call, Vec::new())));
    }

    /// Denies a call if all of the arguments, by their place, compare like this.
    fn when(&mut self, call: c_long, arguments: &[(u8, SeccompCmpOp, u64)]) {
        let conditions = arguments.iter().map(|(place, how, value)| {
            SeccompCondition::new(*place, SeccompCmpArgLen::Dword, how.clone(), *value)
        });
        let rule = conditions
            .collect::<Result<Vec<_>, _>>()
            .and_then(SeccompRule::new);
        match rule {
            Ok(rule) => self.calls.entry(call).or_default().push(rule),
            Err(error) => self.error = Some(error.to_string()),
        }
    }

    /// Returns the filter that answers denied calls with an error.
    fn program(self, error: c_int) -> Result<BpfProgram, String> {
        if let Some(error) = self.error {
            return Err(error);
        }

        let words = |e: seccompiler::BackendError| e.to_string();
        let target = TargetArch::try_from(std::env::consts::ARCH).map_err(words)?;
        let sets = if cfg!(target_arch = "x86_64") {
            &[0, X32][..]
        } else {
            &[0]
        };

        let mut rules = BTreeMap::new();
        for set in sets {
            let numbered = self.calls.iter();
            rules.extend(numbered.map(|(call, denied)| (call | set, denied.clone())));
        }

        let answer = SeccompAction::Errno(error.unsigned_abs());
        SeccompFilter::new(rules, SeccompAction::Allow, answer, target)
            .and_then(BpfProgram::try_from)
            .map_err(words)
    }
}

/// Returns why calls cannot be filtered, if they cannot.
pub(super) fn check() -> Result<(), String> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !status.lines().any(|line| line.starts_with("Seccomp:")) {
        return Err("kernel without seccomp".to_owned());
    }
    everywhere().program(libc::EPERM).map(drop)
}

/// Restricts this thread. `others` are the processes that watch over it.
pub(super) fn enforce(policy: &Policy, kernel: &Kernel, others: &[u32]) -> Result<(), String> {
    let mut denied = everywhere();
    if policy.network == Network::Off {
        network(&mut denied);
    }

    if kernel.landlock < SCOPE {
        signals(&mut denied, others);
    }

    if kernel.landlock < TRUNCATE {
        truncation(&mut denied);
        // Its flags are in memory, where no filter looks; without it programs use `openat`.
        let mut unknown = Denied::default();
        unknown.all(&[libc::SYS_openat2]);
        apply(&unknown.program(libc::ENOSYS)?)?;
    }

    apply(&denied.program(libc::EPERM)?)
}

/// Applies a filter to this thread.
fn apply(program: &BpfProgram) -> Result<(), String> {
    apply_filter(program).map_err(|e| e.to_string())
}

/// Returns what is denied on every kernel: keys, and the limits and priorities of other processes.
fn everywhere() -> Denied {
    let mut denied = Denied::default();
    denied.all(&KEYS);
    denied.when(libc::SYS_prlimit64, &[(0, SeccompCmpOp::Ne, 0)]);
    denied.when(libc::SYS_setpriority, &[(0, SeccompCmpOp::Eq, PRIO_USER)]);
    denied.when(
        libc::SYS_ioprio_set,
        &[(0, SeccompCmpOp::Eq, IOPRIO_WHO_USER)],
    );

    denied
}

/// Denies the network: every socket that leaves the machine, every connection, and datagrams.
fn network(denied: &mut Denied) {
    denied.all(&CONNECTING);
    let foreign = LOCAL.map(|family| (0, SeccompCmpOp::Ne, number(family)));
    denied.when(libc::SYS_socket, &foreign);
    for kind in DATAGRAMS {
        let local = [
            (0, SeccompCmpOp::Eq, number(libc::AF_UNIX)),
            (1, SeccompCmpOp::MaskedEq(TYPE), number(kind)),
        ];
        denied.when(libc::SYS_socket, &local);
        // One of a pair can send to others than its pair.
        denied.when(libc::SYS_socketpair, &local);
    }
}

/// Denies signals to those who watch over the command, on a kernel that does not keep signals
/// inside. To other processes of the user they stay possible, which the approval says.
fn signals(denied: &mut Denied, others: &[u32]) {
    let everybody = number(-1);
    denied.when(libc::SYS_kill, &[(0, SeccompCmpOp::Eq, everybody)]);
    for &process in others {
        let process = u64::from(process);
        let group = u64::from((process as u32).wrapping_neg());
        denied.when(libc::SYS_kill, &[(0, SeccompCmpOp::Eq, group)]);
        for call in [
            libc::SYS_kill,
            libc::SYS_tkill,
            libc::SYS_tgkill,
            libc::SYS_rt_sigqueueinfo,
            libc::SYS_rt_tgsigqueueinfo,
            libc::SYS_pidfd_open,
        ] {
            denied.when(call, &[(0, SeccompCmpOp::Eq, process)]);
        }
    }

    // A folder of /proc is a descriptor of a process, too.
    denied.all(&[libc::SYS_pidfd_send_signal]);
    for command in OWNERS {
        denied.when(libc::SYS_fcntl, &[(1, SeccompCmpOp::Eq, command)]);
    }

    for command in OWNING {
        denied.when(libc::SYS_ioctl, &[(1, SeccompCmpOp::Eq, command)]);
    }
}

/// Denies emptying files without opening them for writing, which Landlock allows before its third
/// interface to whoever may read them.
fn truncation(denied: &mut Denied) {
    denied.all(&[libc::SYS_truncate]);
    // For reading, and for neither reading nor writing.
    for mode in [libc::O_RDONLY, libc::O_ACCMODE] {
        let emptied = number(mode | libc::O_TRUNC);
        let how = || SeccompCmpOp::MaskedEq(MODE_AND_TRUNCATE);
        denied.when(libc::SYS_openat, &[(2, how(), emptied)]);
        #[cfg(target_arch = "x86_64")]
        denied.when(libc::SYS_open, &[(1, how(), emptied)]);
    }
}

/// Returns a C number as a filter sees it.
fn number(value: c_int) -> u64 {
    u64::from(value.cast_unsigned())
}
