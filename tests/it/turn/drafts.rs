//! Drafts: unique turn ids, names for git and `show`, and what remains of a plan that never ran.

use std::collections::{BTreeMap, BTreeSet};
use teddy::workflow::plan::PlanOptions;

use crate::fake::{Fake, stream};
use crate::plans::{create, edit, execute, plan};
use crate::support::TestRepo;
use crate::support::in_process::{Reply, Workflow};

fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow()
        .run_plan(&plan("First", &[create("1.txt", "1\n")]));
    repo
}

fn makes(path: &str) -> String {
    plan(&format!("Make {path}"), &[create(path, "made\n")])
}

/// Returns the commits of all sessions by turn id.
fn turns_by_id(repo: &TestRepo) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for session in repo.workflow().sessions().as_array().unwrap() {
        let name = session["name"].as_str().unwrap();
        for row in repo.workflow().session(name).log().as_array().unwrap() {
            let text = |key: &str| row[key].as_str().unwrap().to_owned();
            found
                .entry(text("turn_id"))
                .or_default()
                .insert(text("commit"));
        }
    }
    found
}

#[track_caller]
fn check_unique(repo: &TestRepo) {
    let shared: Vec<_> = turns_by_id(repo)
        .into_iter()
        .filter(|(_, commits)| commits.len() > 1)
        .collect();
    assert_eq!(shared, [], "an id names one turn");
}

#[test]
fn promise_b4_turns_after_a_fork_have_ids_of_their_own() {
    let repo = project();
    repo.workflow().branch("1", "alt").done();
    for session in ["alt", "demo"] {
        repo.workflow()
            .session(session)
            .execute_text(&makes(session))
            .done();
    }
    check_unique(&repo);
}

#[test]
fn promise_b4_a_retried_turn_has_an_id_of_its_own() {
    let repo = project();
    repo.reply(&makes("2.txt"));
    repo.workflow().plan("go").done();
    repo.workflow().execute().done();
    repo.git(&["clean", "-fdq"]);
    repo.workflow().retry("2", None).done();
    repo.workflow().execute().done();
    check_unique(&repo);
}

#[test]
fn promise_b4_turns_after_a_copied_ref_have_ids_of_their_own() {
    let execute: fn(Workflow<'_>) -> Reply = |workflow| workflow.execute();
    let other: fn(Workflow<'_>) -> Reply = |workflow| workflow.execute_text(&makes("3.txt"));
    let undo: fn(Workflow<'_>) -> Reply = |workflow| workflow.undo(1);
    for (step, is_undo) in [(execute, false), (other, false), (undo, true)] {
        let repo = project();
        std::fs::write(repo.beside("plan.md"), makes("2.txt")).unwrap();
        repo.workflow().plan_file(Some("go"), "plan.md").done();
        for kind in ["sessions", "drafts"] {
            let (old, new) = (
                format!("refs/teddy/{kind}/demo"),
                format!("refs/teddy/{kind}/copy"),
            );
            repo.git(&["update-ref", &new, &old]);
        }
        repo.workflow().adopt("copy").done();
        for session in ["copy", "demo"] {
            step(repo.workflow().session(session)).done();
            // What one of them took back is not there to be taken back by the other.
            if is_undo {
                repo.workflow().session(session).redo(1).done();
            }
            // The files of one session would conflict with the same plan in the other.
            repo.git(&["clean", "-fdq"]);
        }
        check_unique(&repo);
    }
}

#[test]
fn promise_b4_a_turn_names_the_turn_that_it_continues() {
    let repo = project();
    repo.workflow().branch("1", "alt").done();
    repo.workflow().run_plan(&makes("2.txt"));
    repo.workflow().undo(1).done();
    let meta = |turn: &str, key: &str| {
        let meta = repo.workflow().artifact(turn, "meta.yaml");
        let line = meta.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap_or_default().to_owned()
    };
    for (turn, before) in [("1", "0"), ("2", "1")] {
        assert_eq!(meta(turn, "parent_turn_id: "), meta(before, "turn_id: "));
    }
}

/// A project whose session has a turn and a waiting plan.
fn waiting() -> TestRepo {
    let repo = project();
    repo.reply(&makes("2.txt"));
    repo.workflow().plan("make 2").done();
    repo
}

/// Returns the ref that git resolves the draft's name to, and warnings.
fn draft_for_git(repo: &TestRepo) -> (String, String) {
    let output = repo
        .command("git")
        .current_dir(repo.path())
        .args(["rev-parse", "--symbolic-full-name", "teddy/drafts/demo"])
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().trim().to_owned();
    (text(output.stdout), text(output.stderr))
}

#[test]
fn t15_a_draft_means_one_thing_for_git() {
    let repo = waiting();
    let reference = ("refs/teddy/drafts/demo".to_owned(), String::new());
    assert_eq!(draft_for_git(&repo), reference);
    assert_eq!(
        repo.git(&["show", "teddy/drafts/demo:user_prompt.txt"]),
        "make 2"
    );
    repo.workflow().execute().done();
    // It is gone, and no file of ours answers in its place.
    let said = draft_for_git(&repo).1;
    assert!(said.contains("unknown revision"), "{said}");
}

#[test]
fn promise_b6_no_file_of_ours_shadows_a_ref_of_ours() {
    let repo = waiting();
    repo.workflow().undo(1).done();
    repo.workflow().branch("1", "alt").done();
    let refs = repo.git(&["for-each-ref", "--format=%(refname)", "refs/teddy"]);
    assert!(refs.lines().count() > 3, "{refs}");
    for full in refs.lines() {
        let short = full.strip_prefix("refs/").unwrap();
        let file = repo.path().join(".git").join(short);
        assert!(!file.exists(), "`{}` shadows `{full}`", file.display());
        assert_eq!(
            repo.git(&["rev-parse", "--symbolic-full-name", short]),
            full
        );
    }
}

#[test]
fn promise_b6_the_plan_that_waits_can_be_shown_and_compared() {
    let repo = waiting();
    let plan = repo.git(&["show", "refs/teddy/drafts/demo:plan.md"]);
    for name in ["draft", "2", "demo:draft"] {
        assert_eq!(repo.done(&["show", name]).trim_end(), plan, "{name}");
        assert_eq!(repo.done(&["show", name, "user_prompt.txt"]), "make 2");
        let shown = repo.json(&["show", name], 0);
        assert_eq!(
            (&shown["number"], &shown["status"], &shown["title"]),
            (&2.into(), &"planned".into(), &"Make 2.txt".into())
        );
        assert_eq!(
            repo.done(&["diff", name]),
            "--- /dev/null\n+++ b/2.txt\n@@ -0,0 +1 @@\n+made\n"
        );
        assert_eq!(
            repo.json(&["diff", name], 0),
            serde_json::json!([{ "path": "2.txt", "change": "added" }])
        );
    }
    assert!(!repo.path().join("2.txt").exists());
    repo.workflow().execute().done();
    let refused = [
        ["show", "draft"],
        ["diff", "draft"],
        ["show", "3"],
        ["diff", "3"],
    ]
    .map(|args| repo.printed(&args));
    insta::assert_snapshot!(refused.concat(), @r"
    --- stderr
    error: session `demo` has no turn in progress
    hint: `teddy plan -m <message>` begins one
    exit code 1
    --- stderr
    error: session `demo` has no turn in progress
    hint: `teddy plan -m <message>` begins one
    exit code 1
    --- stderr
    error: session `demo` has no turn `3`; its turns are 0 to 2
    hint: `teddy log` lists the turns
    exit code 1
    --- stderr
    error: session `demo` has no turn `3`; its turns are 0 to 2
    hint: `teddy log` lists the turns
    exit code 1
    ");
}

#[test]
fn promise_b6_only_executed_turns_can_be_restored() {
    let repo = waiting();
    let flow = || repo.workflow();
    let refused = [
        flow().restore("draft"),
        flow().restore("2"),
        flow().restore("teddy/drafts/demo"),
        flow().branch("draft", "alt"),
        flow().branch("teddy/drafts/demo", "alt"),
        flow().retry("draft", None),
        flow().rerun("2"),
    ];
    for reply in refused {
        assert_eq!(
            reply.refused(),
            "error: turn 2 of session `demo` is in progress: its plan has not run\nhint: `teddy show draft` and `teddy diff draft` show it; `teddy execute` runs it\nexit code 1\n"
        );
    }
    let error = &repo.json(&["diff", "1", "draft"], 1)["error"];
    assert_eq!(
        (error["kind"].as_str(), error["message"].as_str()),
        (
            Some("TurnInProgress"),
            Some("turn 2 of session `demo` is in progress: its plan has not run")
        )
    );
    assert_eq!(repo.workflow().status()["state"], "planned");
    assert_eq!(
        repo.json(&["show", "3"], 1)["error"]["kind"],
        "TurnNotFound"
    );
}

#[test]
fn promise_b6_what_a_waiting_plan_would_change_is_put_together() {
    let repo = project();
    let both = plan(
        "Several",
        &[
            edit("a.txt", "one", "two"),
            edit("a.txt", "two", "three"),
            create("b/c.txt", "c\n"),
            execute("touch d.txt"),
        ],
    );
    std::fs::write(repo.beside("plan.md"), both).unwrap();
    repo.workflow().add(&["a.txt"]);
    repo.workflow().plan_file(Some("x"), "plan.md").done();
    assert_eq!(
        repo.json(&["diff", "draft"], 0),
        serde_json::json!([
            { "path": "a.txt", "change": "modified" },
            { "path": "b/c.txt", "change": "added" },
        ])
    );
    insta::assert_snapshot!(repo.printed(&["diff", "draft"]), @r"
    --- a/a.txt
    +++ b/a.txt
    @@ -1 +1 @@
    -one
    +three
    --- /dev/null
    +++ b/b/c.txt
    @@ -0,0 +1 @@
    +c
    --- stderr
    What 1 command of the plan would change is unknown before the run.
    exit code 0
    ");

    // The plan no longer applies to the changed file.
    repo.write("a.txt", "four\n");
    insta::assert_snapshot!(repo.printed(&["diff", "draft"]), @r"
    --- /dev/null
    +++ b/b/c.txt
    @@ -0,0 +1 @@
    +c
    --- stderr
    The plan was not accepted: 1 mistake
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    What 1 command of the plan would change is unknown before the run.
    exit code 0
    ");
    // A draft without a plan has nothing to compare.
    repo.workflow().new_session("other").done();
    let input = repo.workflow().input(0);
    insta::assert_snapshot!(repo.printed(&["diff", "draft"]), @r"
    --- stderr
    error: turn 1 has no plan yet
    exit code 1
    ");
    assert_eq!(repo.workflow().artifact("draft", "input.md"), input);
}

#[test]
fn t14_a_replaced_plan_is_kept() {
    for step in [
        ["plan", "-m", "make 3", "--from", "../other.md"].as_slice(),
        &["execute", "../other.md", "-y"],
        &["undo"],
        &["restore", "0", "-y"],
    ] {
        let repo = waiting();
        let replaced = repo.git(&["show", "refs/teddy/drafts/demo:plan.md"]);
        let input = repo.git(&["show", "refs/teddy/drafts/demo:input.md"]);
        std::fs::write(repo.beside("other.md"), makes("3.txt")).unwrap();
        repo.done(step);
        if step[0] == "plan" {
            repo.workflow().execute().done();
        }
        let read = |name: &str| {
            repo.workflow()
                .artifact("2", &format!("replaced/01/{name}"))
        };
        assert_eq!(read("plan.md").trim_end(), replaced, "{step:?}");
        assert_eq!(read("user_prompt.txt"), "make 2");
        assert_eq!(read("input.md").trim_end(), input);
        let meta = read("meta.yaml");
        assert!(
            meta.contains("status: declined\n") && meta.contains("asked: replay:"),
            "{meta}"
        );
        // The plan that ran was made by nobody that TeDDy knows.
        assert!(repo.workflow().turn("2")["model"].is_null(), "{step:?}");
    }
}

/// Configures a provider with these answers, at 10 dollars per million input tokens.
fn paid(repo: &TestRepo, answers: &[String]) -> Fake {
    let fake = Fake::answering(answers);
    repo.configure(&format!(
        "model: paid\nmodels:\n  paid: {{ kind: openai, id: x, base_url: \"{}/v1\", price: {{ input: 10, output: 0 }} }}\n",
        fake.origin
    ));
    fake
}

#[test]
fn promise_b6_the_cost_of_a_replaced_plan_is_kept() {
    let repo = project();
    let answer = |path: &str, tokens| stream(&makes(path), "stop", (tokens, 1));
    let fake = paid(&repo, &[answer("2.txt", 1000), answer("3.txt", 2000)]);
    repo.workflow().plan("make 2").done();
    repo.workflow().plan("make 3").done();
    // The third call fails, and the plan that waited is not lost to it.
    drop(fake);
    insta::assert_snapshot!(repo.workflow().plan("make 4").refused(), @r"
    Asking paid with about [n] tokens, $[n] and the answer
    error: cannot reach http://[host]: Connection refused (os error 111)
    hint: check `base_url`, the network and the proxy; for a local model, that its server runs
    exit code 1
    ");
    let plans = |number: &str| {
        let name = format!("replaced/{number}/plan.md");
        repo.workflow().artifact("draft", &name)
    };
    assert!(plans("01").contains("2.txt") && plans("02").contains("3.txt"));
    let cost = |name: &str| {
        let meta: serde_yaml::Value =
            serde_yaml::from_str(&repo.workflow().artifact("2", name)).unwrap();
        (meta["model"]["cost"].as_f64(), meta["spent"].as_f64())
    };
    repo.workflow().undo(1).done();
    assert_eq!(cost("replaced/01/meta.yaml"), (Some(0.01), Some(0.01)));
    assert_eq!(cost("replaced/02/meta.yaml"), (Some(0.02), Some(0.03)));
    assert_eq!(repo.workflow().turn("2")["spent"], 0.03);
}

#[test]
fn promise_b6_an_incomplete_answer_is_kept() {
    let repo = project();
    let _fake = paid(
        &repo,
        &[
            stream("# Half", "length", (1000, 1)),
            stream(&makes("2.txt"), "stop", (1000, 1)),
        ],
    );
    insta::assert_snapshot!(repo.workflow().plan("make 2").refused(), @r"
    Asking paid with about [n] tokens, $[n] and the answer
    what arrived was not taken as a plan; `teddy -s demo show draft reply.md` shows it
    error: the answer was cut at the limit of tokens
    hint: raise the model's `max_tokens`, or ask for a smaller step
    exit code 1
    ");
    repo.workflow().plan_with(PlanOptions::default()).done();
    repo.workflow().execute().done();
    let read = |name: &str| {
        repo.workflow()
            .artifact("2", &format!("replaced/01/{name}"))
    };
    assert_eq!(read("reply.md").trim_end(), "# Half");
    assert!(read("meta.yaml").contains("failure: the answer was cut"));
}

/// Runs teddy with a kill at a failpoint.
fn killed(repo: &TestRepo, point: &str, args: &[&str]) {
    let mut command = repo.teddy_command(args);
    let out = crate::support::Output::of(
        command
            .current_dir(repo.path())
            .env("FAILPOINTS", format!("{point}=return(kill)")),
    );
    assert_eq!(out.code, -1, "{point}: {out}");
}

#[test]
fn promise_b6_a_crash_loses_no_answer_that_was_paid_for() {
    // After the answer: the draft has the raw answer, and `execute` repairs it.
    let repo = project();
    let reply = format!("Here you are.\n\n{}", makes("2.txt"));
    let _fake = paid(&repo, &[stream(&reply, "stop", (1000, 1))]);
    killed(&repo, "after-answer", &["plan", "-m", "make 2"]);
    assert_eq!(repo.workflow().status()["state"], "planned");
    insta::assert_snapshot!(repo.workflow().execute().done(), @r"
    ▶ 1. CREATE 2.txt
      ✓ created, 1 line
    turn 2 executed
      added 2.txt
    ");
    let row = repo.workflow().turn("2");
    assert_eq!(
        (&row["cost"], &row["title"]),
        (&0.01.into(), &"Make 2.txt".into())
    );
    assert!(
        !repo
            .workflow()
            .artifact("2", "plan.md")
            .contains("Here you are")
    );

    // While another draft replaces it: the waiting plan stays.
    let repo = waiting();
    std::fs::write(repo.beside("other.md"), makes("3.txt")).unwrap();
    for args in [
        ["execute", "../other.md", "-y"].as_slice(),
        &["plan", "-m", "x", "--from", "../other.md"],
        &["context", "add", "a.txt"],
    ] {
        killed(&repo, "before-draft-ref", args);
    }
    insta::assert_snapshot!(repo.workflow().execute().done(), @r"
    ▶ 1. CREATE 2.txt
      ✓ created, 1 line
    turn 2 executed
      added 2.txt
    ");
    assert_eq!(repo.read("2.txt"), "made\n");
}

#[test]
fn promise_b6_a_waiting_plan_belongs_to_its_session() {
    let repo = waiting();
    repo.workflow().branch("1", "alt").done();
    insta::assert_snapshot!(repo.workflow().find_turn("draft").refused(), @r"
    error: session `alt` has no turn in progress
    hint: `teddy plan -m <message>` begins one
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["show", "demo:draft"]), @"
    # Make 2.txt
    - **Status:** Green 🟢
    - **Plan Type:** Implementation
    - **Agent:** Pathfinder

    ## Rationale
    ````text
    Make 2.txt, because it is wanted.
    ````

    ## Action Plan

    ### `CREATE`
    - **File Path:** [2.txt](/2.txt)
    - **Description:** Make 2.txt.
    ````text
    made
    ````
    exit code 0
    ");
    repo.git(&["worktree", "add", "-q", "--detach", "../linked"]);
    let linked = repo.beside("linked");
    for args in [
        ["-s", "demo", "show", "draft"].as_slice(),
        &["-s", "demo", "diff", "draft"],
    ] {
        repo.teddy_in(&linked, args).check(0, &["2.txt"]);
    }
    let full = ["rev-parse", "--symbolic-full-name", "teddy/drafts/demo"];
    assert_eq!(repo.git_in(&linked, &full), "refs/teddy/drafts/demo");
    let shown = repo
        .teddy_in(&linked, &["-s", "demo", "execute", "-y"])
        .shown(&repo);
    insta::assert_snapshot!(shown, @r#"
    turn 2 executed [id]
    --- stderr
    TeDDy has not written to these files before, so everything in them counts as your own; `teddy -s demo restore @` restores them to turn 1
    ▶ Reviewing Plan: "Make 2.txt"
      demo · turn 2 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Make 2.txt, because it is wanted.
     Changes: 1 file  +1
      2.txt  +1  new file
        +made
     Action Plan:
      - CREATE: 1 file
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. CREATE 2.txt
      ✓ created, 1 line
    Updated your files: 2.txt (new)
    exit code 0
    "#);

    // TeDDy's note about the draft is deleted with its session.
    repo.reply(&makes("5.txt"));
    repo.workflow().session("alt").plan("x").done();
    repo.done(&["gc", "alt", "-y"]);
    let notes = repo.path().join(".git/teddy/own-drafts");
    assert_eq!(std::fs::read_dir(notes).unwrap().count(), 0);
}

/// Regression: no list showed that a plan waits, and another one replaced it without a word.
#[test]
fn a_waiting_plan_is_listed_and_named_when_another_replaces_it() {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    for name in ["one", "two"] {
        std::fs::write(repo.beside(&format!("{name}.md")), makes(name)).unwrap();
    }
    repo.done(&["plan", "--from", "../one.md", "-q"]);
    let listed = repo.done(&["sessions"]);
    assert!(
        listed
            .trim()
            .ends_with("Start session demo (a plan waits: Make one)"),
        "{listed}"
    );
    let rows = repo.json(&["sessions"], 0);
    assert_eq!(rows[0]["plan"], "Make one");
    repo.teddy(&["diff"]).check(
        1,
        &["hint: `teddy diff draft` shows what the waiting plan changes"],
    );

    let replaced = "the plan that waited is replaced: Make one; `teddy show draft replaced/01/plan.md` shows it";
    repo.teddy(&["plan", "--from", "../two.md"])
        .check(0, &[replaced]);
    let shown = repo.done(&["show", "draft", "replaced/01/plan.md"]);
    assert!(shown.starts_with("# Make one\n"), "{shown}");
    let replaced = "the plan that waited is replaced: Make two; `teddy show draft replaced/02/plan.md` shows it";
    repo.teddy(&["execute", "../one.md", "-y"])
        .check(0, &[replaced]);
    repo.done(&["new", "other"]);
    assert!(repo.json(&["sessions"], 0)[0].get("plan").is_none());
}
