//! Own turns on another user's session: they count as the user's, and the earlier ones don't until the
//! user adopts the session.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use teddy::host::fault::POINTS;
use teddy::session::name::SessionName;
use teddy::workflow::lifecycle::rename_session;

use crate::plans::{chat, create, plan};
use crate::support::remotes::two_people;
use crate::support::{Output, TestRepo};

/// A project with a session of two turns, whose context list names a file that git ignores.
fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "a\n")
        .file(".gitignore", "ignored.txt\n");
    repo.commit("init");
    repo.write("ignored.txt", "for this machine\n");
    repo.workflow().new_session("theirs").done();
    repo.workflow().add(&["ignored.txt"]);
    repo.workflow().run_plan(&create_plan("one.txt"));
    repo.workflow().run_plan(&create_plan("two.txt"));
    repo
}

fn create_plan(path: &str) -> String {
    plan(path, &[create(path, "made\n")])
}

/// Makes the sessions those of another user, as after a fetch of all refs.
fn forget_owner(repo: &TestRepo) {
    for own in ["tips", "own-drafts"] {
        let _ = std::fs::remove_dir_all(repo.path().join(".git/teddy").join(own));
    }
}

/// Whether the input shows the ignored file.
fn shows_ignored(repo: &TestRepo, session: &str) -> bool {
    let rows = repo.workflow().session(session).resources(0);
    let mut rows = rows.as_array().unwrap().iter();
    rows.any(|row| row["resource"] == "ignored.txt" && row["missing"] == false)
}

fn own_turns(repo: &TestRepo, session: &str) -> Vec<bool> {
    let project = repo.workflow().open().unwrap();
    let name = SessionName::parse(session).unwrap();
    let tip = project.store().tip(&name).unwrap();
    let mut own: Vec<bool> = project
        .store()
        .history(tip)
        .map(|turn| project.checkout().is_own_turn(&turn.unwrap()).unwrap())
        .collect();
    own.reverse();
    own
}

#[test]
fn t26_a_turn_on_another_users_session_adopts_none_before_it() {
    let repo = project();
    assert!(shows_ignored(&repo, "theirs"));
    forget_owner(&repo);
    repo.workflow().run_plan(&create_plan("three.txt"));

    assert_eq!(own_turns(&repo, "theirs"), [false, false, false, true]);
    assert!(!shows_ignored(&repo, "theirs"));
    insta::assert_snapshot!(repo.workflow().rerun("2").refused(), @"
    error: turn 2 of session `theirs` is not recorded as yours; its plan does not run
    hint: `teddy switch --adopt theirs` accepts the session
    exit code 1
    ");
    insta::assert_snapshot!(repo.workflow().rerun("3").done(), @"
    ▶ 1. CREATE three.txt
      ✓ created, 1 line
    turn 3 same []
    ");

    repo.workflow().adopt("theirs").done();
    assert_eq!(own_turns(&repo, "theirs"), [true; 4]);
    assert!(shows_ignored(&repo, "theirs"));
}

#[test]
fn a_turn_on_another_users_session_has_no_model_of_an_earlier_session() {
    let repo = project();
    let project = repo.workflow().open().unwrap();
    let name = SessionName::parse("theirs").unwrap();
    project.journal().record_model(&name, "command:x").unwrap();
    assert_eq!(project.session_model(&name).as_deref(), Some("command:x"));
    forget_owner(&repo);
    repo.workflow().run_plan(&create_plan("three.txt"));
    assert_eq!(project.session_model(&name), None);
}

/// The model of a turn can be a program.
#[test]
fn another_users_turn_does_not_choose_the_model_of_its_retry() {
    let repo = project();
    std::fs::write(repo.beside("answer.md"), create_plan("three.txt")).unwrap();
    let model = format!("command:cat '{}'", repo.beside("answer.md").display());
    insta::assert_snapshot!(repo.printed(&["plan", "-m", "go", "--model", &model]), @r#"
    # three.txt
    - **Status:** Green 🟢
    - **Plan Type:** Implementation
    - **Agent:** Pathfinder

    ## Rationale
    ````text
    three.txt, because it is wanted.
    ````

    ## Action Plan

    ### `CREATE`
    - **File Path:** [three.txt](/three.txt)
    - **Description:** Make three.txt.
    ````text
    made
    ````
    --- stderr
    Asking command:cat '[dir]/answer.md' with about [n] tokens, no price set
    Planned turn 3: "three.txt". Next: `teddy execute`
    exit code 0
    "#);
    repo.done(&["execute", "-y"]);
    insta::assert_snapshot!(repo.printed(&["retry", "3"]), @"
    # three.txt
    - **Status:** Green 🟢
    - **Plan Type:** Implementation
    - **Agent:** Pathfinder

    ## Rationale
    ````text
    three.txt, because it is wanted.
    ````

    ## Action Plan

    ### `CREATE`
    - **File Path:** [three.txt](/three.txt)
    - **Description:** Make three.txt.
    ````text
    made
    ````
    --- stderr
    Asking command:cat '[dir]/answer.md' with about [n] tokens, no price set
    your files are not as they were before the turn; the plan is checked against those of now. `teddy restore @` takes them back
    The plan of turn 3 changes files that the model has not read: `three.txt`. `teddy execute` shows them to it and asks again.
    Session theirs-retry-1 is in use now.
    exit code 3
    ");

    repo.workflow().switch("theirs").done();
    forget_owner(&repo);
    insta::assert_snapshot!(repo.printed(&["retry", "3"]), @"
    --- stderr
    error: no model is configured
    hint: `teddy setup` sets one up, `--model` names one for this call, and `teddy plan --from <file>` takes an answer from elsewhere
    exit code 1
    ");
}

#[test]
fn a_git_revision_does_not_make_another_users_turn_own() {
    let repo = project();
    forget_owner(&repo);
    let id = repo.git(&["rev-parse", "teddy/sessions/theirs"]);
    repo.workflow().new_session("mine").done();
    let mine = || repo.workflow().session("mine");
    let refused = mine().rerun(&id).refused();
    assert!(refused.contains("is not recorded as yours"), "{refused}");
    mine().branch(&id, "branch").done();
    assert_eq!(own_turns(&repo, "branch"), [false; 3]);
}

#[test]
fn an_edit_of_the_context_does_not_adopt_a_waiting_plan() {
    let repo = project();
    repo.workflow()
        .plan_from("go", &create_plan("three.txt"))
        .done();
    forget_owner(&repo);
    let edited = repo.printed(&["context", "add", "a.txt"]);
    insta::assert_snapshot!(edited, @"
    --- stderr
    error: the plan waiting in session `theirs` is not recorded as yours
    hint: look at it with `git show refs/teddy/drafts/theirs:plan.md`; `teddy switch --adopt theirs` accepts it
    exit code 1
    ");
    let executed = repo.workflow().execute().refused();
    insta::assert_snapshot!(executed, @"
    error: the plan waiting in session `theirs` is not recorded as yours
    hint: look at it with `git show refs/teddy/drafts/theirs:plan.md`; `teddy switch --adopt theirs` accepts it
    exit code 1
    ");
}

#[test]
fn a_plan_after_another_users_draft_does_not_adopt_its_context() {
    let repo = project();
    repo.workflow().add(&["a.txt"]);
    std::fs::remove_dir_all(repo.path().join(".git/teddy/own-drafts")).unwrap();
    assert!(!shows_ignored(&repo, "theirs"));
    repo.workflow().run_plan(&create_plan("three.txt"));
    assert!(!shows_ignored(&repo, "theirs"));
    repo.workflow().adopt("theirs").done();
    assert!(shows_ignored(&repo, "theirs"));
}

#[test]
fn turns_before_the_users_own_were_never_in_the_files() {
    let (ada, ben) = two_people();
    ada.done(&["push", "--code", "-y"]);
    ben.done(&["fetch"]);
    ben.done(&["branch", "origin/add-auth:@", "mine"]);
    let asks = plan("Ask", &[chat("What next?")]);
    let asked = ben.workflow().execute_text(&asks).refused();
    insta::assert_snapshot!(asked, @"
    TeDDy has not written to these files before, so everything in them counts as your own; `teddy restore @` restores them to turn 2
    ▶ 1. CHAT_WITH_USER What next?
      ✓ asks the user
    turn 3 executed
      asks (Open): What next?
    ");
    let status = ben.done(&["status"]);
    insta::assert_snapshot!(ben.plain(&status), @"
    Session mine, turn 3, on branch main
    Ready for turn 4
    The model waits for your answer:
      What next?
    Your files are as the newest turn left them
    ");
}

#[test]
fn t26_a_draft_without_a_record_changes_no_owner_of_a_turn() {
    let repo = project();
    repo.workflow().add(&["a.txt"]);
    std::fs::remove_dir_all(repo.path().join(".git/teddy/own-drafts")).unwrap();
    repo.workflow().add(&["one.txt"]);
    assert_eq!(own_turns(&repo, "theirs"), [true; 3]);
    assert!(!shows_ignored(&repo, "theirs"));
    repo.workflow().branch("@", "fork").done();
    assert!(!shows_ignored(&repo, "fork"));

    repo.workflow().adopt("theirs").done();
    assert!(!repo.path().join(".git/teddy/adopted").exists());
    assert_eq!(own_turns(&repo, "theirs"), [true; 3]);
    assert!(shows_ignored(&repo, "theirs"));
}

/// Regression: a turn of the user's took the context list of a draft that came as a ref, so the next
/// input showed a file that git ignores.
#[test]
fn t26_a_turn_without_a_plan_leaves_another_users_draft_behind() {
    let own = || {
        let repo = TestRepo::new()
            .file("a.txt", "a\n")
            .file(".gitignore", "ignored.txt\n");
        repo.commit("init");
        repo.write("ignored.txt", "for this machine\n");
        repo.workflow().new_session("s").done();
        repo.workflow().run_plan(&create_plan("one.txt"));
        repo.workflow().add(&["ignored.txt"]);
        // As if it was fetched.
        std::fs::remove_dir_all(repo.path().join(".git/teddy/own-drafts")).unwrap();
        assert!(!shows_ignored(&repo, "s"));
        repo.write("a.txt", "b\n");
        repo
    };
    for args in [&["record", "-m", "mine"][..], &["restore", "0"], &["undo"]] {
        let repo = own();
        repo.done(args);
        assert!(!shows_ignored(&repo, "s"), "{args:?}");
        let list = repo.git(&["show", "refs/teddy/sessions/s:session.context"]);
        assert!(!list.contains("ignored.txt"), "{args:?}: {list}");
    }
}

/// Regression: a kill between the ref and the record made the user's own turns another user's.
#[test]
fn t26_a_kill_changes_no_owner() {
    for foreign in [0, 3] {
        let repo = project();
        if foreign > 0 {
            forget_owner(&repo);
        }
        let files = repo.beside("files.md");
        let asks = repo.beside("asks.md");
        std::fs::write(&asks, plan("Ask", &[chat("What next?")])).unwrap();
        let is_earlier = |point: &&str| *point != "before-intent";
        let mut killed = BTreeSet::new();
        // Changes of files come after the ref and its record.
        let points = POINTS.into_iter().skip_while(is_earlier);
        for point in points.filter(|point| !point.starts_with("publish-")) {
            std::fs::write(&files, create_plan(&format!("{point}.txt"))).unwrap();
            for plan in [&asks, &files] {
                let mut run = repo.teddy_command(&["execute", plan.to_str().unwrap(), "-y"]);
                run.current_dir(repo.path());
                let output = Output::of(run.env("FAILPOINTS", format!("{point}=1*return(kill)")));
                if output.code == -1 {
                    killed.insert((plan, point));
                }
                for _ in 0..2 {
                    let own = own_turns(&repo, "theirs");
                    let expected: Vec<bool> = (0..own.len()).map(|turn| turn >= foreign).collect();
                    assert_eq!(own, expected, "{point}");
                    let _ = repo.workflow().recover();
                }
            }
        }
        for point in ["before-ref", "after-ref-before-sync", "after-ref"] {
            assert!(killed.contains(&(&asks, point)), "{point}");
        }
    }
}

#[test]
fn a_rename_to_a_taken_name_changes_no_owner() {
    let repo = project();
    repo.workflow().new_session("mine").done();
    insta::assert_snapshot!(repo.printed(&["branch", "-m", "theirs"]), @"
    --- stderr
    error: there is a session `theirs` already
    hint: `teddy switch theirs` continues it; or choose another name
    exit code 1
    ");
    assert_eq!(own_turns(&repo, "theirs"), [true; 3]);
}

#[derive(Debug, Clone)]
enum Step {
    Turn(usize),
    Undo(usize),
    Adopt(usize),
    /// At the turn with this index, modulo their number.
    Branch(usize, usize),
    Rename(usize),
    /// Copies the ref, as a fetch does.
    Copy(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let any = 0..32usize;
    prop_oneof![
        4 => any.clone().prop_map(Step::Turn),
        2 => any.clone().prop_map(Step::Undo),
        1 => any.clone().prop_map(Step::Adopt),
        3 => (any.clone(), any.clone()).prop_map(|(session, turn)| Step::Branch(session, turn)),
        1 => any.clone().prop_map(Step::Rename),
        1 => any.prop_map(Step::Copy),
    ]
}

struct World {
    repo: TestRepo,
    /// Which turns of each session are the user's.
    sessions: BTreeMap<String, Vec<bool>>,
    steps: usize,
}

impl World {
    fn take(&mut self, step: &Step) {
        self.steps += 1;
        let at = match *step {
            Step::Turn(at)
            | Step::Undo(at)
            | Step::Adopt(at)
            | Step::Branch(at, _)
            | Step::Rename(at)
            | Step::Copy(at) => at % self.sessions.len(),
        };
        let (name, own) = self.sessions.iter().nth(at).unwrap();
        let (name, mut own) = (name.clone(), own.clone());
        let workflow = || self.repo.workflow().session(&name);
        let new = format!("session-n{}", self.steps);
        match *step {
            Step::Turn(_) => {
                workflow().run_plan(&create_plan(&format!("made-{}.txt", self.steps)));
                own.push(true);
            }
            Step::Undo(_) => {
                // An undo that changes nothing is no turn.
                let _ = workflow().undo(1);
                let turns = own_turns(&self.repo, &name).len();
                own.resize(turns, true);
            }
            Step::Adopt(_) => {
                workflow().adopt(&name).done();
                own.fill(true);
            }
            Step::Branch(_, turn) => {
                let turn = turn % own.len();
                workflow().branch(&turn.to_string(), &new).done();
                own.truncate(turn + 1);
                self.sessions.insert(new, own);
                return;
            }
            Step::Rename(_) => {
                let to = SessionName::parse(&new).unwrap();
                let from = SessionName::parse(&name).unwrap();
                let renamed = workflow().call(|project, user, _| {
                    rename_session(project, &from, &to, user)?;
                    Ok(true)
                });
                renamed.done();
                self.sessions.remove(&name);
                self.sessions.insert(new, own);
                return;
            }
            Step::Copy(_) => {
                let refs = [&new, &name].map(|name| format!("refs/teddy/sessions/{name}"));
                self.repo.git(&["update-ref", &refs[0], &refs[1]]);
                own.fill(false);
                self.sessions.insert(new, own);
                return;
            }
        }
        self.sessions.insert(name, own);
    }

    fn check(&self, step: &Step) {
        for (name, own) in &self.sessions {
            assert_eq!(&own_turns(&self.repo, name), own, "{name} after {step:?}");
            // A list saved before the entry was added does not show the file, either.
            let is_own = own.iter().all(|own| *own);
            assert!(
                is_own || !shows_ignored(&self.repo, name),
                "{name} after {step:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if crate::WORLDS { 24 } else { 4 }, max_shrink_iters: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_only_own_and_adopted_turns_count(steps in proptest::collection::vec(step(), 4..14)) {
        let repo = project();
        forget_owner(&repo);
        let sessions = BTreeMap::from([("theirs".to_owned(), vec![false; 3])]);
        let mut world = World { repo, sessions, steps: 0 };
        for step in &steps {
            world.take(step);
            world.check(step);
        }
    }
}

/// Bug: an undo dropped the plan without a word, and `status` advised to execute it.
#[test]
fn another_users_plan_is_adopted_or_dropped_but_not_advised() {
    let repo = project();
    repo.put(repo.beside("next.md"), create_plan("three.txt"));
    repo.done(&["plan", "--from", "../next.md"]);
    forget_owner(&repo);
    repo.teddy(&["status"])
        .check(0, &["Next: teddy switch --adopt theirs\n"]);
    assert_eq!(repo.json(&["status"], 0)["draft"]["foreign"], true);
    let undone = repo.workflow().undo(1).done();
    let says = "the waiting plan was another user's and was dropped: three.txt";
    assert!(undone.contains(says), "{undone}");
}
