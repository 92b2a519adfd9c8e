//! Sessions, turns and plans that don't exist or are in the wrong state.

use super::{Page, project, turn, write_plan};
use crate::plans::{create, edit, read};
use crate::support::TestRepo;

#[test]
fn a_session_that_is_not_there() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    let mut page = Page::default();
    for args in [
        &["log"][..],
        &["undo"],
        &["plan", "-m", "go"],
        &["execute"],
        &["switch"],
        &["-s", "other", "log"],
        &["switch", "other"],
        &["switch", "--adopt", "other"],
        &["gc", "other"],
        &["new", "demo", "-a", "poet"],
    ] {
        page.refused(&repo, args);
    }
    repo.done(&["new", "demo"]);
    page.refused(&repo, &["execute"]);
    page.refused(&repo, &["new", "demo"]);
    page.refused(&repo, &["branch", "0", "demo"]);
    page.compare("no-session");
}

#[test]
fn a_turn_that_is_not_there() {
    let repo = project();
    turn(&repo, &[create("b.txt", "b\n")]);
    let mut page = Page::default();
    for args in [
        &["restore", "7"][..],
        &["show", "nonsense"],
        &["show", "HEAD"],
        &["show", "draft"],
        &["diff", "0"],
        &["diff", "1", "9"],
        &["branch", "7", "other"],
        &["restore", "@~9"],
        &["restore", "other:1"],
        &["restore", "1", "nothing-like-this.txt"],
        &["retry", "0"],
        &["verify", "--rerun", "0"],
        &["undo", "5"],
        &["redo"],
    ] {
        page.refused(&repo, args);
    }
    page.shown(&repo, &["show", "1", "nonsense.md"]);
    page.compare("no-turn");
}

#[test]
fn nothing_to_undo() {
    let repo = project();
    let mut page = Page::default();
    page.refused(&repo, &["undo"]);
    page.refused(&repo, &["redo"]);
    turn(&repo, &[create("b.txt", "b\n")]);
    repo.git(&["update-ref", "-d", "refs/teddy/published/main"]);
    page.refused(&repo, &["undo"]);
    page.compare("nothing-to-undo");
}

#[test]
fn a_turn_in_progress() {
    let repo = project();
    write_plan(&repo, &[edit("a.txt", "one", "two")]);
    repo.done(&["plan", "-m", "go", "--from", "../plan.md"]);
    let mut page = Page::default();
    for args in [
        &["restore", "draft"][..],
        &["branch", "draft", "other"],
        &["verify", "--rerun", "draft"],
        &["retry", "draft"],
        &["execute"],
    ] {
        page.refused(&repo, args);
    }
    page.compare("turn-in-progress");
}

#[test]
fn a_plan_of_another_user() {
    let from = project();
    write_plan(&from, &[edit("a.txt", "one", "two")]);
    from.done(&["plan", "-m", "go", "--from", "../plan.md"]);
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    let path = from.path().display().to_string();
    repo.git(&["fetch", "-q", &path, "+refs/teddy/*:refs/teddy/*"]);
    Page::default()
        .refused(&repo, &["execute", "-y"])
        .compare("foreign-plan");
}

#[test]
fn another_process_at_work() {
    let repo = project();
    write_plan(&repo, &[edit("a.txt", "one", "two")]);
    let mut page = Page::default();
    let folder = repo.path().join(".git/teddy");
    let held = teddy::host::lock::Lock::take(&folder, "gc", std::time::Duration::ZERO).unwrap();
    let soon = ("TEDDY_LOCK_TIMEOUT", "0");
    page.refused_with(&repo, &["undo"], &[soon]);
    drop(held);

    // Another process updates the session after TeDDy has read it and before the commit point.
    let script = repo.beside("move.sh");
    let other = repo.git(&["commit-tree", "-m", "x", "HEAD^{tree}"]);
    let text = format!(
        "git -C '{}' update-ref refs/teddy/sessions/demo {other}\n",
        repo.path().display()
    );
    std::fs::write(&script, text).unwrap();
    let fault = format!("before-intent=1*return(sh:{})", script.display());
    let tip = repo.git(&["rev-parse", "refs/teddy/sessions/demo"]);
    let execute = ["-q", "execute", "../plan.md", "-y"];
    let variables = [("FAILPOINTS", fault.as_str())];
    page.shown_with(&repo, &execute, &variables);
    repo.git(&["update-ref", "refs/teddy/sessions/demo", &tip]);
    page.kind(&repo, &execute, &variables);
    page.compare("another-process");
}

#[test]
fn an_agent_that_is_not_trusted() {
    let repo = project();
    repo.write(".teddy/prompts/poet.xml", "<title>Write</title>\n");
    let mut page = Page::default();
    page.refused(&repo, &["new", "other", "-a", "poet"]);
    page.refused(&repo, &["get-prompt", "poet"]);
    page.refused(&repo, &["get-prompt", "nobody"]);
    page.refused(&repo, &["trust"]);
    page.compare("agents");
}

#[test]
fn a_session_whose_turn_changed_nothing() {
    let repo = project();
    repo.write("b.txt", "b\n");
    turn(&repo, &[read("b.txt")]);
    let mut page = Page::default();
    page.refused(&repo, &["undo"]);
    page.compare("nothing-changed");
}
