//! `plan` and `resume`: the input, the model's answer and the draft.

use crate::plans::{chat, create, execute, plan, read};
use crate::support::TestRepo;

fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    // Only a file whose text is before the model may be edited.
    repo.workflow().add(&["a.txt"]);
    repo
}

#[test]
fn a_plan_is_a_draft_and_changes_no_file() {
    let repo = project();
    let text = plan("Make it", &[create("b.txt", "b\n")]);
    repo.reply(&text);
    repo.workflow().plan("make b").done();
    assert_eq!(repo.workflow().artifact("draft", "plan.md"), text);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    let status = repo.workflow().status();
    assert_eq!(
        (
            status["state"].as_str(),
            status["draft"]["title"].as_str(),
            status["draft"]["actions"].as_u64()
        ),
        (Some("planned"), Some("Make it"), Some(1))
    );
    let draft = |name: &str| repo.git(&["show", &format!("refs/teddy/drafts/demo:{name}")]);
    assert_eq!(draft("user_prompt.txt"), "make b");
    assert!(draft("input.md").starts_with("# Agent Invocation Payload"));
    assert!(draft("system_prompt.xml").contains("<"));
}

#[test]
fn a_complete_turn_replaces_its_draft() {
    let repo = project();
    repo.reply(&plan("Make it", &[create("b.txt", "b\n")]));
    repo.workflow().plan("make b").done();
    repo.workflow().execute().done();
    assert_eq!(repo.git(&["for-each-ref", "refs/teddy/drafts"]), "");
    let names = repo.git(&["ls-tree", "-r", "--name-only", "teddy/sessions/demo"]);
    let expected = "input.md meta.yaml next/meta.yaml next/requests.yaml next/system_prompt.xml next/turn.context plan.md report.md requests.yaml session.context system_prompt.xml turn.context user_prompt.txt";
    assert_eq!(names.split('\n').collect::<Vec<_>>().join(" "), expected);
}

#[test]
fn a_message_comes_from_standard_input_as_well() {
    let repo = project();
    repo.reply(&plan("Make it", &[create("b.txt", "b\n")]));
    repo.teddy_reads(&["plan", "-m", "-"], "from a pipe\n")
        .check(0, &[]);
    assert_eq!(
        repo.git(&["show", "refs/teddy/drafts/demo:user_prompt.txt"]),
        "from a pipe"
    );
}

#[test]
fn without_a_message_and_a_terminal_the_flag_is_named() {
    let repo = project();
    repo.reply(&plan("Make it", &[create("b.txt", "b\n")]));
    let shown = ["plan", "resume"].map(|command| repo.printed(&[command]));
    insta::assert_snapshot!(shown.concat(), @r"
    --- stderr
    error: turn 1 of `demo` needs a message
    hint: `-m '<message>'` says it
    exit code 1
    --- stderr
    error: turn 1 of `demo` needs a message
    hint: `-m '<message>'` says it
    exit code 1
    ");
}

#[test]
fn an_answer_from_a_file_is_repaired_and_the_raw_text_is_kept() {
    let repo = project();
    let text = plan("Make it", &[create("b.md", "```sh\nls\n```\n")]);
    let wrong = text.replace("`````", "```").replace("````", "```");
    std::fs::write(repo.beside("answer.md"), &wrong).unwrap();
    repo.workflow().plan_file(Some("x"), "answer.md").done();
    let meta = repo.workflow().artifact("draft", "meta.yaml");
    assert!(
        meta.contains("repair:") && !meta.contains("repair: clean"),
        "{meta}"
    );
    repo.workflow().execute().done();
    assert_eq!(repo.read("b.md"), "```sh\nls\n```\n");
    assert_eq!(repo.workflow().artifact("1", "reply.md"), wrong);
}

#[test]
fn what_is_not_a_plan_does_not_replace_one_that_waits() {
    let repo = project();
    let text = plan("Make it", &[create("b.txt", "b\n")]);
    std::fs::write(repo.beside("answer.md"), &text).unwrap();
    repo.workflow().plan_file(Some("x"), "answer.md").done();
    let refused = ["", "Nothing of a plan.\n"].map(|wrong| {
        std::fs::write(repo.beside("answer.md"), wrong).unwrap();
        let reply = repo.workflow().plan_file(None, "answer.md").refused();
        assert_eq!(repo.workflow().artifact("draft", "plan.md"), text);
        reply
    });
    insta::assert_snapshot!(refused.concat(), @r"
    error: this is not a plan; the plan that is waiting was not replaced
    hint: `--from` takes a file with a model's answer; `teddy execute` runs the plan that is waiting
    exit code 3
    error: this is not a plan; the plan that is waiting was not replaced
    hint: `--from` takes a file with a model's answer; `teddy execute` runs the plan that is waiting
    exit code 3
    ");
}

#[test]
fn json_has_every_key_that_scripts_rely_on() {
    let repo = project();
    repo.reply(&plan("Make it", &[create("b.txt", "b\n")]));
    insta::assert_snapshot!(repo.printed(&["--json", "plan", "-m", "x"]), @r#"
    {
      "answer": null,
      "answered_by": "replay",
      "cost": null,
      "diagnostics": [],
      "model": "replay:[dir]/answers",
      "outline": null,
      "repair": "clean",
      "session": "demo",
      "title": "Make it",
      "tokens_in": null,
      "tokens_out": null,
      "turn": 1,
      "workspace": {
        "branch": null,
        "extra": [],
        "lacking": [],
        "marked": [],
        "missing": [],
        "not_brought": null,
        "same_turns": null
      }
    }
    --- stderr
    Asking replay:[dir]/answers with about [n] tokens
    exit code 0
    "#);
}

#[test]
fn a_wrong_plan_exits_with_3_and_says_every_mistake_at_once() {
    let repo = project();
    let wrong = plan(
        "Wrong",
        &[
            crate::plans::edit("a.txt", "nine", "9"),
            crate::plans::edit("none.txt", "x", "y"),
        ],
    );
    insta::assert_snapshot!(repo.workflow().plan_from("x", &wrong).refused(), @r#"
    planned turn 1: "Wrong", 2 mistakes
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    plan.md:26: EDIT none.txt: there is no file `none.txt`
        hint: use CREATE for a new file
    "#);
}

#[test]
fn planning_again_replaces_the_draft() {
    let repo = project();
    for title in ["One", "Two"] {
        std::fs::write(
            repo.beside("answer.md"),
            plan(title, &[create("b.txt", "b\n")]),
        )
        .unwrap();
        repo.workflow().plan_file(Some(title), "answer.md").done();
    }
    assert_eq!(repo.workflow().status()["draft"]["title"], "Two");
    assert_eq!(
        repo.git(&[
            "rev-list",
            "--count",
            "--first-parent",
            "teddy/sessions/demo"
        ]),
        "1"
    );
}

#[test]
fn a_command_is_a_model() {
    let repo = project();
    let model = program(&repo);
    insta::assert_snapshot!(repo.printed(&["plan", "-m", "please do", "--model", &model]), @r#"
    # From a program
    - **Status:** Green 🟢
    - **Plan Type:** Implementation
    - **Agent:** Pathfinder

    ## Rationale
    ````text
    From a program, because it is wanted.
    ````

    ## Action Plan

    ### `CREATE`
    - **File Path:** [b.txt](/b.txt)
    - **Description:** Make b.txt.
    ````text
    b
    ````
    --- stderr
    Asking command:sh '[dir]/model.sh' with about [n] tokens, no price set
    Planned turn 1: "From a program". Next: `teddy execute`
    exit code 0
    "#);
    let got = std::fs::read_to_string(repo.beside("model.sh.got")).unwrap();
    assert!(
        got.contains("# Agent Invocation Payload") && got.contains("please do"),
        "{got}"
    );
}

/// Returns the name of a program model with one answer. It keeps its input in `model.sh.got`.
fn program(repo: &TestRepo) -> String {
    let answer = plan("From a program", &[create("b.txt", "b\n")]);
    std::fs::write(repo.beside("answer.md"), answer).unwrap();
    let script = "cat > \"$0.got\"; cat \"${0%/*}/answer.md\"\n";
    std::fs::write(repo.beside("model.sh"), script).unwrap();
    format!("command:sh '{}'", repo.beside("model.sh").display())
}

fn session_model(repo: &TestRepo) -> serde_json::Value {
    let rows = repo.done(&["sessions", "--json"]);
    let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
    rows[0]["model"].clone()
}

#[test]
fn the_model_of_the_first_turn_is_the_model_of_the_session() {
    let repo = project();
    let model = program(&repo);
    insta::assert_snapshot!(repo.printed(&["plan", "-m", "please do", "--model", &model]), @r#"
    # From a program
    - **Status:** Green 🟢
    - **Plan Type:** Implementation
    - **Agent:** Pathfinder

    ## Rationale
    ````text
    From a program, because it is wanted.
    ````

    ## Action Plan

    ### `CREATE`
    - **File Path:** [b.txt](/b.txt)
    - **Description:** Make b.txt.
    ````text
    b
    ````
    --- stderr
    Asking command:sh '[dir]/model.sh' with about [n] tokens, no price set
    Planned turn 1: "From a program". Next: `teddy execute`
    exit code 0
    "#);
    repo.done(&["execute", "-y"]);
    let named = format!("Model of this session: {model}");
    assert!(repo.done(&["status"]).contains(&named));
    let again = repo.teddy(&["plan", "-m", "again"]);
    insta::assert_snapshot!(again.shown(&repo), @"
    # From a program
    - **Status:** Green 🟢
    - **Plan Type:** Implementation
    - **Agent:** Pathfinder

    ## Rationale
    ````text
    From a program, because it is wanted.
    ````

    ## Action Plan

    ### `CREATE`
    - **File Path:** [b.txt](/b.txt)
    - **Description:** Make b.txt.
    ````text
    b
    ````
    --- stderr
    Asking command:sh '[dir]/model.sh' with about [n] tokens, no price set
    warning: the plan of turn 2 has 1 mistake:
    plan.md:13: CREATE b.txt: `b.txt` already exists
        hint: change it with EDIT, or say `- **Overwrite:** true` to replace it as a whole
    `teddy execute` records it as rejected and asks the model again.
    exit code 3
    ");

    // Later, it is for the call.
    let shown = repo.printed(&["plan", "-m", "once", "--model", "command:false"]);
    insta::assert_snapshot!(shown, @"
    --- stderr
    Asking command:false with about [n] tokens, no price set
    error: `false` failed (exit status: 1)
    hint: run it by hand: it gets the input on stdin and must print the plan on stdout; a key that it needs is named with `api_key_env`
    exit code 1
    ");
    assert_eq!(session_model(&repo), model);

    repo.done(&["branch", "-m", "renamed"]);
    assert_eq!(session_model(&repo), model);
    repo.workflow().new_session("next").done();
    insta::assert_snapshot!(repo.printed(&["status"]), @"
    Session next, turn 0, on branch main
    Ready for turn 1
    1 file changed since HEAD:
      b.txt
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");
}

/// Bug: the message that waited after the failure went to the configured model.
#[test]
fn the_model_of_the_first_turn_is_kept_if_its_call_fails() {
    let repo = project();
    repo.reply(&plan("Make it", &[create("b.txt", "b\n")]));
    repo.teddy(&["start", "hello there", "--model", "command:false"])
        .check(1, &["`false` failed"]);
    assert_eq!(repo.json(&["status"], 0)["model"], "command:false");
    for command in ["plan", "resume"] {
        repo.teddy(&[command])
            .check(1, &["Asking command:false", "`false` failed"]);
    }
}

/// A session's model can be a program, so only the user chooses it.
#[test]
fn a_fetched_session_has_no_model() {
    let repo = project();
    let shown = repo.printed(&["plan", "-m", "go", "--model", &program(&repo)]);
    insta::assert_snapshot!(shown, @r#"
    # From a program
    - **Status:** Green 🟢
    - **Plan Type:** Implementation
    - **Agent:** Pathfinder

    ## Rationale
    ````text
    From a program, because it is wanted.
    ````

    ## Action Plan

    ### `CREATE`
    - **File Path:** [b.txt](/b.txt)
    - **Description:** Make b.txt.
    ````text
    b
    ````
    --- stderr
    Asking command:sh '[dir]/model.sh' with about [n] tokens, no price set
    Planned turn 1: "From a program". Next: `teddy execute`
    exit code 0
    "#);
    repo.done(&["execute", "-y"]);
    let tip = repo.git(&["rev-parse", "refs/teddy/sessions/demo"]);
    repo.git(&["update-ref", "refs/teddy/sessions/copy", tip.trim()]);
    let notes = repo.path().join(".git/teddy/models");
    std::fs::copy(notes.join("demo"), notes.join("copy")).unwrap();

    insta::assert_snapshot!(repo.printed(&["-s", "copy", "status"]), @"
    Session copy, turn 1, on branch main
    Ready for turn 2
    Your files are as the newest turn left them
    --- stderr
    Next: teddy -s copy '<what you want>'
    exit code 0
    ");
    repo.done(&["switch", "copy", "--adopt"]);
    insta::assert_snapshot!(repo.printed(&["status"]), @"
    Session copy, turn 1, on branch main
    Ready for turn 2
    Your files are as the newest turn left them
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");
}

#[test]
fn a_session_is_not_started_for_a_model_that_cannot_be_opened() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    for model in [
        "nosuch",
        "openai:gpt",
        "replay:nosuch",
        "command:no-such-program -p",
        "command:/no/such/program",
        "acp:nosuch",
        "agent:no-such-program {message}",
    ] {
        for command in ["start", "resume", "plan", "ask"] {
            let out = repo.teddy(&[command, "go", "--model", model]);
            assert!(!out.stderr.contains("Started"), "{out}");
        }
        let out = repo.teddy(&["race", "go", "--with", model]);
        assert!(!out.stderr.contains("Started"), "{out}");
    }
    insta::assert_snapshot!(repo.printed(&["start", "go"]), @"
    --- stderr
    error: no model is configured
    hint: `teddy setup` sets one up, `--model` names one for this call, and `teddy plan --from <file>` takes an answer from elsewhere
    exit code 1
    ");
    assert_eq!(repo.done(&["sessions", "--json"]).trim(), "[]");
}

#[test]
fn resume_executes_what_waits_and_plans_otherwise() {
    let repo = project();
    repo.reply(&plan("One", &[create("one.txt", "1\n")]))
        .reply(&plan("Two", &[create("two.txt", "2\n")]));
    repo.workflow().plan("one").done();
    insta::assert_snapshot!(repo.workflow().resume(None).done(), @r"
    ▶ 1. CREATE one.txt
      ✓ created, 1 line
    turn 1 executed
      added one.txt
    ended: Left
    ");
    insta::assert_snapshot!(repo.workflow().resume(Some("two")).done(), @r"
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE two.txt
      ✓ created, 1 line
    turn 2 executed
      added two.txt
    ended: Left
    ");
    assert_eq!(repo.read("two.txt"), "2\n");
}

#[test]
fn an_unattended_loop_goes_on_until_the_model_asks() {
    let repo = project();
    repo.reply(&plan("One", &[create("one.txt", "1\n")]));
    repo.reply(&plan("Two", &[create("two.txt", "2\n")]));
    repo.reply(&plan("Ask", &[chat("What next?")]));
    repo.reply(&plan("Never", &[create("never.txt", "n\n")]));
    insta::assert_snapshot!(repo.workflow().resume_yolo("go").refused(), @r#"
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE one.txt
      ✓ created, 1 line
    turn 1 executed
      added one.txt
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE two.txt
      ✓ created, 1 line
    turn 2 executed
      added two.txt
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CHAT_WITH_USER What next?
      ✓ asks the user
    turn 3 executed
      asks (Open): What next?
    ended: Question("What next?")
    "#);
    assert!(repo.path().join("two.txt").exists() && !repo.path().join("never.txt").exists());
    assert_eq!(repo.git(&["for-each-ref", "refs/teddy/drafts"]), "");
}

#[test]
fn an_unattended_loop_stops_at_the_limit_of_turns() {
    let repo = project();
    for n in 1..=4 {
        let made = create(&format!("{n}.txt"), "x\n");
        repo.reply(&plan(&format!("Turn {n}"), &[made]));
    }
    let resume = ["resume", "--yolo", "--max-turns", "2", "-m", "go"];
    insta::assert_snapshot!(repo.printed(&resume), @r#"
    turn 1 executed [id]
    turn 2 executed [id]
    --- stderr
    Asking replay:[dir]/answers with about [n] tokens
    ▶ Reviewing Plan: "Turn 1"
      demo · turn 1 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Turn 1, because it is wanted.
     Changes: 1 file  +1
      1.txt  +1  new file
        +x
     Action Plan:
      - CREATE: 1 file
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. CREATE 1.txt
      ✓ created, 1 line
    Updated your files: 1.txt (new)
    Asking replay:[dir]/answers with about [n] tokens
    ▶ Reviewing Plan: "Turn 2"
      demo · turn 2 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Turn 2, because it is wanted.
     Changes: 1 file  +1
      2.txt  +1  new file
        +x
     Action Plan:
      - CREATE: 1 file
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. CREATE 2.txt
      ✓ created, 1 line
    Updated your files: 2.txt (new)
    stopped after 2 turns
    exit code 5
    "#);
    assert_eq!(repo.workflow().status()["turn"], 2);
}

#[test]
fn a_question_of_the_model_is_answered_by_the_next_message() {
    let repo = project();
    repo.reply(&plan("Ask", &[chat("Which colour?")]))
        .reply(&plan("Blue", &[create("blue.txt", "\n")]));
    repo.workflow().plan("paint").done();
    insta::assert_snapshot!(repo.workflow().execute().refused(), @r"
    ▶ 1. CHAT_WITH_USER Which colour?
      ✓ asks the user
    turn 1 executed
      asks (Open): Which colour?
    ");
    let report = repo.workflow().artifact("1", "report.md");
    insta::assert_snapshot!(repo.plain(&report), @"
    # Execution Report: Ask
    - **Overall Status:** Completed 🟢
    - **Approved By:** the user beforehand, with `-y`
    - **Original Plan:** [.teddy/demo/01/plan.md](/.teddy/demo/01/plan.md)
    - **Start Time:** 2026-01-02T03:04:05Z
    - **End Time:** 2026-01-02T03:04:05Z
    - **Actions:** 1 Total / 1 Approved / 0 Skipped
    - **Outcomes:** 1 Succeeded / 0 Failed

    ## User Prompt
    ````text
    paint
    ````

    ## 1. Rationale
    ````text
    Ask, because it is wanted.
    ````

    ## 2. Execution Summary

    ### Applied State Changes
    *(No state changes were proposed in the plan.)*

    ### Action Log

    #### `CHAT_WITH_USER`
    - **Status:** Approved ✅
    - **Execution:** Success 🟢
    - **Duration:** [n]
    - **Outcome:** asks the user

    Message:
    ````markdown
    Which colour?
    ````
    ");
    repo.workflow().resume(Some("blue")).done();
    let input = repo.workflow().artifact("2", "input.md");
    assert!(
        input.contains("Which colour?"),
        "the question is in the history: {input}"
    );
    assert_eq!(repo.workflow().artifact("2", "user_prompt.txt"), "blue");
}

#[test]
fn every_command_tells_a_mistake_in_one_form() {
    let repo = project();
    let wrong = plan("Wrong", &[crate::plans::edit("none.txt", "x", "y")]);
    std::fs::write(repo.beside("answer.md"), &wrong).unwrap();
    let shown = [
        repo.printed(&["plan", "--from", "../answer.md", "-m", "x"]),
        repo.printed(&["execute", "-y", "--no-replan"]),
    ];
    insta::assert_snapshot!(shown.join("\n"), @r"
    # Wrong
    - **Status:** Green 🟢
    - **Plan Type:** Implementation
    - **Agent:** Pathfinder

    ## Rationale
    ````text
    Wrong, because it is wanted.
    ````

    ## Action Plan

    ### `EDIT`
    - **File Path:** [none.txt](/none.txt)
    - **Description:** Change none.txt.

    `FIND:`
    ````text
    x
    ````
    `REPLACE:`
    ````text
    y
    ````
    --- stderr
    warning: the plan of turn 1 has 1 mistake:
    plan.md:13: EDIT none.txt: there is no file `none.txt`
        hint: use CREATE for a new file
    `teddy execute` records it as rejected and asks the model again.
    exit code 3

    turn 1 rejected [id]
    --- stderr
    The plan was not accepted: 1 mistake
    plan.md:13: EDIT none.txt: there is no file `none.txt`
        hint: use CREATE for a new file
    `teddy show 1 report.md` says what is wrong.
    exit code 3
    ");
    insta::assert_snapshot!(repo.plain(&repo.workflow().artifact("1", "report.md")), @"
    # Execution Report: Wrong
    - **Overall Status:** Rejected 🔴
    - **Original Plan:** [.teddy/demo/01/plan.md](/.teddy/demo/01/plan.md)
    - **Start Time:** 2026-01-02T03:04:05Z
    - **End Time:** 2026-01-02T03:04:05Z
    - **Actions:** 1 Total / 0 Approved / 1 Skipped
    - **Outcomes:** 0 Succeeded / 0 Failed

    ## User Prompt
    ````text
    x
    ````

    ## Validation Errors

    - line 13: EDIT none.txt: there is no file `none.txt`
      - **Hint:** use CREATE for a new file

    ## 1. Rationale
    ````text
    Wrong, because it is wanted.
    ````

    ## 2. Execution Summary

    ### Applied State Changes
    *(No state changes were proposed in the plan.)*

    ### Action Log

    #### `EDIT`
    - **Status:** Not run
    - **File Path:** [none.txt](/none.txt)
    - **Description:** Change none.txt.
    ");
    let alone = TestRepo::new();
    let out = alone.teddy_reads(&["execute", "-", "-y"], "# T\n");
    insta::assert_snapshot!(out.shown(&alone), @r"
    --- stderr
    The plan was not accepted: 2 mistakes
    plan.md:1: the plan has no `## Rationale`
        hint: add `## Rationale` with one code block before `## Action Plan`
    plan.md:1: the plan has no `## Action Plan`
        hint: add `## Action Plan` and at least one action
    warning: the plan is rejected and no session was started
    exit code 3
    ");
}

#[test]
fn a_mistake_has_one_owner() {
    let repo = project();
    let nul = plan("Wrong", &[create("b.txt", "a\0b\n")]);
    insta::assert_snapshot!(repo.workflow().plan_from("x", &nul).refused(), @r#"
    planned turn 1: "Wrong", 1 mistakes
    plan.md:17: CREATE b.txt: the plan has a NUL character
        hint: make binary files with EXECUTE, as with `base64 -d`
    "#);
    let empty = plan(
        "Wrong",
        &[execute(" "), crate::plans::edit("a.txt", "", "x")],
    );
    insta::assert_snapshot!(repo.workflow().plan_from("x", &empty).refused(), @r#"
    planned turn 1: "Wrong", 2 mistakes
    plan.md:13: EXECUTE: there is no command
        hint: put the command into the code block
    plan.md:24: EDIT a.txt: FIND is blank
        hint: FIND names the lines to change; to add lines, repeat a line next to them in FIND and in REPLACE
    "#);
    let repo = project();
    insta::assert_snapshot!(repo.workflow().plan_from("x", "").refused(), @r#"
    planned turn 1: "", 1 mistakes
    plan.md:1: the plan is empty
        hint: start with `# Title`
    "#);
}

#[test]
fn an_empty_message_is_refused_before_a_model_is_asked() {
    let repo = TestRepo::new();
    repo.workflow().new_session("demo").done();
    repo.reply("no plan");
    let refused = "--- stderr\nerror: the message is empty\nhint: `-m '<message>'` says what you want\nexit code 1\n";
    for args in [
        &["plan", "-m", ""][..],
        &["plan", "-m", " \n"],
        &["resume", "-m", ""],
        &["start", "-m", ""],
    ] {
        assert_eq!(repo.printed(args), refused, "{args:?}");
    }
    let out = repo.teddy_reads(&["plan", "-m", "-"], "\n");
    assert_eq!(out.shown(&repo), refused);
    assert_eq!(repo.git(&["for-each-ref", "refs/teddy/drafts"]), "");
}

#[test]
fn promise_b7_the_first_snapshot_of_a_session_says_what_comes_along_and_what_does_not() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    let key = format!("token = \"ghp_{}\"\n", "a9Zk3Qx7Lm2Vt8Rb5Nw4".repeat(2));
    repo.put("notes.txt", "x\n")
        .put("more/notes.txt", "y\n")
        .put("local.py", &key);
    let planned = |title: &str, name: &str| {
        let text = plan(title, &[create(name, "1\n")]);
        repo.workflow().plan_from("go", &text).done()
    };

    insta::assert_snapshot!(planned("One", "one.txt"), @r#"
    snapshots include 2 untracked files; use `.gitignore` or `snapshot.exclude` to leave files out
    `local.py` is in no snapshot: untracked, and looks as if it held a key (github token)
    planned turn 1: "One"
    "#);
    // Each file is named once.
    insta::assert_snapshot!(planned("One", "one.txt"), @r#"
    planned turn 1: "One"
    "#);
    insta::assert_snapshot!(repo.workflow().execute().done(), @r"
    ▶ 1. CREATE one.txt
      ✓ created, 1 line
    turn 1 executed
      added one.txt
    ");
    repo.put("other.py", &key);
    insta::assert_snapshot!(planned("Two", "two.txt"), @r#"
    `other.py` is in no snapshot: untracked, and looks as if it held a key (github token)
    planned turn 2: "Two"
    "#);

    let objects = repo.git(&["rev-list", "--objects", "--all"]);
    assert!(
        !objects.contains("local.py") && objects.contains("notes.txt"),
        "{objects}"
    );
    insta::assert_snapshot!(repo.printed(&["status"]), @r"
    Session demo, turn 1, on branch main
    A plan is waiting for turn 2: Two (1 action)
    Your files are as the newest turn left them
    In no snapshot, left as they are:
      local.py: untracked, and looks as if it held a key (github token)
      other.py: untracked, and looks as if it held a key (github token)
    --- stderr
    Next: teddy execute
    exit code 0
    ");
}

#[test]
fn promise_b7_a_file_with_a_key_is_not_edited_and_one_that_the_plan_makes_is() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    let key = format!("token = \"ghp_{}\"\n", "a9Zk3Qx7Lm2Vt8Rb5Nw4".repeat(2));
    repo.put("local.py", &key);
    let look = plan("Look", &[read("local.py")]);
    insta::assert_snapshot!(repo.workflow().execute_text(&look).refused(), @r"
    `local.py` is in no snapshot: untracked, and looks as if it held a key (github token)
    The plan was not accepted: 1 mistake
    plan.md:13: READ local.py: `local.py` is left out of the snapshot: too large, a secret, or unreadable
        hint: name another file; the user can add this one with `teddy context add`
    no model is configured to correct the plan
    turn 1 rejected
    plan.md:13: READ local.py: `local.py` is left out of the snapshot: too large, a secret, or unreadable
        hint: name another file; the user can add this one with `teddy context add`
    ");
    repo.run_plan(&plan("Make", &[create("made.py", &key), execute("true")]));
    assert_eq!(repo.read("made.py"), key);
}
