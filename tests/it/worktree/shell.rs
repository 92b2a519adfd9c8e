//! Scripts in the real shell, supervised by the real program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use teddy::host::sandbox::Policy;
use teddy::host::shell::{FinishedScript, GRACE, Script, ScriptEnd, Shell, run_until};
use teddy::host::supervisor::Launcher;

/// Supervises with the built program, because this process is the test program.
pub fn launcher(policy: Option<Policy>) -> Launcher {
    Launcher {
        command: vec![env!("CARGO_BIN_EXE_teddy").into()],
        policy,
        lock: None,
        overlay_holder: None,
    }
}

fn script(text: &str, folder: &std::path::Path) -> Script {
    Script {
        launcher: Some(launcher(None)),
        ..Script::new(text, folder)
    }
}

/// Runs a script in a temporary directory.
fn run_with(text: &str, change: impl FnOnce(&mut Script)) -> (FinishedScript, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let mut script = script(text, folder.path());
    change(&mut script);
    let mut streamed = Vec::new();
    let finished = run_until(&script, &AtomicBool::new(false), &mut |bytes| {
        streamed.extend(bytes)
    })
    .unwrap();
    (finished, streamed)
}

/// Compares the way a script ends, and its output.
fn check(text: &str, end: ScriptEnd, output: &str) {
    let (finished, streamed) = run_with(text, |_| ());
    assert_eq!(
        (
            finished.end,
            String::from_utf8_lossy(&finished.output.joined()).as_ref()
        ),
        (end, output),
        "for {text:?}"
    );
    assert_eq!(String::from_utf8_lossy(&streamed), output);
}

fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
fn the_exit_code_and_both_outputs_come_back_in_order() {
    check(
        "echo a; echo b >&2; echo c; exit 3",
        ScriptEnd::Exited(3),
        "a\nb\nc\n",
    );
    check("", ScriptEnd::Exited(0), "");
    check("kill -9 $$", ScriptEnd::Signaled(9), "");
    assert_eq!(ScriptEnd::Signaled(9).code(), 137);
}

#[test]
fn ten_thousand_lines_arrive() {
    let (finished, streamed) = run_with(
        "i=0; while [ $i -lt 10000 ]; do echo line $i; i=$((i+1)); done",
        |s| s.capture = 100,
    );
    assert_eq!(streamed.split(|&b| b == b'\n').count(), 10_001);
    assert_eq!(finished.output.head.len() + finished.output.tail.len(), 100);
    assert_eq!(finished.output.lost, streamed.len() as u64 - 100);
    assert!(finished.output.tail.ends_with(b"line 9999\n"));
}

#[test]
fn there_is_no_input() {
    check("cat; read x || echo none", ScriptEnd::Exited(0), "none\n");
}

#[test]
fn a_script_may_be_longer_than_an_argument() {
    let text = format!("# {}\necho end", "x".repeat(300_000));
    check(&text, ScriptEnd::Exited(0), "end\n");
}

#[test]
fn a_background_process_does_not_hold_the_turn_open() {
    let begun = Instant::now();
    let (finished, output) = run_with("sleep 300 & echo $!", |_| ());
    assert_eq!(finished.end, ScriptEnd::Exited(0));
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
    assert!(!lives(str::from_utf8(&output).unwrap()));
}

#[test]
#[cfg(target_os = "linux")]
fn a_process_that_left_the_group_is_ended_too() {
    let begun = Instant::now();
    let (finished, output) = run_with(
        "setsid sh -c 'echo $$ > pid; exec sleep 300' & until [ -s pid ]; do :; done; cat pid",
        |_| (),
    );
    assert_eq!(finished.end, ScriptEnd::Exited(0));
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
    assert!(!lives(str::from_utf8(&output).unwrap()));
}

#[test]
fn the_time_limit_ends_the_whole_group() {
    let limit = Duration::from_millis(200);
    let (finished, output) = run_with("sleep 300 & echo $!; wait", |s| s.timeout = Some(limit));
    assert_eq!(finished.end, ScriptEnd::TimedOut(limit));
    assert_eq!(finished.end.code(), 124);
    assert!(!lives(str::from_utf8(&output).unwrap()));
}

#[test]
fn a_script_that_ignores_term_is_killed() {
    let text = "trap '' TERM; echo deaf; while :; do sleep 1; done";
    let begun = Instant::now();
    let (finished, output) = run_with(text, |s| s.timeout = Some(Duration::from_millis(200)));
    assert!(matches!(finished.end, ScriptEnd::TimedOut(_)));
    assert_eq!(output, b"deaf\n");
    assert!(
        begun.elapsed() >= GRACE && begun.elapsed() < GRACE * 10,
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn a_script_may_clean_up_on_term() {
    let text = "trap 'echo bye; exit 0' TERM; echo begin; sleep 300 & wait";
    let (finished, output) = run_with(text, |s| s.timeout = Some(Duration::from_millis(200)));
    assert!(matches!(finished.end, ScriptEnd::TimedOut(_)));
    assert_eq!(output, b"begin\nbye\n");
}

#[test]
fn an_interrupt_ends_the_script() {
    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let script = script("echo begin; sleep 300", folder.path());
    let finished = run_until(&script, &stop, &mut |_| stop.store(true, Ordering::SeqCst)).unwrap();
    assert_eq!(
        (finished.end.code(), finished.end),
        (130, ScriptEnd::Interrupted)
    );
}

#[test]
fn a_missing_folder_or_shell_is_said() {
    let (finished, _) = run_with("true", |s| s.cwd = "/no/such".into());
    assert_eq!(
        finished.end,
        ScriptEnd::NotStarted("the directory `/no/such` does not exist".to_owned())
    );
    let (finished, _) = run_with("true", |s| {
        s.shell = Shell::Configured(vec!["no-such-shell".to_owned()])
    });
    assert_eq!(
        finished.end,
        ScriptEnd::NotStarted("cannot start `no-such-shell`: no such file or directory".to_owned())
    );
}

#[test]
fn given_variables_win_and_temporary_files_are_private() {
    let (_, output) = run_with(
        "echo $A; [ -w \"$TMPDIR\" ] && echo yes; echo $GIT_TERMINAL_PROMPT",
        |s| {
            s.env = vec![("A".to_owned(), "1 2".to_owned())];
        },
    );
    assert_eq!(output, b"1 2\nyes\n0\n");
}

#[test]
#[cfg(target_os = "linux")]
fn open_files_of_whoever_started_teddy_are_closed() {
    let secret = tempfile::tempfile().unwrap();
    rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty()).unwrap();
    check(
        "for f in /proc/$$/fd/*; do case ${f##*/} in 0|1|2|10) ;; *) readlink $f;; esac; done; true",
        ScriptEnd::Exited(0),
        "",
    );
}

#[test]
fn a_script_that_cannot_begin_says_why() {
    let (finished, _) = run_with("true", |script| {
        script.shell = Shell::Configured(vec!["/".to_owned()])
    });
    assert!(
        matches!(finished.end, ScriptEnd::NotStarted(_)),
        "{finished:?}"
    );
}

#[test]
fn a_lock_is_held_until_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("commands.lock");
    let text = "setsid sleep 300 & flock -n \"$LOCK\" true || echo held";
    let (finished, output) = run_with(text, |script| {
        script.env = vec![("LOCK".to_owned(), lock.display().to_string())];
        script.launcher = script
            .launcher
            .take()
            .map(|launcher| launcher.holding(lock.clone()));
    });
    assert_eq!(finished.end, ScriptEnd::Exited(0));
    assert_eq!(output, b"held\n");
    let file = std::fs::File::open(&lock).unwrap();
    assert!(file.try_lock().is_ok());
}
