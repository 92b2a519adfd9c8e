//! A message and files on the command line, which start a session if there is none.

use serde_json::json;

use crate::plans::{conclude, create, execute, plan};
use crate::support::TestRepo;

/// A project without a session.
fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "one\n")
        .file("src/b.txt", "two\n");
    repo.commit("init");
    repo
}

/// A plan that creates a file and concludes.
fn make(name: &str) -> String {
    plan(
        &format!("Make {name}"),
        &[
            create(&format!("{name}.txt"), "x\n"),
            conclude(&[], &format!("Made {name}.")),
        ],
    )
}

/// Returns the session's list.
fn listed(repo: &TestRepo) -> Vec<String> {
    let rows = repo.workflow().resources(0);
    let session = rows
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["scope"] == "session");
    session
        .map(|row| row["resource"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn start_takes_a_message_and_files() {
    let repo = project();
    repo.reply(&make("c"));
    let start = ["start", "-y", "add a form", "a.txt", "src"];
    insta::assert_snapshot!(repo.printed(&start), @r#"
    turn 1 executed [id]
    Made c.
    --- stderr
    Started session add-a-form.
    Added a.txt (session)
    Added src (session)
    Asking replay:[dir]/answers with about [n] tokens
    ▶ Reviewing Plan: "Make c"
      add-a-form · turn 1 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Make c, because it is wanted.
     Changes: 1 file  +1
      c.txt  +1  new file
        +x
     Action Plan:
      - CREATE: 1 file
      - CONCLUDE: 1 message
          Made c.
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. CREATE c.txt
      ✓ created, 1 line
    ▶ 2. CONCLUDE Made c.
      ✓ done
    Updated your files: c.txt (new)
    The work is done, says the model:
    exit code 0
    "#);
    assert_eq!(
        repo.workflow().artifact("1", "user_prompt.txt"),
        "add a form"
    );
    assert_eq!(listed(&repo), ["a.txt", "src/b.txt"]);
}

#[test]
fn a_single_word_is_the_message_and_an_option_gives_the_name() {
    let repo = project();
    repo.reply(&make("c"));
    insta::assert_snapshot!(repo.printed(&["start", "-y", "--name", "add-form", "add a form"]), @r#"
    turn 1 executed [id]
    Made c.
    --- stderr
    Started session add-form.
    Asking replay:[dir]/answers with about [n] tokens
    ▶ Reviewing Plan: "Make c"
      add-form · turn 1 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Make c, because it is wanted.
     Changes: 1 file  +1
      c.txt  +1  new file
        +x
     Action Plan:
      - CREATE: 1 file
      - CONCLUDE: 1 message
          Made c.
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. CREATE c.txt
      ✓ created, 1 line
    ▶ 2. CONCLUDE Made c.
      ✓ done
    Updated your files: c.txt (new)
    The work is done, says the model:
    exit code 0
    "#);
    let other = ["start", "-y", "--name", "other", "-m", "go", "-f", "a.txt"];
    insta::assert_snapshot!(repo.printed(&other), @r"
    turn 1 recorded [id]
    turn 2 executed [id]
    no more answers
    --- stderr
    Started session other.
    Added a.txt (session)
    Asking replay:[dir]/answers with about [n] tokens
    The model changed files that it had not read: showing it `c.txt` and asking again.
    Asking replay:[dir]/answers with about [n] tokens
    Your files are unchanged.
    The model answered without a plan:
    exit code 5
    ");
    let refused =
        ["add-form", "add_form"].map(|name| repo.printed(&["start", "--name", name, "-m", "go"]));
    insta::assert_snapshot!(refused.concat(), @r"
    --- stderr
    error: there is a session `add-form` already
    hint: `teddy switch add-form` continues it; or choose another name
    exit code 1
    --- stderr
    error: `add_form` is not a valid session name: use lower-case letters, digits and single hyphens, such as `add-auth`
    exit code 2
    ");
}

#[test]
fn plan_and_resume_start_a_session_where_none_is_in_use() {
    let repo = project();
    repo.reply(&make("c")).reply(&make("d")).reply(&make("e"));
    insta::assert_snapshot!(repo.printed(&["plan", "make c", "a.txt"]), @r#"
    # Make c
    - **Status:** Green 🟢
    - **Plan Type:** Implementation
    - **Agent:** Pathfinder

    ## Rationale
    ````text
    Make c, because it is wanted.
    ````

    ## Action Plan

    ### `CREATE`
    - **File Path:** [c.txt](/c.txt)
    - **Description:** Make c.txt.
    ````text
    x
    ````

    ### `CONCLUDE`

    Made c.
    --- stderr
    Started session make-c.
    Added a.txt (session)
    Asking replay:[dir]/answers with about [n] tokens
    Planned turn 1: "Make c". Next: `teddy execute`
    exit code 0
    "#);
    assert_eq!(repo.workflow().status()["state"], "planned");
    repo.workflow().execute().done();
    // In a session, the text is its next message.
    insta::assert_snapshot!(repo.printed(&["resume", "-y", "now d"]), @r#"
    turn 2 executed [id]
    Made d.
    --- stderr
    Asking replay:[dir]/answers with about [n] tokens
    ▶ Reviewing Plan: "Make d"
      make-c · turn 2 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Make d, because it is wanted.
     Changes: 1 file  +1
      d.txt  +1  new file
        +x
     Action Plan:
      - CREATE: 1 file
      - CONCLUDE: 1 message
          Made d.
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. CREATE d.txt
      ✓ created, 1 line
    ▶ 2. CONCLUDE Made d.
      ✓ done
    Updated your files: d.txt (new)
    The work is done, says the model:
    exit code 0
    "#);
    insta::assert_snapshot!(repo.printed(&["now e", "-y"]), @r#"
    turn 3 executed [id]
    Made e.
    --- stderr
    Asking replay:[dir]/answers with about [n] tokens
    ▶ Reviewing Plan: "Make e"
      make-c · turn 3 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Make e, because it is wanted.
     Changes: 1 file  +1
      e.txt  +1  new file
        +x
     Action Plan:
      - CREATE: 1 file
      - CONCLUDE: 1 message
          Made e.
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. CREATE e.txt
      ✓ created, 1 line
    ▶ 2. CONCLUDE Made e.
      ✓ done
    Updated your files: e.txt (new)
    The work is done, says the model:
    exit code 0
    "#);
    assert_eq!(repo.workflow().sessions().as_array().map(Vec::len), Some(1));
}

#[test]
fn a_message_or_a_plan_from_a_file_starts_a_session() {
    let repo = project();
    repo.reply(&make("c"));
    insta::assert_snapshot!(repo.printed(&["make it so", "-y"]), @r#"
    turn 1 executed [id]
    Made c.
    --- stderr
    Started session make-it-so.
    Asking replay:[dir]/answers with about [n] tokens
    ▶ Reviewing Plan: "Make c"
      make-it-so · turn 1 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Make c, because it is wanted.
     Changes: 1 file  +1
      c.txt  +1  new file
        +x
     Action Plan:
      - CREATE: 1 file
      - CONCLUDE: 1 message
          Made c.
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. CREATE c.txt
      ✓ created, 1 line
    ▶ 2. CONCLUDE Made c.
      ✓ done
    Updated your files: c.txt (new)
    The work is done, says the model:
    exit code 0
    "#);
    let repo = project();
    let out = repo.teddy_reads(&["plan", "--from", "-"], make("c"));
    insta::assert_snapshot!(out.shown(&repo), @r#"
    # Make c
    - **Status:** Green 🟢
    - **Plan Type:** Implementation
    - **Agent:** Pathfinder

    ## Rationale
    ````text
    Make c, because it is wanted.
    ````

    ## Action Plan

    ### `CREATE`
    - **File Path:** [c.txt](/c.txt)
    - **Description:** Make c.txt.
    ````text
    x
    ````

    ### `CONCLUDE`

    Made c.
    --- stderr
    Started session make-c.
    Planned turn 1: "Make c". Next: `teddy execute`
    exit code 0
    "#);
}

#[test]
fn nothing_is_started_for_what_cannot_go_on() {
    let repo = project();
    let without_model = repo.printed(&["plan", "make c"]);
    repo.reply(&make("c"));
    let refused = [
        &["plan", "make c", "-f", "a.tx"][..],
        &["plan", "make", "it", "so"],
        &["plan", "make it", "a.txy"],
        &["plan"],
        &["resume"],
        &["plan", "x y", "-a", "nobody"],
    ]
    .map(|args| format!("$ {}\n{}", args.join(" "), repo.printed(args)));
    insta::assert_snapshot!(format!("{without_model}{}", refused.concat()), @r#"
    --- stderr
    error: no model is configured
    hint: `teddy setup` sets one up, `--model` names one for this call, and `teddy plan --from <file>` takes an answer from elsewhere
    exit code 1
    $ plan make c -f a.tx
    --- stderr
    error: there is no file `a.tx`
    hint: did you mean `a.txt`?
    exit code 2
    $ plan make it so
    --- stderr
    error: there is no file `it`
    hint: a message of several words needs quotes, as in `"add a form"`
    exit code 2
    $ plan make it a.txy
    --- stderr
    error: there is no file `a.txy`
    hint: did you mean `a.txt`? Otherwise, a message of several words needs quotes, as in `"add a form"`
    exit code 2
    $ plan
    --- stderr
    error: no session is in use here
    hint: `teddy start '<what you want>'` or `teddy new <name>` starts one, `teddy sessions` lists them, `-s <name>` names one
    exit code 1
    $ resume
    --- stderr
    error: no session is in use here
    hint: `teddy start '<what you want>'` or `teddy new <name>` starts one, `teddy sessions` lists them, `-s <name>` names one
    exit code 1
    $ plan x y -a nobody
    --- stderr
    error: there is no agent `nobody`; available: architect, assistant, debugger, developer, pathfinder, prototyper
    hint: `teddy get-prompt` lists the agents
    exit code 1
    "#);
    assert_eq!(repo.workflow().sessions(), json!([]));
}

#[test]
fn the_agent_can_change_on_the_way() {
    let repo = project();
    repo.reply(&plan("Run", &[execute("true")]))
        .reply(&plan("Run", &[execute("true")]))
        .reply(&make("c"));
    let agent = |turn: &str| repo.workflow().turn(turn)["agent"].clone();
    repo.done(&["start", "-y", "go on"]);
    assert_eq!(agent("1"), "assistant");
    let on = [
        "-c",
        "execute.sandbox=off",
        "resume",
        "-y",
        "-a",
        "developer",
        "and on",
    ];
    insta::assert_snapshot!(repo.printed(&on), @r#"
    turn 2 executed [id]
    --- stderr
    The agent developer plans from now on.
    Asking replay:[dir]/answers with about [n] tokens
    ▶ Reviewing Plan: "Run"
      go-on · turn 2 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Run, because it is wanted.
     Look at:
      ⚠ commands run with all your rights (not sandboxed)
     Action Plan:
      - EXECUTE: 1 command (not sandboxed)
        $ true
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. EXECUTE true
      ✓ the command succeeded
    Your files are unchanged.
    exit code 0
    "#);
    assert_eq!(agent("2"), "developer");
    repo.workflow().plan("and on").done();
    insta::assert_snapshot!(repo.printed(&["plan", "-a", "architect", "again"]), @r"
    --- stderr
    error: a plan of the agent developer is waiting
    hint: `teddy execute` runs it
    exit code 1
    ");
    repo.workflow().execute().done();
    assert_eq!(agent("3"), "developer");
    assert!(
        repo.workflow()
            .artifact("3", "system_prompt.xml")
            .starts_with("<developer>")
    );
    repo.workflow().verify().done();
}

#[test]
fn work_that_is_left_goes_on_until_it_is_done() {
    let repo = project();
    repo.reply(&plan("Test", &[execute("test -e c.txt")]))
        .reply(&make("c"));
    insta::assert_snapshot!(repo.printed(&["-c", "execute.sandbox=off", "start", "-y", "make the test pass"]), @r#"
    turn 1 failed [id]
    turn 2 executed [id]
    Made c.
    --- stderr
    Started session make-the-test-pass.
    Asking replay:[dir]/answers with about [n] tokens
    ▶ Reviewing Plan: "Test"
      make-the-test-pass · turn 1 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Test, because it is wanted.
     Look at:
      ⚠ commands run with all your rights (not sandboxed)
     Action Plan:
      - EXECUTE: 1 command (not sandboxed)
        $ test -e c.txt
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. EXECUTE test -e c.txt
      ✗ the command failed with exit code 1
    Your files are unchanged.
    Asking replay:[dir]/answers with about [n] tokens
    ▶ Reviewing Plan: "Make c"
      make-the-test-pass · turn 2 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Make c, because it is wanted.
     Changes: 1 file  +1
      c.txt  +1  new file
        +x
     Action Plan:
      - CREATE: 1 file
      - CONCLUDE: 1 message
          Made c.
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. CREATE c.txt
      ✓ created, 1 line
    ▶ 2. CONCLUDE Made c.
      ✓ done
    Updated your files: c.txt (new)
    The work is done, says the model:
    exit code 0
    "#);
    let meta = repo.workflow().artifact("2", "meta.yaml");
    assert!(meta.contains("origin: loop\n"), "{meta}");
}
