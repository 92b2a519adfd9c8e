//! `--json`: every command prints one value, its result or its error.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::plans::{chat, create, plan};
use crate::support::{Output, TestRepo};

fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo
}

#[track_caller]
fn value(out: &Output) -> Value {
    serde_json::from_str(&out.stdout).unwrap_or_else(|error| panic!("{error}: {out}"))
}

/// Checks exit code and error. Returns the rest of the value.
#[track_caller]
fn check(out: &Output, (kind, code): (&str, i32)) -> Value {
    let mut value = value(out);
    let error = value.as_object_mut().unwrap().remove("error").unwrap();
    assert_eq!(
        (&error["kind"], &error["exit_code"], out.code),
        (&json!(kind), &json!(code), code),
        "{out}"
    );

    let names: BTreeSet<&str> = error.as_object().unwrap().keys().map(|k| &**k).collect();
    let expected = ["exit_code", "hint", "kind", "message"];
    assert_eq!(names, BTreeSet::from(expected), "{out}");
    let message = error["message"].as_str().unwrap();
    assert!(
        !message.is_empty() && !message.starts_with("error"),
        "{out}"
    );
    assert!(
        error["hint"].is_null() || error["hint"].as_str().is_some_and(|hint| !hint.is_empty()),
        "{out}"
    );
    value
}

/// Runs teddy with `--json` and checks the error, without other fields.
#[track_caller]
fn fails(repo: &TestRepo, args: &[&str], expected: (&str, i32)) {
    let out = repo.teddy(&[args, &["--json"]].concat());
    assert_eq!(check(&out, expected), json!({}), "{args:?}");
}

/// Every command with arguments that fail outside of a repository, and the kind of the error.
const CALLS: [(&[&str], &str); 73] = [
    (&["setup"], "NobodyToAsk"),
    (&["init"], "UnfitRepository"),
    (&["new", "x"], "NoRepository"),
    (&["start", "--name", "x", "-m", "x"], "NoRepository"),
    (&["plan", "-m", "x"], "NoRepository"),
    (&["ask", "x"], "NoRepository"),
    (&["race", "x", "--with", "y"], "NoRepository"),
    (&["execute"], "NoRepository"),
    (&["resume"], "NoRepository"),
    (&["continue"], "NoRepository"),
    (&["context"], "NoRepository"),
    (&["context", "add", "x"], "NoRepository"),
    (&["context", "rm", "x"], "NoRepository"),
    (&["context", "edit"], "NoRepository"),
    (&["context", "list"], "NoRepository"),
    (&["status"], "NoRepository"),
    (&["log"], "NoRepository"),
    (&["show"], "NoRepository"),
    (&["diff"], "NoRepository"),
    (&["find", "x"], "NoRepository"),
    (&["browse"], "NoRepository"),
    (&["blame", "x"], "NoRepository"),
    (&["web"], "NoRepository"),
    (&["compare", "1", "2"], "NoRepository"),
    (&["bisect", "run", "true"], "NoRepository"),
    (&["verify"], "NoRepository"),
    (&["verify", "--sign"], "NoRepository"),
    (&["push"], "NoRepository"),
    (&["restore", "@"], "NoRepository"),
    (&["undo"], "NoRepository"),
    (&["redo"], "NoRepository"),
    (&["land", "-m", "x"], "NoRepository"),
    (&["pick", "x:1"], "NoRepository"),
    (&["record"], "NoRepository"),
    (&["record", "--", "true"], "NoRepository"),
    (&["hooks", "install", "claude"], "NoRepository"),
    (&["acp", "-C", "nowhere"], "Failed"),
    (&["retry"], "NoRepository"),
    (&["verify", "--rerun", "1"], "NoRepository"),
    (&["branch", "1", "x"], "NoRepository"),
    (&["switch", "x"], "NoRepository"),
    (&["sessions"], "NoRepository"),
    (&["fetch"], "NoRepository"),
    (&["export"], "NoRepository"),
    (&["fetch", "x.bundle"], "NoRepository"),
    (&["preprocess", "nothing.md"], "Failed"),
    (&["get-prompt", "nobody"], "AgentNotFound"),
    (&["change", "plan", "x"], "NoRepository"),
    (&["change", "impl", "x"], "NoRepository"),
    (&["change", "archive", "x"], "NoRepository"),
    (&["change", "proposal", "x"], "NoRepository"),
    (&["change", "challenge", "x"], "NoRepository"),
    (&["change", "reproposal", "x"], "NoRepository"),
    (&["change", "implement", "x"], "NoRepository"),
    (&["change", "review", "x"], "NoRepository"),
    (&["change", "approve", "x", "--reason", "x"], "NoRepository"),
    (&["change", "validate", "x"], "NoRepository"),
    (&["change", "status", "x"], "NoRepository"),
    (&["change", "list"], "NoRepository"),
    (&["change", "show", "x"], "NoRepository"),
    (&["change", "log", "x"], "NoRepository"),
    (&["change", "diff", "x"], "NoRepository"),
    (&["trust"], "NoRepository"),
    (&["switch", "--adopt"], "NoRepository"),
    (&["doctor", "-C", "nowhere"], "Failed"),
    (&["gc"], "NoRepository"),
    (&["gc", "-n"], "NoRepository"),
    (&["demo", "home"], "Failed"),
    (&["man", "--out", "teddy.yaml/x"], "Failed"),
    (&["completions"], "Usage"),
    (&["context", "list", "-C", "nowhere"], "Failed"),
    (&["-s", "No Name", "log"], "Usage"),
    (&["branch", "1", "7"], "Usage"),
];

/// Returns the subcommands that the help of a command lists.
fn commands(repo: &TestRepo, of: &[&str]) -> Vec<String> {
    if of.is_empty() {
        let help = repo.done(&["help", "--all"]);
        let (_, list) = help.split_once("\n\n").unwrap();
        let (list, _) = list.split_once("\n\n").unwrap();
        // The group is in front of the first one.
        let names = list
            .lines()
            .filter_map(|line| line.get(10..)?.split(' ').next());
        return names.map(str::to_owned).collect();
    }
    let help = repo.done(&[of, &["-h"]].concat());
    let list = help.split_once("Commands:\n").unwrap().1;
    let list = list.split_once("\n\n").unwrap().0;
    let names = list.lines().filter_map(|line| {
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        (!name.is_empty() && name != "help").then(|| name.to_owned())
    });
    names.collect()
}

#[test]
fn promise_c3_every_command_says_its_error_as_json() {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.git(&["config", "core.bare", "true"]);
    repo.configure("");
    // The test's directory is not inside a repository. `init` runs in the bare repository.
    let outside = repo.beside("");
    std::fs::write(repo.beside("home/file"), "").unwrap();
    for (call, kind) in CALLS {
        let folder = if kind == "UnfitRepository" {
            repo.path()
        } else {
            outside.clone()
        };
        // First: what is behind a program belongs to it.
        let out = repo.teddy_in(&folder, &[&["--json"], call].concat());
        let code = if kind == "Usage" { 2 } else { 1 };
        assert_eq!(check(&out, (kind, code)), json!({}), "{call:?}");
    }

    let called = |command: &[&str]| CALLS.iter().any(|(call, _)| call.starts_with(command));
    for name in commands(&repo, &[]) {
        assert!(called(&[&name]), "`{name}` is not called");
    }
    for parent in ["change", "context"] {
        for name in commands(&repo, &[parent]) {
            assert!(called(&[parent, &name]), "`{parent} {name}` is not called");
        }
    }
}

#[test]
fn promise_c3_a_usage_error_is_json() {
    let repo = project();
    // Everything after `bisect run` is the command.
    for (call, _) in CALLS.iter().filter(|(call, _)| call[0] != "bisect") {
        let command = call.iter().take_while(|word| !word.starts_with('-'));
        let mut args: Vec<&str> = vec!["--json"];
        args.extend(command);
        args.push("--no-such-option");
        let out = repo.teddy(&args);
        assert_eq!(check(&out, ("Usage", 2)), json!({}), "{args:?}");
    }

    let error = |args: &[&str]| value(&repo.teddy(args))["error"].clone();
    assert_eq!(
        error(&["--json", "branch"]),
        json!({
            "kind": "Usage",
            "message": "the following required arguments were not provided: <NAME>",
            "hint": "Usage: teddy branch [TURN] <NAME>; `teddy branch --help` shows its arguments, with examples",
            "exit_code": 2,
        })
    );
    assert_eq!(
        error(&["--json", "change"])["message"],
        "a command is missing"
    );
    let hint = &error(&["statsu", "--json"])["hint"];
    assert_eq!(hint, "did you mean `teddy status`?");
    // `--json` and `--graph` exclude each other in any position.
    for args in [["--json", "log", "--graph"], ["log", "--graph", "--json"]] {
        assert_eq!(error(&args)["exit_code"], 2, "{args:?}");
    }
    // After `--`, `--json` is not an option.
    let out = repo.teddy(&["no-such-command", "--", "--json"]);
    assert_eq!((out.code, out.stdout.as_str()), (2, ""));
}

#[test]
fn promise_c3_errors_of_sessions_have_kinds() {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    fails(&repo, &["log"], ("NoSession", 1));
    repo.workflow().new_session("demo").done();
    fails(&repo, &["new", "demo"], ("SessionTaken", 1));
    fails(&repo, &["switch", "nothing"], ("SessionNotFound", 1));
    fails(&repo, &["switch"], ("NobodyToAsk", 1));
    fails(&repo, &["show", "9"], ("TurnNotFound", 1));
    fails(&repo, &["execute"], ("NoPlan", 1));
    fails(&repo, &["gc", "demo"], ("NobodyToAsk", 1));
    fails(&repo, &["start"], ("NobodyToAsk", 1));
    fails(&repo, &["new", "x", "-a", "nobody"], ("AgentNotFound", 1));
    fails(&repo, &["undo"], ("Failed", 1));
    fails(&repo, &["status", "-c", "nothing"], ("Usage", 2));
    fails(&repo, &["status", "-c", "no.such=1"], ("Usage", 2));

    repo.write("big.txt", "x".repeat(2000));
    std::fs::write(repo.beside("plan.md"), plan("One", &[create("b", "b\n")])).unwrap();
    let args = ["execute", "../plan.md", "-c", "snapshot.max_new_size=1KiB"];
    fails(&repo, &args, ("SnapshotTooLarge", 1));
}

#[test]
fn promise_c3_errors_of_models_have_kinds() {
    let repo = project();
    let plan = |model: &str, kind| {
        fails(&repo, &["plan", "-m", "x", "--model", model], (kind, 1));
    };
    fails(&repo, &["plan", "-m", "x"], ("NoModel", 1));
    plan("nothing", "ModelSettings");
    plan("openai:gpt", "NoKey");
    plan("command:no-such-program", "ModelCommand");
    plan("command:false", "ModelCommand");
    plan("command:true", "ModelCommand");
    plan("manual:chat", "NobodyToAsk");
    repo.configure("no_such_setting: 1\n");
    fails(&repo, &["status"], ("Configuration", 1));
}

#[test]
fn a_program_that_this_user_may_not_start_is_not_there() {
    let repo = project();
    let folder = repo.beside("programs");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("no-such-program"), "#!/bin/sh\n").unwrap();
    let path = format!(
        "{}:{}",
        folder.display(),
        teddy::host::env::var("PATH").unwrap()
    );

    let mut command = repo.teddy_command(&[
        "--json",
        "plan",
        "-m",
        "x",
        "--model",
        "command:no-such-program",
    ]);
    let out = Output::of(command.current_dir(repo.path()).env("PATH", path));
    check(&out, ("ModelCommand", 1));
}

#[test]
fn promise_c3_errors_of_changes_keep_their_names() {
    let repo = project();
    fails(&repo, &["change", "show", "x"], ("ChangeNotFound", 1));
    fails(&repo, &["change", "impl", "x"], ("ChangeNotFound", 1));
    fails(&repo, &["change", "plan", "x"], ("MissingDescription", 1));
    fails(&repo, &["change", "plan", "x", "An idea"], ("NoModel", 1));
    fails(&repo, &["change", "show", "No Id"], ("Usage", 2));
}

#[test]
fn promise_c3_a_lock_that_another_one_holds_is_busy() {
    let repo = project();
    let folder = repo.path().join(".git/teddy");
    let _held =
        teddy::host::lock::Lock::take(&folder, "restore", std::time::Duration::ZERO).unwrap();
    let mut command = repo.teddy_command(&["--json", "new", "other"]);
    let out = Output::of(
        command
            .current_dir(repo.path())
            .env("TEDDY_LOCK_TIMEOUT", "0"),
    );
    assert_eq!(check(&out, ("Busy", 75)), json!({}));
}

#[test]
fn promise_c3_partial_results_are_next_to_the_error() {
    let repo = project();
    let answer = plan("One", &[create("b.txt", "b\n")]);
    repo.reply(&answer).reply(&plan("Ask", &[chat("Which?")]));
    repo.done(&["plan", "-m", "x"]);
    let shown = check(&repo.teddy(&["--json", "execute"]), ("Unapproved", 1));
    assert_eq!(
        (&shown["status"], &shown["review"]["title"]),
        (&json!("planned"), &json!("One"))
    );
    let review = shown["review"].clone();
    let shown = check(&repo.teddy(&["--json", "resume"]), ("Unapproved", 1));
    assert_eq!((&shown["turns"], &shown["review"]), (&json!([]), &review));

    repo.write(".teddy/config.yaml", "execute:\n  sandbox: off\n");
    let shown = check(&repo.teddy(&["--json", "trust"]), ("NobodyToAsk", 1));
    assert_eq!(shown["trusted"], false);

    // The loop completes a turn and then fails.
    let repo = project();
    std::fs::write(repo.beside("plan.md"), &answer).unwrap();
    let folder = repo.beside("");
    let once = format!(
        "cd {} && mv plan.md used.md && cat used.md",
        folder.display()
    );
    std::fs::write(repo.beside("once.sh"), once).unwrap();
    let model = format!("command:sh {}", repo.beside("once.sh").display());
    let args = ["--json", "resume", "--yolo", "-m", "go", "--model", &model];
    let shown = check(&repo.teddy(&args), ("ModelCommand", 1));
    assert_eq!(shown["turns"].as_array().unwrap().len(), 1);
}

#[test]
fn promise_c3_a_question_that_waits_is_an_error_with_a_code_of_its_own() {
    let repo = project();
    repo.reply(&plan("Ask", &[chat("Which one?")]));
    assert_eq!(repo.teddy(&["--json", "resume", "-y", "-m", "go"]).code, 5);
    let out = repo.teddy(&["--json", "plan"]);
    let shown = check(&out, ("Unanswered", 5));
    assert_eq!(shown["question"], "Which one?");
}

/// Checks that every time in a value is in RFC 3339 and not a number.
fn check_times(name: &str, value: &Value, found: &mut usize) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            let is_time = ["time", "updated", "started", "ended", "at"].contains(&key.as_str());
            if is_time && !value.is_null() {
                let text = value.as_str().unwrap_or_else(|| panic!("{name}: {key}"));
                assert!(teddy::host::clock::parse(text).is_some(), "{name}: {text}");
                *found += 1;
            }
            check_times(name, value, found);
        }),
        Value::Array(values) => values
            .iter()
            .for_each(|value| check_times(name, value, found)),
        _ => {}
    }
}

#[test]
fn promise_c3_times_are_rfc_3339_and_unknown_numbers_null() {
    let repo = project();
    repo.reply(&plan("One", &[create("b.txt", "b\n")]));
    repo.done(&["resume", "-y", "-m", "go"]);
    let proposal = "# Change: x\n\n## Summary\nOne thing.\n";
    std::fs::write(repo.beside("proposal.md"), proposal).unwrap();
    repo.teddy(&["change", "reproposal", "x", "--from", "../proposal.md"]);
    let mut found = 0;
    for args in [
        &["log"][..],
        &["show"],
        &["sessions"],
        &["status"],
        &["change", "list"],
        &["gc", "-n"],
    ] {
        check_times(&args.join(" "), &repo.json(args, 0), &mut found);
    }
    assert!(found >= 4, "{found}");

    // The cost of recorded answers is unknown, and a plan from a file has no model.
    let row = repo.json(&["show"], 0);
    assert_eq!(row["time"], "2026-01-02T03:04:05Z");
    assert!(row["model"].is_string(), "{row}");
    for name in ["tokens_in", "tokens_out", "cost"] {
        assert_eq!(row[name], Value::Null, "{name}");
    }
}

#[test]
fn promise_c3_every_command_says_its_result_as_json() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[create("b.txt", "b\n")]));
    for args in [
        &["init"][..],
        &["setup", "--list"],
        &["new", "other"],
        &["switch", "demo"],
        &["context"],
        &["context", "add", "a.txt"],
        &["context", "rm", "a.txt"],
        &["context", "list"],
        &["status"],
        &["log"],
        &["show"],
        &["diff"],
        &["restore", "@", "-n"],
        &["undo"],
        &["redo"],
        &["land", "-n"],
        &["verify", "--rerun", "1"],
        &["branch", "1", "alt"],
        &["sessions"],
        &["browse"],
        &["export", "../out"],
        &["get-prompt"],
        &["get-prompt", "architect"],
        &["change", "list"],
        &["trust", "-y"],
        &["switch", "--adopt", "demo"],
        &["doctor", "--fix"],
        &["gc"],
        &["gc", "-n"],
        &["man"],
        &["man", "--out", "../man"],
        &["completions", "bash"],
    ] {
        assert_ne!(repo.json(args, 0), Value::Null, "{args:?}");
    }
    fails(&repo, &["context", "edit"], ("NobodyToAsk", 1));
}
