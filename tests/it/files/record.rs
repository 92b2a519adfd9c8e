//! `record`: makes a turn of changes that the user made without TeDDy.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use teddy::workflow::record::{self, RecordOptions, transcript};

use crate::plans::{create, edit, plan};
use crate::support::TestRepo;
use crate::support::landing::{changed, everything, project, status};

#[test]
fn t21_what_changed_since_the_newest_turn_is_a_turn_like_any_other() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("Make d", &[create("d.txt", "d\n")]));
    repo.write("d.txt", "d\nagent\n");
    repo.write("new/e.txt", "e\n");
    repo.write("note", "{\"role\":\"user\"}\n{\"role\":\"agent\"}\n");
    let chat = repo.beside("chat.jsonl");
    std::fs::rename(repo.path().join("note"), &chat).unwrap();
    let shown = repo.printed(&[
        "record",
        "add e\nplease",
        "--by",
        "aider",
        "--transcript",
        chat.to_str().unwrap(),
    ]);
    insta::assert_snapshot!(shown, @"
    write d.txt
    write new/e.txt
    --- stderr
    Recorded as turn 2: 2 files changed.
    exit code 0
    ");

    insta::assert_snapshot!(repo.printed(&["record", "x"]), @"
    --- stderr
    error: nothing changed since turn 2 of session `demo`
    hint: `--allow-empty` records a turn all the same
    exit code 1
    ");

    let log = repo.workflow().log();
    assert_eq!(
        [&log[0]["status"], &log[0]["title"], &log[0]["files"]],
        [
            &json!("recorded"),
            &json!("add e"),
            &json!(["d.txt", "new/e.txt"])
        ]
    );
    let meta = repo.workflow().artifact("2", "meta.yaml");
    assert!(meta.contains("recorded:\n  by: aider\n"), "{meta}");
    insta::assert_snapshot!(repo.plain(&repo.workflow().artifact("2", "report.md")), @"
    # Execution Report: add e
    - **Overall Status:** Recorded 🟢
    - **Done by:** aider

    ## Changed Files

    - write d.txt
    - write new/e.txt
    ");
    let kept = repo.workflow().artifact("2", "transcript.jsonl");
    assert_eq!(kept, "{\"role\":\"user\"}\n{\"role\":\"agent\"}\n");
    let requests = repo.git(&["show", "teddy/sessions/demo:next/requests.yaml"]);
    assert!(requests.contains("add e"), "{requests}");
    repo.workflow().verify().done();

    repo.workflow().undo(1).done();
    assert_eq!(repo.read("d.txt"), "d\n");
    assert!(!repo.path().join("new/e.txt").exists());
    repo.workflow().redo(1).done();
    repo.workflow().restore("1").done();
    assert_eq!(repo.read("d.txt"), "d\n");
    repo.workflow().undo(1).done();
    let blamed = repo.json(&["blame", "d.txt"], 0);
    assert_eq!([&blamed[0]["turn"], &blamed[1]["turn"]], [1, 2]);
    repo.done(&["land", "--each"]);
    assert_eq!(changed(&repo), "M\td.txt\nA\tnew/e.txt");
    assert_eq!(status(&repo), "");
}

#[test]
fn nothing_to_record_is_an_error_that_changes_nothing() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("Make d", &[create("d.txt", "d\n")]));
    let tip = repo.git(&["rev-parse", "teddy/sessions/demo"]);
    insta::assert_snapshot!(repo.workflow().record("x").refused(), @r"
    error: nothing changed since turn 1 of session `demo`
    exit code 1
    ");
    assert_eq!(repo.git(&["rev-parse", "teddy/sessions/demo"]), tip);
    let empty = RecordOptions {
        allow_empty: true,
        ..RecordOptions::default()
    };
    insta::assert_snapshot!(repo.workflow().record_with(&empty).done(), @"turn 2 of demo");
    repo.workflow().verify().done();
    repo.workflow().undo(1).done();
    assert!(!repo.path().join("d.txt").exists());
}

#[test]
fn without_a_session_one_is_started_on_what_head_has() {
    let repo = TestRepo::new().file("a.txt", "1\n");
    repo.commit("init");
    let before = everything(&repo);
    insta::assert_snapshot!(repo.workflow().record("").refused(), @r"
    error: nothing changed since HEAD
    hint: `--allow-empty` records a turn all the same
    exit code 1
    ");
    assert_eq!(everything(&repo), before);

    repo.write("a.txt", "2\n");
    insta::assert_snapshot!(repo.workflow().record("Make it two").done(), @r"
    turn 1 of make-it-two, started for it
      write a.txt
    ");
    repo.workflow().undo(1).done();
    assert_eq!(repo.read("a.txt"), "1\n");
}

#[test]
fn without_a_commit_everything_is_new() {
    let repo = TestRepo::new().file("a.txt", "1\n");
    repo.workflow().record("begin").done();
    assert_eq!(repo.git(&["fsck", "--strict", "--no-dangling"]), "");
    assert_eq!(repo.workflow().log()[0]["files"], json!(["a.txt"]));
    repo.workflow().undo(1).done();
    assert!(!repo.path().join("a.txt").exists());
    repo.workflow().verify().done();
}

#[test]
fn what_another_session_brought_is_not_recorded_again() {
    let repo = project();
    repo.workflow().new_session("other").done();
    repo.workflow().add(&["a.txt"]);
    repo.workflow()
        .run_plan(&plan("Change a", &[edit("a.txt", "2", "two")]));
    repo.workflow().switch("demo").done();
    repo.write("b.txt", "agent\n");
    repo.workflow().record("write b").done();
    assert_eq!(repo.workflow().log()[0]["files"], json!(["b.txt"]));
    repo.workflow().undo(1).done();
    assert!(repo.read("a.txt").contains("two"));
    repo.workflow().verify().done();
}

/// Bug: what had changed before the other session's turn was not recorded.
#[test]
fn a_turn_of_another_session_leaves_all_changes_since_head_to_record() {
    let repo = project();
    let lines: String = (1..=30).map(|number| format!("l{number}\n")).collect();
    repo.write("long.txt", &lines);
    repo.commit("long");
    repo.workflow().new_session("other").done();
    repo.write("early.txt", "early\n");
    repo.write("long.txt", lines.replace("l3\n", "mine 3\n"));
    repo.workflow().add(&["long.txt"]);
    repo.workflow()
        .run_plan(&plan("Turn", &[edit("long.txt", "l20", "turn 20")]));
    repo.workflow().switch("demo").done();
    repo.write("late.txt", "late\n");
    repo.workflow().record("mine").done();
    assert_eq!(
        repo.workflow().log()[0]["files"],
        json!(["early.txt", "late.txt", "long.txt"])
    );
    repo.workflow().undo(1).done();
    assert_eq!(repo.read("long.txt"), lines.replace("l20", "turn 20"));

    // A turn that was committed and edited is part of HEAD.
    repo.write("long.txt", lines.replace("l20", "edited 20"));
    repo.git(&["commit", "-q", "-am", "edited"]);
    repo.write("next.txt", "next\n");
    repo.workflow().new_session("third").done();
    repo.workflow().record("next").done();
    assert_eq!(repo.workflow().log()[0]["files"], json!(["next.txt"]));
}

#[test]
fn a_switch_of_branches_is_not_recorded_as_work() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("Make d", &[create("d.txt", "d\n")]));
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.write("theirs.txt", "theirs\n");
    repo.git(&["add", "theirs.txt"]);
    repo.git(&["commit", "-q", "-m", "theirs"]);
    repo.write("mine.txt", "mine\n");
    repo.workflow().record("mine").done();
    assert_eq!(repo.workflow().log()[0]["files"], json!(["mine.txt"]));
}

#[test]
fn a_plan_that_waits_goes_on_waiting_behind_a_recorded_turn() {
    let repo = project();
    repo.reply(&plan("Make e", &[create("e.txt", "e\n")]));
    repo.workflow().plan("make e").done();
    repo.write("b.txt", "agent\n");
    repo.workflow().record("").done();
    let status = repo.workflow().status();
    assert_eq!(status["draft"]["title"], "Make e");
    assert_eq!(repo.workflow().log()[0]["title"], "Record b.txt");
    repo.workflow().execute().done();
    assert_eq!(repo.read("e.txt"), "e\n");
}

#[test]
fn a_transcript_is_a_regular_file_and_only_its_end_is_kept() {
    let repo = project();
    repo.write("b.txt", "agent\n");
    let long = repo.beside("long.md");
    std::fs::write(&long, "line\n".repeat(1 << 20)).unwrap();
    let link = repo.beside("link.md");
    std::os::unix::fs::symlink(&long, &link).unwrap();
    let record = |file: &std::path::Path| {
        repo.workflow().call(|project, user, out| {
            let options = RecordOptions {
                transcript: Some(transcript::read(file)?),
                ..RecordOptions::default()
            };
            writeln!(
                out,
                "turn {}",
                record::record(project, &options, user)?.turn
            )?;
            Ok(true)
        })
    };
    insta::assert_snapshot!(record(&link).refused(), @r"
    error: cannot read `link.md`: too many levels of symbolic links
    exit code 1
    ");
    insta::assert_snapshot!(record(&repo.beside("gone")).refused(), @r"
    error: cannot read `gone`: no such file or directory
    exit code 1
    ");
    insta::assert_snapshot!(record(&repo.path()).refused(), @r"
    error: cannot read `repo`: it is not a regular file
    exit code 1
    ");
    insta::assert_snapshot!(record(&long).done(), @"turn 1");
    let kept = repo.workflow().artifact("1", "transcript.md");
    assert!(kept.starts_with("*(3145730 bytes left out)*\n\nline\n"));
    assert!(kept.len() < (2 << 20) + 100, "{}", kept.len());
}

#[test]
fn a_key_in_the_words_or_the_transcript_is_not_recorded() {
    let repo = project();
    let key = format!("sk-ant-{}", "aB3dE5gH7j".repeat(4));
    repo.write("b.txt", "agent\n");
    let chat = repo.beside("chat.txt");
    std::fs::write(&chat, &key).unwrap();
    let options = RecordOptions {
        message: format!("use {key}"),
        transcript: Some(transcript::read(&chat).unwrap()),
        ..RecordOptions::default()
    };
    repo.workflow().record_with(&options).done();
    for name in ["transcript.txt", "user_prompt.txt", "meta.yaml"] {
        let text = repo.workflow().artifact("1", name);
        assert!(!text.contains(&key), "{name}: {text}");
    }
}

#[test]
fn what_a_program_changes_is_a_turn_without_what_had_changed_before() {
    let repo = project();
    repo.write("a.txt", "mine\n");
    let script = "read line; echo \"$line\"; echo theirs > b.txt; echo key=$SECRET_KEY; exit 3";
    let mut command = repo.teddy_command(&["record", "write b", "--", "sh", "-c", script]);
    let mut child = command
        .current_dir(repo.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .env("SECRET_KEY", "s3")
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"hello\n").unwrap();
    let out = child.wait_with_output().unwrap();
    let (stdout, stderr) = [out.stdout, out.stderr]
        .map(|bytes| String::from_utf8(bytes).unwrap())
        .into();
    assert_eq!(out.status.code(), Some(3), "{stderr}");
    assert_eq!(stdout, "hello\nkey=s3\n");
    insta::assert_snapshot!(stderr, @"Recorded as turn 1: 1 file changed.");

    let row = &repo.workflow().log()[0];
    assert_eq!(
        [&row["title"], &row["files"]],
        [&json!("write b"), &json!(["b.txt"])]
    );
    let meta = repo.workflow().artifact("1", "meta.yaml");
    assert!(meta.contains("  by: sh\n  exit_code: 3\n"), "{meta}");
    repo.workflow().undo(1).done();
    assert_eq!(repo.read("a.txt"), "mine\n");
    assert!(!repo.path().join("b.txt").exists());
    repo.workflow().verify().done();
}

#[test]
fn what_other_turns_bring_while_a_program_runs_is_not_its_work() {
    let repo = project();
    repo.workflow().new_session("other").done();
    repo.reply(&plan("Make d", &[create("d.txt", "d\n")]));
    repo.workflow().plan("make d").done();
    repo.workflow().switch("demo").done();
    let teddy = env!("CARGO_BIN_EXE_teddy");
    let script = format!("echo 1 > one; {teddy} -s other execute -y; echo 2 > two");
    repo.done(&["record", "--", "sh", "-c", &script]);
    assert_eq!(repo.workflow().log()[0]["files"], json!(["one", "two"]));
    repo.workflow().undo(1).done();
    assert!(!repo.path().join("one").exists());
    assert_eq!(repo.read("d.txt"), "d\n");
    repo.workflow().verify().done();
}

#[test]
fn a_program_without_a_session_that_changes_nothing_leaves_none() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    insta::assert_snapshot!(repo.printed(&["record", "--", "true"]), @"
    --- stderr
    No file changed; no turn is recorded.
    exit code 0
    ");
    insta::assert_snapshot!(repo.printed(&["record", "--", "no-such-program"]), @"
    --- stderr
    error: the program `no-such-program` was not found, so nothing ran and no turn is recorded
    hint: programs are searched in `PATH`; `./<file>` names one in this directory
    exit code 127
    ");
    assert_eq!(repo.workflow().sessions(), json!([]));
    insta::assert_snapshot!(repo.printed(&["record", "--", "sh", "-c", "echo b > b.txt"]), @"
    --- stderr
    Started session sh.
    Recorded as turn 1: 1 file changed.
    exit code 0
    ");
}

#[test]
fn a_program_that_changes_nothing_or_does_not_start_leaves_no_turn() {
    let repo = project();
    insta::assert_snapshot!(repo.printed(&["record", "--", "true"]), @"
    --- stderr
    No file changed; no turn is recorded.
    exit code 0
    ");
    insta::assert_snapshot!(repo.printed(&["record", "--", "no-such-program"]), @"
    --- stderr
    error: the program `no-such-program` was not found, so nothing ran and no turn is recorded
    hint: programs are searched in `PATH`; `./<file>` names one in this directory
    exit code 127
    ");
    repo.write("tool", "#!/no/such/interpreter\n");
    std::fs::set_permissions(repo.path().join("tool"), PermissionsExt::from_mode(0o755)).unwrap();
    let shown = repo.printed(&["record", "--", "./tool"]);
    assert!(
        shown.contains("error: cannot run `") && shown.ends_with("exit code 1\n"),
        "{shown}"
    );
    std::fs::remove_file(repo.path().join("tool")).unwrap();
    insta::assert_snapshot!(repo.printed(&["record", "--", "sh", "-c", "kill -9 $$"]), @"
    --- stderr
    No file changed; no turn is recorded.
    exit code 137
    ");
    assert_eq!(repo.workflow().status()["turn"], 0);
    let value = repo.json(&["record", "--", "sh", "-c", "echo x; echo y > b.txt"], 0);
    assert_eq!(
        [&value["exit_code"], &value["recorded"]["written"]],
        [&json!(0), &json!(["b.txt"])]
    );
}

#[test]
fn trouble_with_the_record_is_the_result_of_a_program_that_had_none() {
    let repo = project();
    for (script, code) in [("echo x > b.txt", 1), ("echo y > b.txt; exit 7", 7)] {
        let args = ["record", "--transcript", "gone", "--", "sh", "-c", script];
        repo.teddy(&args).check(code, &["cannot read `gone`"]);
    }
}

#[test]
fn a_model_that_changes_files_while_it_is_asked_is_named() {
    let repo = project();
    let answer = plan("Make d", &[create("d.txt", "d\n")]);
    std::fs::write(repo.beside("answer.md"), answer).unwrap();
    let run = format!(
        "cat > /dev/null; echo x > b.txt; cat '{}'",
        repo.beside("answer.md").display()
    );
    std::fs::write(repo.beside("agent.sh"), run).unwrap();
    repo.configure(&format!(
        "model: busy\nmodels:\n  busy: {{ kind: command, run: [sh, {}] }}\n",
        repo.beside("agent.sh").display()
    ));
    // Not in-process: the model works where the program started.
    insta::assert_snapshot!(repo.printed(&["plan", "-m", "x"]), @r#"
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
    Asking busy with about [n] tokens, no price set
    your files changed while the model `busy` was asked: b.txt. If it did that, `teddy record --by busy` makes a turn of it, which can be undone; a model of `kind: agent` works in its own worktree
    Planned turn 1: "Make d". Next: `teddy execute`
    exit code 0
    "#);
    let out = repo.teddy(&["plan", "-m", "x"]);
    assert!(!out.stderr.contains("your files changed"), "{out}");
}

/// Bug: a directory that could not be opened for lack of file descriptors was recorded as empty.
#[test]
fn with_too_few_open_files_a_turn_is_whole_or_an_error() {
    let repo = TestRepo::new();
    for number in 0..150 {
        let (a, b) = (number % 5, number % 7);
        repo.write(&format!("{a}/{b}/{number}/tracked"), "1\n");
    }
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.write("1/1/1/mine", "1\n");
    repo.workflow().record("mine").done();

    let mut whole = 0;
    for limit in 12..36 {
        repo.write(&format!("2/2/2/{limit}"), "1\n");
        let record = repo.teddy_command(&["record", "more"]);
        let mut limited = repo.command("sh");
        limited.args(["-c", &format!("ulimit -n {limit} && exec \"$@\""), "sh"]);
        limited.arg(record.get_program()).args(record.get_args());
        limited.envs(
            record
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        let output = limited.current_dir(repo.path()).output().unwrap();
        whole += usize::from(output.status.success());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.success() || said.contains("Too many open files"),
            "{limit}: {said}"
        );
        if output.status.success() {
            let listed = repo.git(&["ls-tree", "-r", "--name-only", "teddy/sessions/demo^2"]);
            assert_eq!(
                listed.lines().count(),
                151 + limit - 11,
                "{limit}: {listed}"
            );
        }
    }
    assert!(whole > 0);
}

#[test]
fn a_repository_that_a_program_cloned_is_no_changed_file() {
    let repo = project();
    let script = "git init -q lib && git -C lib commit -q --allow-empty -m x; echo 2 > c.txt";
    let out = repo.teddy(&["record", "work", "--", "sh", "-c", script]);
    insta::assert_snapshot!(out.shown(&repo), @"
    --- stderr
    Recorded as turn 1: 1 file changed.
    exit code 0
    ");
    let report = repo.done(&["show", "1", "report.md"]);
    insta::assert_snapshot!(repo.plain(&report), @"
    # Execution Report: work
    - **Overall Status:** Recorded 🟢
    - **Done by:** sh
    - **Exit Code:** 0

    ## Changed Files

    - write c.txt
    ");
    assert!(repo.path().join("lib/.git").exists());
}
