//! A process on a kernel that lacks something: namespaces and mounts, as Docker's default profile of
//! seccomp leaves it, single system calls, or IPv6.

use std::process::Command;

use crate::support::{Output, TestRepo, skipped};

/// Restricts itself and executes its arguments. Without `ipv6` or `netlink`, a socket of that family
/// fails with `EAFNOSUPPORT`. Without `namespaces`, denies what Docker denies to a container without
/// `CAP_SYS_ADMIN`: `unshare`, `mount`, `umount2`, `setns`, `pivot_root`, the newer calls for mounts,
/// `clone` with the flag of a namespace, and `clone3`. Another name is a system call, or a group of
/// them, that the kernel does not know.
const FILTER: &str = r"
import ctypes, os, platform, struct, sys
x86 = platform.machine() == 'x86_64'
families = {'ipv6': 10, 'netlink': 16}
docker = {'unshare': 272 if x86 else 97, 'mount': 165 if x86 else 40, 'umount': 166 if x86 else 39,
          'setns': 308 if x86 else 268, 'pivot_root': 155 if x86 else 41}
newer_mounts = [428, 429, 430, 431, 432, 433, 442]
unknown = {'seccomp': [317 if x86 else 277], 'landlock': [444, 445, 446], 'pidfd_getfd': [438],
           'newer_mounts': newer_mounts, 'openat2': [437]}
clone, namespaces = 56 if x86 else 220, 0x7e020000
def op(code, value, then=0, other=0):
    return struct.pack('HBBI', code, then, other, value)
def deny(error):
    return op(0x06, 0x50000 | error)
missing = sys.argv[1]
program = [op(0x20, 0)]
if missing in families:
    socket = 41 if x86 else 198
    program += [op(0x15, socket, 0, 3), op(0x20, 16), op(0x15, families[missing], 0, 1), deny(97)]
elif missing in unknown:
    for call in unknown[missing]:
        program += [op(0x15, call, 0, 1), deny(38)]
elif missing in docker:
    program += [op(0x15, docker[missing], 0, 1), deny(1)]
elif missing == 'namespaces':
    for call in list(docker.values()) + newer_mounts:
        program += [op(0x15, call, 0, 1), deny(1)]
    program += [op(0x15, 435, 0, 1), deny(38)]
    program += [op(0x15, clone, 0, 3), op(0x20, 16), op(0x45, namespaces, 0, 1), deny(1)]
else:
    assert missing == 'nothing', missing
program += [op(0x06, 0x7fff0000)]
code = ctypes.create_string_buffer(b''.join(program))
class Program(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('code', ctypes.c_void_p)]
filtered = Program(len(program), ctypes.addressof(code))
libc = ctypes.CDLL(None)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(filtered), 0, 0):
    sys.exit(77)
os.execvp(sys.argv[2], sys.argv[2:])
";

/// Returns whether this machine can filter system calls of a Python program. Notes that tests are
/// skipped if it cannot.
pub fn containers(repo: &TestRepo) -> bool {
    let mut command = without("namespaces", repo, &repo.command("true"));
    let can = command.status().is_ok_and(|status| status.success());
    if !can {
        skipped("no python3, or no filter of system calls here");
    }
    can
}

/// Returns a command that runs another one, in the project, on a kernel that lacks a feature.
pub fn without(feature: &str, repo: &TestRepo, command: &Command) -> Command {
    let mut filtered = repo.command("python3");
    filtered
        .args(["-c", FILTER, feature])
        .arg(command.get_program())
        .args(command.get_args());
    let variables = command.get_envs();
    filtered.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    filtered.current_dir(repo.path());
    filtered
}

/// Runs teddy without namespaces.
pub fn teddy_in_container(repo: &TestRepo, args: &[&str]) -> Output {
    teddy_without("namespaces", repo, args)
}

/// Runs teddy on a kernel that lacks a feature.
pub fn teddy_without(feature: &str, repo: &TestRepo, args: &[&str]) -> Output {
    Output::of(&mut without(feature, repo, &repo.teddy_command(args)))
}
