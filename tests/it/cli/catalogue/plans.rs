//! Plans that cannot be read, are refused or need an answer.

use super::{Page, project, turn, write_plan};
use crate::plans::{chat, create, edit, execute, invoke, plan, prune, read, research};

#[test]
fn a_file_that_is_no_plan() {
    let repo = project();
    repo.write("bytes.md", b"# T\n\xff\n");
    repo.write("notes.md", "Some notes.\n");
    let mut page = Page::default();
    for args in [
        &["execute", "none.md"][..],
        &["execute", "a.md"],
        &["execute", "bytes.md"],
        &["execute", "."],
        &["plan", "-m", "go", "--from", "none.md"],
        &["plan", "-m", " "],
        &["preprocess", "none.md"],
        &["change", "reproposal", "x", "--from", "none.md"],
    ] {
        page.refused(&repo, args);
    }
    page.shown(&repo, &["execute", "notes.md"]);
    write_plan(&repo, &[create("new.txt", "new\n")]);
    repo.done(&["plan", "-m", "go", "--from", "../plan.md"]);
    page.refused(&repo, &["plan", "--from", "notes.md"]);
    page.compare("no-plan");
}

#[test]
fn a_plan_that_is_wrong() {
    let repo = project();
    repo.write("b.txt", "b\n");
    write_plan(
        &repo,
        &[
            edit("a.txt", "eno", "two"),
            edit("b.txt", "b", "c"),
            edit("none.txt", "b", "c"),
            create("b.txt", "b\n"),
            create("../out.txt", "b\n"),
            create(".git/hooks/pre-commit", "b\n"),
            read("none.txt"),
            prune("none.txt"),
            execute(""),
            research(&["what"]),
            invoke("Poet", &[], "Write."),
        ],
    );
    Page::default()
        .shown(&repo, &["execute", "../plan.md", "--no-replan"])
        .compare("wrong-plan");
}

#[test]
fn a_plan_that_cannot_be_parsed() {
    let repo = project();
    let text = "# Change\n- **Status:** Green\n\n## Rationale\n````text\nWhy.\n````\n\nWhat?\n\n\
        ## Action Plan\n\n### `CREATE`\n- **Description:** No path.\n````text\nx\n\n\
        ### `FROBNICATE`\n- **File Path:** [a](/b)\n";
    std::fs::write(repo.beside("plan.md"), text).unwrap();
    Page::default()
        .shown(&repo, &["execute", "../plan.md", "--no-replan"])
        .compare("unreadable-plan");
}

#[test]
fn a_plan_without_a_way_to_approve_it() {
    let repo = project();
    write_plan(&repo, &[edit("a.txt", "one", "two")]);
    repo.done(&["plan", "-m", "go", "--from", "../plan.md"]);
    let mut page = Page::default();
    page.refused(&repo, &["-q", "execute"]);
    page.compare("unapproved");
}

#[test]
fn a_question_that_only_a_person_can_answer() {
    let repo = project();
    turn(&repo, &[edit("a.txt", "one", "two")]);
    repo.write("a.txt", "three\n");
    let mut page = Page::default();
    for args in [
        &["gc", "demo"][..],
        &["start"],
        &["switch"],
        &["restore", "0", "--exact"],
        &["undo", "--exact"],
        &["context", "edit"],
        &["change", "plan", "x"],
        &["plan"],
        &["resume"],
    ] {
        page.refused(&repo, args);
    }
    page.compare("nobody-to-ask");
}

#[test]
fn a_question_of_the_model() {
    let repo = project();
    repo.reply(&plan("Ask", &[chat("Red or blue?")]));
    let mut page = Page::default();
    page.shown(&repo, &["-q", "resume", "-y", "-m", "go"]);
    page.refused(&repo, &["plan"]);
    page.shown(&repo, &["status"]);
    page.compare("question");
}

#[test]
fn a_message_that_is_not_used() {
    let repo = project();
    write_plan(&repo, &[edit("a.txt", "one", "two")]);
    repo.done(&["plan", "-m", "go", "--from", "../plan.md"]);
    let mut page = Page::default();
    page.shown(&repo, &["-q", "resume", "-m", "something else"]);
    page.shown(&repo, &["status"]);
    page.compare("message-not-used");
}
