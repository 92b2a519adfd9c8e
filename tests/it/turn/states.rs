//! The states of a turn: what one leaves behind if the next is never reached, and what it refuses.

use std::panic::{AssertUnwindSafe, catch_unwind};

use insta::{allow_duplicates, assert_snapshot};
use serde_json::Value;

use crate::plans::{chat, create, plan};
use crate::support::TestRepo;
use crate::support::in_process::Reply;
use crate::support::scripted_user::{Scripted, ScriptedUser};

fn waiting() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    let answer = plan("Make b", &[create("b.txt", "made\n")]);
    repo.workflow().plan_from("make b", &answer).done();
    repo
}

fn executes(repo: &TestRepo, user: ScriptedUser) -> Reply {
    repo.workflow().with(user).execute()
}

/// Everything that a turn could have changed.
fn state(repo: &TestRepo) -> (Value, Value, String, String) {
    let workflow = repo.workflow();
    let refs = repo.git(&["for-each-ref", "refs/teddy/sessions", "refs/teddy/drafts"]);
    let files = repo.git(&["status", "--porcelain"]);
    (workflow.log(), workflow.status(), refs, files)
}

#[test]
fn a_review_that_is_left_leaves_the_plan_waiting_and_the_session_unlocked() {
    for (decision, expected) in [
        (
            Scripted::Quit,
            "review \"Make b\": Quit\nturn 1 undecided\n",
        ),
        (
            Scripted::Fail,
            "review \"Make b\": Fail\nerror: the terminal is gone\nexit code 1\n",
        ),
        (Scripted::Panic, "a panic"),
    ] {
        let repo = waiting();
        let before = state(&repo);
        let user = ScriptedUser::deciding([decision]);
        let reply = catch_unwind(AssertUnwindSafe(|| executes(&repo, user)));
        let reply = reply.map_or_else(|_| "a panic".to_owned(), |reply| reply.to_string());
        assert_eq!(reply, expected);
        assert_eq!(state(&repo), before);

        let user = ScriptedUser::deciding([Scripted::Approve]);
        allow_duplicates! {
            assert_snapshot!(executes(&repo, user).done(), @r#"
        review "Make b": Approve
        ▶ 1. CREATE b.txt
          ✓ created, 1 line
        turn 1 executed
          added b.txt
        "#);
        }
        assert_eq!(repo.read("b.txt"), "made\n");
    }
}

#[test]
fn a_session_without_a_plan_opens_and_does_not_become_a_planned_turn() {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    let before = state(&repo);
    let user = ScriptedUser::deciding([]);
    assert_snapshot!(executes(&repo, user).refused(), @"
    error: no plan is waiting in session `demo`
    hint: `teddy plan '<message>'` makes one; `teddy execute <file>` takes one from elsewhere
    exit code 1
    ");
    assert_eq!(state(&repo), before);
}

#[test]
fn a_declined_turn_is_recorded_and_changes_no_file() {
    let repo = waiting();
    let user = ScriptedUser::deciding([Scripted::Skip(Some("Make c instead."))]);
    assert_snapshot!(executes(&repo, user), @r#"
    review "Make b": Skip(Some("Make c instead."))
    Using the waiting message: Make c instead.
    no other plan was made: no model is configured; your message is kept for `teddy plan`
    turn 1 declined
      declined: Make c instead.
    "#);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    let status = repo.workflow().status();
    assert_eq!(status["turn"], 1);
    assert_eq!(status["state"], "ready");
}

#[test]
fn a_question_that_fails_after_the_turn_leaves_it_recorded() {
    let repo = waiting();
    let text = plan("Ask", &[create("b.txt", "made\n"), chat("Which name?")]);
    let user = ScriptedUser::deciding([Scripted::Approve]);
    let asked = catch_unwind(AssertUnwindSafe(|| {
        repo.workflow().with(user).execute_text(&text)
    }));
    assert!(asked.is_err(), "the script has no answer");

    let status = repo.workflow().status();
    assert_eq!(status["turn"], 1);
    assert_eq!(repo.read("b.txt"), "made\n");
    let user = ScriptedUser::deciding([Scripted::Approve]).answering(Some("c"));
    let next = plan("Make c", &[create("c.txt", "c\n")]);
    repo.workflow().with(user).execute_text(&next).done();
    assert_eq!(repo.read("c.txt"), "c\n");
}
