//! Denies system calls that Landlock does not cover, with seccomp: network access, calls that reach
//! other processes, and calls that make the kernel write or delete for the caller.
//!
//! Landlock checks what a process opens, not what the kernel does itself. An overlay empties the
//! directory `work` of its work directory, quotas and process accounting write files, and some
//! `ioctl` change a file that is open for reading only. So a command creates no namespace (in one of
//! users it would have all capabilities), mounts nothing, and calls nothing that needs a
//! capability of the system.
//!
//! A command with a network of its own uses it as it likes, but not local sockets, which a network
//! namespace does not separate: a service such as a container engine or the session bus could do
//! what the sandbox forbids. A filter does not see to which address a process connects, so the
//! supervisor connects for it ([`super::connections`]). Local datagram sockets are denied because
//! they send without `connect`.
//!
//! It also drops the capabilities of root that bypass the sandbox, such as inspecting other
//! processes, mounting, creating devices, or loading kernel modules.

use std::collections::BTreeMap;

use libc::{c_int, c_long};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use super::connections::Connections;
use super::{Isolation, Network, Policy};
use crate::host::sandbox::{Kernel, SCOPE_ABI, TRUNCATE_ABI};

// Marks the x32 system calls of a 64-bit x86 kernel.
const X32: c_long = 0x4000_0000;

// Numbers that x32 does not share with the 64-bit calls.
#[cfg(target_arch = "x86_64")]
const X32_NUMBERS: [(c_long, c_long); 4] = [
    (libc::SYS_ioctl, 514),
    (libc::SYS_rt_sigqueueinfo, 524),
    (libc::SYS_kexec_load, 528),
    (libc::SYS_rt_tgsigqueueinfo, 536),
];
#[cfg(not(target_arch = "x86_64"))]
const X32_NUMBERS: [(c_long, c_long); 0] = [];

// `open_tree_attr` (Linux 6.15) and `file_setattr` (6.17), which `libc` does not name. These numbers
// are the same on all architectures.
const OPEN_TREE_ATTR: c_long = 467;
const FILE_SETATTR: c_long = 469;
// Numbers of later kernels. What such a call does is unknown here, and programs use older ones after
// `ENOSYS`. From 512 on, x86 has numbers of x32.
const LATER: std::ops::Range<c_long> = 470..512;

// A command has no use for these. Most need a capability, which a process could have in a user
// namespace. A mounted overlay empties the directory `work` of its work directory, and quotas and
// process accounting write files. The kernel's keyrings are shared by all processes of a user.
// `io_uring` makes system calls that no filter sees. `open_by_handle_at` needs no path.
const DENIED: [c_long; 37] = [
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    FILE_SETATTR,
    libc::SYS_perf_event_open,
    libc::SYS_pivot_root,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_umount2,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];

// `kexec_file_load`, which `libc` does not name for musl on Arm.
const KEXEC_FILE_LOAD: c_long = if cfg!(target_arch = "x86_64") {
    320
} else {
    294
};

// `CLONE_NEWNS`, `NEWCGROUP`, `NEWUTS`, `NEWIPC`, `NEWUSER`, `NEWPID`, `NEWNET`.
const NAMESPACES: [u64; 7] = [
    0x0002_0000,
    0x0200_0000,
    0x0400_0000,
    0x0800_0000,
    0x1000_0000,
    0x2000_0000,
    0x4000_0000,
];
// `CLONE_NEWTIME`, for `unshare` only: `clone` reads these bits as a signal.
const NEW_TIME: u64 = 0x80;

// These `ioctl` change a file or a directory that is open for reading only, so Landlock does not see
// them: the attributes of `chattr`, project quotas, a generation, encryption of a directory, and
// `FS_IOC_ENABLE_VERITY`, which makes a file unwritable for good.
// The others are for btrfs: to create, delete or change a subvolume.
const CHANGING: [u64; 13] = [
    0x4008_6602,
    0x4004_6602,
    0x401c_5820,
    0x4008_7602,
    0x800c_6613,
    0x4080_6685,
    0x5000_9401,
    0x5000_940e,
    0x5000_940f,
    0x5000_9417,
    0x5000_9418,
    0x5000_943f,
    0x4008_941a,
];

// Allowed families: local sockets, and queries to the kernel.
const LOCAL: [c_int; 2] = [libc::AF_UNIX, libc::AF_NETLINK];
// With a network namespace, also those that it separates.
const SEPARATED: [c_int; 2] = [libc::AF_INET, libc::AF_INET6];
// The type in the second argument of `socket`; the other bits are flags.
const TYPE: u64 = 0xf;
// For local sockets, `SOCK_RAW` is an alias of `SOCK_DGRAM`.
const DATAGRAMS: [c_int; 2] = [libc::SOCK_DGRAM, libc::SOCK_RAW];

// `which` argument of `setpriority`: all processes of a user.
const PRIO_USER: u64 = 2;
// The same for `ioprio_set`.
const IOPRIO_WHO_USER: u64 = 3;
// Calls that change how a process is scheduled, and the argument that names it. 0 is the caller. A
// filter does not know the ids of a command's own processes and threads, so it refuses those, too.
const SCHEDULING: [(c_long, u8); 6] = [
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setscheduler, 0),
];

// System V IPC and POSIX message queues: memory, locks and messages that all processes of a user
// reach by a number or a name. A namespace of its own separates them.
const SHARED: [c_long; 13] = [
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_semctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmget,
];

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
        let conditions = arguments.iter().map(|(index, how, value)| {
            SeccompCondition::new(*index, SeccompCmpArgLen::Dword, how.clone(), *value)
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
        self.program_with(SeccompAction::Errno(error.unsigned_abs()))
    }

    fn program_with(self, action: SeccompAction) -> Result<BpfProgram, String> {
        if let Some(error) = self.error {
            return Err(error);
        }

        let to_text = |e: seccompiler::BackendError| e.to_string();
        let target = TargetArch::try_from(std::env::consts::ARCH).map_err(to_text)?;
        let mut rules = self.calls;
        if cfg!(target_arch = "x86_64") {
            let numbered = rules.iter().map(|(&call, denied)| {
                let other = X32_NUMBERS.iter().find(|(usual, _)| *usual == call);
                let number = other.map_or(call, |&(_, number)| number);
                (number | X32, denied.clone())
            });
            let numbered: Vec<_> = numbered.collect();
            rules.extend(numbered);
        }

        SeccompFilter::new(rules, SeccompAction::Allow, action, target)
            .and_then(BpfProgram::try_from)
            .map_err(to_text)
    }
}

/// Returns the reason if this kernel cannot filter system calls.
pub(super) fn check() -> Result<(), String> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !status.lines().any(|line| line.starts_with("Seccomp:")) {
        return Err("kernel without seccomp".to_owned());
    }
    everywhere().program(libc::EPERM)?;
    unknown().program(libc::ENOSYS).map(drop)
}

/// Restricts this thread. `others` are the processes that supervise it.
pub(super) fn enforce(
    policy: &Policy,
    kernel: &Kernel,
    isolation: Isolation,
    others: &[u32],
) -> Result<Option<Connections>, String> {
    let (mut denied, mut unknown) = (everywhere(), unknown());
    let is_separated = policy.network == Network::Off && isolation.network;
    if policy.network == Network::Off {
        network(&mut denied, is_separated);
    }

    if !kernel.namespaces {
        denied.all(&SHARED);
    }

    if kernel.landlock < SCOPE_ABI {
        signals(&mut denied, others);
    }

    if kernel.landlock < TRUNCATE_ABI {
        truncation(&mut denied);
        // Its flags are in memory, like those of `clone3`.
        unknown.all(&[libc::SYS_openat2]);
    }

    apply(&unknown.program(libc::ENOSYS)?)?;
    if !is_separated {
        apply(&denied.program(libc::EPERM)?)?;
        return Ok(None);
    }

    let connections = Connections::intercept(connecting()?);
    if connections.is_none() {
        // Without the supervisor's help no local socket can be allowed.
        let local = [(0, SeccompCmpOp::Eq, number(libc::AF_UNIX))];
        denied.when(libc::SYS_socket, &local);
    }
    apply(&denied.program(libc::EPERM)?)?;
    Ok(connections)
}

/// A program that passes each `connect` to the supervisor.
fn connecting() -> Result<BpfProgram, String> {
    let mut connecting = Denied::default();
    connecting.all(&[libc::SYS_connect]);
    connecting.program_with(SeccompAction::Trace(0))
}

fn apply(program: &BpfProgram) -> Result<(), String> {
    apply_filter(program).map_err(|e| e.to_string())
}

/// Calls that programs do without after `ENOSYS`.
fn unknown() -> Denied {
    let mut unknown = Denied::default();
    // A filter cannot see the flags of `clone3`, which are in memory. C libraries fall back to
    // `clone`.
    unknown.all(&[libc::SYS_clone3]);
    unknown.all(&LATER.collect::<Vec<_>>());
    unknown
}

/// Denied on every kernel.
fn everywhere() -> Denied {
    let mut denied = Denied::default();
    denied.all(&DENIED);
    denied.all(&[KEXEC_FILE_LOAD]);
    // In a user namespace, a command would have all capabilities.
    for namespace in NAMESPACES {
        for call in [libc::SYS_clone, libc::SYS_unshare] {
            denied.when(call, &[(0, SeccompCmpOp::MaskedEq(namespace), namespace)]);
        }
    }
    let new_time = [(0, SeccompCmpOp::MaskedEq(NEW_TIME), NEW_TIME)];
    denied.when(libc::SYS_unshare, &new_time);
    for command in CHANGING {
        denied.when(libc::SYS_ioctl, &[(1, SeccompCmpOp::Eq, command)]);
    }

    denied.when(libc::SYS_prlimit64, &[(0, SeccompCmpOp::Ne, 0)]);
    for (call, process) in SCHEDULING {
        denied.when(call, &[(process, SeccompCmpOp::Ne, 0)]);
    }
    denied.when(libc::SYS_setpriority, &[(0, SeccompCmpOp::Eq, PRIO_USER)]);
    denied.when(
        libc::SYS_ioprio_set,
        &[(0, SeccompCmpOp::Eq, IOPRIO_WHO_USER)],
    );

    denied
}

/// Denies local datagrams, and all sockets except local ones and those of a separated network.
/// Without such a network, also denies all connections.
fn network(denied: &mut Denied, is_separated: bool) {
    let separated = if is_separated { &SEPARATED[..] } else { &[] };
    if !is_separated {
        denied.all(&[libc::SYS_connect]);
    }
    let families = LOCAL.iter().chain(separated);
    let foreign: Vec<_> = families
        .map(|family| (0, SeccompCmpOp::Ne, number(*family)))
        .collect();
    denied.when(libc::SYS_socket, &foreign);
    // Datagram sockets send without `connect`.
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

// Like the defaults of container engines: access to files of other owners, and a few harmless
// ones.
const RETAINED: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// Affects programs that this thread executes.
pub(super) fn drop_capabilities() {
    for capability in CapabilitySet::all().difference(RETAINED).iter() {
        // Fails for an ordinary user, who has no capabilities, and for capabilities unknown to the
        // kernel.
        let _ = remove_capability_from_bounding_set(capability);
    }
}
