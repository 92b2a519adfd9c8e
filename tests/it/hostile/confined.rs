//! What sandboxed commands cannot reach, with the Landlock versions of older kernels too.
//!
//! CI also runs this module as root.

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use teddy::host::sandbox::{Availability, availability};
use teddy::host::shell::Script;

use super::ground::{Ground, each_fails, everything_works, none_passed, plan, run, words};

/// Files below the home directory with keys, credentials, shell history and the memory of agents.
const KEYS: &str = "
    .ssh/key .authinfo .authinfo.gpg .gnupg/key .password-store/key .1password/key
    .local/share/keyrings/key .local/share/kwalletd/key .subversion/auth/key .pki/key
    .git-credentials .netrc .vault-token .aws/key .azure/key .boto .databrickscfg .docker/key
    .fly/key .kube/key .my.cnf .oci/key .pgpass .s3cfg .terraform.d/credentials.tfrc.json
    .bundle/config .cargo/credentials .cargo/credentials.toml .composer/auth.json
    .gem/credentials .ivy2/.credentials .m2/settings-security.xml .m2/settings.xml .npmrc
    .pip/pip.conf .pypirc .sbt/.credentials .yarnrc.yml .aider/key .aider.conf.yml .anthropic/key
    .claude/key .claude.json .codeium/key .codex/key .continue/key .copilot/key .cursor/key
    .factory/key .gemini/key .huggingface/key .kiro/key .llm/key .local/share/amp/key
    .local/share/crush/key .local/share/goose/key .local/share/opencode/key .ollama/key
    .openai/key .qwen/key .mozilla/key .thunderbird/key .bash_history .lesshst
    .local/share/atuin/key .local/share/fish/fish_history .mysql_history .node_repl_history
    .psql_history .python_history .sqlite_history .viminfo .zsh_history .config/age/key
    .config/gh/key .config/git/credentials .config/glab-cli/key .config/hub/key .config/op/key
    .config/sops/key .config/composer/auth.json .config/containers/key .config/doctl/key
    .config/gcloud/key .config/hcloud/key .config/helm/key .config/pip/key
    .config/pypoetry/auth.toml .config/rclone/key .config/stripe/key .config/Claude/key
    .config/Cursor/key .config/aichat/key .config/amp/key .config/claude/key .config/crush/key
    .config/cursor/key .config/github-copilot/key .config/goose/key .config/io.datasette.llm/key
    .config/openai/key .config/opencode/key .config/BraveSoftware/key .config/chromium/key
    .config/google-chrome/key .cache/BraveSoftware/key .cache/chromium/key
    .cache/google-chrome/key .cache/huggingface/stored_tokens .cache/huggingface/token
    .cache/mozilla/key .cache/thunderbird/key
";

/// Files below the home directory that are executed later: caches, package stores, environments.
const RUN_LATER: &[&str] = &[
    ".cache/ms-playwright/chromium/chrome",
    ".cache/pre-commit/repo/hook",
    ".cache/pypoetry/virtualenvs/x/bin/python",
    ".cache/uv/archive-v0/x.py",
    ".cargo/bin/cargo",
    ".cargo/git/checkouts/x/lib.rs",
    ".cargo/registry/src/x/lib.rs",
    ".gradle/caches/x.jar",
    ".local/share/pnpm/store/v3/files/00/x",
    ".m2/repository/x.jar",
    ".npm/_npx/x/index.js",
    ".pnpm-store/v3/files/00/x",
    ".virtualenvs/x/bin/python",
    "go/pkg/mod/x/x.go",
];

const TRUNCATIONS: &[&str] = &[
    "os.truncate(path, 0)",
    "os.open(path, os.O_RDONLY | os.O_TRUNC)",
    "os.open(path, 3 | os.O_TRUNC)",
    "how = ctypes.create_string_buffer(struct.pack('QQQ', os.O_TRUNC, 0, 0)); assert ctypes.CDLL(None).syscall(437, -100, path.encode(), how, 24) >= 0",
];

const DATAGRAMS: &[&str] = &[
    "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', path)",
    "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendmsg([b'x'], [], 0, path)",
    "socket.socket(socket.AF_UNIX, socket.SOCK_RAW).sendto(b'x', path)",
    "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', path)",
    "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendmsg([b'x'], [], 0, path)",
];

/// Attacks in which the kernel deletes for the caller: the work directory of an overlay is emptied when
/// the overlay is created, wherever it is. `path` is the directory that contains `work`.
const OVERLAY_ATTACK: &str = r#"
import ctypes, os, sys, threading
path, upper = sys.argv[1:3]
libc = ctypes.CDLL(None, use_errno=True)
user, group = os.getuid(), os.getgid()
if libc.unshare(0x10000000 | 0x20000) == 0:
    open('/proc/self/setgroups', 'w').write('deny')
    open('/proc/self/uid_map', 'w').write(f'{user} {user} 1')
    open('/proc/self/gid_map', 'w').write(f'{group} {group} 1')
for name in ('lower', 'upper'):
    os.makedirs(upper + '/' + name, exist_ok=True)
context = libc.syscall(430, b'overlay', 0)
for key, value in (('lowerdir', upper + '/lower'), ('upperdir', upper + '/upper'), ('workdir', path)):
    libc.syscall(431, context, 1, key.encode(), value.encode(), 0)
libc.syscall(431, context, 0, b'userxattr', None, 0)
libc.syscall(431, context, 6, None, None, 0)
options = f'userxattr,lowerdir={upper}/lower,upperdir={upper}/upper,workdir={path}'
libc.mount(b'overlay', (upper + '/lower').encode(), b'overlay', 0, options.encode())
"#;

/// Calls that the filter refuses, in Python: each is true if the kernel accepted it, or refused it
/// for another reason than that no such call is allowed.
const REFUSED_CALLS: &[(&str, &str)] = &[
    ("a user namespace", "libc.unshare(0x10000000) == 0"),
    ("a mount namespace", "libc.unshare(0x20000) == 0"),
    ("a time namespace", "libc.unshare(0x80) == 0"),
    // CLONE_NEWUSER | SIGCHLD
    ("a process in a user namespace", "clones(0x10000000 | 17)"),
    ("clone3", "passes(435, 0, 0)"),
    ("setns", "passes(NUMBERS['setns'], -1, 0)"),
    ("fsopen", "passes(430, b'overlay', 0)"),
    ("fsconfig", "passes(431, -1, 6, 0, 0, 0)"),
    ("fsmount", "passes(432, -1, 0, 0)"),
    ("fspick", "passes(433, -1, b'/', 0)"),
    ("open_tree", "passes(428, -100, b'/', 0)"),
    ("move_mount", "passes(429, -1, b'', -1, b'', 0)"),
    ("mount_setattr", "passes(442, -1, b'', 0, 0, 0)"),
    ("open_tree_attr", "passes(467, -1, b'', 0, 0, 0)"),
    ("file_setattr", "passes(469, -1, b'', 0, 0, 0)"),
    ("a call of a later kernel", "passes(500)"),
    ("mount, as x32", "x32_passes(165, b'', b'/', b'', 0, 0)"),
    ("unshare, as x32", "x32_passes(272, 0x10000000)"),
    // `ioctl` has another number there.
    ("chattr, as x32", "x32_passes(514, -1, 0x40086602, 0)"),
    ("io_uring_setup", "passes(425, 1, 0)"),
    ("quotactl_fd", "passes(443, -1, 0, 0, 0)"),
    ("userfaultfd", "passes(NUMBERS['userfaultfd'], 1)"),
    ("bpf", "passes(NUMBERS['bpf'], -1, 0, 0)"),
    (
        "perf_event_open",
        "passes(NUMBERS['perf'], 0, 0, -1, -1, 0)",
    ),
    ("open_by_handle_at", "passes(NUMBERS['handle'], -1, 0, 0)"),
    // FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, FS_IOC_ENABLE_VERITY, BTRFS_IOC_SNAP_DESTROY
    ("chattr", "passes(NUMBERS['ioctl'], -1, 0x40086602, 0)"),
    (
        "a project quota",
        "passes(NUMBERS['ioctl'], -1, 0x401c5820, 0)",
    ),
    ("verity", "passes(NUMBERS['ioctl'], -1, 0x40806685, 0)"),
    ("a subvolume", "passes(NUMBERS['ioctl'], -1, 0x5000940f, 0)"),
    ("a priority", "passes(NUMBERS['setpriority'], 0, OTHER, 5)"),
    ("an affinity", "affects(NUMBERS['affinity'])"),
    ("a scheduler", "affects(NUMBERS['scheduler'], 3)"),
    (
        "scheduler attributes",
        "passes(NUMBERS['attributes'], OTHER, 0, 0)",
    ),
    (
        "scheduler parameters",
        "passes(NUMBERS['parameters'], OTHER, 0)",
    ),
    (
        "an i/o priority",
        "passes(NUMBERS['io'], 1, OTHER, 3 << 13)",
    ),
];

/// What [`REFUSED_CALLS`] use. `passes` tells whether a call was let through to the kernel.
const CALLS: &str = r#"
import ctypes, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
OTHER = int(sys.argv[1])
NUMBERS = {
    'x86_64': dict(setns=308, userfaultfd=323, bpf=321, perf=298, handle=304, ioctl=16,
        setpriority=141, affinity=203, scheduler=144, attributes=314, parameters=142, io=251),
    'aarch64': dict(setns=268, userfaultfd=282, bpf=280, perf=241, handle=265, ioctl=29,
        setpriority=140, affinity=122, scheduler=119, attributes=274, parameters=118, io=30),
}[platform.machine()]
def passes(*arguments):
    ctypes.set_errno(0)
    result = libc.syscall(*arguments)
    return result != -1 or ctypes.get_errno() not in (1, 38)
def x32_passes(number, *arguments):
    # A kernel without these calls answers with 38, but only after the filter.
    if platform.machine() != 'x86_64':
        return False
    ctypes.set_errno(0)
    result = libc.syscall(0x40000000 | number, *arguments)
    return result != -1 or ctypes.get_errno() != 1
def affects(call, policy=8):
    return passes(call, OTHER, policy, ctypes.byref(ctypes.create_string_buffer(b'', 128)))
def clones(flags):
    ctypes.set_errno(0)
    call = {'x86_64': 56, 'aarch64': 220}[platform.machine()]
    child = libc.syscall(call, flags, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    return child != -1
"#;

/// Returns a file in the home folder with a text, its folders made.
fn in_home(ground: &Ground, name: &str, text: &str) -> PathBuf {
    let path = ground.repo.beside("home").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

/// Executes a command with extra variables. Returns the exit code and both streams.
fn execute(ground: &Ground, command: &str, variables: &[(&str, &str)]) -> (Option<i32>, String) {
    std::fs::write(ground.repo.beside("plan.md"), plan(&run(command))).unwrap();
    let output = ground.teddy_with(&["execute", "../plan.md", "-y", "--no-replan"], variables);
    (output.status.code(), words(&output))
}

/// Executes commands, each of which must fail, with extra variables.
#[track_caller]
fn all_fail(
    ground: &Ground,
    commands: impl IntoIterator<Item = String>,
    variables: &[(&str, &str)],
) {
    let (code, said) = execute(ground, &each_fails(commands), variables);
    assert_eq!(code, Some(0), "{said}");
    none_passed(&ground.ok(&["show", "@", "output/01.txt"]));
}

fn python(statement: &str, path: &std::path::Path) -> String {
    let path = path.display();
    format!("python3 -c \"import ctypes, os, socket, struct; path = '{path}'; {statement}\"")
}

/// Notes why the test is skipped if the program or the sandbox is missing.
fn is_there(program: &str) -> bool {
    let found = teddy::host::process::find(program).is_some();
    if !found || availability() != Availability::Full {
        crate::support::skipped(&format!("this needs a sandbox and `{program}`"));
    }
    found && availability() == Availability::Full
}

#[test]
fn sandbox_keys_of_agents_and_tools_are_not_read() {
    if !is_there("cat") {
        return;
    }
    let ground = Ground::new();
    let files: Vec<_> = KEYS
        .split_whitespace()
        .map(|name| in_home(&ground, name, "secret"))
        .collect();
    let each = files.iter().map(|file| format!("cat {}; ", file.display()));
    let (_, said) = execute(&ground, &each.collect::<String>(), &[]);
    assert_eq!(
        said.matches("Permission denied").count(),
        files.len(),
        "{said}"
    );
    assert!(!said.contains("secret"), "{said}");
}

#[test]
fn sandbox_a_link_to_private_files_opens_nothing() {
    if !is_there("cat") {
        return;
    }
    let ground = Ground::new();
    let key = in_home(&ground, ".ssh/id_ed25519", "secret");
    std::os::unix::fs::symlink(".ssh", ground.repo.beside("home/keys")).unwrap();
    let command = format!("cat {}; cat ~/keys/id_ed25519; true", key.display());
    let (code, output) = execute(&ground, &command, &[]);
    assert_eq!(code, Some(0), "{output}");
    assert_eq!(output.matches("Permission denied").count(), 2, "{output}");
    assert!(!output.contains("secret"), "{output}");
}

#[test]
fn sandbox_caches_that_run_later_are_not_written() {
    if !is_there("sh") {
        return;
    }
    let ground = Ground::new();
    let files: Vec<_> = RUN_LATER
        .iter()
        .map(|name| in_home(&ground, name, "mine"))
        .collect();
    let each = files.iter().map(|file| {
        let file = file.display();
        format!(
            "echo evil > {file}; echo evil > {file}.new; ln -f {file} hard && echo evil > hard; "
        )
    });
    execute(&ground, &each.collect::<String>(), &[]);
    let wrong: Vec<_> = files
        .iter()
        .filter(|file| {
            std::fs::read(file).unwrap() != b"mine"
                || std::fs::read_dir(file.parent().unwrap()).unwrap().count() != 1
        })
        .collect();
    assert_eq!(wrong, Vec::<&PathBuf>::new());
}

#[test]
fn sandbox_caches_can_be_read_and_new_ones_made() {
    if !is_there("sh") {
        return;
    }
    let ground = Ground::new();
    in_home(&ground, ".cache/tool/data", "data");
    let command = "cat \"$XDG_CACHE_HOME/tool/data\" ~/.cache/tool/data && mkdir \"$XDG_CACHE_HOME/new\" && echo x > \"$XDG_CACHE_HOME/new/x\"";
    let (code, said) = execute(&ground, command, &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("datadata"), "{said}");

    // Commands share a cache, which is separate from the user's.
    let (code, said) = execute(&ground, "cat \"$XDG_CACHE_HOME/new/x\"", &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(!ground.repo.beside("home/.cache/new").exists());
}

#[test]
fn sandbox_other_terminals_are_not_opened() {
    if !is_there("sh") {
        return;
    }
    let ground = Ground::new();
    let size = portable_pty::PtySize::default();
    let terminal = portable_pty::native_pty_system().openpty(size).unwrap();
    let name = terminal.master.tty_name().unwrap();
    let opens = ["<", ">", "<>"].map(|direction| format!(": {direction} {}", name.display()));
    all_fail(&ground, opens, &[]);
}

#[test]
fn sandbox_devices_that_harm_nobody_are_opened() {
    if !is_there("head") {
        return;
    }
    let command = "head -c1 /dev/zero /dev/urandom > /dev/null && : < /dev/random && echo x > /dev/stderr && echo x | cat /dev/stdin";
    let (code, said) = execute(&Ground::new(), command, &[]);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn sandbox_no_device_is_made() {
    if !is_there("python3") {
        return;
    }
    // The only device that the kernel lets a user without privileges make.
    let command = "python3 -c \"import os, stat; \
                   os.mknod(os.environ['TMPDIR'] + '/device', stat.S_IFCHR | 0o600, 0)\"";
    let (code, output) = execute(&Ground::new(), command, &[]);
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("Permission denied"), "{output}");
}

#[test]
fn sandbox_limits_of_other_processes_stay() {
    if !is_there("prlimit") {
        return;
    }
    let ground = Ground::new();
    let mut other = ground.repo.command("sleep").arg("300").spawn().unwrap();
    let limits = || std::fs::read_to_string(format!("/proc/{}/limits", other.id())).unwrap();
    let before = limits();
    let command = format!("prlimit --pid {} --nofile=7:7", other.id());
    let (code, said) = execute(&ground, &command, &[]);
    let after = limits();
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!((code, after), (Some(1), before), "{said}");

    let (code, said) = execute(&ground, "ulimit -n 64 && test $(ulimit -n) = 64", &[]);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn sandbox_no_datagram_reaches_a_socket_with_a_path() {
    if !is_there("python3") {
        return;
    }
    let ground = Ground::new();
    let path = ground.outside().join("socket");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_nonblocking(true).unwrap();
    let sends = DATAGRAMS.iter().map(|statement| python(statement, &path));
    all_fail(&ground, sends, &[]);
    assert!(socket.recv(&mut [0; 8]).is_err(), "something arrives");
}

#[test]
fn sandbox_shared_memory_of_others_is_out_of_reach() {
    if !is_there("sh") {
        return;
    }
    let ground = Ground::new();
    for kernel in [
        &[][..],
        &[("FAILPOINTS", "no-namespaces=return")],
        &[("FAILPOINTS", "namespaces-halfway=return")],
    ] {
        let name = format!("teddy-{}", uuid::Uuid::now_v7());
        let file = tempfile::Builder::new()
            .prefix(&name)
            .tempfile_in("/dev/shm");
        let file = file.unwrap();
        std::fs::write(file.path(), "secret").unwrap();
        let path = file.path().display();
        let command =
            format!("cat {path}; echo evil > {path}; rm -f {path}; echo evil > {path}.new; true");
        let (code, said) = execute(&ground, &command, kernel);
        assert_eq!(code, Some(0), "{said}");
        assert!(!said.contains("secret\n"), "{said}");
        assert_eq!(std::fs::read(file.path()).unwrap(), b"secret");
        assert!(!PathBuf::from(format!("{path}.new")).exists());
    }
}

/// Memory, locks and a queue that all processes of a user reach by a number or a name, in Python.
/// Started with `make`, creates them.
const SHARED_BY_NUMBER: &str = r#"
import ctypes, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
number, name, does_make = int(sys.argv[1]), sys.argv[2].encode(), 'make' in sys.argv
flags = 0o1600 if does_make else 0
OPEN, UNLINK = {'x86_64': (240, 241), 'aarch64': (180, 181)}[platform.machine()]
memory = libc.shmget(number, 4096, flags)
locks = libc.semget(number, 1, flags)
messages = libc.msgget(number, flags)
queue = libc.syscall(OPEN, name, os.O_RDWR | (os.O_CREAT if does_make else 0), 0o600, None)
found = [memory, locks, messages, queue]
if does_make:
    ctypes.memmove(libc.shmat(memory, None, 0), b'secret', 6)
elif 'remove' in sys.argv:
    if memory != -1:
        print(ctypes.string_at(libc.shmat(memory, None, 0), 6))
    libc.shmctl(memory, 0, None), libc.semctl(locks, 0, 0), libc.msgctl(messages, 0, None)
    libc.syscall(UNLINK, name)
print('found', sum(one != -1 for one in found))
"#;

#[test]
fn sandbox_memory_and_queues_with_a_number_are_out_of_reach() {
    if !is_there("python3") {
        return;
    }
    let number = std::process::id().to_string();
    let name = format!("teddy-{number}");
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let memory = memory.path().to_str().unwrap();
    let from_outside = |ground: &Ground, act: &str| {
        let mut command = ground.repo.command("python3");
        let output = command.args(["-c", SHARED_BY_NUMBER, &number, &name, act]);
        words(&output.output().unwrap())
    };
    let ground = Ground::new();
    for kernel in [
        &[][..],
        // Nothing is private there: a mount would cover the command's own directory.
        &[("TMPDIR", memory)],
        &[("FAILPOINTS", "no-namespaces=return")],
        &[("FAILPOINTS", "namespaces-halfway=return")],
    ] {
        assert_eq!(from_outside(&ground, "make"), "found 4\n");
        let command = format!(
            "cat > try.py <<'END'{SHARED_BY_NUMBER}END\npython3 try.py {number} {name} remove"
        );
        let (code, said) = execute(&ground, &command, kernel);
        let left = from_outside(&ground, "");
        from_outside(&ground, "remove");
        assert_eq!(code, Some(0), "{kernel:?}: {said}");
        assert_eq!(left, "found 4\n", "{kernel:?}: {said}");
        assert!(said.contains("│ found 0"), "{kernel:?}: {said}");
        assert!(!said.contains("│ b'secret'"), "{kernel:?}: {said}");
    }
}

/// Changes permissions, owner, times and attributes of whatever the arguments name.
const CHANGES: &str = r#"
import os, sys
for path in sys.argv[1:]:
    for change in (
        lambda: os.utime(path, (1, 1)),
        lambda: os.setxattr(path, 'user.evil', b'x'),
        lambda: os.chown(path, os.getuid(), os.getgid()),
        lambda: os.chmod(path, 0),
    ):
        try:
            change()
            print('chan' + 'ged', path)
        except OSError:
            pass
print('tried all')
"#;

#[test]
fn sandbox_permissions_and_times_of_the_users_files_stay() {
    if !is_there("python3") || !are_namespaces_possible() {
        return;
    }
    let ground = Ground::new();
    for backend in ["overlay", "checkout"] {
        let setting = ["-c", &format!("worktree.backend={backend}")];
        // Makes the directories that the next command tries to change.
        let first = ground.execute_with(plan(&run("true")), &setting);
        assert_eq!(first.code, 0, "{backend}: {}", first.words);
        in_home(&ground, "mine", "mine");
        let git = ground.repo.path().join(".git");
        let home = ground.repo.beside("home");
        let tops = [home.join(".cache/teddy"), git.clone()];
        let mut paths: Vec<PathBuf> = tops.iter().flat_map(|top| dirs_below(top)).collect();
        paths.extend([
            home.clone(),
            home.join("mine"),
            ground.outside().join("canary"),
        ]);
        paths.extend([ground.repo.path(), ground.repo.path().join("a.txt")]);
        paths.extend(["lock", "locks/s/lock"].map(|name| git.join("teddy").join(name)));
        let paths: Vec<_> = paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();

        let attack = format!(
            "cat > \"$TMPDIR/try.py\" <<'END'{CHANGES}END\npython3 \"$TMPDIR/try.py\" {}",
            paths.join(" ")
        );
        let tried = ground.execute_with(plan(&run(&attack)), &setting);
        let report = ground.ok(&["show"]);
        assert_eq!(tried.code, 0, "{backend}: {}", tried.words);
        assert!(report.contains("tried all"), "{backend}: {report}");
        // A command can change its own worktree and caches, which have other names in the report.
        let changed = report.lines().filter(|line| line.contains("changed /"));
        assert_eq!(changed.collect::<Vec<_>>(), [""; 0], "{backend}");
    }
    everything_works(&ground, "changes of permissions and times");
}

/// All directories in a directory, and itself. Leaves out what commands see as their own.
fn dirs_below(top: &std::path::Path) -> Vec<PathBuf> {
    let mut found = vec![top.to_owned()];
    let mut at = 0;
    while at < found.len() {
        let entries = std::fs::read_dir(&found[at]).unwrap().map(Result::unwrap);
        let dirs = entries.filter(|entry| entry.file_type().unwrap().is_dir());
        let dirs: Vec<PathBuf> = dirs.map(|entry| entry.path()).collect();
        found.extend(dirs);
        at += 1;
    }
    found
}

/// Prints why the test is skipped if the kernel gives this user no namespaces.
#[expect(clippy::disallowed_methods, reason = "a test starts programs itself")]
fn are_namespaces_possible() -> bool {
    let kind = if rustix::process::geteuid().is_root() {
        "-m"
    } else {
        "-Um"
    };
    let tried = std::process::Command::new("unshare")
        .args([kind, "true"])
        .output();
    let possible = tried.is_ok_and(|output| output.status.success());
    if !possible {
        crate::support::skipped("namespaces are not possible here");
    }
    possible
}

#[test]
fn sandbox_a_project_in_shared_memory_runs_commands() {
    let others = tempfile::tempdir_in("/dev/shm").unwrap();
    std::fs::write(others.path().join("x"), "secret").unwrap();
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let variables = ["XDG_CACHE_HOME", "TMPDIR"].map(|name| {
        let folder = memory.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        (name, folder)
    });
    let variables = variables
        .each_ref()
        .map(|(name, folder)| (*name, folder.to_str().unwrap()));
    let ground = Ground::new();
    let command = format!("cat a.txt; cat {}/x; true", others.path().display());
    let (code, said) = execute(&ground, &command, &variables);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("one") && !said.contains("secret\n"), "{said}");
}

#[test]
fn sandbox_the_kernels_keys_are_out_of_reach() {
    if !is_there("python3") {
        return;
    }
    // keyctl(KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 1)
    let (keyctl, ground) = (
        if cfg!(target_arch = "x86_64") {
            250
        } else {
            219
        },
        Ground::new(),
    );
    let statement = format!("assert ctypes.CDLL(None).syscall({keyctl}, 0, -4, 1) != -1");
    let (code, said) = execute(&ground, &python(&statement, &ground.outside()), &[]);
    assert_eq!(code, Some(1), "{said}");
}

#[test]
fn sandbox_no_overlay_empties_a_directory() {
    if !is_there("python3") {
        return;
    }
    let ground = Ground::new();
    let file = in_home(&ground, "work/file", "mine");
    let inside = ground.outside().join("work/file");
    std::fs::create_dir(inside.parent().unwrap()).unwrap();
    std::fs::write(&inside, "mine").unwrap();
    for backend in ["overlay", "checkout"] {
        let homes = [ground.repo.beside("home"), ground.outside()];
        let attacks =
            homes.map(|home| format!("python3 -c \"$ATTACK\" '{}' \"$TMPDIR\"; ", home.display()));
        let command = format!(
            "ATTACK=$(cat <<'END'{OVERLAY_ATTACK}END\n)\n{}true",
            attacks.concat()
        );
        let tried = ground.execute_with(
            plan(&run(&command)),
            &["-c", &format!("worktree.backend={backend}")],
        );
        for file in [&file, &inside] {
            let text = std::fs::read(file).unwrap_or_default();
            assert_eq!(text, b"mine", "{backend}: {}", tried.words);
        }
    }
}

#[test]
fn sandbox_calls_that_act_for_a_command_are_refused() {
    if !is_there("python3") {
        return;
    }
    let ground = Ground::new();
    for network in [false, true] {
        let mut other = ground.repo.command("sleep").arg("300").spawn().unwrap();
        let checks = REFUSED_CALLS
            .iter()
            .map(|(name, call)| format!("if {call}: print('pas' + 'sed:', \"{name}\")\n"));
        let script = format!("{CALLS}{}print('tried all')", checks.collect::<String>());
        let command = format!("python3 - {} <<'END'\n{script}\nEND", other.id());
        let setting = format!("execute.network={network}");
        let tried = ground.execute_with(plan(&run(&command)), &["-c", &setting]);
        let report = ground.ok(&["show"]);
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(tried.code, 0, "{}", tried.words);
        assert!(report.contains("tried all"), "{report}");
        assert!(!report.contains("passed:"), "{report}");
    }
}

#[test]
fn sandbox_threads_and_processes_work() {
    if !is_there("python3") {
        return;
    }
    let script = "import multiprocessing, os, subprocess, threading
thread = threading.Thread(target=lambda: print('thread'))
thread.start()
thread.join()
print(multiprocessing.Pool(2).map(abs, [-1, -2]))
print(subprocess.check_output(['echo', 'program']).decode())
os.nice(1)
os.sched_setaffinity(0, os.sched_getaffinity(0))";
    let command = format!("cat > t.py <<'END'\n{script}\nEND\npython3 t.py && nice -n 3 true");
    let (code, said) = execute(&Ground::new(), &command, &[]);
    assert_eq!(code, Some(0), "{said}");
    for part in ["thread", "[1, 2]", "program"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn sandbox_a_folder_that_the_user_opens_opens_though_it_is_private() {
    if !is_there("sh") {
        return;
    }
    let ground = Ground::new();
    let file = in_home(&ground, ".claude/state", "mine");
    let other = in_home(&ground, ".codex/auth.json", "secret");
    let command = format!(
        "cat {0} && echo theirs > {0}; cat {1}",
        file.display(),
        other.display()
    );
    std::fs::write(ground.repo.beside("plan.md"), plan(&run(&command))).unwrap();
    let setting = "execute.writable=[~/.claude]";
    let output = ground.teddy(&["execute", "../plan.md", "-y", "--no-replan", "-c", setting]);
    assert_eq!(
        std::fs::read(&file).unwrap(),
        b"theirs\n",
        "{}",
        words(&output)
    );
    assert!(!words(&output).contains("secret"));
}

#[test]
fn sandbox_a_project_with_a_long_path_runs_commands() {
    let folder = tempfile::tempdir().unwrap();
    let mut path = folder.path().canonicalize().unwrap();
    while path.as_os_str().len() < 3_990 {
        let room = 3_999 - path.as_os_str().len();
        path.push("x".repeat(room.min(200)));
    }
    let places = [path.join("a"), path.clone()];
    assert!(places[1].as_os_str().len() <= 4_000);
    std::fs::create_dir_all(&path).unwrap();
    let policy = teddy::host::sandbox::Policy {
        write: vec![path.clone()],
        add: (0..=255)
            .map(|number| path.join(format!("{number:02x}")))
            .collect(),
        ..Default::default()
    };
    let script = Script {
        launcher: Some(crate::worktree::shell::launcher(Some(policy))),
        ..Script::new("echo x > made && cat made", &path)
    };
    let stop = std::sync::atomic::AtomicBool::new(false);
    let finished = teddy::host::shell::run_until(&script, &stop, &mut |_| ()).unwrap();
    assert_eq!(finished.output.joined(), b"x\n", "{finished:?}");
}

#[test]
fn attack_8_files_are_not_emptied_on_an_old_kernel() {
    if !is_there("python3") {
        return;
    }
    let ground = Ground::new();
    let canary = ground.outside().join("canary");
    for interface in 1..=2 {
        let kernel = format!("landlock=return({interface})");
        let truncations = TRUNCATIONS
            .iter()
            .map(|statement| python(statement, &canary));
        all_fail(&ground, truncations, &[("FAILPOINTS", &kernel)]);
        assert_eq!(std::fs::read(&canary).unwrap(), b"canary\n", "{kernel}");
    }
}

#[test]
fn attack_8_an_old_kernel_is_not_said_to_confine() {
    let ground = Ground::new();
    for (kernel, expected) in [
        (
            "landlock=return(0)",
            "not sandboxed: kernel without Landlock",
        ),
        ("landlock=return(1)", "partly sandboxed, no network: "),
        ("landlock=return(2)", "partly sandboxed, no network: "),
        (
            "no-seccomp=return",
            "partly sandboxed, network open nevertheless: ",
        ),
    ] {
        let (_, said) = execute(&ground, "true", &[("FAILPOINTS", kernel)]);
        assert!(said.contains(&format!("({expected}")), "{kernel}: {said}");

        std::fs::write(ground.repo.beside("plan.md"), plan(&run("echo x > made"))).unwrap();
        let setting = ["-c", "execute.sandbox=require"];
        let arguments = [
            &["execute", "../plan.md", "-y", "--no-replan"][..],
            &setting,
        ]
        .concat();
        let output = ground.teddy_with(&arguments, &[("FAILPOINTS", kernel)]);
        assert_eq!(
            output.status.code(),
            Some(1),
            "{kernel}: {}",
            words(&output)
        );
        assert!(words(&output).contains("`execute.sandbox` is `require`"));
        assert!(!ground.repo.path().join("made").exists());
    }
}

#[test]
fn attack_8_signals_that_are_not_kept_inside_are_said() {
    if availability() != Availability::Full {
        return;
    }
    let ground = Ground::new();
    for interface in 3..=5 {
        let kernel = format!("landlock=return({interface})");
        // To all processes it sends signal 0 only, which does no harm if it gets through.
        let command = "kill -9 $PPID; kill -0 -1 || echo refused; kill -9 -$PPID; echo alive";
        let (_, said) = execute(&ground, command, &[("FAILPOINTS", &kernel)]);
        assert!(
            said.contains("(sandboxed, no network, but signals reach your other processes)"),
            "{said}"
        );
        assert!(
            said.contains("│ refused") && said.contains("│ alive"),
            "{said}"
        );
    }
}
