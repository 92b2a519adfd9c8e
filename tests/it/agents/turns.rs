//! Turns of models that edit files themselves, from the request to the user's files and back.

use teddy::host::sandbox::{Availability, availability};

use crate::plans::{create, plan, read};
use crate::screen::Screen;
use crate::scripted_agent::{scripted_agent, scripted_command, use_scripted_agent};
use crate::support::{Output, TestRepo};

/// A project whose model is an ACP agent that does this work.
fn project(work: &str) -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "one\ntwo\nthree\n")
        .file("old.txt", "old\n");
    repo.commit("init");
    use_scripted_agent(&repo, work);
    repo
}

fn folder(repo: &TestRepo) -> std::path::PathBuf {
    let folder = repo.beside("agent");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn artifact(repo: &TestRepo, name: &str) -> String {
    repo.git(&["show", &format!("teddy/sessions/demo:{name}")])
}

/// Changes of every kind.
const WORK: &str = "printf 'one\\n2\\nthree\\n' > a.txt; rm old.txt; printf 'new\\n' > new.txt; printf '\\000\\001' > blob.bin; ln -s a.txt link; printf '#!/bin/sh\\n' > run.sh; chmod +x run.sh; message 'Reworked it. All is well.'";

#[test]
fn what_an_agent_did_is_a_plan_that_gives_exactly_that() {
    let repo = project(WORK);
    repo.write("mine.txt", "not committed\n");
    repo.done(&["new", "demo"]);
    repo.teddy(&["plan", "-m", "rework it"])
        .check(0, &["Planned turn 1: \"Reworked it\""]);
    assert_eq!(repo.read("a.txt"), "one\ntwo\nthree\n");
    assert!(!repo.path().join("new.txt").exists());

    repo.done(&["execute", "-y"]);
    assert_eq!(
        (
            repo.read("a.txt"),
            repo.read("new.txt"),
            repo.read("mine.txt")
        ),
        (
            "one\n2\nthree\n".into(),
            "new\n".into(),
            "not committed\n".into()
        )
    );
    assert!(!repo.path().join("old.txt").exists());
    assert_eq!(std::fs::read(repo.path().join("blob.bin")).unwrap(), [0, 1]);
    assert_eq!(
        std::fs::read_link(repo.path().join("link")).unwrap(),
        std::path::Path::new("a.txt")
    );
    let mode = std::fs::metadata(repo.path().join("run.sh")).unwrap();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o111,
        0o111
    );

    let meta = artifact(&repo, "meta.yaml");
    for words in [
        "asked: scripted",
        "program: scripted",
        "version: 1.2.3",
        "made: true",
    ] {
        assert!(meta.contains(words), "{words}: {meta}");
    }
    assert!(artifact(&repo, "plan.md").contains("All is well."));
    assert!(artifact(&repo, "transcript.jsonl").contains("session/prompt"));
    assert!(artifact(&repo, "transcript.md").contains("All is well."));
    repo.teddy(&["show", "@", "transcript"])
        .check(0, &["All is well."]);
    repo.done(&["verify"]);
    repo.done(&["undo"]);
    assert_eq!(
        (repo.read("a.txt"), repo.read("old.txt")),
        ("one\ntwo\nthree\n".into(), "old\n".into())
    );
    assert!(!repo.path().join("blob.bin").exists());
    repo.done(&["redo"]);
    assert_eq!(std::fs::read(repo.path().join("blob.bin")).unwrap(), [0, 1]);
    repo.done(&["verify", "--rerun", "1"]);
}

/// Bug: the reason was that of a file in no snapshot.
#[test]
fn a_file_in_place_of_an_empty_directory_is_not_in_the_plan_of_an_agent() {
    let repo = project("rm -rf logs; echo agent > logs; echo new > new.txt; message 'Done.'");
    std::fs::create_dir(repo.path().join("logs")).unwrap();
    repo.done(&["new", "demo"]);
    let left_out = "`logs` is not in the plan: your files have a directory there\n";
    repo.teddy(&["plan", "-m", "log"])
        .check(0, &[left_out, "Planned turn 1"]);
}

#[test]
fn an_ignored_file_of_the_users_is_not_in_the_plan_of_an_agent_that_lifts_the_rule() {
    let repo = project(
        ": > .gitignore; echo agent >> my.log; echo new > new.txt; message 'Logs are tracked.'",
    );
    repo.write(".gitignore", "*.log\n");
    repo.write("my.log", "mine\n");
    repo.done(&["new", "demo"]);
    repo.teddy(&["plan", "-m", "track the logs"])
        .check(0, &["`my.log` is not in the plan: ", "Planned turn 1"]);
    repo.done(&["execute", "-y"]);
    assert_eq!(
        [".gitignore", "my.log", "new.txt"].map(|path| repo.read(path)),
        ["", "mine\n", "new\n"]
    );
}

/// Regression: the plan named the bytes of a checkout, and the session's worktree still had those
/// from before, so it failed.
#[test]
fn a_file_whose_line_ends_were_declared_since_can_be_deleted() {
    let repo = project("");
    repo.done(&["new", "demo"]);
    repo.run_plan(&plan("Read it", &[read("old.txt")]));
    for work in [
        "printf 'new\\n' > new.txt; message 'Made it.'",
        "echo '*.txt text eol=crlf' > .gitattributes; message 'Declared them.'",
        "rm old.txt new.txt; message 'Deleted them.'",
    ] {
        use_scripted_agent(&repo, work);
        repo.done(&["plan", "-m", "go on"]);
        repo.done(&["execute", "-y"]);
    }
    let is_there = |file: &str| repo.path().join(file).exists();
    assert_eq!(["old.txt", "new.txt"].map(is_there), [false, false]);
}

/// Bug: below the project, the pipe of the agent was another one in the overlay, and it read nothing.
#[test]
fn an_agent_and_a_command_get_their_input_whatever_the_folder_for_temporary_files_is() {
    let repo = project("echo new > new.txt; message 'Made it.'");
    repo.put(
        repo.beside("two.md"),
        plan("Make two", &[create("two.txt", "2\n")]),
    );
    let two = repo.beside("two.md");
    let model = format!(
        "models.two={{kind: command, run: [sh, -c, \"grep -q 'rework it' && cat {}\"]}}",
        two.display()
    );
    std::fs::create_dir(repo.path().join("tmp")).unwrap();
    let inside = repo.path().join("tmp");
    let dirs = ["", "tmp", "/nowhere", inside.to_str().unwrap()];
    for (at, dir) in dirs.into_iter().enumerate() {
        let session = format!("s{at}");
        repo.done(&["new", &session]);
        for model in [&[][..], &["-c", &model, "--model", "two"]] {
            let args = [&["plan", "-m", "rework it"][..], model].concat();
            let mut command = repo.teddy_command(&args);
            command.current_dir(repo.path()).env("TMPDIR", dir);
            let out = Output::of(&mut command);
            assert_eq!(out.code, 0, "{dir}: {out}");
        }
        let mut command = repo.teddy_command(&["execute", "-y"]);
        command.current_dir(repo.path()).env("TMPDIR", dir);
        Output::of(&mut command).check(0, &[]);
        repo.done(&["undo"]);
    }
    assert_eq!(std::fs::read_dir(inside).unwrap().count(), 0);
}

/// Regression: half of the work was applied with `-y`, and nothing said so.
#[test]
fn an_agent_that_stopped_early_is_not_approved_unseen() {
    let repo = project("echo half > half.txt; message 'I will not.'; stop=refusal");
    repo.done(&["new", "demo"]);
    insta::assert_snapshot!(repo.printed(&["resume", "-m", "add all", "-y"]), @"
    --- stderr
    Asking scripted with about [n] tokens, no price set
      scripted 1.2.3 is at work
      I will not.
      the agent stopped early: refusal
    scripted: stopped early, [time]
    the agent stopped early: refusal; the plan can be a part of the work
    Nothing was run: the plan of turn 1 is in doubt, and waits for a person. `teddy execute` without `-y` reviews it.
    exit code 5
    ");
    assert!(!repo.path().join("half.txt").exists());

    let mut screen = Screen::open(&repo, (120, 40), &["execute"]);
    screen.wait_for("the agent stopped early: refusal; the plan can be a part of the work");
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(repo.read("half.txt"), "half\n");
    assert!(artifact(&repo, "meta.yaml").contains("stop: refusal"));
    let transcript = artifact(&repo, "transcript.md");
    assert!(
        transcript.contains("the agent stopped early: refusal"),
        "{transcript}"
    );
}

/// A message of the agent needs no approval, but not that of one that did not finish.
#[test]
fn an_agent_that_is_cancelled_by_itself_is_reviewed() {
    let repo = project("message 'All is done.'; stop=cancelled");
    repo.done(&["new", "demo"]);
    let mut screen = Screen::open(&repo, (120, 40), &["resume", "-m", "add all"]);
    screen.wait_for("the agent stopped early: cancelled; the plan can be a part of the work");
    screen.press("q");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
}

#[test]
fn an_agent_that_only_talks_is_a_message() {
    let repo = project("message 'Which form do you mean?'");
    repo.done(&["new", "demo"]);
    insta::assert_snapshot!(repo.printed(&["resume", "-m", "add a form", "-y"]), @r#"
    turn 1 executed [id]
    Which form do you mean?
    --- stderr
    Asking scripted with about [n] tokens, no price set
      scripted 1.2.3 is at work
      Which form do you mean?
    scripted: done, [time]
    ▶ Reviewing Plan: "Which form do you mean?"
      demo · turn 1
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      The agent changed no files. Its message is below.
     Action Plan:
      - CHAT_WITH_USER: 1 message
          Which form do you mean?
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. CHAT_WITH_USER Which form do you mean?
      ✓ asks the user
    Your files are unchanged.
    warning: the model waits for your answer:
    hint: `teddy resume -m '<answer>'` answers and continues
    exit code 5
    "#);
    assert_eq!(repo.tree(), repo.git(&["rev-parse", "HEAD^{tree}"]));
}

#[test]
fn an_agent_that_only_explains_asks_nothing() {
    let repo = project("message 'It is a parser.'");
    repo.done(&["new", "demo"]);
    insta::assert_snapshot!(repo.printed(&["plan", "-m", "what is it?"]), @r#"
    # It is a parser

    ## Rationale
    ````text
    The agent changed no files. Its message is below.
    ````

    ## Action Plan

    ### `CONCLUDE`
    It is a parser.
    --- stderr
    Asking scripted with about [n] tokens, no price set
      scripted 1.2.3 is at work
      It is a parser.
    scripted: done, [time]
    scripted: 100 tokens in, 20 out; no price is known
    Planned turn 1: "It is a parser". Next: `teddy execute`
    exit code 0
    "#);
    insta::assert_snapshot!(repo.printed(&["execute", "-y"]), @r#"
    turn 1 executed [id]
    It is a parser.
    --- stderr
    ▶ Reviewing Plan: "It is a parser"
      demo · turn 1
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      The agent changed no files. Its message is below.
     Action Plan:
      - CONCLUDE: 1 message
          It is a parser.
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. CONCLUDE It is a parser.
      ✓ done
    Your files are unchanged.
    The work is done, says the model:
    exit code 0
    "#);
}

#[test]
fn the_user_looks_at_each_file_and_switches_one_off() {
    let repo = project("echo 1 > one.txt; echo 2 > two.txt; message 'Made two.'");
    repo.done(&["new", "demo"]);
    repo.done(&["plan", "-m", "two files"]);
    let mut screen = Screen::open(&repo, (100, 40), &["execute"]);
    screen.wait_for("two.txt");
    screen.press("m");
    screen.wait_for("two.txt");
    screen.press(" ");
    screen.wait_for("1 of 2");
    screen.press("a");
    assert_eq!(screen.end(), 0);
    let is_there = |name: &str| repo.path().join(name).exists();
    assert!(is_there("one.txt") != is_there("two.txt"));
}

/// Whether the last request resumed a conversation, and reported the result of the agent's changes.
fn prompt(repo: &TestRepo) -> (bool, bool) {
    let told = repo.git(&["show", "refs/teddy/drafts/demo:meta.yaml"]);
    let files = repo.git(&["ls-tree", "--name-only", "refs/teddy/drafts/demo"]);
    (told.contains("resumed: true"), files.contains("told.md"))
}

#[test]
fn t26_a_conversation_of_another_users_turn_is_not_resumed() {
    let repo = project("echo 1 >> one.txt; message 'Made one.'");
    repo.done(&["new", "demo"]);
    repo.done(&["plan", "-m", "one"]);
    repo.done(&["execute", "-y"]);
    let record = repo.path().join(".git/teddy/tips/demo");
    let own = std::fs::read(&record).unwrap();
    std::fs::remove_file(&record).unwrap();
    repo.done(&["plan", "-m", "and two"]);
    assert_eq!(prompt(&repo), (false, false));
    std::fs::write(&record, own).unwrap();
    repo.done(&["plan", "-m", "and two"]);
    assert_eq!(prompt(&repo), (true, true));
}

#[test]
fn a_conversation_goes_on_with_what_became_of_the_changes_and_else_begins_anew() {
    let repo = project("echo 1 >> one.txt; message 'Made one.'");
    repo.done(&["new", "demo"]);
    repo.done(&["plan", "-m", "one"]);
    assert_eq!(prompt(&repo), (false, false));
    repo.done(&["execute", "-y"]);
    repo.write("a.txt", "changed by the user\n");
    repo.done(&["plan", "-m", "and two"]);
    assert_eq!(prompt(&repo), (true, true));
    let told = repo.git(&["show", "refs/teddy/drafts/demo:told.md"]);
    for words in ["the approved ones are in the files", "- a.txt", "and two"] {
        assert!(told.contains(words), "{words}: {told}");
    }

    // After an undo the agent's conversation is outdated, so it is not resumed.
    repo.done(&["execute", "-y"]);
    repo.done(&["undo"]);
    repo.done(&["plan", "-m", "once more"]);
    assert_eq!(prompt(&repo), (false, false));
}

#[test]
fn the_users_files_can_be_neither_written_nor_read() {
    let repo = project(":");
    let secret = repo.path().join(".env");
    repo.write(".env", "hunter2\n");
    repo.write(".git/info/exclude", ".env\n");
    if availability() != Availability::Full {
        return;
    }
    use_scripted_agent(
        &repo,
        &format!(
            "echo bad > {0}/a.txt; cat {1} > stolen.txt 2>/dev/null; message 'Tried.'",
            repo.path().display(),
            secret.display()
        ),
    );
    repo.done(&["new", "demo"]);
    repo.done(&["plan", "-m", "try"]);
    assert_eq!(repo.read("a.txt"), "one\ntwo\nthree\n");
    repo.done(&["execute", "-y"]);
    let stolen = std::fs::read_to_string(repo.path().join("stolen.txt")).unwrap_or_default();
    assert_eq!(stolen, "");
}

/// Files that it writes after its last message are in the plan completely or not at all.
#[test]
fn files_written_while_an_agent_exits_are_planned_completely_or_not_at_all() {
    let repo = project(
        "trap 'seq 20000 > late.txt' EXIT; echo 1 > one.txt; message 'Made one. There is more to come.'",
    );
    repo.done(&["new", "demo"]);
    repo.done(&["plan", "-m", "go"]);
    let planned = repo.done(&["show", "draft", "plan.md"]);
    repo.done(&["execute", "-y"]);
    assert_eq!(repo.read("one.txt"), "1\n");
    let late = repo.path().join("late.txt");
    assert_eq!(late.exists(), planned.contains("late.txt"), "{planned}");
    // The next turn finds no trace of it.
    use_scripted_agent(&repo, "message 'It is done.'");
    repo.teddy(&["plan", "-m", "once more"])
        .check(0, &["\"It is done\""]);
    repo.done(&["verify"]);
}

#[test]
fn denied_paths_and_variables_are_reported_with_their_setting() {
    let failed_tool = r#"why=$(touch "$OUTSIDE" 2>&1)
update '{"sessionUpdate":"tool_call","toolCallId":"1","title":"touch","kind":"execute","status":"failed","content":[{"type":"content","content":{"type":"text","text":"'"$why"'"}}]}'"#;
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    let outside = repo.beside("made.txt").display().to_string();
    let failed_tool = failed_tool.replace("$OUTSIDE", &outside);
    use_scripted_agent(&repo, &format!("{failed_tool}\nmessage 'Tried it.'"));
    if availability() != Availability::Full {
        return;
    }
    let denied = format!("`{outside}`");
    let setting = "; `state` in the model's entry names what it can write besides the worktree";
    repo.done(&["new", "demo"]);
    repo.teddy(&["plan", "-m", "go"])
        .check(0, &[&denied, setting]);

    use_scripted_agent(
        &repo,
        &format!("{failed_tool}\necho 'MINE_API_KEY is not set' >&2; exit 3"),
    );
    let mut command = repo.teddy_command(&["plan", "-m", "go"]);
    command.env("MINE_API_KEY", "x");
    repo.reads(command, "").check(
        1,
        &[
            &denied,
            setting,
            "the agent's environment lacks `MINE_API_KEY`; `api_key_env` in the model's entry passes",
        ],
    );
}

#[test]
fn settings_that_a_repository_brings_for_agents_are_named() {
    let repo = project("echo 1 > one.txt; message 'Made one.'");
    repo.write(".claude/settings.json", "{}\n");
    repo.write(".mcp.json", "{}\n");
    repo.done(&["new", "demo"]);
    insta::assert_snapshot!(repo.printed(&["plan", "-m", "go"]), @r#"
    # Made one

    ## Rationale
    ````text
    Made one.
    ````

    ## Action Plan

    ### `CREATE`
    - **File Path:** [one.txt](/one.txt)
    ````txt
    1
    ````
    --- stderr
    snapshots include 2 untracked files; use `.gitignore` or `snapshot.exclude` to leave files out
    Asking scripted with about [n] tokens, no price set
    this repository has settings for agents, which can make the agent run something inside of its sandbox, where it has the network and its own login: .claude/settings.json, .mcp.json
      scripted 1.2.3 is at work
      Made one.
    scripted: done, [time]
    scripted: 100 tokens in, 20 out; no price is known
    Planned turn 1: "Made one". Next: `teddy execute`
    exit code 0
    "#);
}

#[test]
fn commits_of_an_agent_are_read_as_work() {
    let work = "echo 1 > one.txt; git add -A; git -c user.name=x -c user.email=x@y commit -qm mine; echo 2 >> one.txt; message 'Committed.'";
    let repo = project(work);
    repo.done(&["new", "demo"]);
    let head = repo.git(&["rev-parse", "HEAD"]);
    repo.done(&["plan", "-m", "go"]);
    repo.done(&["execute", "-y"]);
    assert_eq!(repo.read("one.txt"), "1\n2\n");
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
    repo.done(&["verify"]);
}

#[test]
fn too_many_files_are_not_proposed_and_the_transcript_is_kept() {
    let repo = project("for i in 1 2 3 4 5; do echo $i > f$i.txt; done; message 'Made many.'");
    repo.done(&["new", "demo"]);
    insta::assert_snapshot!(repo.printed(&["-c", "limits.files=3", "plan", "-m", "many"]), @"
    --- stderr
    Asking scripted with about [n] tokens, no price set
      scripted 1.2.3 is at work
      Made many.
    scripted: failed, [time]
    error: the agent changed 5 files, but a turn can have at most 3; TeDDy discarded all of them
    hint: ask for less at once, add what it generated to `.gitignore`, or raise `limits.files`
    exit code 1
    ");
    let kept = repo.git(&["ls-tree", "--name-only", "refs/teddy/drafts/demo"]);
    assert!(
        kept.contains("transcript.jsonl") && !kept.contains("plan.md"),
        "{kept}"
    );
    // The next turn does not see these files.
    use_scripted_agent(&repo, "echo 1 > only.txt; message 'Made one.'");
    repo.done(&["plan", "-m", "again"]);
    repo.done(&["execute", "-y"]);
    assert!(repo.path().join("only.txt").exists() && !repo.path().join("f1.txt").exists());
}

#[test]
fn a_file_that_grew_too_large_is_left_out_and_the_rest_is_proposed() {
    let repo = project("truncate -s 101M a.txt; echo 1 > one.txt; message 'Grew it.'");
    repo.done(&["new", "demo"]);
    insta::assert_snapshot!(repo.printed(&["plan", "-m", "go"]), @r#"
    # Grew it

    ## Rationale
    ````text
    Grew it.
    ````

    ## Action Plan

    ### `CREATE`
    - **File Path:** [one.txt](/one.txt)
    ````txt
    1
    ````
    --- stderr
    Asking scripted with about [n] tokens, no price set
      scripted 1.2.3 is at work
    `a.txt` is not in the plan: too large (105906176 bytes); a plan has files of at most 104857600 bytes, and 419430400 in all
      Grew it.
    scripted: done, [time]
    scripted: 100 tokens in, 20 out; no price is known
    Planned turn 1: "Grew it". Next: `teddy execute`
    exit code 0
    "#);
    repo.done(&["execute", "-y"]);
    assert_eq!(
        (repo.read("a.txt"), repo.read("one.txt")),
        ("one\ntwo\nthree\n".into(), "1\n".into())
    );
}

#[test]
fn an_agent_that_dies_leaves_the_files_and_the_message() {
    let repo = project("echo half > half.txt; echo no more >&2; kill -9 $$");
    repo.done(&["new", "demo"]);
    let out = repo.teddy(&["plan", "-m", "go"]);
    assert_eq!(out.code, 1);
    assert!(!repo.path().join("half.txt").exists());
    let kept = repo.git(&["show", "refs/teddy/drafts/demo:user_prompt.txt"]);
    assert_eq!(kept, "go");
    repo.done(&["status"]);
}

/// Regression: three equal turns had a cost of 1, 2 and 3 parts, and an unknown one was 0.
#[test]
fn the_cost_of_a_resumed_conversation_is_counted_once() {
    let repo = project("cost 0.5; echo 1 > n.txt; message 'One.'");
    repo.done(&["new", "demo"]);
    let turn = |work: &str| {
        use_scripted_agent(&repo, work);
        repo.done(&["plan", "-m", "go on"]);
        repo.done(&["execute", "-y"]);
        let rows = repo.json(&["log"], 0);
        ["cost", "tokens_in"].map(|key| rows[0][key].to_string())
    };
    let first = turn("cost 0.5; echo 1 > n.txt; message 'One.'");
    assert_eq!(first, ["0.5", "100"]);
    let second = turn("cost 0.75; echo 2 > n.txt; message 'Two.'");
    assert_eq!(second, ["0.25", "100"]);
    // A discarded answer to the same prompt is paid, and not paid again.
    use_scripted_agent(&repo, "cost 1.0; echo x > n.txt; message 'Bad.'");
    repo.done(&["plan", "-m", "go on"]);
    let third = turn("cost 1.5; echo 3 > n.txt; message 'Three.'");
    assert_eq!(third, ["0.5", "100"]);
    use_scripted_agent(&repo, "cost 1.75; kill -9 $$");
    assert_eq!(repo.teddy(&["plan", "-m", "go on"]).code, 1);
    let fourth = turn("cost 2.0; echo 4 > n.txt; message 'Four.'");
    assert_eq!(fourth, ["0.25", "100"]);
    let silent = "usage='{}'; echo 5 > n.txt; message 'Five.'";
    assert_eq!(turn(silent), ["null", "null"]);
    let meta = artifact(&repo, "meta.yaml");
    assert!(
        meta.contains("resumed: true") && meta.contains("tokens_in: null"),
        "{meta}"
    );
}

/// Regression: after a turn whose cost was unknown, the costs of all later ones were unknown, too, and
/// no limit applied to them.
#[test]
fn the_limit_stops_a_resumed_conversation_at_its_true_sum() {
    let repo = project("");
    repo.done(&["new", "demo"]);
    let plan = ["-c", "limits.cost=1", "plan", "-m", "go on"];
    let turn = |work: &str| {
        use_scripted_agent(&repo, work);
        repo.done(&plan);
        repo.done(&["execute", "-y"]);
        repo.json(&["log"], 0)[0]["cost"].to_string()
    };
    assert_eq!(turn("cost 0.5; echo 1 > n.txt; message 'One.'"), "0.5");
    // The sum of the reported totals is above the limit.
    assert_eq!(turn("cost 0.875; echo 2 > n.txt; message 'Two.'"), "0.375");
    assert_eq!(turn("usage='{}'; echo 3 > n.txt; message 'Three.'"), "null");
    use_scripted_agent(&repo, "cost 0.9375; cost 1.0625; sleep 60");
    insta::assert_snapshot!(repo.printed(&plan), @"
    --- stderr
    Asking scripted with about [n] tokens, no price set
      scripted 1.2.3 is at work
    scripted: failed, [time], $0.1875
    error: it used up the remaining $0.12 and was stopped; TeDDy discarded its changes
    hint: raise `--max-cost` if you gave it, else `limits.cost` (`-c limits.cost=10` for one call), take resources out of the context, or use another model
    exit code 1
    ");
}

/// Regression: the first total had no call before it to subtract, so it was unknown.
#[test]
fn the_limit_counts_a_call_that_only_the_next_total_includes() {
    let repo = project("usage='{}'; echo 1 > n.txt; message 'One.'");
    repo.done(&["new", "demo"]);
    repo.done(&["plan", "-m", "go"]);
    repo.done(&["execute", "-y"]);
    use_scripted_agent(&repo, "cost 9.99; sleep 60");
    insta::assert_snapshot!(repo.printed(&["plan", "-m", "go on"]), @"
    --- stderr
    Asking scripted with about [n] tokens, no price set
      scripted 1.2.3 is at work
    scripted: failed, [time], $9.9900
    error: it used up the remaining $5.00 and was stopped; TeDDy discarded its changes
    hint: raise `--max-cost` if you gave it, else `limits.cost` (`-c limits.cost=10` for one call), take resources out of the context, or use another model
    exit code 1
    ");
}

/// Regression: an agent without a price was started, paid and discarded again and again.
#[test]
fn no_agent_starts_once_the_limit_is_used_up() {
    let repo = project("cost 1.0; echo 1 > n.txt; message 'One.'");
    repo.done(&["new", "demo"]);
    repo.done(&["plan", "-m", "go"]);
    repo.done(&["execute", "-y"]);
    insta::assert_snapshot!(repo.printed(&["-c", "limits.cost=1", "plan", "-m", "go"]), @"
    --- stderr
    Asking scripted with about [n] tokens, no price set
    error: $1.00 is spent, and the limit is $1.00; nothing was sent
    hint: raise `--max-cost` if you gave it, else `limits.cost` (`-c limits.cost=10` for one call), take resources out of the context, or use another model
    exit code 1
    ");
}

#[test]
fn what_an_agent_costs_counts_where_nothing_comes_of_it() {
    let repo = project("cost 0.5; echo half > half.txt; kill -9 $$");
    repo.done(&["new", "demo"]);
    let spent = || {
        let meta = repo.git(&["show", "refs/teddy/drafts/demo:meta.yaml"]);
        let line = meta.lines().find(|line| line.starts_with("spent:"));
        line.map(str::to_owned)
    };
    assert_eq!(repo.teddy(&["plan", "-m", "go"]).code, 1);
    assert_eq!(spent().as_deref(), Some("spent: 0.5"));

    // The agent exceeds the rest of the limit and is stopped. Its cost counts too.
    use_scripted_agent(&repo, "cost 0.7; sleep 600");
    insta::assert_snapshot!(repo.printed(&["-c", "limits.cost=1", "plan", "-m", "go"]), @"
    --- stderr
    Asking scripted with about [n] tokens, no price set
      scripted 1.2.3 is at work
    scripted: failed, [time], $0.7000
    error: it used up the remaining $0.50 and was stopped; TeDDy discarded its changes
    hint: raise `--max-cost` if you gave it, else `limits.cost` (`-c limits.cost=10` for one call), take resources out of the context, or use another model
    exit code 1
    ");
    assert_eq!(spent().as_deref(), Some("spent: 1.2"));
}

/// Regression: the plan had the user's edit too, and was rejected because the file has it already.
#[test]
fn what_the_user_saves_in_a_file_that_the_agent_then_writes_is_not_in_its_plan() {
    let repo = project("");
    let state = folder(&repo);
    let [started, saved] = ["started", "saved"].map(|name| state.join(name));
    let work = format!(
        "touch {}; while ! test -e {}; do sleep 0.02; done; sed -i s/three/3/ a.txt; echo Done.",
        started.display(),
        saved.display()
    );
    repo.configure(&format!(
        "model: it\nmodels:\n  it: {{ kind: agent, run: [{}], state: [{}] }}\n",
        scripted_command(&state, &work).display(),
        state.display()
    ));
    repo.done(&["new", "demo"]);
    std::thread::scope(|scope| {
        let planned = scope.spawn(|| repo.done(&["plan", "-m", "go"]));
        while !started.exists() {
            assert!(!planned.is_finished());
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        repo.write("a.txt", "mine\ntwo\nthree\n");
        std::fs::write(&saved, "").unwrap();
    });
    repo.done(&["execute", "-y", "--no-replan"]);
    assert_eq!(repo.read("a.txt"), "mine\ntwo\n3\n");
    repo.done(&["undo"]);
    assert_eq!(repo.read("a.txt"), "mine\ntwo\nthree\n");
}

#[test]
fn a_user_who_edits_the_same_lines_meanwhile_loses_nothing() {
    let repo = project("printf 'one\\nTWO\\nthree\\n' > a.txt; message 'Shouted.'");
    repo.done(&["new", "demo"]);
    repo.done(&["plan", "-m", "go"]);
    repo.write("a.txt", "one\nzwei\nthree\n");
    let out = repo.teddy(&["execute", "-y", "--no-replan"]);
    assert_eq!(out.code, 3);
    assert_eq!(repo.read("a.txt"), "one\nzwei\nthree\n");
}

#[test]
fn a_plain_command_acts_as_well_and_the_last_step_of_a_pipeline_may_act() {
    let repo = project(":");
    let agent = scripted_command(&folder(&repo), "echo 1 > one.txt; echo Made one.");
    let think = serde_json::Value::from("echo Think of one.");
    repo.configure(&format!(
        "models:\n  plain: {{ kind: agent, run: [{}] }}\n  thinker: {{ kind: command, run: [sh, -c, {think}] }}\n",
        agent.display()
    ));
    repo.done(&["new", "demo"]);
    repo.done(&["plan", "-m", "go", "--model", "plain"]);
    repo.done(&["execute", "-y"]);
    assert_eq!(repo.read("one.txt"), "1\n");
    repo.done(&["undo"]);

    let steps = |first: &str, last: &str| {
        format!(
            "steps:\n- {{name: think, model: {first}, prompt: 'Think.', inputs: [message]}}\n- {{name: do, model: {last}, prompt: 'Do: {{{{think}}}}', inputs: [input, think]}}\n"
        )
    };
    let pipeline = repo.beside("home/config/teddy/pipelines");
    std::fs::create_dir_all(&pipeline).unwrap();
    repo.put(pipeline.join("good.yaml"), steps("thinker", "plain"));
    repo.put(pipeline.join("bad.yaml"), steps("plain", "thinker"));
    insta::assert_snapshot!(repo.printed(&["plan", "-m", "go", "--pipeline", "bad"]), @"
    --- stderr
    error: the model of step `think` edits files itself, which only the last step can do
    hint: give the step a `model` that writes its answer
    exit code 1
    ");
    repo.done(&["plan", "-m", "go", "--pipeline", "good"]);
    repo.done(&["execute", "-y"]);
    assert_eq!(repo.read("one.txt"), "1\n");
}

#[test]
fn retry_asks_an_agent_again_on_a_branch() {
    let repo = project("date +%N > made.txt; message 'Made it.'");
    repo.done(&["new", "demo"]);
    repo.done(&["plan", "-m", "go"]);
    repo.done(&["execute", "-y"]);
    repo.done(&["undo"]);
    repo.teddy(&["retry", "1"])
        .check(0, &["Session demo-retry-1 is in use now"]);
    repo.done(&["execute", "-y"]);
    assert!(repo.path().join("made.txt").exists());
}

#[test]
fn a_question_needs_a_model_that_writes() {
    let repo = project("message 'x'");
    repo.done(&["new", "demo"]);
    insta::assert_snapshot!(repo.printed(&["ask", "why?"]), @"
    --- stderr
    error: `scripted` edits files itself, and this command needs a text answer
    hint: `--model` names another one for this call; `teddy plan` and `teddy resume` take this one
    exit code 1
    ");
}

#[test]
fn an_agent_races_with_a_model_that_writes_plans() {
    let repo = project(":");
    let agent = scripted_agent(
        &folder(&repo),
        "printf '\\000' > blob.bin; message 'Made a blob.'",
    );
    let answer = repo.beside("one.md");
    repo.put(&answer, plan("Make b", &[create("b.txt", "b\n")]));
    let cat = serde_json::Value::from(format!("cat {}", answer.display()));
    repo.configure(&format!(
        "models:\n  acts: {{ kind: acp, run: [{}] }}\n  writes: {{ kind: command, run: [sh, -c, {cat}] }}\n",
        agent.display()
    ));
    repo.done(&["new", "demo"]);
    let told = repo.json(
        &[
            "race",
            "go",
            "--with",
            "acts,writes",
            "--check",
            "test -e blob.bin",
        ],
        0,
    );
    let code = |at: usize| told["lanes"][at]["plan"]["check"]["exit_code"].clone();
    assert_eq!((code(0), code(1)), (0.into(), 1.into()));
    repo.done(&["--session", "demo-acts", "execute", "-y"]);
    assert_eq!(std::fs::read(repo.path().join("blob.bin")).unwrap(), [0]);
}

#[test]
fn what_an_agent_asks_reaches_the_user_and_a_no_is_a_no() {
    let repo = project(
        "ask 'touch it' execute; if test $allowed = yes; then echo 1 > asked.txt; message 'Did it.'; else message 'I may not.'; fi",
    );
    repo.done(&["new", "demo"]);
    repo.done(&["plan", "-m", "go"]);
    let kept = repo.git(&["show", "refs/teddy/drafts/demo:transcript.jsonl"]);
    assert!(
        kept.contains("\"permission\"") || kept.contains("request_permission"),
        "{kept}"
    );
    let mut screen = Screen::open(&repo, (100, 40), &["plan", "-m", "again"]);
    screen.wait_for("asks: ");
    screen.press("y");
    assert_eq!(screen.end(), 0);
}

/// Regression: the agent was told no, and went on.
#[test]
fn leaving_a_question_stops_the_agent() {
    let repo = project("ask 'touch it' execute; message 'Went on.'");
    repo.done(&["new", "demo"]);
    let mut screen = Screen::open(&repo, (100, 40), &["plan", "-m", "go"]);
    screen.wait_for("(q)uit");
    screen.press("q");
    assert_eq!(screen.end(), 130, "{}", screen.shown());
    assert!(!screen.shown().contains("Went on."), "{}", screen.shown());
    let draft = |name: &str| repo.git(&["show", &format!("refs/teddy/drafts/demo:{name}")]);
    assert_eq!(draft("user_prompt.txt"), "go");
    let transcript = draft("transcript.jsonl");
    assert!(
        transcript.contains(r#""decision":"cancelled""#),
        "{transcript}"
    );
}

/// Regression: the question showed `\u{a}` instead of lines, and only what its own message has of the
/// command.
#[test]
fn a_question_shows_the_lines_of_the_command_reported_before() {
    let long = "npm test -- --reporter=dot --grep='parses every kind of list' # the slow ones";
    let command = format!("cd web\\nif test -e a; then\\n    {long}\\nfi");
    let call = format!(
        r#"{{"sessionUpdate":"tool_call","toolCallId":"t","title":"Run the tests","kind":"execute","status":"pending","rawInput":{{"command":"{command}"}}}}"#
    );
    let call = call.replace('\'', "'\\''");
    let repo = project(&format!("update '{call}'; ask '' ''; message 'Done.'"));
    repo.done(&["new", "demo"]);
    let mut screen = Screen::open(&repo, (60, 40), &["plan", "-m", "go"]);
    screen.wait_for("(q)uit");
    // This machine might have no sandbox.
    let shown = screen
        .shown()
        .replace("without a sandbox", "in the sandbox");
    let begin = shown.find("scripted asks").unwrap();
    insta::assert_snapshot!(shown[begin..].trim_end(), @"
    scripted asks: Run the tests
      cd web
      if test -e a; then
          npm test -- --reporter=dot --grep='parses every kind
          ↪ of list' # the slow ones
      fi
    It runs in the sandbox.
    Allow it?
    (y)es, this time / (a)lways in this turn / (n)o / (q)uit ›
    ");
    screen.press("y");
    assert_eq!(screen.end(), 0);
}
