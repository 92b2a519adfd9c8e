//! No network, under seccomp: a script may make no socket that leaves the machine and connect to
//! none. Pairs of sockets between its own processes stay.
//!
//! Connecting is denied for local sockets too: behind one may be a service (a container engine,
//! the user's session bus) that would do for the script what the sandbox forbids.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

/// The bit that marks the second set of call numbers (x32) that a 64-bit kernel may have.
const X32: c_long = 0x4000_0000;
/// Calls that are denied whatever their arguments. With a ring, a program asks for sockets without
/// making calls.
const DENIED: [c_long; 4] = [
    libc::SYS_connect,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];
/// Kinds of sockets that stay: local ones, and those that ask the kernel about itself.
const LOCAL: [libc::c_int; 2] = [libc::AF_UNIX, libc::AF_NETLINK];

/// Returns whether the kernel has seccomp and we know this machine's calls.
pub(super) fn check() -> Result<(), String> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !status.lines().any(|line| line.starts_with("Seccomp:")) {
        return Err("kernel without seccomp".to_owned());
    }
    program().map(drop)
}

/// Restricts this thread.
pub(super) fn enforce() -> Result<(), String> {
    apply_filter(&program()?).map_err(|e| e.to_string())
}

/// Returns the filter.
fn program() -> Result<BpfProgram, String> {
    let words = |e: seccompiler::BackendError| e.to_string();
    let target = TargetArch::try_from(std::env::consts::ARCH).map_err(words)?;
    let foreign = LOCAL.map(|family| {
        SeccompCondition::new(
            0,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Ne,
            family.unsigned_abs().into(),
        )
    });
    let foreign = foreign
        .into_iter()
        .collect::<Result<Vec<_>, _>>()
        .map_err(words)?;
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for set in if cfg!(target_arch = "x86_64") {
        &[0, X32][..]
    } else {
        &[0]
    } {
        rules.insert(
            libc::SYS_socket | set,
            vec![SeccompRule::new(foreign.clone()).map_err(words)?],
        );
        rules.extend(DENIED.map(|call| (call | set, Vec::new())));
    }
    let denied = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, target).map_err(words)?;
    filter.try_into().map_err(words)
}
