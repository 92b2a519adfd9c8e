//! Conversations of agents that go on in the next turn, and what the agent is told there.

use crate::plans::{create, plan};
use crate::scripted_agent::use_scripted_agent;
use crate::support::TestRepo;

const WORK: &str = "echo 1 >> one.txt; message 'Made one.'";

const BREAKS_OFF: &str = "echo 1 > half.txt; kill -9 $$";

/// A project with the session `demo`, in which an agent has made a turn.
fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n").file("b.txt", "b\n");
    repo.commit("init");
    use_scripted_agent(&repo, WORK);
    repo.done(&["new", "demo"]);
    turn(&repo, "one");
    repo
}

fn turn(repo: &TestRepo, message: &str) {
    repo.done(&["plan", "-m", message]);
    repo.done(&["execute", "-y"]);
}

fn break_off(repo: &TestRepo) {
    use_scripted_agent(repo, BREAKS_OFF);
    assert_eq!(repo.teddy(&["plan", "-m", "two"]).code, 1);
    use_scripted_agent(repo, WORK);
}

fn told(repo: &TestRepo) -> String {
    repo.git(&["show", "refs/teddy/drafts/demo:told.md"])
}

/// Whether the agent of the draft resumed a conversation.
fn is_resumed(repo: &TestRepo, session: &str) -> bool {
    let draft = format!("refs/teddy/drafts/{session}");
    let meta = repo.git(&["show", &format!("{draft}:meta.yaml")]);
    let files = repo.git(&["ls-tree", "--name-only", &draft]);
    let is_resumed = meta.contains("resumed: true");
    assert_eq!(is_resumed, files.contains("told.md"), "{meta}");
    is_resumed
}

/// Regression: in an overlay, all sessions have the path of the checkout, so they shared one
/// conversation, in which later turns of another session had happened.
#[test]
fn a_conversation_belongs_to_one_session() {
    let repo = project();
    turn(&repo, "two");
    repo.done(&["retry", "2"]);
    assert!(!is_resumed(&repo, "demo-retry-1"));
    repo.done(&["switch", "demo"]);
    repo.done(&["branch", "1", "alt"]);
    repo.done(&["-s", "alt", "plan", "-m", "two"]);
    assert!(!is_resumed(&repo, "alt"));
    repo.done(&["switch", "demo"]);
    repo.done(&["race", "three", "--with", "scripted,scripted"]);
    assert!(!is_resumed(&repo, "demo-scripted"));
    assert!(!is_resumed(&repo, "demo-scripted-2"));
    repo.done(&["-s", "demo", "plan", "-m", "three"]);
    assert!(is_resumed(&repo, "demo"));
}

/// Regression: the agent was told that its last changes were in the files, although no one had seen
/// them.
#[test]
fn an_agent_is_told_that_its_work_was_discarded() {
    let replace = |repo: &TestRepo| drop(repo.done(&["plan", "-m", "two"]));
    for discard in [replace, break_off] {
        let repo = project();
        discard(&repo);
        repo.write("b.txt", "mine\n");
        repo.done(&["plan", "-m", "three"]);
        assert!(is_resumed(&repo, "demo"));
        insta::allow_duplicates! {
            insta::assert_snapshot!(told(&repo), @"
            # Your last changes

            The user has reviewed them, and the approved ones are in the files of this directory.

            What you have changed since then was discarded: none of it is in the files.

            These files are not as you left them; read them again before you change them:

            - b.txt

            # Message

            three
            ");
        }
    }
}

/// Regression: only edits after the plan ran were named.
#[test]
fn an_agent_is_told_of_edits_before_its_plan_ran() {
    let repo = project();
    repo.done(&["plan", "-m", "two"]);
    repo.write("a.txt", "mine\n");
    repo.done(&["execute", "-y"]);
    repo.write("b.txt", "mine\n");
    repo.done(&["plan", "-m", "three"]);
    assert!(is_resumed(&repo, "demo"));
    let told = told(&repo);
    assert!(told.contains("\n\n- a.txt\n- b.txt\n\n"), "{told}");
}

#[test]
fn a_conversation_ends_if_teddy_is_killed_while_the_agent_works() {
    let repo = project();
    let mut killed = repo.teddy_command(&["plan", "-m", "two"]);
    killed
        .current_dir(repo.path())
        .env("FAILPOINTS", "after-run-snapshot=return(kill)");
    assert_eq!(killed.output().unwrap().status.code(), None);
    repo.done(&["plan", "-m", "two"]);
    assert!(!is_resumed(&repo, "demo"));
}

#[test]
fn a_turn_without_the_agent_does_not_name_it() {
    let repo = project();
    let meta = || repo.git(&["show", "teddy/sessions/demo:meta.yaml"]);
    break_off(&repo);
    let own = plan("Make c", &[create("c.txt", "c\n")]);
    repo.teddy_reads(&["execute", "-", "-y"], own).check(0, &[]);
    assert!(!meta().contains("acted"), "{}", meta());
    turn(&repo, "three");
    break_off(&repo);
    repo.done(&["undo"]);
    assert!(!meta().contains("acted"), "{}", meta());
}
