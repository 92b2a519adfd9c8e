//! The review of an agent's turn says what the agent ran, and shows its transcript.

use crate::screen::Screen;
use crate::scripted_agent::use_scripted_agent;
use crate::support::TestRepo;

/// Edits a file and runs commands, one with an escape sequence in its title.
const WORK: &str = r#"echo 2 > a.txt
ended() { update '{"sessionUpdate":"tool_call_update","toolCallId":"'"$1"'","status":"'"$2"'","rawOutput":'"$3"'}'; }
tool 1 'make test' execute in_progress; ended 1 failed '{"exit_code":2,"output":"1 of 3 failed"}'
tool 2 'Edit a.txt' edit in_progress; ended 2 completed '{}'
tool 3 'make \u001b[2Jtest' execute in_progress; ended 3 completed '{"exit_code":0,"output":"all passed"}'
message 'Fixed it.'"#;

/// A plan of the agent waits.
fn project(work: &str) -> TestRepo {
    let repo = TestRepo::on_disk().file("a.txt", "1\n");
    repo.commit("init");
    use_scripted_agent(&repo, work);
    repo.workflow().new_session("demo").done();
    repo.done(&["plan", "-m", "fix it"]);
    repo
}

fn review(repo: &TestRepo) -> Screen {
    let mut screen = Screen::open(repo, (80, 40), &["execute"]);
    screen.wait_for_prompt("(q)uit ›");
    screen
}

#[test]
fn the_review_says_what_the_agent_ran_and_t_shows_it() {
    let repo = project(WORK);
    let mut screen = review(&repo);
    insta::assert_snapshot!(screen.settled(), @r#"
    ▶ Reviewing Plan: "Fixed it"
      demo · turn 1
      The agent ran 2 commands, 1 failed
    ────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Fixed it.
     Changes: 1 file  +1 -1
      a.txt  +1 -1
        @@ -1 +1 @@
        -1
        +2
     Action Plan:
      - EDIT: 1 file
    ────────────────────────────────────────────────────────────────────────────────
    enter approves · d diff · t transcript · c comment · ?
    Execute this plan? (a)pprove / (r)ead / (m)odify / (e)dit / (s)kip / (q)uit ›
    "#);
    screen.press("?");
    screen.wait_for("its transcript");
    insta::assert_snapshot!(screen.settled(), @r#"
    ▶ Reviewing Plan: "Fixed it"
      demo · turn 1
      The agent ran 2 commands, 1 failed
    ────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Fixed it.
     Changes: 1 file  +1 -1
      a.txt  +1 -1
        @@ -1 +1 @@
        -1
        +2
     Action Plan:
      - EDIT: 1 file
    ────────────────────────────────────────────────────────────────────────────────
    enter approves · d diff · t transcript · c comment · ?
    Execute this plan? (a)pprove / (r)ead / (m)odify / (e)dit / (s)kip / (q)uit › ?
      a      approve: run what is shown, your changes included
      r      read the full plan
      m      switch parts off and change them, with a preview of each
      d      all differences
      t      what the agent did: its transcript
      c      comment on lines of the differences
      e      edit the plan in your editor
      s      decline the plan: send your comments, or say what to do instead
      q      leave; the plan waits
      enter  the same as a
      ctrl-d the same as q
      ctrl-z suspend; fg asks again
    Execute this plan? (a)pprove / (r)ead / (m)odify / (e)dit / (s)kip / (q)uit ›
    "#);
    screen.press("t");
    screen.wait_for("j/k");
    let changing = [
        (r"20\d\d-[^`]+Z", "[time]"),
        // A long path takes several lines.
        (r"(?s)Program: .+?(- Conversation)", "Program: [path]\n$1"),
        (r"\d+/\d+ j/k", "[lines] j/k"),
        (r"\n{3,}", "\n\n"),
    ];
    insta::with_settings!({filters => changing}, {
        insta::assert_snapshot!(screen.settled(), @r#"
        transcript.md
        # Transcript

        - Agent: `scripted 1.2.3`
        - Program: [path]
        - Conversation: `s-1`
        - Began: `[time]`
        - Ended: `[time]`
        - Tokens: 100 sent (0 from a cache), 20 written

        ## Course

        - `make test` (`execute`): failed, exit code 2

        ```text
        1 of 3 failed
        ```

        - `Edit a.txt` (`edit`): completed
        - `make \u{1b}[2Jtest` (`execute`): completed, exit code 0

        ```text
        all passed
        ```

        ```text
        Fixed it.
        ```

        [lines] j/k, space, PgUp/PgDn, g/G scroll · / search, n/N next · ? help · q back
        "#);
    });
    screen.press("q");
    screen.wait_for_prompt("(q)uit ›");
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(repo.read("a.txt"), "2\n");
}

#[test]
fn t_does_nothing_without_a_transcript() {
    let repo = TestRepo::new().file("a.txt", "1\n");
    repo.commit("init");
    let plan = crate::plans::plan("One", &[crate::plans::create("b.txt", "b\n")]);
    std::fs::write(repo.beside("plan.md"), plan).unwrap();
    let mut screen = Screen::open(&repo, (80, 24), &["execute", "../plan.md"]);
    screen.wait_for_prompt("(q)uit ›");
    let before = screen.settled();
    screen.press("t");
    assert_eq!(screen.settled(), before);
    screen.press("q");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
}

#[test]
fn an_agent_that_ran_nothing_gets_no_line_and_json_has_the_counts() {
    let repo = project("echo 2 > a.txt; message 'Fixed it.'");
    let shown = review(&repo).settled();
    assert!(
        shown.contains("t transcript") && !shown.contains("The agent ran"),
        "{shown}"
    );
    let counts = |repo: &TestRepo| repo.json(&["execute"], 1)["review"]["agent_commands"].clone();
    let none = serde_json::json!({ "ran": 0, "failed": 0, "is_minimum": false });
    assert_eq!(counts(&repo), none);
    let two = serde_json::json!({ "ran": 2, "failed": 1, "is_minimum": false });
    assert_eq!(counts(&project(WORK)), two);
}
