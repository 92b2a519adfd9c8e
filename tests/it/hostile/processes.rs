//! TeDDy ends every process that a command starts, however it hides and however the command ends.
//!
//! CI also runs this module as root.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::ground::{Ground, plan, run};

const PATIENCE: Duration = Duration::from_secs(60);

/// Creates `$1`, then appends to a file of the worktree until it is killed.
const LIFE: &str = ": > \"$1\"\nwhile :; do echo x >> late.txt; sleep 0.05; done\n";
/// Forks a binary tree of depth `$2`, in which every process stays alive.
const BUSH: &str = ": > \"$1\"\n[ $2 = 0 ] || { setsid sh bush.sh \"$1\" $(($2 - 1)) $3 & setsid sh bush.sh \"$1\" $(($2 - 1)) $3 & }\nwhile :; do sleep 1; done\n";
/// Forks and exits in a loop, faster than `/proc` can be listed.
const CHAIN: &str = "import os, sys\nos.setsid()\nopen(sys.argv[1], 'w').close()\nwhile True:\n    if os.fork():\n        os._exit(0)\n";
/// A process stopped by its tracer, which sleeps.
const TRACED: &str = "import ctypes, os, signal, sys, time\nlibc = ctypes.CDLL(None)\nos.setsid()\nif os.fork():\n    os.waitpid(-1, os.WUNTRACED)\n    open(sys.argv[1], 'w').close()\n    time.sleep(3600)\nlibc.ptrace(0, 0, 0, 0)\nos.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(3600)\n";
/// A child subreaper (`prctl` 36) with an orphan.
const REAPER: &str = "import ctypes, os, sys, time\nctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\nif os.fork() == 0:\n    if os.fork() == 0:\n        os.setsid()\n        open(sys.argv[1], 'w').close()\n        time.sleep(3600)\n    os._exit(0)\ntime.sleep(3600)\n";

/// Ways to outlive a command, and the program that each needs. The process creates `BEGUN` and has
/// the argument `TOKEN`.
const ESCAPES: &[(&str, &str)] = &[
    ("sh", "sh life.sh BEGUN TOKEN &"),
    (
        "setsid",
        "env -i PATH=\"$PATH\" setsid sh life.sh BEGUN TOKEN &",
    ),
    (
        "setsid",
        "(setsid sh -c '(setsid sh life.sh \"$0\" TOKEN &) &' BEGUN &)",
    ),
    (
        "nohup",
        "nohup sh life.sh BEGUN TOKEN > /dev/null 2>&1 < /dev/null &",
    ),
    (
        "setsid",
        "trap '' TERM HUP INT; setsid sh life.sh BEGUN TOKEN &",
    ),
    (
        "setsid",
        "setsid sh life.sh BEGUN TOKEN & until [ -e BEGUN ]; do :; done; kill -STOP $!",
    ),
    (
        "unshare",
        "unshare -U -p -f setsid sh life.sh BEGUN TOKEN || sh life.sh BEGUN TOKEN &",
    ),
    ("setsid", "setsid sh bush.sh BEGUN 6 TOKEN &"),
    ("python3", "python3 chain.py BEGUN TOKEN &"),
    ("python3", "python3 traced.py BEGUN TOKEN &"),
    ("python3", "setsid python3 reaper.py BEGUN TOKEN &"),
];

fn ground() -> Ground {
    let ground = Ground::new();
    ground
        .repo
        .put("life.sh", LIFE)
        .put("bush.sh", BUSH)
        .put("chain.py", CHAIN)
        .put("traced.py", TRACED)
        .put("reaper.py", REAPER);
    ground
}

/// A unique argument that marks processes. Dropping it kills them, so that a failed test leaves
/// none behind.
struct Token(String);

impl Token {
    fn new() -> Token {
        Token(format!("token-{}", uuid::Uuid::now_v7()))
    }

    /// Returns the live processes that have the token.
    fn living(&self) -> Vec<i32> {
        let numbers = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let name = entry.unwrap().file_name();
            name.to_str()?.parse::<i32>().ok()
        });
        let has_token = |pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&self.0)
        };
        numbers.filter(has_token).collect()
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let left = self.living();
            if left.is_empty() {
                return;
            }
            for pid in left.into_iter().filter_map(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// Returns a command that starts an escape, waits until it runs, then continues with `then`.
fn escape(how: &str, token: &Token, then: &str) -> String {
    let started = how
        .replace("BEGUN", "\"$TMPDIR/begun\"")
        .replace("TOKEN", &token.0);
    format!("{started}\nuntil [ -e \"$TMPDIR/begun\" ]; do sleep 0.01; done\n{then}")
}

/// Waits until a condition is true.
#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what} does not come");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Tries every escape with extra arguments and variables. Returns those that survived.
fn survivors(arguments: &[&str], variables: &[(&str, &str)]) -> Vec<String> {
    survivors_of(ESCAPES, arguments, variables)
}

/// Tries these escapes.
fn survivors_of<'a>(
    escapes: impl IntoIterator<Item = &'a (&'static str, &'static str)>,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Vec<String> {
    let mut wrong = Vec::new();
    let there = |program: &str| teddy::host::process::find(program).is_some();
    let escapes = escapes.into_iter().filter(|(program, _)| there(program));
    for (_, how) in escapes {
        let (ground, token) = (ground(), Token::new());
        let text = plan(&run(&escape(how, &token, "true")));
        std::fs::write(ground.repo.beside("plan.md"), text).unwrap();
        let all = [
            &["execute", "../plan.md", "-y", "--no-replan"][..],
            arguments,
        ]
        .concat();
        let output = ground.teddy_with(&all, variables);

        let left = token.living();
        if !left.is_empty() || output.status.code() != Some(0) {
            let words = super::ground::words(&output);
            wrong.push(format!("{how}: {left:?} live on; {words}"));
        }
    }
    wrong
}

#[test]
fn attack_7_nothing_that_a_confined_command_starts_outlives_it() {
    assert_eq!(survivors(&[], &[]), Vec::<String>::new());
}

#[test]
fn attack_7_nothing_that_a_free_command_starts_outlives_it() {
    assert_eq!(
        survivors(&["-c", "execute.sandbox=off"], &[]),
        Vec::<String>::new()
    );
}

/// Starts a plan whose command never ends and has a hidden child. Returns when both run.
fn begin(ground: &Ground, token: &Token, arguments: &[&str]) -> Child {
    let how = "env -i PATH=\"$PATH\" setsid sh life.sh BEGUN TOKEN &";
    let then = format!("sh life.sh \"$TMPDIR/other\" {}", token.0);
    let text = plan(&run(&escape(how, token, &then)));
    std::fs::write(ground.repo.beside("plan.md"), text).unwrap();
    let child = ground
        .repo
        .command(env!("CARGO_BIN_EXE_teddy"))
        .current_dir(ground.repo.path())
        .args(["execute", "../plan.md", "-y", "--no-replan"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the command", || token.living().len() >= 2);
    child
}

/// Sends teddy a signal while a command runs. Returns its exit code and the surviving processes.
fn interrupted(signal: Signal, arguments: &[&str]) -> (Option<i32>, Vec<i32>) {
    let (ground, token) = (ground(), Token::new());
    let mut child = begin(&ground, &token, arguments);
    kill_process(Pid::from_child(&child), signal).unwrap();
    let status = child.wait().unwrap();

    // After SIGKILL teddy cannot wait for its children, so they can live a moment longer.
    if status.signal().is_some() {
        wait_until("the end of all", || token.living().is_empty());
    }
    (status.code(), token.living())
}

#[test]
fn attack_7_an_interrupt_leaves_no_process_behind() {
    for arguments in [&[][..], &["-c", "execute.sandbox=off"]] {
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            assert_eq!(
                interrupted(signal, arguments),
                (Some(130), vec![]),
                "{signal:?} {arguments:?}"
            );
        }
    }
}

#[test]
fn attack_7_a_killed_program_leaves_no_process_behind() {
    for arguments in [&[][..], &["-c", "execute.sandbox=off"]] {
        assert_eq!(interrupted(Signal::KILL, arguments), (None, vec![]));
    }
}

#[test]
fn attack_7_what_cannot_be_ended_fails_the_turn_and_is_named() {
    let (ground, token) = (ground(), Token::new());
    let text = plan(&run(&escape(ESCAPES[0].1, &token, "echo x > made.txt")));
    std::fs::write(ground.repo.beside("plan.md"), text).unwrap();
    let output = ground.teddy_with(
        &["execute", "../plan.md", "-y", "--no-replan"],
        &[("FAILPOINTS", "no-kill=return")],
    );
    let words = super::ground::words(&output);
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert!(
        words.contains("what a command started could not be ended: process ")
            && words.contains("(sh)"),
        "{words}"
    );
    assert!(!ground.repo.path().join("made.txt").exists());
    // The turn is recorded as interrupted, without its files: a process can still be writing to
    // them.
    let log = ground.ok(&["log"]);
    let newest = log.lines().next().unwrap_or_default();
    assert!(
        newest.contains(" interrupted ") && !newest.contains("file"),
        "{log}"
    );
}

#[test]
fn attack_7_old_kernels_end_everything_too() {
    let kernels = [
        "no-namespaces=return",
        "landlock=return(5)",
        "no-proc-children=return;landlock=return(5)",
    ];
    for (number, kernel) in kernels.into_iter().enumerate() {
        // Each escape on each kernel, or on one of them.
        let step = if crate::WORLDS { 1 } else { kernels.len() };
        let escapes = ESCAPES.iter().skip(number % step).step_by(step);
        assert_eq!(
            survivors_of(escapes, &[], &[("FAILPOINTS", kernel)]),
            Vec::<String>::new(),
            "{kernel}"
        );
    }
}

/// Executes the plan next to the project without a sandbox.
const UNCONFINED: [&str; 8] = [
    "execute",
    "../plan.md",
    "-y",
    "--no-replan",
    "-c",
    "execute.sandbox=off",
    "-c",
    "execute.timeout=1",
];

#[test]
fn attack_7_who_kills_or_stops_its_supervisor_is_ended_all_the_same() {
    for signal in ["KILL", "STOP"] {
        let (ground, token) = (ground(), Token::new());
        let then = format!(
            "kill -{signal} $PPID\nsh life.sh \"$TMPDIR/other\" {}",
            token.0
        );
        let text = plan(&run(&escape(ESCAPES[1].1, &token, &then)));
        std::fs::write(ground.repo.beside("plan.md"), text).unwrap();
        let output = ground.teddy_with(&UNCONFINED, &[]);
        let words = super::ground::words(&output);
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert_eq!(token.living(), Vec::<i32>::new(), "{words}");
    }
}

/// Bug: in a PID namespace, a session inherited from outside has the id 0, which TeDDy took for a
/// process id.
#[test]
fn attack_7_a_session_from_outside_the_container_is_none() {
    let container = [
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--mount-proc",
    ];
    let ground = ground();
    let text = plan(&run("kill -KILL $PPID"));
    std::fs::write(ground.repo.beside("plan.md"), text).unwrap();
    let run = |program: &[&str]| {
        let mut command = ground.repo.command("unshare");
        command.current_dir(ground.repo.path()).args(container);
        command.args(program).output().unwrap()
    };
    if !run(&["true"]).status.success() {
        // Unprivileged user namespaces are not available.
        return;
    }
    let output = run(&[[env!("CARGO_BIN_EXE_teddy")].as_slice(), &UNCONFINED].concat());
    assert_eq!(
        output.status.code(),
        Some(1),
        "{}",
        super::ground::words(&output)
    );
}
