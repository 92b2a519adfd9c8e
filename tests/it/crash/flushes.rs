//! Number of `syncfs` calls per turn. Each call waits for the writes of all processes, so TeDDy
//! makes one only where data must be durable before the next step.
//!
//! Needs `strace`. Tests that cannot run it print why and pass.

use crate::plans::{create, edit, plan};
use crate::support::{Output, TestRepo};

/// Returns the number of `syncfs` calls. `None` if `strace` does not work here.
#[expect(
    clippy::print_stdout,
    reason = "a test that cannot be tried here says so"
)]
fn flushes(repo: &TestRepo, args: &[&str]) -> Option<usize> {
    let (program, trace) = (env!("CARGO_BIN_EXE_teddy"), repo.beside("trace"));
    let mut command = repo.teddy_command(&[]);
    let settings: Vec<_> = command
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
        .collect();
    command = repo.command("strace");
    command
        .envs(settings)
        .current_dir(repo.path())
        .args(["-f", "-e", "trace=syncfs", "-o"])
        .arg(&trace)
        .arg(program)
        .args(args);
    let Ok(output) = command.output() else {
        println!("skipped: strace is not installed");
        return None;
    };
    let output = Output::from(output);
    let Ok(trace) = std::fs::read_to_string(trace) else {
        println!("skipped: strace is not allowed here: {output}");
        return None;
    };
    assert_eq!(output.code, 0, "{args:?}: {output}");
    Some(
        trace
            .lines()
            .filter(|line| line.contains("syncfs("))
            .count(),
    )
}

#[track_caller]
fn check(repo: &TestRepo, args: &[&str], expected: usize) {
    if let Some(found) = flushes(repo, args) {
        assert_eq!(found, expected, "{args:?}");
    }
}

/// Creates a repository with a session, and a plan next to it that writes this many files.
fn project(files: usize) -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.done(&["context", "add", "a.txt", "--session"]);
    let mut actions = vec![edit("a.txt", "one", "two")];
    actions.extend((1..files).map(|number| create(&format!("{number}.txt"), "new\n")));
    std::fs::write(repo.beside("plan.md"), plan("Write", &actions)).unwrap();
    repo
}

#[test]
fn a_turn_of_a_waiting_plan_that_changes_few_files_flushes_the_disk_once() {
    let repo = project(8);
    repo.done(&["plan", "-m", "go", "--from", "../plan.md"]);
    check(&repo, &["execute", "-y"], 1);
    assert_eq!(repo.read("7.txt"), "new\n");
}

#[test]
fn files_that_changed_and_a_plan_from_elsewhere_are_flushed_before_it_runs() {
    let repo = project(2);
    repo.write("b.txt", "mine\n");
    check(&repo, &["execute", "../plan.md", "-y"], 3);
}

#[test]
fn many_files_are_flushed_together() {
    let repo = project(9);
    repo.done(&["plan", "-m", "go", "--from", "../plan.md"]);
    check(&repo, &["execute", "-y"], 2);
    assert_eq!(repo.read("8.txt"), "new\n");
}

#[test]
fn an_undo_flushes_once_for_its_turn_and_once_for_what_only_the_files_have() {
    let repo = project(2);
    repo.done(&["execute", "../plan.md", "-y"]);
    check(&repo, &["undo"], 1);
    assert_eq!(repo.read("a.txt"), "one\n");

    repo.write("b.txt", "mine\n");
    check(&repo, &["redo"], 2);
    assert_eq!(repo.read("a.txt"), "two\n");
}
