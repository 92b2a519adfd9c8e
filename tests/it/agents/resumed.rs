//! Conversations of agents that go on in the next turn, and what the agent is told there.

use crate::scripted_agent::use_scripted_agent;
use crate::support::TestRepo;

/// A project with the session `demo`, in which an agent has made a turn.
fn project(work: &str) -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n").file("b.txt", "b\n");
    repo.commit("init");
    use_scripted_agent(&repo, work);
    repo.done(&["new", "demo"]);
    turn(&repo, "one");
    repo
}

fn turn(repo: &TestRepo, message: &str) {
    repo.done(&["plan", "-m", message]);
    repo.done(&["execute", "-y"]);
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
    let repo = project("echo 1 >> one.txt; message 'Made one.'");
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
