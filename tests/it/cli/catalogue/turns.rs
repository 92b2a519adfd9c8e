//! Turns that fail.

use super::{Page, project, turn, write_plan};
use crate::plans::{create, edit, execute, execute_with};

const EXECUTE: [&str; 4] = ["-q", "execute", "../plan.md", "-y"];

#[test]
fn a_command_that_fails() {
    let mut page = Page::default();
    for script in ["echo broken >&2; exit 3", "sleep 9", "kill -9 $$"] {
        let repo = project();
        write_plan(
            &repo,
            &[
                execute_with("- **Timeout:** 1\n", script),
                create("b.txt", "b\n"),
            ],
        );
        page.shown(&repo, &EXECUTE);
    }
    let repo = project();
    write_plan(&repo, &[create("b.txt", "b\n"), execute("false")]);
    let rollback = ["-c", "on_failure=rollback"];
    page.shown(&repo, &[&rollback[..], &EXECUTE].concat());
    page.compare("failed-command");
}

#[test]
fn a_program_that_is_not_there() {
    let repo = project();
    let mut page = Page::default();
    page.refused(&repo, &["record", "--", "no-such-program"]);
    page.compare("missing-program");
}

#[test]
fn a_result_that_overlaps() {
    let repo = project();
    // The command acts as a user who saves the file meanwhile.
    let script = format!("echo mine > '{}'", repo.path().join("a.txt").display());
    write_plan(&repo, &[edit("a.txt", "one", "two"), execute(&script)]);
    let mut page = Page::default();
    let free = ["-c", "execute.sandbox=off"];
    page.shown(&repo, &[&free[..], &EXECUTE].concat());
    page.shown(&repo, &["status"]);
    page.shown(&repo, &["restore", "@"]);
    page.shown(&repo, &["restore", "@", "--markers"]);
    page.shown(&repo, &["status"]);
    page.compare("overlap");
}

#[test]
fn a_run_that_is_interrupted() {
    let mut page = Page::default();
    for (fault, _) in [
        ("before-action=1*return(interrupt)", 130),
        ("before-write=1*return(errno:28)", 1),
        ("before-objects-sync=1*return(errno:5)", 1),
        ("after-ref=1*return(errno:28)", 1),
    ] {
        let repo = project();
        write_plan(&repo, &[edit("a.txt", "one", "two")]);
        page.shown_with(&repo, &EXECUTE, &[("FAILPOINTS", fault)]);
    }
    let repo = project();
    turn(&repo, &[edit("a.txt", "one", "two")]);
    let fault = [("FAILPOINTS", "after-lock=1*return(interrupt)")];
    page.refused_with(&repo, &["undo"], &fault);
    page.compare("interrupted");
}

#[test]
fn a_set_up_that_fails() {
    let repo = project();
    repo.configure("worktree: {setup: \"echo broken >&2; exit 4\"}\n");
    write_plan(&repo, &[execute("true")]);
    Page::default().refused(&repo, &EXECUTE).compare("set-up");
}

#[test]
fn a_sandbox_that_this_machine_does_not_have() {
    let repo = project();
    write_plan(&repo, &[execute("true")]);
    let required = ["-c", "execute.sandbox=require"];
    let kernel = [("FAILPOINTS", "landlock=return(0)")];
    let mut page = Page::default();
    page.refused_with(&repo, &[&required[..], &EXECUTE].concat(), &kernel);
    page.compare("no-sandbox");
}

#[test]
fn a_worktree_that_cannot_be_made() {
    let repo = project();
    write_plan(&repo, &[execute("true")]);
    repo.write("in-the-way/demo/x", "x");
    let root = repo.path().join("in-the-way");
    let setting = format!("worktree.root={}", root.display());
    let mut page = Page::default();
    std::fs::write(repo.beside("file"), "").unwrap();
    let file = format!("worktree.root={}", repo.beside("file").display());
    page.refused(&repo, &[&["-c", &file][..], &EXECUTE].concat());
    let _ = setting;
    page.compare("no-worktree");
}
