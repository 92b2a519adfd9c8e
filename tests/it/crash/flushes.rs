//! Flushes of a turn: what must be durable before the next step, and the number of `syncfs` calls.
//! Each of these waits for the writes of all processes, so TeDDy makes one only where it must.
//!
//! Needs `strace`. Tests that cannot run it print why and pass.

use std::path::Path;

use crate::plans::{create, edit, plan};
use crate::support::{Output, TestRepo, skipped};

/// Returns the calls of these kinds, with the paths of their descriptors. `None` if `strace` does not
/// work here.
fn calls(repo: &TestRepo, kinds: &str, args: &[&str]) -> Option<Vec<String>> {
    let (program, trace) = (env!("CARGO_BIN_EXE_teddy"), repo.beside("trace"));
    let mut command = repo.teddy_command(&[]);
    let settings: Vec<_> = command
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
        .collect();
    command = repo.command("strace");
    command
        .envs(settings)
        .env("GIT_TEST_FSYNC", "1")
        .current_dir(repo.path())
        .args(["-f", "-y", "-e", &format!("trace={kinds}"), "-o"])
        .arg(&trace)
        .arg(program)
        .args(args);
    let Ok(output) = command.output() else {
        skipped("strace is not installed");
        return None;
    };
    let output = Output::from(output);
    let Ok(trace) = std::fs::read_to_string(trace) else {
        skipped(&format!("strace is not allowed here: {output}"));
        return None;
    };
    assert_eq!(output.code, 0, "{args:?}: {output}");
    let calls = trace.lines().filter(|line| line.contains('('));
    Some(calls.map(str::to_owned).collect())
}

/// Asserts the number of `syncfs` calls.
#[track_caller]
fn check(repo: &TestRepo, args: &[&str], expected: usize) {
    if let Some(calls) = calls(repo, "syncfs", args) {
        let found = calls.iter().filter(|call| call.contains("syncfs("));
        assert_eq!(found.count(), expected, "{args:?}");
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
fn changed_files_and_a_plan_from_a_file_are_flushed_before_it_runs() {
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

/// Returns the positions of the calls that flush a directory.
fn flushes_of(calls: &[String], dir: &Path) -> Vec<usize> {
    let dir = format!("<{}>", dir.canonicalize().unwrap().display());
    let is_flush = |call: &str| call.contains("fsync(") && call.contains(&dir);
    let calls = calls.iter().enumerate();
    calls
        .filter_map(|(at, call)| is_flush(call).then_some(at))
        .collect()
}

#[test]
fn every_directory_of_a_new_file_is_flushed() {
    let repo = project(1);
    let new = plan("Write", &[create("new/dir/file.txt", "new\n")]);
    std::fs::write(repo.beside("plan.md"), new).unwrap();
    let Some(calls) = calls(&repo, "fsync", &["execute", "../plan.md", "-y"]) else {
        return;
    };
    for dir in ["", "new", "new/dir"] {
        let found = flushes_of(&calls, &repo.path().join(dir));
        assert!(!found.is_empty(), "`{dir}`: {calls:#?}");
    }
}

#[test]
fn the_ref_of_a_turn_is_durable_before_the_first_file_changes() {
    let repo = project(1);
    let kinds = "fsync,renameat2";
    let Some(calls) = calls(&repo, kinds, &["execute", "../plan.md", "-y"]) else {
        return;
    };
    let refs = repo.path().join(".git/refs/teddy/sessions");
    let exchange = calls
        .iter()
        .position(|call| call.contains("RENAME_EXCHANGE"));
    let exchange = exchange.expect("a file was swapped in");
    let flushes = flushes_of(&calls, &refs);
    assert!(flushes.iter().any(|at| *at < exchange), "{calls:#?}");
}

#[test]
fn the_directories_above_the_refs_of_a_turn_are_flushed_once() {
    let repo = project(1);
    let Some(calls) = calls(&repo, "fsync", &["execute", "../plan.md", "-y"]) else {
        return;
    };
    let refs = repo.path().join(".git/refs");
    for (dir, expected) in [("", 1), ("teddy/sessions", 1), ("teddy/drafts", 1)] {
        let found = flushes_of(&calls, &refs.join(dir));
        assert_eq!(found.len(), expected, "`{dir}`: {calls:#?}");
    }
}
