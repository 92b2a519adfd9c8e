//! What a command has for itself: a network with loopback, local sockets, terminals. None of it leads
//! out of the run.
//!
//! CI also runs this module as root.

use std::os::unix::net::UnixListener;
use std::path::Path;

use teddy::host::sandbox::{Availability, availability};

use super::ground::{Ground, plan, run};
use crate::support::container::{containers, teddy_without};
use crate::support::skipped;

/// Kernels without one of the features, and the failpoints that emulate them.
const KERNELS: [&str; 5] = [
    "",
    "no-namespaces=return",
    "no-network-namespace=return",
    "no-intercepted-connections=return",
    "no-terminals=return",
];

const SERVERS: &str = r#"
import os, socket, threading
listening = []
def exchange(family, address, bound=None):
    server = socket.socket(family)
    server.bind(address)
    server.listen()
    client = socket.socket(family)
    client.connect(bound or address)
    peer, _ = server.accept()
    client.sendall(b'x')
    assert peer.recv(1) == b'x'
    listening.append(server)
os.mkdir('dir')
exchange(socket.AF_INET, ('127.0.0.1', 8080))
exchange(socket.AF_INET, ('127.0.0.1', 80))
if os.path.exists('/proc/net/if_inet6') and open('/proc/net/if_inet6').read():
    exchange(socket.AF_INET6, ('::1', 8080))
exchange(socket.AF_UNIX, os.getcwd() + '/socket')
exchange(socket.AF_UNIX, 'dir/socket')
exchange(socket.AF_UNIX, os.environ['TMPDIR'] + '/socket')
exchange(socket.AF_UNIX, '\0name')
dir = os.open('dir', os.O_PATH)
exchange(socket.AF_UNIX, 'dir/long', f'/proc/self/fd/{dir}/long')
os.symlink('dir/socket', 'link')
socket.socket(socket.AF_UNIX).connect('link')
def in_thread():
    os.chdir('dir')
    socket.socket(socket.AF_UNIX).connect('socket')
thread = threading.Thread(target=in_thread)
thread.start()
thread.join()
os.chdir('..')
left, right = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
left.bind(('127.0.0.1', 5353))
right.sendto(b'x', ('127.0.0.1', 5353))
assert left.recv(1) == b'x'
slow = socket.socket()
slow.setblocking(False)
slow.connect_ex(('127.0.0.1', 8080))
for name in ('socket', 'dir/socket', 'dir/long', 'link'):
    os.unlink(name)
os.rmdir('dir')
try:
    socket.create_connection(('192.0.2.1', 80), timeout=5)
except OSError as error:
    print('outside:', error.strerror)
print('all ' + 'met')
"#;

/// Connects to the socket `OUT` by every way that does not name it honestly. `OWN` is a socket in the
/// worktree. Races for some seconds.
const ATTACKS: &str = r#"
import ctypes, os, socket, struct, threading, time
OUT = 'OUTSIDE'
libc = ctypes.CDLL(None, use_errno=True)
def tries(work):
    try:
        work()
        print('conn' + 'ected')
    except OSError:
        pass
def local(path):
    tries(lambda: socket.socket(socket.AF_UNIX).connect(path))
local(OUT)
os.symlink(OUT, 'link')
local('link')
os.symlink(os.path.dirname(OUT), 'dir')
local('dir/' + os.path.basename(OUT))
local(os.path.relpath(OUT))
local('/proc/self/root' + OUT)
try:
    os.link(OUT, 'hard')
    local('hard')
except OSError:
    pass
dir = os.open(os.path.dirname(OUT), os.O_PATH)
local(f'/proc/self/fd/{dir}/' + os.path.basename(OUT))
tries(lambda: os.chdir(dir) or socket.socket(socket.AF_UNIX).connect(os.path.basename(OUT)))
os.chdir(os.environ['WORK'])
pair = socket.socketpair()[0]
tries(lambda: pair.connect(OUT))
tries(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(OUT))
tries(lambda: socket.socket(40, socket.SOCK_STREAM).connect((2, 1)))

server = socket.socket(socket.AF_UNIX)
server.bind('own')
server.listen(4096)
def address(path):
    return struct.pack('=H108s', socket.AF_UNIX, path.encode())
inside, outside = address(os.getcwd() + '/own'), address(OUT)
buffer = ctypes.create_string_buffer(outside, len(outside))
done = False
def change_memory():
    while not done:
        buffer[:] = inside
        buffer[:] = outside
def change_link():
    while not done:
        for target in ('own', OUT):
            os.symlink(target, 'new')
            os.rename('new', 'flip')
os.symlink('own', 'flip')
inet = socket.socket()
local_socket = socket.socket(socket.AF_UNIX)
number = os.dup(inet.fileno())
def change_socket():
    while not done:
        os.dup2(inet.fileno(), number)
        os.dup2(local_socket.fileno(), number)
threads = [threading.Thread(target=work) for work in (change_memory, change_link, change_socket)]
[thread.start() for thread in threads]
until = time.time() + SECONDS
while time.time() < until:
    with socket.socket(socket.AF_UNIX) as one:
        libc.connect(one.fileno(), buffer, len(buffer))
    with socket.socket(socket.AF_UNIX) as one:
        one.connect_ex('flip')
    libc.connect(number, outside, len(outside))
done = True
[thread.join() for thread in threads]
print('tried ' + 'all')
"#;

const TERMINALS: &str = r#"
import os, pty, fcntl, struct, termios
master, slave = pty.openpty()
name = os.ttyname(slave)
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))
child, master = pty.fork()
if child == 0:
    os.write(os.open('/dev/tty', os.O_RDWR), b'on ' + os.ttyname(0).encode())
    os._exit(0)
print(os.read(master, 100).decode())
os.waitpid(child, 0)
print(sorted(os.listdir('/dev/pts')))
"#;

/// Notes why the test is skipped if Python or the sandbox is missing.
fn can_run() -> bool {
    let can =
        teddy::host::process::find("python3").is_some() && availability() == Availability::Full;
    if !can {
        skipped("this needs a sandbox and `python3`");
    }
    can
}

fn python(script: &str) -> String {
    format!("WORK=$PWD python3 - <<'END'\n{script}\nEND")
}

/// Executes a script on an emulated kernel. Returns the exit code and both streams.
fn execute(ground: &Ground, script: &str, kernel: &str) -> (Option<i32>, String) {
    let file = ground.repo.beside("plan.md");
    std::fs::write(&file, plan(&run(&python(script)))).unwrap();
    let arguments = ["execute", "../plan.md", "-y", "--no-replan"];
    let output = ground.teddy_with(&arguments, &[("FAILPOINTS", kernel)]);
    (output.status.code(), super::ground::words(&output))
}

#[test]
fn servers_and_clients_of_a_run_meet_on_loopback_and_in_its_directories() {
    if !can_run() {
        return;
    }
    for backend in ["overlay", "checkout"] {
        let ground = Ground::new();
        let setting = format!("worktree.backend={backend}");
        let tried = ground.execute_with(plan(&run(&python(SERVERS))), &["-c", &setting]);
        let report = ground.ok(&["show"]);
        assert_eq!(tried.code, 0, "{backend}: {report}");
        assert!(report.contains("all met"), "{report}");
        assert!(
            report.contains("outside: Network is unreachable"),
            "{report}"
        );
    }
}

#[test]
fn a_kernel_without_ipv6_has_loopback() {
    let ground = Ground::new();
    if !can_run() || !containers(&ground.repo) {
        return;
    }
    let script = "import errno, socket, threading, urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
try:
    socket.socket(socket.AF_INET6)
except OSError as error:
    assert error.errno == errno.EAFNOSUPPORT, error
else:
    raise AssertionError('there is IPv6')
server = HTTPServer(('localhost', 0), BaseHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
try:
    urllib.request.urlopen(f'http://localhost:{server.server_port}/')
except urllib.error.HTTPError as error:
    print('ans' + 'wered', error.code)";
    let file = ground.repo.beside("plan.md");
    std::fs::write(&file, plan(&run(&python(script)))).unwrap();
    let teddy = |args: &[&str]| teddy_without("ipv6", &ground.repo, args);
    for backend in ["worktree.backend=overlay", "worktree.backend=checkout"] {
        let execute = ["execute", "../plan.md", "-y", "--no-replan", "-c", backend];
        teddy(&execute).check(0, &[]);
        teddy(&["show", "@", "output/01.txt"]).check(0, &["answered 501"]);
    }
    teddy(&["-v", "status"]).check(0, &["with their own loopback and pseudo-terminals"]);
    teddy(&["doctor", "--json"]).check(0, &["a network of their own with loopback"]);
}

#[test]
fn runs_at_the_same_time_share_no_port_and_what_listens_ends_with_its_run() {
    if !can_run() {
        return;
    }
    let script = "import os, socket, subprocess
server = socket.socket()
server.bind(('127.0.0.1', 8080))
server.listen()
subprocess.Popen(['sleep', '300'], pass_fds=[server.fileno()], start_new_session=True)
print('list' + 'ens')";
    let grounds = [Ground::new(), Ground::new()];
    let both = std::thread::scope(|scope| {
        let runs = grounds
            .each_ref()
            .map(|ground| scope.spawn(|| execute(ground, script, "")));
        runs.map(|run| run.join().unwrap())
    });
    for (code, said) in both {
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("listens"), "{said}");
    }
    let (code, said) = execute(&grounds[0], script, "");
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn no_command_connects_to_a_local_socket_outside() {
    if !can_run() {
        return;
    }
    for kernel in KERNELS {
        let ground = Ground::new();
        let path = ground.outside().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let script = ATTACKS.replace("OUTSIDE", &path.display().to_string());
        // Terminals change nothing about sockets.
        let seconds = if kernel.is_empty() { "1" } else { "0.1" };
        let script = script.replace("SECONDS", seconds);
        let (_, said) = execute(&ground, &script, kernel);
        let accepted = listener.accept();
        assert!(accepted.is_err(), "{kernel}: {said}");
        assert!(!said.contains("connected"), "{kernel}: {said}");
        // Where no local socket can be made, the script ends early.
        let can_make = matches!(kernel, "" | "no-terminals=return");
        assert_eq!(said.contains("tried all"), can_make, "{kernel}: {said}");
    }
}

#[test]
fn no_command_reaches_a_server_outside() {
    if !can_run() {
        return;
    }
    let ground = Ground::new();
    for kernel in KERNELS {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        server.set_nonblocking(true).unwrap();
        let port = server.local_addr().unwrap().port();
        let script = format!("import socket; socket.create_connection(('127.0.0.1', {port}))");
        let (code, said) = execute(&ground, &script, kernel);
        assert_eq!(code, Some(1), "{kernel}: {said}");
        assert!(server.accept().is_err(), "{kernel}: {said}");
    }
}

#[test]
fn a_command_has_terminals_of_its_own() {
    if !can_run() {
        return;
    }
    let size = portable_pty::PtySize::default();
    let other = portable_pty::native_pty_system().openpty(size).unwrap();
    for setting in ["execute.network=false", "execute.network=true"] {
        let ground = Ground::new();
        let tried = ground.execute_with(plan(&run(&python(TERMINALS))), &["-c", setting]);
        let report = ground.ok(&["show"]);
        assert_eq!(tried.code, 0, "{report}");
        assert!(report.contains("on /dev/pts/1"), "{report}");
        assert!(report.contains("['0', '1', 'ptmx']"), "{report}");
    }
    drop(other);
}

#[test]
fn programs_that_need_a_terminal_run() {
    if !can_run() || !Path::new("/usr/bin/script").exists() {
        return;
    }
    let ground = Ground::new();
    let command = "script -qec 'tty; stty size' /dev/null";
    let tried = ground.execute_with(plan(&run(command)), &[]);
    let report = ground.ok(&["show"]);
    assert_eq!(tried.code, 0, "{report}");
    assert!(report.contains("/dev/pts/0"), "{report}");
}
