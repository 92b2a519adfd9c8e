//! `retry` asks the model of a recorded turn again. `verify --rerun` runs the turn again.

use crate::fake::{Fake, response, stream};
use crate::plans::{conclude, create, edit, execute, execute_with, invoke, plan, research};
use crate::screen::Screen;
use crate::support::TestRepo;
use crate::support::overlay::overlays;
use crate::support::scripted_user::{Scripted, ScriptedUser};

/// Turn 1 created `b.txt`.
fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.reply(&plan("Make b", &[create("b.txt", "b\n")]))
        .reply(&plan("Make c", &[create("c.txt", "c\n")]));
    for message in ["make b", "make c"] {
        repo.workflow().plan(message).done();
        repo.workflow().execute().done();
    }
    repo
}

#[test]
fn the_recorded_input_is_sent_again_byte_for_byte() {
    let repo = project();
    let fake = Fake::answering(&[stream(
        &plan("Make d", &[create("d.txt", "d\n")]),
        "stop",
        (1, 1),
    )]);
    // The files have changed since the input was sent.
    repo.write("a.txt", "changed\n");
    repo.configure(&format!(
        "models:\n  other: {{ kind: openai, id: x, base_url: \"{}/v1\" }}\n",
        fake.origin
    ));
    insta::assert_snapshot!(repo.printed(&["retry", "2", "--model", "other"]), @r#"
    # Make d
    - **Status:** Green 🟢
    - **Plan Type:** Implementation
    - **Agent:** Pathfinder

    ## Rationale
    ````text
    Make d, because it is wanted.
    ````

    ## Action Plan

    ### `CREATE`
    - **File Path:** [d.txt](/d.txt)
    - **Description:** Make d.txt.
    ````text
    d
    ````
    --- stderr
    Asking other with about [n] tokens, no price set
    your files are not as they were before the turn; the plan is checked against those of now. `teddy restore @` takes them back
    other: 1 token in, 1 out; no price is known
    Planned turn 2: "Make d". Next: `teddy execute`
    Session demo-retry-1 is in use now.
    exit code 0
    "#);
    let request = fake.requests().remove(0);
    let body: serde_json::Value =
        serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    let recorded = |name: &str| repo.git(&["show", &format!("teddy/sessions/demo:{name}")]);
    assert_eq!(
        body["messages"][0]["content"].as_str().unwrap().trim_end(),
        recorded("system_prompt.xml")
    );
    let sent = body["messages"][1]["content"].as_str().unwrap();
    assert_eq!(
        sent.trim_end(),
        format!("{}\n\n# Message\n\nmake c", recorded("input.md"))
    );
    for name in [
        "input.md",
        "user_prompt.txt",
        "system_prompt.xml",
        "turn.context",
    ] {
        assert_eq!(
            repo.git(&[
                "rev-parse",
                &format!("refs/teddy/drafts/demo-retry-1:{name}")
            ]),
            repo.git(&["rev-parse", &format!("teddy/sessions/demo:{name}")])
        );
    }
    assert_eq!(
        repo.git(&["rev-parse", "teddy/sessions/demo-retry-1"]),
        repo.git(&["rev-parse", "teddy/sessions/demo~1"])
    );
    repo.workflow().execute().done();
    assert_eq!(repo.read("d.txt"), "d\n");
}

#[test]
fn without_a_model_the_turns_own_is_asked_and_a_replay_says_the_same() {
    let repo = project();
    insta::assert_snapshot!(repo.workflow().retry("1", None).refused(), @r#"
    Asking replay:[dir]/answers with about [n] tokens
    your files are not as they were before the turn; the plan is checked against those of now. `teddy restore demo:0` takes them back
    planned turn 1: "Make b", 1 mistakes
    plan.md:13: CREATE b.txt: `b.txt` already exists
        hint: change it with EDIT, or say `- **Overwrite:** true` to replace it as a whole
    in use: demo-retry-1
    "#);
    assert_eq!(repo.workflow().status()["draft"]["title"], "Make b");
    repo.workflow().switch("demo").done();
    insta::assert_snapshot!(repo.workflow().retry("1", None).refused(), @r#"
    Asking replay:[dir]/answers with about [n] tokens
    your files are not as they were before the turn; the plan is checked against those of now. `teddy restore demo:0` takes them back
    planned turn 1: "Make b", 1 mistakes
    plan.md:13: CREATE b.txt: `b.txt` already exists
        hint: change it with EDIT, or say `- **Overwrite:** true` to replace it as a whole
    in use: demo-retry-2
    "#);
    repo.done(&["restore", "demo:0"]);
    assert!(!repo.path().join("b.txt").exists());
}

fn messages(request: &str) -> serde_json::Value {
    serde_json::from_str::<serde_json::Value>(request.split_once("\r\n\r\n").unwrap().1).unwrap()["messages"].take()
}

fn other(fake: &Fake) -> String {
    format!(
        "model: other\nmodels:\n  other: {{ kind: openai, id: x, base_url: \"{}/v1\" }}\n",
        fake.origin
    )
}

#[test]
fn a_turn_of_a_pipeline_is_asked_again_step_by_step() {
    let repo = project();
    let own = repo.beside("home/config/teddy/pipelines");
    std::fs::create_dir_all(&own).unwrap();
    let two = "steps: [{ name: think, prompt: Think }, { name: plan, prompt: 'Plan {{think}}' }]\n";
    std::fs::write(own.join("two.yaml"), two).unwrap();
    let answers = [
        "Thought.",
        &plan("Make d", &[create("d.txt", "d\n")]),
        "Thought.",
        &plan("Make e", &[create("e.txt", "e\n")]),
    ];
    let fake = Fake::answering(&answers.map(|answer| stream(answer, "stop", (1, 1))));
    repo.configure(&other(&fake));
    repo.done(&["plan", "-m", "make d", "--pipeline", "two"]);
    repo.workflow().execute().done();
    insta::assert_snapshot!(repo.workflow().retry("3", None).done(), @r#"
    Step 1 of 2: think
    Asking other with about [n] tokens, no price set
    Step 2 of 2: plan
    Asking other with about [n] tokens, no price set
    warning: the server read only 1 of about [n] tokens, so the model has not seen all of the input.
    Its context window is too small: for Ollama, start the server with `OLLAMA_CONTEXT_LENGTH=131072`, or set `num_ctx` in the Modelfile.
    your files are not as they were before the turn; the plan is checked against those of now. `teddy restore @` takes them back
    planned turn 3: "Make e"
    in use: demo-retry-1
    "#);
    let requests = fake.requests();
    assert_eq!(
        (messages(&requests[0]), messages(&requests[1])),
        (messages(&requests[2]), messages(&requests[3]))
    );
    for step in [
        "steps/01-think/input.md",
        "steps/02-plan/input.md",
        "steps/01-think/output.md",
    ] {
        let blob = |from: &str| repo.git(&["rev-parse", &format!("{from}:{step}")]);
        assert_eq!(
            blob("refs/teddy/drafts/demo-retry-1"),
            blob("teddy/sessions/demo"),
            "{step}"
        );
    }
    assert!(
        repo.git(&["show", "refs/teddy/drafts/demo-retry-1:meta.yaml"])
            .contains("pipeline: two")
    );
    repo.workflow().execute().done();
    assert_eq!(repo.read("e.txt"), "e\n");
    insta::assert_snapshot!(repo.workflow().rerun("@").done(), @r"
    ▶ 1. CREATE e.txt
      ✓ created, 1 line
    turn 3 same []
    ");
    // A pipeline that is not what it was sends something else, and that is said.
    std::fs::write(own.join("two.yaml"), two.replace("Think }", "Think hard }")).unwrap();
    let _ = repo.workflow().switch("demo");
    let fake = Fake::answering(&answers.map(|answer| stream(answer, "stop", (1, 1))));
    repo.configure(&other(&fake));
    insta::assert_snapshot!(repo.workflow().retry("3", None).refused(), @r#"
    Step 1 of 2: think
    Asking other with about [n] tokens, no price set
    Step 2 of 2: plan
    Asking other with about [n] tokens, no price set
    warning: the server read only 1 of about [n] tokens, so the model has not seen all of the input.
    Its context window is too small: for Ollama, start the server with `OLLAMA_CONTEXT_LENGTH=131072`, or set `num_ctx` in the Modelfile.
    pipeline `two` is not as it was: step `think` was sent something else
    your files are not as they were before the turn; the plan is checked against those of now. `teddy restore @` takes them back
    planned turn 3: "Make d", 1 mistakes
    plan.md:13: CREATE d.txt: `d.txt` already exists
        hint: change it with EDIT, or say `- **Overwrite:** true` to replace it as a whole
    in use: demo-retry-2
    "#);
}

#[test]
fn the_turn_of_an_invoked_agent_is_asked_again_as_that_agent() {
    let repo = project();
    repo.workflow().run_plan(&plan(
        "Hand over",
        &[invoke("Debugger", &["a.txt"], "Please look into it.")],
    ));
    let found = plan(
        "Found",
        &[
            create("rca.md", "it\n"),
            conclude(&["rca.md"], "It was this."),
        ],
    );
    let fake = Fake::answering(&[&found, &found].map(|answer| stream(answer, "stop", (9_000, 1))));
    repo.configure(&other(&fake));
    repo.workflow().plan("go on").done();
    repo.workflow().execute().done();
    repo.workflow().restore("3").done();
    insta::assert_snapshot!(repo.workflow().retry("4", None).done(), @r#"
    Asking other with about [n] tokens, no price set
    planned turn 4: "Found"
    in use: demo-retry-1
    "#);
    let requests = fake.requests();
    assert_eq!(messages(&requests[0]), messages(&requests[1]));
    let prompt = requests[1].contains("You are the Debugger.");
    let meta = repo.git(&["show", "refs/teddy/drafts/demo-retry-1:meta.yaml"]);
    assert!(
        prompt && meta.contains("agent: debugger") && meta.contains("caller_turn_id: "),
        "{meta}"
    );
    // What it concludes returns to the same caller.
    repo.workflow().execute().done();
    assert!(
        repo.workflow()
            .artifact("@", "next/meta.yaml")
            .contains("agent: assistant")
    );
    insta::assert_snapshot!(repo.workflow().rerun("@").done(), @r"
    ▶ 1. CREATE rca.md
      ✓ created, 1 line
    ▶ 2. CONCLUDE It was this.
      ✓ done
    turn 4 same []
    ");
}

#[test]
fn what_the_user_changed_is_what_runs_again() {
    let repo = project();
    std::fs::write(
        repo.beside("plan.md"),
        plan(
            "Two",
            &[create("d.txt", "d\n"), execute("echo more > more.txt")],
        ),
    )
    .unwrap();
    let mut screen = Screen::open(&repo, (100, 30), &["execute", "../plan.md"]);
    screen.wait_for_prompt("(q)uit ›");
    screen.press("m");
    screen.wait_for("2 of 2 actions");
    screen.press("jp");
    screen.wait_for("(e)dit or (c)lose");
    screen.press("e");
    screen.wait_for("› echo more > more.txt");
    screen.press("\x15echo other > other.txt\r");
    screen.wait_for("*modified");
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert!(repo.path().join("other.txt").exists() && !repo.path().join("more.txt").exists());
    repo.configure("worktree: {backend: checkout}\n");
    insta::assert_snapshot!(repo.printed(&["verify", "--rerun", "@", "-y"]), @"
    turn 3 same [id]
    --- stderr
    ▶ 1. CREATE d.txt
      ✓ created, 1 line
    ▶ 2. EXECUTE echo other > other.txt
      ✓ the command succeeded
    exit code 0
    ");
}

#[test]
fn a_retry_that_fails_leaves_the_session_in_use() {
    let repo = project();
    let fake = Fake::answering(&[response("401 Unauthorized", "", "{}")]);
    repo.configure(&other(&fake));
    let retried = |model: &str| repo.workflow().retry("@", Some(model)).refused();
    insta::assert_snapshot!(retried("other"), @r"
    Asking other with about [n] tokens, no price set
    error: session `demo-retry-1` was started, but has no plan: http://[host] does not accept the key: {}
    hint: check that the key is current and belongs to this address; `api_key_env` names its variable
    exit code 1
    ");
    assert_eq!(repo.workflow().status()["session"], "demo");
    insta::assert_snapshot!(retried("openai:x"), @r"
    error: model `openai:x` has no key: OPENAI_API_KEY is not set, empty or a placeholder
    hint: set OPENAI_API_KEY, or give the model `api_key_env` or `api_key_command` in your own configuration
    exit code 1
    ");
    insta::assert_snapshot!(repo.workflow().retry("0", None).refused(), @r"
    error: turn 0 has no input: it is the session's start
    exit code 1
    ");
    repo.workflow()
        .run_plan(&plan("By hand", &[create("e.txt", "e\n")]));
    insta::assert_snapshot!(repo.workflow().retry("@", None).refused(), @r"
    error: turn 3 has no recorded input: no model was asked
    exit code 1
    ");
}

#[test]
fn a_turn_of_another_session_is_asked_and_run_again_wherever_it_is_named() {
    let repo = project();
    repo.workflow().new_session("other").done();
    insta::assert_snapshot!(repo.workflow().retry("demo:1", None).refused(), @r#"
    Asking replay:[dir]/answers with about [n] tokens
    your files are not as they were before the turn; the plan is checked against those of now. `teddy restore demo:0` takes them back
    planned turn 1: "Make b", 1 mistakes
    plan.md:13: CREATE b.txt: `b.txt` already exists
        hint: change it with EDIT, or say `- **Overwrite:** true` to replace it as a whole
    in use: demo-retry-1
    "#);

    // A new worktree has no current session.
    let tree = repo.beside("tree");
    repo.git(&["worktree", "add", "-q", tree.to_str().unwrap()]);
    let there = || repo.workflow().below("../tree");
    insta::assert_snapshot!(there().rerun("demo:1").done(), @r"
    ▶ 1. CREATE b.txt
      ✓ created, 1 line
    turn 1 same []
    ");
    let fake = Fake::answering(&[response("401 Unauthorized", "", "{}")]);
    repo.configure(&other(&fake));
    insta::assert_snapshot!(there().retry("demo:1", Some("other")).refused(), @r"
    Asking other with about [n] tokens, no price set
    error: session `demo-retry-2` was started, but has no plan: http://[host] does not accept the key: {}
    hint: check that the key is current and belongs to this address; `api_key_env` names its variable
    exit code 1
    ");
    insta::assert_snapshot!(repo.teddy_in(&tree, &["log"]).shown(&repo), @r"
    --- stderr
    error: no session is in use here
    hint: `teddy start '<what you want>'` or `teddy new <name>` starts one, `teddy sessions` lists them, `-s <name>` names one
    exit code 1
    ");
    insta::assert_snapshot!(there().retry("demo:1", None).done(), @r#"
    Asking replay:[dir]/answers with about [n] tokens
    planned turn 1: "Make b"
    in use: demo-retry-3
    "#);
}

#[test]
fn a_plan_that_runs_again_makes_the_same_tree() {
    let repo = project();
    repo.workflow().add(&["a.txt"]);
    repo.run_plan(&plan(
        "More",
        &[
            edit("a.txt", "one", "two"),
            create("x.sh", "ls\n"),
            execute("echo made > made.txt"),
        ],
    ));
    // `replay` does not depend on the current files.
    repo.write("a.txt", "mine\n");
    let before = repo.git(&["for-each-ref"]);
    let tree = repo.git(&["rev-parse", "teddy/sessions/demo^2^{tree}"]);
    let mut value = repo.json(&["verify", "--rerun", "3", "-y"], 0);
    // What commands can see depends on the machine.
    value.as_object_mut().unwrap().remove("unseen").unwrap();
    assert_eq!(
        value,
        serde_json::json!({
            "turn": 3,
            "same": true,
            "tree": tree,
            "expected": tree,
            "differences": [],
            "exit_codes": [],
        })
    );
    assert_eq!(repo.read("a.txt"), "mine\n");
    assert_eq!(repo.git(&["for-each-ref"]), before);
    assert!(!repo.git(&["worktree", "list"]).contains("_replay"));
}

#[test]
fn what_could_not_be_had_then_cannot_be_had_when_it_runs_again() {
    let repo = project();
    repo.configure("research: { engine: command, run: [sh, -c, 'exit 1'] }\n");
    let plan = plan("Look", &[research(&["how"]), create("x.txt", "x\n")]);
    insta::assert_snapshot!(repo.workflow().execute_text(&plan).refused(), @r"
    ▶ 1. RESEARCH how
      ✗ no result for `how`: the search engine cannot be asked: `sh` ended with exit status: 1: 
      - 2. skipped because an action before it failed
    turn 3 failed
    ");
    insta::assert_snapshot!(repo.workflow().rerun("@").done(), @r"
    ▶ 1. RESEARCH how
      ✗ no result for `how`: there was nothing when the turn ran
      - 2. skipped because an action before it failed
    turn 3 same []
    ");
    let page = format!(
        "### `READ`\n- **Resource:** [{0}]({0})\n- **Description:** Look at it.\n",
        "http://127.0.0.1:1/x"
    );
    let plan = crate::plans::plan("Read", &[page, create("y.txt", "y\n")]);
    insta::assert_snapshot!(repo.workflow().execute_text(&plan).refused(), @r"
    ▶ 1. READ http://[host]/x
      ✗ `http://[host]/x` cannot be read: `127.0.0.1` is not a public address (127.0.0.1); list it under the allowed hosts of your own configuration to fetch it
      - 2. skipped because an action before it failed
    turn 4 failed
    ");
    insta::assert_snapshot!(repo.workflow().rerun("@").done(), @r"
    ▶ 1. READ http://[host]/x
      ✗ `http://[host]/x` cannot be read: there was nothing when the turn ran
      - 2. skipped because an action before it failed
    turn 4 same []
    ");
    // What was found then is found again, though nothing is configured any more.
    repo.configure("research: { engine: command, run: [sh, -c, \"echo '[]'\"] }\n");
    repo.workflow().run_plan(&crate::plans::plan(
        "Find",
        &[research(&["how"]), create("z.txt", "z\n")],
    ));
    repo.configure("");
    insta::assert_snapshot!(repo.workflow().rerun("@").done(), @r"
    ▶ 1. RESEARCH how
      ✓ the query has results
    ▶ 2. CREATE z.txt
      ✓ created, 1 line
    turn 5 same []
    ");
}

#[test]
fn a_plan_that_does_something_else_each_time_is_found_out() {
    let repo = project();
    repo.run_plan(&plan(
        "Roll",
        &[execute("od -An -N8 -tx1 /dev/urandom > dice.txt")],
    ));
    repo.configure("worktree: {backend: checkout}\n");
    insta::assert_snapshot!(repo.printed(&["verify", "--rerun", "@", "-y"]), @"
    turn 3 different [id]
    --- stderr
    ▶ 1. EXECUTE od -An -N8 -tx1 /dev/urandom > dice.txt
      ✓ the command succeeded
      dice.txt
    exit code 1
    ");
}

/// Bug: over the user's files, which lacked them by then, the files were said to be still there.
#[test]
fn what_a_command_deleted_or_moved_is_gone_in_a_replay() {
    let repo = TestRepo::new()
        .file(".gitignore", "dist/\n")
        .file("a.txt", "a\n")
        .file("d/b.txt", "b\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    let script = "rm -r d; mkdir dist; mv a.txt dist";
    repo.run_plan(&plan("Clear", &[execute(script)]));
    repo.remove("dist/a.txt");
    for backend in ["auto", "checkout"] {
        repo.configure(&format!("worktree: {{backend: {backend}}}\n"));
        let rerun = repo.json(&["verify", "--rerun", "1", "-y"], 0);
        assert_eq!(rerun["same"], serde_json::json!(true), "{backend}: {rerun}");
    }
}

#[test]
fn a_replay_compares_exit_codes() {
    let repo = project();
    repo.configure("execute: {sandbox: off}\n");
    let code = repo.beside("code");
    std::fs::write(&code, "3\n").unwrap();
    let script = format!("exit $(cat {})", code.display());
    let action = execute_with("- **Allow Failure:** true\n", &script);
    repo.run_plan(&plan("One", &[action]));
    let same = repo.json(&["verify", "--rerun", "3", "-y"], 0);
    assert_eq!(
        (&same["same"], &same["exit_codes"]),
        (&serde_json::json!(true), &serde_json::json!([]))
    );
    std::fs::write(&code, "0\n").unwrap();
    insta::assert_snapshot!(repo.printed(&["verify", "--rerun", "3", "-y"]), @"
    turn 3 different [id]
    --- stderr
    ▶ 1. EXECUTE exit $(cat [dir]/code)
      ✓ the command succeeded
      action 1: exit code 0, in the turn 3
    exit code 1
    ");
    assert_eq!(
        repo.json(&["verify", "--rerun", "3", "-y"], 1)["exit_codes"],
        serde_json::json!([{ "action": 1, "expected": 3, "found": 0 }])
    );
}

#[test]
fn a_replay_says_what_it_could_not_see() {
    let repo = project();
    repo.write(".git/info/exclude", "*.ignored\n");
    repo.write("secret.pem", "key\n");
    repo.run_plan(&plan("One", &[execute("echo 1 > one.txt")]));
    let unseen = |turn: &str, settings: &str| {
        repo.configure(settings);
        repo.json(&["verify", "--rerun", turn, "-y"], 0)["unseen"].clone()
    };
    // The turn names a file that is in no snapshot.
    let checkout = "worktree: {backend: checkout}\nexecute: {network: false}\n";
    let files = serde_json::json!(["files-in-no-snapshot"]);
    assert_eq!(unseen("3", checkout), files);
    insta::assert_snapshot!(repo.printed(&["verify", "--rerun", "3", "-y"]), @"
    turn 3 same [id]
    --- stderr
    ▶ 1. EXECUTE echo 1 > one.txt
      ✓ the command succeeded
    The rerun cannot see files that are in no snapshot, such as ignored ones; the turn could.
    exit code 0
    ");

    repo.remove("secret.pem");
    repo.run_plan(&plan("Two", &[execute("echo 2 > two.txt")]));
    assert_eq!(unseen("4", checkout), serde_json::json!([]));
    // Bug: the rerun was said to miss ignored files that it saw.
    if overlays() {
        assert_eq!(unseen("4", ""), serde_json::json!(["present-files"]));
        repo.teddy(&["verify", "--rerun", "4", "-y"]).check(
            0,
            &["The rerun saw your present files where no snapshot has them"],
        );
    }
    // A plan without commands sees nothing but the files that it names.
    repo.workflow()
        .run_plan(&plan("Three", &[create("three.txt", "3\n")]));
    assert_eq!(unseen("5", ""), serde_json::json!([]));
}

#[test]
fn a_turn_in_which_nothing_ran_cannot_be_replayed() {
    let repo = project();
    repo.workflow().undo(1).done();
    insta::assert_snapshot!(repo.workflow().rerun("3").refused(), @r"
    error: no plan ran in turn 3: it is `restored`
    exit code 1
    ");
    insta::assert_snapshot!(repo.workflow().rerun("0").refused(), @r"
    error: no plan ran in turn 0: it is `started`
    exit code 1
    ");
}

#[test]
fn a_retry_omits_the_actions_that_the_user_omitted() {
    let repo = project();
    let two = plan("Two", &[create("d.txt", "d\n"), create("e.txt", "e\n")]);
    let first = ScriptedUser::deciding([Scripted::ApproveOnly(vec![0])]);
    insta::assert_snapshot!(repo.workflow().with(first).execute_text(&two).done(), @r#"
    review "Two": ApproveOnly([0])
    ▶ 1. CREATE d.txt
      ✓ created, 1 line
      - 2. skipped by the user
    turn 3 executed
      added d.txt
    "#);
    assert!(repo.path().join("d.txt").exists() && !repo.path().join("e.txt").exists());
    let approved = repo.workflow().artifact("@", "approved.md");
    assert!(
        approved.contains("d.txt") && !approved.contains("e.txt"),
        "{approved}"
    );
    insta::assert_snapshot!(repo.workflow().rerun("@").done(), @r"
    ▶ 1. CREATE d.txt
      ✓ created, 1 line
    turn 3 same []
    ");
}
