//! TeDDy ends every process that a command starts, however the command ends.
//!
//! CI also runs this module as root.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::PATIENCE;

use super::escapes::{ESCAPES, Token, escape, ground};
use super::ground::{Ground, plan, run};

/// Waits until a condition is true.
#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what} does not come");
        std::thread::park_timeout(Duration::from_millis(5));
    }
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
fn interrupted(ground: &Ground, signal: Signal, arguments: &[&str]) -> (Option<i32>, Vec<i32>) {
    let token = Token::new();
    let mut child = begin(ground, &token, arguments);
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
    let ground = ground();
    for arguments in [&[][..], &["-c", "execute.sandbox=off"]] {
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            assert_eq!(
                interrupted(&ground, signal, arguments),
                (Some(130), vec![]),
                "{signal:?} {arguments:?}"
            );
        }
    }
}

#[test]
fn attack_7_a_killed_program_leaves_no_process_behind() {
    for arguments in [&[][..], &["-c", "execute.sandbox=off"]] {
        let ground = ground();
        assert_eq!(
            interrupted(&ground, Signal::KILL, arguments),
            (None, vec![])
        );
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
