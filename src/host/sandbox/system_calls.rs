//! Denies system calls that Landlock does not cover, with seccomp: network access, and calls that
//! reach other processes.
//!
//! `connect` is denied for local sockets, too: a service such as a container engine or the session
//! bus could do what the sandbox forbids. Datagram sockets are denied because they send without
//! `connect`.

use std::collections::BTreeMap;

use libc::{c_int, c_long};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use super::kernel::{Kernel, SCOPE, TRUNCATE};
use super::{Network, Policy};

// Marks the x32 system calls of a 64-bit x86 kernel.
const X32: c_long = 0x4000_0000;

// The kernel's keyrings are shared by all processes of a user.
const KEYS: [c_long; 3] = [libc::SYS_add_key, libc::SYS_keyctl, libc::SYS_request_key];
// Always denied without network. `io_uring` can create and connect sockets without system calls.
const CONNECTING: [c_long; 4] = [
    libc::SYS_connect,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];
// Allowed families: local sockets, and queries to the kernel.
const LOCAL: [c_int; 2] = [libc::AF_UNIX, libc::AF_NETLINK];
// The type in the second argument of `socket`; the other bits are flags.
const TYPE: u64 = 0xf;
// For local sockets, `SOCK_RAW` is an alias of `SOCK_DGRAM`.
const DATAGRAMS: [c_int; 2] = [libc::SOCK_DGRAM, libc::SOCK_RAW];

// `which` argument of `setpriority`: all processes of a user.
const PRIO_USER: u64 = 2;
// The same for `ioprio_set`.
const IOPRIO_WHO_USER: u64 = 3;

// `F_SETOWN` and `F_SETOWN_EX`: choose the process that receives a descriptor's signals.
const OWNERS: [u64; 2] = [8, 15];
// `FIOSETOWN` and `SIOCSPGRP`: the same for `ioctl`.
const OWNING: [u64; 2] = [0x8901, 0x8902];

const MODE_AND_TRUNCATE: u64 = (libc::O_ACCMODE | libc::O_TRUNC) as u64;

#[derive(Default)]
struct Denied {
    /// Rules by call number. A call without rules is always denied.
    calls: BTreeMap<c_long, Vec<SeccompRule>>,
    error: Option<String>,
}

impl Denied {
    fn all(&mut self, calls: &[c_long]) {
        self.calls
            .extend(calls.iter().map(|call| (*call, Vec::new())));
    }

    /// Denies a call if all conditions match. A condition is the argument's index, an operator and
    /// a value.
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

    /// Denied calls fail with `error`.
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

/// Returns the reason if this kernel cannot filter system calls.
pub(super) fn check() -> Result<(), String> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !status.lines().any(|line| line.starts_with("Seccomp:")) {
        return Err("kernel without seccomp".to_owned());
    }
    everywhere().program(libc::EPERM).map(drop)
}

/// Restricts this thread. `others` are the processes that supervise it.
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
        // A filter cannot see the flags of `openat2`, which are in memory. Programs fall back to
        // `openat` after `ENOSYS`.
        let mut unknown = Denied::default();
        unknown.all(&[libc::SYS_openat2]);
        apply(&unknown.program(libc::ENOSYS)?)?;
    }

    apply(&denied.program(libc::EPERM)?)
}

fn apply(program: &BpfProgram) -> Result<(), String> {
    apply_filter(program).map_err(|e| e.to_string())
}

/// Denied on every kernel: keyrings, and limits and priorities of other processes.
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

/// Denies sockets except local ones, all connections, and datagrams.
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
        // A datagram socket of a pair can send to any address.
        denied.when(libc::SYS_socketpair, &local);
    }
}

/// Protects the supervising processes from signals on kernels that cannot restrict signals. Other
/// processes of the user are not protected, which the approval prompt says.
fn signals(denied: &mut Denied, others: &[u32]) {
    let everybody = number(-1);
    denied.when(libc::SYS_kill, &[(0, SeccompCmpOp::Eq, everybody)]);
    for &process in others {
        let process = u64::from(process);
        // `kill` with a negative id signals a process group.
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

    // A descriptor of `/proc/<pid>` works as a pidfd, too, so denying `pidfd_open` is not enough.
    denied.all(&[libc::SYS_pidfd_send_signal]);
    for command in OWNERS {
        denied.when(libc::SYS_fcntl, &[(1, SeccompCmpOp::Eq, command)]);
    }

    for command in OWNING {
        denied.when(libc::SYS_ioctl, &[(1, SeccompCmpOp::Eq, command)]);
    }
}

/// Denies truncation without write access. Before ABI 3, Landlock lets a process truncate every
/// file that it can read.
fn truncation(denied: &mut Denied) {
    denied.all(&[libc::SYS_truncate]);
    // Linux accepts `O_TRUNC` with `O_RDONLY`, and with the access mode 3.
    for mode in [libc::O_RDONLY, libc::O_ACCMODE] {
        let emptied = number(mode | libc::O_TRUNC);
        let how = || SeccompCmpOp::MaskedEq(MODE_AND_TRUNCATE);
        denied.when(libc::SYS_openat, &[(2, how(), emptied)]);
        #[cfg(target_arch = "x86_64")]
        denied.when(libc::SYS_open, &[(1, how(), emptied)]);
    }
}

fn number(value: c_int) -> u64 {
    u64::from(value.cast_unsigned())
}
