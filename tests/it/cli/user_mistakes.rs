//! Mistakes of users and external failures. Each message says what is wrong and what to do, and
//! nothing is left half done.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

use crate::plans::{create, execute, plan};
use crate::support::{Output, TestRepo};

fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo
}

/// Captures what a mistake must not change.
fn state(repo: &TestRepo) -> (String, String, String) {
    (
        repo.git(&["for-each-ref", "refs/teddy/sessions", "refs/heads"]),
        repo.tree(),
        repo.git(&["status", "--porcelain"]),
    )
}

/// Answers one request with this text. Returns the address.
fn serve(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).unwrap_or(0) > 2 {
                if let Some(number) = line.to_lowercase().strip_prefix("content-length:") {
                    length = number.trim().parse().unwrap();
                }
                line.clear();
            }
            let _ = reader.take(length).read_to_end(&mut Vec::new());
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

#[test]
fn a_turn_that_is_not_there_is_named_with_those_that_are() {
    let repo = project();
    let before = state(&repo);
    for args in [
        &["restore", "7"][..],
        &["show", "7"],
        &["diff", "7"],
        &["branch", "7", "x"],
        &["restore", "@~9"],
    ] {
        repo.teddy(args).check(
            1,
            &[
                "session `demo` has no turn",
                "its turns are 0 to 0",
                "teddy log",
            ],
        );
    }
    insta::assert_snapshot!(repo.printed(&["show", "nonsense"]), @"
    --- stderr
    error: session `demo` has no turn `nonsense`; its turns are 0 to 0
    hint: `teddy log` lists the turns
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["show", "demo"]), @"
    --- stderr
    error: session `demo` has no turn `demo`; its turns are 0 to 0
    hint: `demo:@` is the newest turn of session `demo`
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["land", "demo", "-m", "x"]), @"
    --- stderr
    error: `demo` is a session, not a turn
    hint: `teddy -s demo land` lands what its turns did
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["diff", "0..1"]), @"
    --- stderr
    error: session `demo` has no turn `0..1`; its turns are 0 to 0
    hint: `teddy diff 0 1` shows how the files after these two turns differ
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["show", "HEAD"]), @"
    --- stderr
    error: `HEAD` names no turn: commit [id] is not a turn of a session
    exit code 1
    ");
    assert_eq!(state(&repo), before);
}

#[test]
fn a_plan_that_cannot_be_read_is_named() {
    let repo = project();
    repo.write("bytes.md", b"# T\n\xff\n");
    let before = state(&repo);
    insta::assert_snapshot!(repo.printed(&["execute", "none.md", "-y"]), @"
    --- stderr
    error: cannot read `none.md`: no such file or directory
    hint: `teddy execute` runs the plan that waits; `-` reads one from standard input
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["execute", "bytes.md", "-y"]), @"
    --- stderr
    error: `bytes.md` is not UTF-8: line 2 has the byte 0xff; save it as UTF-8
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["execute", ".", "-y"]), @"
    --- stderr
    error: cannot read `.`: is a directory
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["plan", "--from", "none.md"]), @"
    --- stderr
    error: cannot read `none.md`: no such file or directory
    hint: `--from -` reads the answer from standard input
    exit code 1
    ");
    assert_eq!(state(&repo), before);
}

#[test]
fn without_a_session_a_hint_starts_one() {
    let repo = TestRepo::new();
    for args in [
        &["log"][..],
        &["show"],
        &["diff"],
        &["undo"],
        &["restore", "1"],
        &["export"],
        &["context"],
        &["execute"],
    ] {
        repo.teddy(args)
            .check(1, &["no session is in use", "teddy new <name>"]);
    }
    insta::assert_snapshot!(repo.printed(&["-s", "other", "log"]), @"
    --- stderr
    error: there is no session `other`
    hint: `teddy sessions` lists the sessions
    exit code 1
    ");
    assert_eq!(repo.git(&["for-each-ref"]), "");
}

#[test]
fn without_a_plan_a_hint_makes_one() {
    project().teddy(&["execute", "-y"]).check(
        1,
        &[
            "no plan is waiting in session `demo`",
            "teddy plan '<message>'",
        ],
    );
}

#[test]
fn without_a_model_a_hint_names_the_ways_to_one() {
    let repo = project();
    insta::assert_snapshot!(repo.printed(&["plan", "-m", "x"]), @"
    --- stderr
    error: no model is configured
    hint: `teddy setup` sets one up, `--model` names one for this call, and `teddy plan --from <file>` takes an answer from elsewhere
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["plan", "-m", "x", "--model", "nonsense"]), @"
    --- stderr
    error: `nonsense` is not a known model
    hint: no model is configured: `teddy setup` finds one; or use `openai:<id>`, `responses:<id>`, `anthropic:<id>`, `command:<program>`, `replay:<path>`, `acp:<agent>`, `agent:<agent>`, `manual`
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["plan", "-m", "x", "--model", "openai:gpt-5"]), @"
    --- stderr
    error: model `openai:gpt-5` has no key: OPENAI_API_KEY is not set, empty or a placeholder
    hint: set OPENAI_API_KEY, or give the model `api_key_env` or `api_key_command` in your own configuration
    exit code 1
    ");
}

#[test]
fn a_model_program_that_fails_says_nothing_or_is_not_there_makes_no_plan() {
    let repo = project();
    let before = state(&repo);
    let shown = repo.printed(&[
        "plan",
        "-m",
        "x",
        "--model",
        "command:sh -c 'echo no credit >&2; exit 9'",
    ]);
    insta::assert_snapshot!(shown, @"
    --- stderr
    Asking command:sh -c 'echo no credit >&2; exit 9' with about [n] tokens, no price set
    error: `sh` failed (exit status: 9): no credit
    hint: run it by hand: it gets the input on stdin and must print the plan on stdout; a key that it needs is named with `api_key_env`
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["plan", "-m", "x", "--model", "command:true"]), @"
    --- stderr
    Asking command:true with about [n] tokens, no price set
    error: `true` printed no answer
    hint: run it by hand: it gets the input on stdin and must print the plan on stdout; a key that it needs is named with `api_key_env`
    exit code 1
    ");
    let shown = repo.printed(&["plan", "-m", "x", "--model", "command:no-such-program"]);
    insta::assert_snapshot!(shown, @"
    --- stderr
    error: cannot find the program `no-such-program`
    hint: install it, or correct `run` in the model's entry
    exit code 1
    ");
    assert_eq!(state(&repo), before);
    assert_eq!(repo.json(&["status"], 0)["state"], "ready");
}

#[test]
fn a_servers_refusal_is_explained() {
    let repo = project();
    let cases = [
        (
            "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n",
            "does not accept the key",
        ),
        ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "m"),
        (
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: 34\r\n\r\n{\"error\":{\"message\":\"too long by\"}}",
            "too long by",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 13\r\n\r\n<html></html>",
            "not a model response",
        ),
    ];
    for (answer, words) in cases {
        let address = serve(answer);
        repo.configure(&format!(
            "model: local\nmodels:\n  local: {{ kind: openai, id: m, base_url: \"{address}\" }}\n"
        ));
        let before = state(&repo);
        repo.teddy(&["plan", "-m", "x"])
            .check(1, &[words, "hint: "]);
        assert_eq!(state(&repo), before);
    }
}

#[test]
fn a_key_is_in_no_message_and_no_object() {
    let repo = project();
    let address = serve("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n");
    repo.configure(&format!("model: local\nmodels:\n  local: {{ kind: openai, id: m, base_url: \"{address}\", api_key_env: MY_KEY }}\n"));
    let key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789";
    let mut command = repo.teddy_command(&["-v", "plan", "-m", "x"]);
    let out = crate::support::Output::of(command.env("MY_KEY", key).current_dir(repo.path()));
    assert!(
        out.code == 1 && !out.stderr.contains(key) && !out.stdout.contains(key),
        "{out}"
    );
    let objects = repo.git(&[
        "cat-file",
        "--batch-all-objects",
        "--batch-check=%(objectname)",
    ]);
    assert!(
        objects
            .lines()
            .all(|id| !repo.git(&["cat-file", "-p", id]).contains(key))
    );
}

#[test]
fn a_wrong_configuration_is_named_with_its_file() {
    let repo = project();
    repo.configure("modle: x\n")
        .teddy(&["status"])
        .check(1, &["teddy.yaml", "modle"]);
    repo.configure("model: [\n")
        .teddy(&["status"])
        .check(1, &["teddy.yaml"]);
    repo.configure("");
    insta::assert_snapshot!(repo.printed(&["-c", "replan.max=many", "status"]), @"
    --- stderr
    error: -c replan.max: must be a whole number that is not negative, not `many`
    exit code 2
    ");
    insta::assert_snapshot!(repo.printed(&["-c", "nonsense", "status"]), @"
    --- stderr
    error: `-c nonsense`: write `key=value`
    exit code 2
    ");
}

#[test]
fn another_teddy_at_work_is_waited_for_and_then_named() {
    let repo = project();
    let folder = repo.path().join(".git/teddy");
    let held =
        teddy::host::lock::Lock::take(&folder, "restore", std::time::Duration::ZERO).unwrap();
    let text = plan("One", &[create("one.txt", "1\n")]);
    std::fs::write(repo.beside("plan.md"), &text).unwrap();
    let started = std::time::Instant::now();
    let mut command = repo.teddy_command(&["execute", "../plan.md", "-y"]);
    let command = command.current_dir(repo.path());
    crate::support::Output::of(command.env("TEDDY_LOCK_TIMEOUT", "0.5")).check(75, &["restore"]);
    assert!(started.elapsed().as_secs_f64() > 0.5);
    drop(held);
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
}

#[test]
fn results_go_to_a_closed_pipe_without_a_panic() {
    let repo = project();
    let mut child = repo
        .teddy_command(&["get-prompt", "developer"])
        .current_dir(repo.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let out = crate::support::Output::from(child.wait_with_output().unwrap());
    assert!(!out.stderr.contains("panicked"), "{out}");
}

/// Bug: the line numbers were those of the repaired plan.
#[test]
fn mistakes_of_a_plan_file_have_its_line_numbers() {
    let repo = project();
    let text = "Sure! Here it is:\n\n".to_owned()
        + &plan("One", &[crate::plans::edit("gone.txt", "a", "b")]);
    let line = 1 + text.lines().position(|line| line.contains("EDIT")).unwrap();
    std::fs::write(repo.beside("mine.md"), text).unwrap();
    repo.teddy(&["execute", "../mine.md", "-y", "--no-replan"])
        .check(3, &[&format!("\n../mine.md:{line}: EDIT gone.txt: ")]);
}

#[test]
fn a_single_word_is_not_taken_for_what_it_is_not() {
    let repo = TestRepo::new().file("greet.sh", "echo\n");
    repo.commit("init");
    insta::assert_snapshot!(repo.printed(&["start", "slowly", "-y"]), @"
    --- stderr
    error: no model is configured
    hint: `teddy setup` sets one up, `--model` names one for this call, and `teddy plan --from <file>` takes an answer from elsewhere
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["start", "greeet.sh", "-y"]), @"
    --- stderr
    error: there is no file `greeet.sh`
    hint: did you mean `greet.sh`? `-m 'greeet.sh'` makes it the message
    exit code 2
    ");
    // There is no similar file, but a path is still not taken for a message.
    for command in ["start", "plan", "ask", "resume"] {
        repo.teddy(&[command, "docs/spec.md"]).check(
            2,
            &[
                "there is no file `docs/spec.md`",
                "hint: `-m 'docs/spec.md'` makes it the message",
            ],
        );
    }
    insta::assert_snapshot!(repo.printed(&["race", "--with", "a,b"]), @"
    --- stderr
    error: a race needs a message
    hint: `teddy race '<message>' --with <models>` gives it
    exit code 2
    ");
    insta::assert_snapshot!(repo.printed(&["setup", "--server", "foo"]), @"
    --- stderr
    error: `foo` is not the address of a server
    hint: write it like `http://[host]`
    exit code 2
    ");
}

#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let repo = TestRepo::new();
    for option in ["--help", "--version", "-vV", "help"] {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let status = repo
            .teddy_command(&[option])
            .stdout(full.unwrap())
            .stderr(std::process::Stdio::null())
            .status();
        assert_eq!(status.unwrap().code(), Some(1), "{option}");
    }
}

#[test]
fn a_missing_folder_for_temporary_files_is_replaced() {
    let repo = TestRepo::new();
    std::fs::write(repo.beside("plan.md"), plan("Run", &[execute("true")])).unwrap();
    let out = Output::of(
        repo.teddy_command(&["execute", "../plan.md", "-y"])
            .env("TMPDIR", "/nowhere")
            .current_dir(repo.path()),
    );
    out.check(0, &["turn 1 executed"]);
}

#[test]
fn a_wrong_number_option_or_word_has_a_hint() {
    let repo = project();
    repo.write("loud.sh", "echo\n");
    for (line, words) in [
        (&["undo", "0"][..], "write a number of turns, 1 or more"),
        (&["redo", "x"], "write a number of turns, 1 or more"),
        (&["log", "-n", "x"], "write a number, such as `10`"),
        (
            &["gc", "--idle-days", "x"],
            "write a number of days, 0 or more",
        ),
        (
            &["resume", "--max-turns", "0"],
            "write a number of turns, 1 or more",
        ),
        (
            &["resume", "--max-cost=-1"],
            "write an amount of dollars, 0 or more",
        ),
    ] {
        repo.teddy(line).check(2, &[words]);
    }
    let out = repo.teddy(&["undo", "-x"]);
    out.check(2, &["unexpected argument"]);
    assert!(!out.stderr.contains("as a value"), "{out}");
    insta::assert_snapshot!(repo.printed(&["help", "nope"]), @"
    --- stderr
    error: there is no command `nope`
    hint: `teddy --help` lists the commands
    exit code 2
    ");
    insta::assert_snapshot!(repo.printed(&["diff", "loud.sh"]), @"
    --- stderr
    error: session `demo` has no turn `loud.sh`; its turns are 0 to 0
    hint: `teddy diff -- loud.sh` is about the file
    exit code 1
    ");
}

#[test]
fn a_message_with_a_waiting_plan_is_reported_before_the_review() {
    let repo = TestRepo::new();
    repo.workflow().new_session("demo").done();
    std::fs::write(
        repo.beside("plan.md"),
        plan("Make b", &[create("b.txt", "b\n")]),
    )
    .unwrap();
    repo.done(&["plan", "-m", "go", "--from", "../plan.md"]);
    let out = repo.teddy(&["slowly please"]);
    insta::assert_snapshot!(out.shown(&repo), @r#"
    --- stderr
    a plan is waiting and comes first; your message is for the turn after it
    ▶ Reviewing Plan: "Make b"
      demo · turn 1 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Make b, because it is wanted.
     Changes: 1 file  +1
      b.txt  +1  new file
        +b
     Action Plan:
      - CREATE: 1 file
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    your message was not used, because a plan is still waiting; `teddy plan '<message>'` asks for another one instead
    error: stdin is not a terminal, so TeDDy cannot ask for approval of this plan
    hint: `-y` approves it
    exit code 1
    "#);
    let first = out.stderr.find("comes first").unwrap();
    assert!(first < out.stderr.find("CREATE").unwrap(), "{out}");
}
