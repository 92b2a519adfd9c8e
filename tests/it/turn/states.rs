//! The states of a turn: what one leaves behind if the next is never reached, and what it refuses.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use insta::{allow_duplicates, assert_snapshot};
use serde_json::Value;

use crate::plans::{chat, create, edit, plan};
use crate::support::TestRepo;
use crate::support::in_process::Reply;
use crate::support::scripted_user::{Meanwhile, Scripted, ScriptedUser};

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

#[test]
fn a_question_what_to_do_instead_that_is_left_or_fails_loses_nothing() {
    let repo = waiting();
    let before = state(&repo);
    // The script has no answer, so the question panics.
    let user = ScriptedUser::deciding([Scripted::Skip(None)]);
    let asked = catch_unwind(AssertUnwindSafe(|| executes(&repo, user)));
    assert!(asked.is_err());
    assert_eq!(state(&repo), before, "the plan still waits");

    let user = ScriptedUser::deciding([Scripted::Skip(None)]).answering(None);
    assert_snapshot!(executes(&repo, user).done(), @r#"
    review "Make b": Skip(None)
    asked what to do instead of `Make b`: None
    turn 1 declined
      declined: left at the question
    "#);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_question_of_the_model_that_is_left_stays_open_and_the_turn_is_published() {
    let repo = waiting();
    let text = plan("Ask", &[create("b.txt", "made\n"), chat("Which name?")]);
    let user = ScriptedUser::deciding([Scripted::Approve]).answering(None);
    let reply = repo.workflow().with(user).execute_text(&text);
    assert_snapshot!(reply, @r#"
    the plan that waited is replaced: Make b; `teddy show draft replaced/01/plan.md` shows it
    review "Ask": Approve
    ▶ 1. CREATE b.txt
      ✓ created, 1 line
    ▶ 2. CHAT_WITH_USER Which name?
      ✓ asks the user
    asked answer to `Which name?`: None
    turn 1 executed
      added b.txt
      asks (UserLeft): Which name?
    "#);
    assert_eq!(repo.read("b.txt"), "made\n");
}

#[test]
fn a_review_is_repeated_for_files_that_changed_and_runs_on_them_in_the_end() {
    let repo = Rc::new(waiting());
    repo.workflow().add(&["a.txt"]);
    let text = plan("Change a", &[edit("a.txt", "one", "1")]);
    let save = |number: usize| {
        let repo = Rc::clone(&repo);
        Scripted::ApproveAfter(Meanwhile(Box::new(move || {
            // A snapshot that was just taken counts as one of this moment.
            std::thread::sleep(Duration::from_secs(1));
            let more = format!("{}mine {number}\n", repo.read("a.txt"));
            repo.write("a.txt", &more);
        })))
    };
    let user = ScriptedUser::deciding([save(1), save(2), save(3)]);
    let reply = repo.workflow().with(user).execute_text(&text);
    assert_snapshot!(reply.done(), @r#"
    the plan that waited is replaced: Make b; `teddy show draft replaced/01/plan.md` shows it
    review "Change a": ApproveAfter(meanwhile)
    your files changed while the plan was reviewed; it is validated again
    review "Change a": ApproveAfter(meanwhile)
    your files changed while the plan was reviewed; it is validated again
    review "Change a": ApproveAfter(meanwhile)
    ▶ 1. EDIT a.txt
      ✓ changed 1 place: 1 line added, 1 removed
    turn 1 executed
      modified a.txt
    "#);
    assert_eq!(repo.read("a.txt"), "1\nmine 1\nmine 2\nmine 3\n");
    let before = repo.git(&["show", "teddy/sessions/demo^2^:a.txt"]);
    assert_eq!(before, "one\nmine 1\nmine 2", "what the user reviewed");
}

#[test]
fn a_plan_that_fits_the_files_no_more_is_rejected_in_the_next_review() {
    let repo = Rc::new(waiting());
    repo.workflow().add(&["a.txt"]);
    let text = plan("Change a", &[edit("a.txt", "one", "1")]);
    let other = Rc::clone(&repo);
    let replace = Scripted::ApproveAfter(Meanwhile(Box::new(move || {
        std::thread::sleep(Duration::from_secs(1));
        other.write("a.txt", "two\n");
    })));
    let user = ScriptedUser::deciding([replace, Scripted::Approve]);
    let reply = repo.workflow().with(user).execute_text(&text);
    assert_snapshot!(reply.refused(), @r#"
    the plan that waited is replaced: Make b; `teddy show draft replaced/01/plan.md` shows it
    review "Change a": ApproveAfter(meanwhile)
    your files changed while the plan was reviewed; it is validated again
    review "Change a": Approve
    `a.txt` changed after the plan was made
    The plan was not accepted: 1 mistake
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    no model is configured to correct the plan
    turn 1 rejected
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    "#);
    assert_eq!(repo.read("a.txt"), "two\n");
}

#[test]
fn a_turn_that_another_session_records_during_a_review_stays_and_is_undone_apart() {
    let repo = Rc::new(waiting());
    let other = Rc::clone(&repo);
    let meanwhile = Scripted::ApproveAfter(Meanwhile(Box::new(move || {
        std::thread::sleep(Duration::from_secs(1));
        other.workflow().new_session("other").done();
        let text = plan("Make c", &[create("c.txt", "c\n")]);
        let turn = other.workflow().session("other").execute_text(&text);
        turn.done();
    })));
    // The other turn changed the files, so the review is repeated.
    let user = ScriptedUser::deciding([meanwhile, Scripted::Approve]);
    let reply = repo.workflow().session("demo").with(user).execute();
    reply.done();
    assert_eq!(repo.read("b.txt") + &repo.read("c.txt"), "made\nc\n");
    repo.workflow().session("demo").undo(1).done();
    assert_eq!(repo.git(&["status", "--porcelain"]), "?? c.txt");
}

#[test]
fn a_plan_for_a_session_that_is_gone_opens_nothing() {
    let repo = waiting();
    let before = state(&repo);
    let user = ScriptedUser::deciding([]);
    let reply = repo.workflow().session("gone").with(user).execute();
    assert_snapshot!(reply.refused(), @r#"
    error: there is no session `gone`
    hint: `teddy sessions` lists the sessions
    exit code 1
    "#);
    assert_eq!(state(&repo), before);
}

/// Regression: the model was asked again, and the user could not see that it was not its mistake.
#[test]
fn a_waiting_plan_that_an_edit_broke_is_rejected_with_the_changed_file() {
    let repo = TestRepo::new()
        .file("a.txt", "one\n")
        .file("b.txt", "one\n")
        .file(".gitignore", "built\n");
    repo.write("built", "x\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt", "b.txt"]);
    let actions = [
        edit("a.txt", "one", "1"),
        edit("b.txt", "one", "1"),
        create("c.txt", "made\n"),
        create("built", "made\n"),
    ];
    repo.workflow()
        .plan_from("count", &plan("Count", &actions))
        .refused();
    repo.write("a.txt", "two\n");
    repo.write("b.txt", "zero\none\n");
    repo.write("c.txt", "mine\n");
    let user = ScriptedUser::deciding([]);
    assert_snapshot!(executes(&repo, user).refused(), @r"
    `a.txt`, `c.txt` changed after the plan was made
    The plan was not accepted: 3 mistakes
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        the text is in `b.txt`, at line 2
        hint: name the file that the text is in, if that is the one to change
    plan.md:39: CREATE c.txt: `c.txt` already exists
        hint: change it with EDIT, or say `- **Overwrite:** true` to replace it as a whole
    plan.md:46: CREATE built: `built` already exists
        hint: change it with EDIT, or say `- **Overwrite:** true` to replace it as a whole
    no model is configured to correct the plan
    turn 1 rejected
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        the text is in `b.txt`, at line 2
        hint: name the file that the text is in, if that is the one to change
    plan.md:39: CREATE c.txt: `c.txt` already exists
        hint: change it with EDIT, or say `- **Overwrite:** true` to replace it as a whole
    plan.md:46: CREATE built: `built` already exists
        hint: change it with EDIT, or say `- **Overwrite:** true` to replace it as a whole
    ");
}
