//! `status`, `log`, `sessions` and the error of a lock say what another process does in the session.

use serde_json::json;

use crate::plans::{create, execute, plan};
use crate::support::{Output, TestRepo};

fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "1\n");
    repo.commit("init");
    repo.workflow().new_session("one").done();
    repo
}

#[test]
fn status_says_who_is_at_work_in_the_session() {
    let repo = project();
    std::fs::write(
        repo.beside("one.md"),
        plan("Make one", &[create("one.txt", "x\n")]),
    )
    .unwrap();
    repo.workflow().plan_file(Some("more"), "one.md").done();
    let lock = repo.path().join(".git/teddy/locks/one/lock");
    let at_work = |what: &str| {
        let process = std::process::id();
        std::fs::write(&lock, format!("process {process} ({what})")).unwrap();
        let out = repo.teddy(&["status"]);
        assert!(
            out.stdout.contains(&format!("(process {process}, ")),
            "{out}"
        );
        out.shown(&repo)
    };

    let shown = [
        "execute: turn 1 is running",
        "execute: the plan for turn 1 is open in a review",
        "plan",
    ]
    .map(at_work);
    insta::assert_snapshot!(shown.concat(), @r"
    Session one, turn 0, on branch main
    At work: turn 1 is running (process [pid], [time])
    No file changed since HEAD
    --- stderr
    Next: wait until it has ended
    exit code 0
    Session one, turn 0, on branch main
    At work: the plan for turn 1 is open in a review (process [pid], [time])
    A plan is waiting for turn 1: Make one (1 action)
    No file changed since HEAD
    --- stderr
    Next: decide in the review there
    exit code 0
    Session one, turn 0, on branch main
    At work: another `teddy plan` in this session (process [pid], [time])
    A plan is waiting for turn 1: Make one (1 action)
    No file changed since HEAD
    --- stderr
    Next: wait until it has ended
    exit code 0
    ");
    std::fs::write(
        &lock,
        format!(
            "process {} (execute: turn 1 is running)",
            std::process::id()
        ),
    )
    .unwrap();
    insta::assert_snapshot!(repo.printed(&["sessions"]), @"
    * one     0 turns  2026-01-02  Start session one (turn 1 is running)
    exit code 0
    ");
    insta::assert_snapshot!(repo.printed(&["log"]), @"
       0 [id] 2026-01-02 03:04 started  Start session one
    --- stderr
    At work: turn 1 is running (process [pid], [time])
    exit code 0
    ");
    at_work("plan");
    assert_eq!(
        repo.json(&["status"], 0)["at_work"]["command"],
        json!("plan")
    );

    // What a crash left is nobody.
    std::fs::write(&lock, "process 4000000 (execute: turn 1 is running)").unwrap();
    insta::assert_snapshot!(repo.printed(&["status"]), @r"
    Session one, turn 0, on branch main
    A plan is waiting for turn 1: Make one (1 action)
    No file changed since HEAD
    --- stderr
    Next: teddy execute
    exit code 0
    ");
}

/// Bug: a run that ctrl-z had stopped was called running.
#[test]
#[cfg(target_os = "linux")]
fn a_stopped_process_is_named_with_what_continues_it() {
    use std::process::Stdio;

    let repo = project();
    repo.done(&["context", "add", "a.txt"]);
    let mut child = repo
        .command("sh")
        .args(["-c", "kill -STOP $$; exit 0"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let id = child.id();
    let stat = format!("/proc/{id}/stat");
    while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }

    let lock = repo.path().join(".git/teddy/locks/one/lock");
    let at_work = |what: &str| {
        std::fs::write(&lock, format!("process {id} ({what})")).unwrap();
        let out = repo.teddy(&["status"]).shown(&repo);
        out.replace(&id.to_string(), "[pid]")
    };
    let shown = at_work("execute: turn 1 is running") + &at_work("plan");
    let status = repo.json(&["status"], 0);
    let held = std::fs::File::options().write(true).open(&lock).unwrap();
    held.lock().unwrap();
    let mut second = repo.teddy_command(&["undo"]);
    second
        .current_dir(repo.path())
        .env("TEDDY_LOCK_TIMEOUT", "0");
    let second = Output::of(&mut second);
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::CONT).unwrap();
    assert!(child.wait().unwrap().success());

    insta::assert_snapshot!(shown, @r"
    Session one, turn 0, on branch main
    In progress: turn 1 is stopped (process [pid], [time])
    Ready for turn 1
    No file changed since HEAD
    --- stderr
    Next: continue it, with `fg` in its terminal or `kill -CONT [pid]`
    exit code 0
    Session one, turn 0, on branch main
    In progress: another `teddy plan` in this session, stopped (process [pid], [time])
    Ready for turn 1
    No file changed since HEAD
    --- stderr
    Next: continue it, with `fg` in its terminal or `kill -CONT [pid]`
    exit code 0
    ");
    assert_eq!(status["at_work"]["stopped"], json!(true));
    let hint =
        format!("hint: it is stopped; `fg` in its terminal or `kill -CONT {id}` continues it");
    second.check(75, &[&hint]);
}

#[test]
fn a_plan_that_runs_says_so_to_others() {
    let repo = project();
    repo.configure("execute: {sandbox: off}\n");
    let (begun, go) = (repo.beside("begun"), repo.beside("go"));
    let script = format!(
        "mkfifo {0}; echo > {1}; read line < {0}",
        go.display(),
        begun.display()
    );
    std::fs::write(repo.beside("one.md"), plan("One", &[execute(&script)])).unwrap();
    let mut running = repo
        .teddy_command(&["execute", "../one.md", "-y"])
        .current_dir(repo.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while !begun.exists() {
        assert!(running.try_wait().unwrap().is_none(), "it ended");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let status = repo.teddy(&["status"]);
    let mut second = repo.teddy_command(&["undo"]);
    second
        .current_dir(repo.path())
        .env("TEDDY_LOCK_TIMEOUT", "0");
    let second = Output::of(&mut second);
    std::fs::write(&go, "on\n").unwrap();
    assert!(running.wait().unwrap().success());
    status.check(
        0,
        &[&format!("turn 1 is running (process {}, ", running.id())],
    );
    let held = format!(
        "busy: process {} (execute: turn 1 is running)",
        running.id()
    );
    second.check(75, &[&held]);
    insta::assert_snapshot!(repo.printed(&["status"]), @"
    Session one, turn 1, on branch main
    Ready for turn 2
    Your files are as the newest turn left them
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");
}
