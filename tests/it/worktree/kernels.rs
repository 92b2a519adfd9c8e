//! Kernels and systems that lack one feature: each gives a turn that works, and TeDDy says what its
//! commands have.

use crate::plans::{execute, plan};
use crate::support::container::{containers, without};
use crate::support::overlay::project;
use crate::support::{Output, TestRepo, sample, skipped};

/// Notes what it has, and looks for a secret.
const LOOK: &str = r#"python3 - <<'END'
import multiprocessing, os, pty, socket
def network():
    server = socket.create_server(('127.0.0.1', 0))
    socket.create_connection(server.getsockname(), timeout=5)
tries = [
    ('files', lambda: open('target/built')),
    ('network', network),
    ('terminals', pty.openpty),
    ('secret', lambda: open('.env')),
]
has = []
for name, attempt in tries:
    try:
        attempt()
        has.append(name)
    except OSError:
        pass
open('has.txt', 'w').write(' '.join(has) + '\n')
END
echo more >> src/a.txt"#;

/// Runs a turn, and compares what its command has with what TeDDy says.
fn check(case: &str, repo: &TestRepo, run: impl FnOnce(&[&str]) -> Output) {
    repo.put("../plan.md", plan("Look", &[execute(LOOK)]));
    let out = run(&["-v", "execute", "../plan.md", "-y"]);
    assert_eq!(out.code, 0, "{case}: {out}");
    assert_eq!(repo.read("src/a.txt"), "a\nmore\n", "{case}");
    let has = repo.read("has.txt");
    let says = |words: &str| out.stderr.contains(words);
    let expected = [
        ("files", says("Commands run over your files, in an overlay")),
        ("network", says("with their own loopback")),
        ("terminals", says(" and pseudo-terminals, in ")),
        ("secret", false),
    ];
    for (name, is_expected) in expected {
        let is_there = has.split_whitespace().any(|word| word == name);
        assert_eq!(is_there, is_expected, "{case}, {name}: {has}{out}");
    }
    assert!(says("Commands run "), "{case}: {out}");
}

/// Runs all cases at the same time. Outside of the `worlds` target, every third one.
fn check_all(cases: &[&'static str], check: impl Fn(&'static str) + Sync) {
    let check = &check;
    std::thread::scope(|scope| {
        for &case in sample(cases, 3, 0) {
            scope.spawn(move || check(case));
        }
    });
}

const CALLS: [&str; 12] = [
    "namespaces",
    "unshare",
    "umount",
    "mount",
    "setns",
    "pivot_root",
    "newer_mounts",
    "openat2",
    "pidfd_getfd",
    "netlink",
    "ipv6",
    "nothing",
];

#[test]
fn a_turn_works_without_any_one_system_call() {
    if !containers(&TestRepo::new()) {
        return;
    }
    check_all(&CALLS, |call| {
        let repo = project();
        let teddy = |args: &[&str]| without(call, &repo, &repo.teddy_command(args));
        check(call, &repo, |args| Output::of(&mut teddy(args)));
    });
}

const LIMITS: [&str; 7] = ["user", "mnt", "ipc", "net", "uts", "cgroup", "pid"];

#[test]
fn a_turn_works_without_any_one_kind_of_namespace() {
    check_all(&LIMITS, |kind| {
        let repo = project();
        let teddy = |args: &[&str]| {
            let script =
                format!("echo 0 > /proc/sys/user/max_{kind}_namespaces || exit 77; exec \"$@\"");
            let teddy = repo.teddy_command(args);
            let mut command = repo.command("unshare");
            command.args(["-Ur", "sh", "-c", &script, "sh"]);
            command.arg(teddy.get_program()).args(teddy.get_args());
            let variables = teddy.get_envs();
            command.envs(variables.filter_map(|(name, value)| Some((name, value?))));
            Output::of(command.current_dir(repo.path()))
        };
        let tried = teddy(&["--version"]);
        if tried.code != 0 {
            return skipped("no user namespace can be made here");
        }
        check(kind, &repo, teddy);
    });
}

/// What no filter can take away.
const FAILPOINTS: [&str; 6] = [
    "no-namespaces=return",
    "no-overlay=return",
    "no-network-namespace=return",
    "no-intercepted-connections=return",
    "no-terminals=return",
    "no-proc-children=return",
];

#[test]
fn a_turn_works_without_any_one_kernel_feature() {
    check_all(&FAILPOINTS, |failpoint| {
        let repo = project();
        check(failpoint, &repo, |args| {
            let mut command = repo.teddy_command(args);
            command.env("FAILPOINTS", failpoint);
            Output::of(command.current_dir(repo.path()))
        });
    });
}
