//! A process on a kernel that lacks something: namespaces and mounts, as Docker's default profile of
//! seccomp leaves it, or IPv6.

use std::process::Command;

use crate::support::{Output, TestRepo};

/// Restricts itself and executes its arguments. Without `ipv6`, a socket of that family fails with
/// `EAFNOSUPPORT`. Without `namespaces`, denies what Docker denies to a container without
/// `CAP_SYS_ADMIN`: `unshare`, `mount`, `umount2`, `setns`, `pivot_root`, the newer calls for mounts,
/// `clone` with the flag of a namespace, and `clone3`.
const FILTER: &str = r"
import ctypes, os, platform, struct, sys
x86 = platform.machine() == 'x86_64'
calls = [272, 165, 166, 308, 155] if x86 else [97, 40, 39, 268, 41]
calls += [428, 429, 430, 431, 432, 433, 442]
clone, namespaces = 56 if x86 else 220, 0x7e020000
def op(code, value, then=0, other=0):
    return struct.pack('HBBI', code, then, other, value)
def deny(error):
    return op(0x06, 0x50000 | error)
program = [op(0x20, 0)]
for call in calls:
    program += [op(0x15, call, 0, 1), deny(1)]
program += [op(0x15, 435, 0, 1), deny(38)]
program += [op(0x15, clone, 0, 3), op(0x20, 16), op(0x45, namespaces, 0, 1), deny(1)]
if sys.argv[1] == 'ipv6':
    socket, family = 41 if x86 else 198, 10
    program = [op(0x20, 0), op(0x15, socket, 0, 3), op(0x20, 16), op(0x15, family, 0, 1), deny(97)]
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

/// Returns whether this machine can filter system calls of a Python program.
pub fn containers(repo: &TestRepo) -> bool {
    let mut command = repo.command("python3");
    command.args(["-c", FILTER, "namespaces", "true"]);
    let filters = |mut command: Command| command.status().is_ok_and(|status| status.success());
    filters(command)
}

/// Runs teddy without namespaces.
pub fn teddy_in_container(repo: &TestRepo, args: &[&str]) -> Output {
    teddy_without("namespaces", repo, args)
}

/// Runs teddy without `namespaces` or `ipv6`.
pub fn teddy_without(feature: &str, repo: &TestRepo, args: &[&str]) -> Output {
    let teddy = repo.teddy_command(args);
    let mut command = repo.command("python3");
    command
        .args(["-c", FILTER, feature])
        .arg(teddy.get_program())
        .args(teddy.get_args());
    let variables = teddy.get_envs();
    command.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    Output::of(command.current_dir(repo.path()))
}
