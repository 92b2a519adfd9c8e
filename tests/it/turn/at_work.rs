//! `status` says which process is at work in the session.

use serde_json::json;

use crate::plans::{create, execute, plan};
use crate::support::TestRepo;

fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "1\n");
    repo.commit("init");
    repo.done(&["new", "one"]);
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
    repo.done(&["plan", "--from", "../one.md", "-m", "more"]);
    let lock = repo.path().join(".git/teddy/locks/one/lock");
    let at_work = |what: &str| {
        let process = std::process::id();
        std::fs::write(&lock, format!("process {process} ({what})")).unwrap();
        repo.teddy(&["status"]).to_string()
    };

    let process = std::process::id();
    let out = at_work("execute: run");
    assert!(
        out.contains(&format!("turn 1 is running (process {process}, ")),
        "{out}"
    );
    assert!(!out.contains("Next: teddy execute"), "{out}");
    let out = at_work("execute: review");
    let review = "the plan for turn 1 is open in a review in another terminal (process ";
    assert!(out.contains(review), "{out}");
    assert!(!out.contains("Next: teddy execute"), "{out}");
    let out = at_work("plan");
    assert!(
        out.contains("another `teddy plan` in this session"),
        "{out}"
    );
    assert_eq!(
        repo.json(&["status"], 0)["at_work"]["command"],
        json!("plan")
    );

    // What a crash left is nobody.
    std::fs::write(&lock, "process 4000000 (execute: run)").unwrap();
    repo.teddy(&["status"]).check(0, &["Next: teddy execute"]);
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
        std::thread::yield_now();
    }
    let status = repo.teddy(&["status"]);
    std::fs::write(&go, "on\n").unwrap();
    assert!(running.wait().unwrap().success());
    status.check(
        0,
        &[&format!("turn 1 is running (process {}, ", running.id())],
    );
    repo.teddy(&["status"]).check(0, &["Ready for turn 2"]);
}
