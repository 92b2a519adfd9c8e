//! First setup of a model: what is detected, offered and written, and the messages without a
//! terminal.

use std::time::Instant;

use serde_json::json;

use crate::fake::{Fake, response, stream};
use crate::machine::{Machine, write_program};
use crate::plans::{create, plan};
use crate::support::{PATIENCE, TestRepo};

/// Returns a server's list of models.
fn models(ids: &[&str]) -> String {
    let data: Vec<_> = ids.iter().map(|id| json!({ "id": id })).collect();
    let body = json!({ "object": "list", "data": data }).to_string();
    response("200 OK", "content-type: application/json\r\n", &body)
}

#[test]
fn the_list_has_what_is_there_and_what_it_is_good_for() {
    let fake = Fake::answering(&[models(&["qwen3-coder:30b", "nomic-embed-text"])]);
    let machine = Machine::new()
        .model("claude", "2.1.0 (Claude Code)", "echo ready")
        .model("gemini", "0.64.0", "echo never")
        .server(&fake);
    let out = machine.teddy(&["setup", "--list"], &[("GROQ_API_KEY", "gsk_1234")]);
    assert_eq!(out.code, 0, "{out}");
    let text = out.stdout.replace(&fake.origin, "<server>");
    assert_eq!(
        text,
        "No model is configured.\n\nFound:\n\
         \u{20} claude        Claude Code 2.1.0 · your Claude subscription, answers only\n\
         \u{20} groq          openai/gpt-oss-120b with GROQ_API_KEY · the API of Groq, paid per token\n\
         \u{20} local         qwen3-coder:30b, <server> · local, free; small models often fail; 14B or more recommended\n\
         \u{20} gemini-agent  Gemini CLI · edits files in a copy, you review\n\
         \u{20} claude-agent  Claude Code · edits files in a copy, you review\n"
    );
    assert!(fake.requests()[0].starts_with("GET /v1/models "));
    let out = machine.teddy(&["models"], &[]);
    out.check(0, &["  claude        Claude Code 2.1.0"]);
}

/// Regression: it was ignored.
#[test]
fn a_named_server_that_does_not_answer_is_reported() {
    let machine = Machine::new();
    let server = "http://127.0.0.1:9";
    let silent = "warning: no model server answers at http://127.0.0.1:9: Connection refused";
    let args = ["setup", "--list", "--server", server];
    machine.teddy(&args, &[]).check(0, &[silent]);
    let out = machine.teddy(&["setup", "--list"], &[("TEDDY_SERVERS", server)]);
    out.check(0, &[silent]);
    let fake = Fake::answering(&[response("404 Not Found", "", "")]);
    let out = machine.teddy(&["setup", "--list", "--server", &fake.origin], &[]);
    out.check(0, &["it answers with HTTP status 404 Not Found"]);
}

#[test]
fn the_list_as_json_has_what_is_configured_and_what_was_found() {
    let machine = Machine::new().model("codex", "codex-cli 0.98.0", "echo ready");
    machine
        .repo
        .configure("model: a\nmodels: { a: { kind: openai, id: x } }\n");
    let out = machine.teddy(
        &["setup", "--list", "--json"],
        &[("XAI_API_KEY", "xai-1234")],
    );
    let mut value: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    let offers = value["offers"].as_array().unwrap().iter();
    let names: Vec<&str> = offers
        .map(|offer| offer["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["codex", "xai", "codex-agent"]);
    value.as_object_mut().unwrap().remove("offers");
    assert_eq!(
        value,
        json!({
            "file": machine.file(),
            "model": "a",
            "models": [{ "name": "a", "kind": "openai", "id": "x" }],
            "keys": [{ "service": "xai", "variable": "XAI_API_KEY" }],
            "programs": [{
                "name": "codex",
                "version": "0.98.0",
                "path": machine.repo.beside("bin/codex"),
                "refused": null,
            }],
            "servers": [],
        })
    );
}

#[test]
fn programs_that_a_repository_brings_are_never_run() {
    let machine = Machine::new();
    let mark = machine.repo.beside("mark");
    let script = format!("echo run > '{}'; echo 1.0", mark.display());
    machine.repo.put("tools/here", "");
    write_program(&machine.repo.path().join("tools/claude"), &script);
    write_program(&machine.repo.path().join("codex"), &script);
    std::os::unix::fs::symlink(
        machine.repo.path().join("tools"),
        machine.repo.beside("linked"),
    )
    .unwrap();
    let path = format!(
        "{}:{}:.:tools::{}",
        machine.repo.path().join("tools").display(),
        machine.repo.beside("linked").display(),
        machine.repo.beside("bin").display()
    );
    let out = machine.teddy(&["setup", "--list"], &[("PATH", &path)]);
    out.check(0, &["No model was found"]);
    assert!(!mark.exists(), "{out}");

    // A program in a repository counts as the user's own if that repository is the home directory.
    let home = machine.repo.path().display().to_string();
    let out = machine.teddy(&["setup", "--list"], &[("PATH", &path), ("HOME", &home)]);
    out.check(0, &["  claude        Claude Code 1.0 · "]);
}

#[test]
fn hostile_answers_of_servers_neither_hang_nor_deceive() {
    let lying = Fake::answering(&[models(&["a\u{1b}[31mb", "good"])]);
    let elsewhere = Fake::answering(&[response(
        "302 Found",
        &format!("location: {}/v1/models\r\n", lying.origin),
        "",
    )]);
    let stalled = Fake::start(vec![vec![crate::fake::Act::Stall]]);
    let flood = Fake::start(vec![vec![
        crate::fake::Act::Send("HTTP/1.1 200 OK\r\n\r\n{\"data\":[".to_owned()),
        crate::fake::Act::Flood("{\"id\":\"x\"},".repeat(1000)),
    ]]);
    let machine = Machine::new()
        .program("claude", "sleep 60 & sleep 60")
        .program("codex", "printf '1.2\\033[31m\\n'")
        .server(&elsewhere)
        .server(&stalled)
        .server(&flood)
        .server(&lying);
    let start = Instant::now();
    let out = machine.teddy(&["setup", "--list"], &[]);
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    let expected = [
        "  claude        Claude Code · your",
        "  codex         Codex · your",
        "  local         good, http",
    ];
    out.check(0, &expected);
    assert!(
        !out.stdout.contains('\u{1b}') && !out.stdout.contains("31mb"),
        "{out}"
    );
    assert_eq!(lying.requests().len(), 1);
}

#[test]
fn a_named_model_is_tried_and_written_down() {
    let machine = Machine::new().model("claude", "2.1.0", "cat > /dev/null; echo ready");
    machine
        .repo
        .configure("# mine\nlimits: { cost: 1 } # low\n");
    let out = machine.teddy(&["setup", "--model", "claude"], &[]);
    out.check(0, &["It answers: ready", "Wrote `model: claude` to "]);
    let written = machine.config();
    assert_eq!(
        written,
        "# mine\nlimits: { cost: 1 } # low\nmodel: claude\nmodels:\n  claude: { kind: command, run: [claude, -p, --tools, \"\", --strict-mcp-config, --setting-sources, user], timeout: 900 }\n"
    );

    // A second run changes nothing, with `--json` too.
    machine
        .teddy(&["setup", "--model", "claude"], &[])
        .check(0, &["says `model: claude` already"]);
    let out = machine.teddy(&["setup", "--model", "claude", "--no-try", "--json"], &[]);
    let value: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(
        value,
        json!({ "model": "claude", "file": machine.file(), "written": false, "answer": null, "seconds": null })
    );
    assert_eq!(machine.config(), written);
}

#[test]
fn a_model_that_does_not_answer_is_not_written_down() {
    let machine = Machine::new().model("claude", "2.1.0", "echo 'log in first' >&2; exit 1");
    machine
        .teddy(&["setup", "--model", "claude"], &[])
        .check(1, &["log in first", "hint: ", "`--no-try`"]);
    assert_eq!(machine.config(), "");
    machine
        .teddy(&["setup", "--model", "claude", "--no-try"], &[])
        .check(0, &["Wrote"]);
    assert!(machine.config().starts_with("model: claude\n"));
}

#[test]
fn a_base_url_in_the_environment_is_asked_for_its_models_and_written() {
    let fake = Fake::answering(&[models(&["box-model", "bge-m3"]), models(&["box-model"])]);
    let machine = Machine::new();
    let base = format!("{}/openai/v1", fake.origin);
    let key = [("OPENAI_API_KEY", "sk-abc123"), ("OPENAI_BASE_URL", &base)];
    let out = machine.teddy(&["setup", "--list"], &key);
    let row = "  openai  box-model, <server> · the server in OPENAI_BASE_URL\n";
    assert!(
        out.stdout.replace(&fake.origin, "<server>").ends_with(row),
        "{out}"
    );

    // The id that the list shows is a name for it.
    let out = machine.teddy(&["setup", "--model", "box-model", "--no-try"], &key);
    out.check(0, &["Wrote `model: openai`"]);
    assert_eq!(
        machine.config(),
        format!(
            "model: openai\nmodels:\n  openai: {{ kind: openai, id: box-model, base_url: \"{base}\", api_key_env: OPENAI_API_KEY }}\n"
        )
    );
    let requests = fake.requests();
    assert!(
        requests[0].starts_with("GET /openai/v1/models "),
        "{}",
        requests[0]
    );
    assert!(
        requests[0].contains("authorization: Bearer sk-abc123"),
        "{}",
        requests[0]
    );

    // A server that lists nothing is offered with the usual id.
    let silent = Fake::answering(&[response("401 Unauthorized", "", "")]);
    let base = format!("{}/v1", silent.origin);
    let out = machine.teddy(&["setup", "--list"], &[("ANTHROPIC_BASE_URL", &base)]);
    let row = format!(
        "  anthropic  claude-sonnet-5, {} · the server in ANTHROPIC_BASE_URL\n",
        silent.origin
    );
    assert!(out.stdout.ends_with(&row), "{out}");
    assert!(!silent.requests()[0].contains("sk-abc123"));
}

#[test]
fn an_agent_is_offered_as_what_it_is_and_tried_without_a_task() {
    let greeting = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"toy","version":"0.3"}}}"#;
    let machine = Machine::new()
        .program(
            "claude-agent-acp",
            &format!("read line; pwd >&2; echo '{greeting}'; sleep 60"),
        )
        .model("codex", "codex-cli 0.98.0", "exit 1");
    let out = machine.teddy(&["setup", "--list"], &[]);
    for row in [
        "  claude-agent  Claude Code · edits files in a copy, you review\n",
        "  codex-agent   Codex · edits files in a copy, you review\n",
    ] {
        assert!(out.stdout.contains(row), "{out}");
    }
    let out = machine.teddy(&["setup", "--model", "claude-agent"], &[]);
    out.check(0, &["It answers: toy 0.3", "Wrote `model: claude-agent`"]);
    let out = machine.teddy(&["setup", "--model", "codex-agent"], &[]);
    out.check(
        0,
        &["It answers: codex-cli 0.98.0", "Wrote `model: codex-agent`"],
    );
    assert_eq!(
        machine.config(),
        "model: codex-agent\nmodels:\n  codex-agent: { kind: agent, id: codex }\n  claude-agent: { kind: acp, id: claude }\n"
    );
}

#[test]
fn a_service_is_tried_with_its_key() {
    let fake = Fake::answering(&[models(&["gpt-5"]), stream("ready", "stop", (10, 1))]);
    let machine = Machine::new();
    let base = format!("{}/v1", fake.origin);
    let key = [("OPENAI_API_KEY", "sk-abc123"), ("OPENAI_BASE_URL", &base)];
    let out = machine.teddy(&["setup", "--model", "openai:gpt-5"], &key);
    out.check(0, &["It answers: ready", "Wrote `model: openai`"]);
    assert!(!out.to_string().contains("sk-abc123"), "{out}");
    let requests = fake.requests();
    assert_eq!(requests.len(), 2);
    assert!(
        requests[1].contains("authorization: Bearer sk-abc123"),
        "{}",
        requests[1]
    );

    // Without a key, nothing is sent or written.
    std::fs::remove_file(machine.file()).unwrap();
    machine
        .teddy(&["setup", "--model", "openai"], &[])
        .check(1, &["OPENAI_API_KEY is not set", "nothing was written"]);
    assert_eq!(machine.config(), "");
}

#[test]
fn a_key_is_never_written() {
    let machine = Machine::new();
    let key = ("DEEPSEEK_API_KEY", "sk-1234567890abcdef");
    let out = machine.teddy(&["setup", "--model", "deepseek:x", "--no-try"], &[key]);
    out.check(0, &["Wrote"]);
    assert_eq!(
        machine.config(),
        "model: deepseek\nmodels:\n  deepseek: { kind: openai, id: x, base_url: \"https://api.deepseek.com/v1\", api_key_env: DEEPSEEK_API_KEY }\n"
    );
    assert!(!out.to_string().contains(key.1), "{out}");
}

#[test]
fn the_lines_for_an_unwritable_file_are_shown() {
    let machine = Machine::new();
    let real = machine.repo.beside("dotfiles.yaml");
    std::fs::write(&real, "agent: pathfinder\n").unwrap();
    std::os::unix::fs::symlink(&real, machine.file()).unwrap();
    machine
        .teddy(&["setup", "--model", "openai:gpt-5", "--no-try"], &[])
        .check(
            1,
            &[
                "left as it is: it is a link",
                "models:\n  openai: { kind: openai, id: gpt-5 }",
            ],
        );
    assert_eq!(machine.config(), "agent: pathfinder\n");
    assert!(machine.file().is_symlink());
}

#[test]
fn without_a_terminal_setup_lists_what_it_found_in_time() {
    let machine = Machine::new()
        .model("claude", "2.1.0", "echo ready")
        .program("codex", "sleep 60");
    machine.repo.workflow().new_session("demo").done();
    let start = Instant::now();
    let out = machine.teddy(&["plan", "-m", "x"], &[("OPENAI_API_KEY", "sk-1234")]);
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    out.check(
        1,
        &["no model is configured", "hint: found `claude` 2.1.0, `codex`, OPENAI_API_KEY: `teddy setup --model claude` sets it up; "],
    );
    let out = machine.teddy(&["--json", "plan", "-m", "x"], &[]);
    let value: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(value["error"]["kind"], "NoModel");
    assert!(
        value["error"]["hint"]
            .as_str()
            .unwrap()
            .starts_with("found `claude`")
    );

    machine
        .teddy(&["setup"], &[])
        .check(1, &["no model can be chosen", "teddy setup --model claude"]);
}

#[test]
fn a_new_user_gets_from_setup_to_a_plan() {
    let answer = plan("Make b", &[create("b.txt", "b\n")]);
    let fake = Fake::answering(&[
        models(&["qwen3-coder:30b"]),
        stream("ready", "stop", (10, 1)),
        stream(&answer, "stop", (10, 10)),
    ]);
    let machine = Machine::new()
        .model("claude", "2.1.0", "echo 'Please run /login' >&2; exit 1")
        .server(&fake);
    let mut screen = machine.screen(&["start", "-m", "make b"], &[]);
    let shown = screen.wait_for("manual ");
    assert!(shown.contains("No model is configured yet."), "{shown}");
    assert!(
        shown.contains("claude        Claude Code 2.1.0 · your Claude subscription"),
        "{shown}"
    );

    // The first choice does not work, so the list is shown again.
    screen.press("\r");
    screen.wait_for("Please run /login");
    screen.wait_for("hint: run `claude` by hand once");
    screen.settled();
    screen.press("\u{1b}[B\r");
    screen.wait_for("It answers: ready");
    screen.wait_for("Wrote `model: local` to ");

    // The original command continues.
    let shown = screen.wait_for("b.txt");
    assert!(shown.contains("Make b"), "{shown}");
    screen.settled();
    screen.press("a");
    while !machine.repo.path().join("b.txt").exists() {
        screen.read();
    }
    screen.wait_for("what should be done?");
    screen.settled();
    screen.press("\u{4}");
    assert_eq!(screen.end(), 0);
    let expected = format!(
        "model: local\nmodels:\n  local: {{ kind: openai, id: \"qwen3-coder:30b\", base_url: \"{}/v1\", price: {{ input: 0, output: 0, cache_read: 0 }}, timeout: 3600 }}\n",
        fake.origin
    );
    assert_eq!(machine.config(), expected);
}

#[test]
fn who_leaves_the_list_has_no_model() {
    let machine = Machine::new().model("claude", "2.1.0", "echo ready");
    let mut screen = machine.screen(&["start", "-m", "make b"], &[]);
    screen.wait_for("manual ");
    screen.settled();
    screen.press("q");
    assert_eq!(screen.end(), 1);
    let shown = screen.shown();
    assert!(shown.contains("error: no model is configured"), "{shown}");
    assert_eq!(machine.config(), "");
}

#[test]
fn every_command_that_asks_a_model_offers_to_set_one_up() {
    let machine = Machine::new().model("claude", "2.1.0", "echo ready");
    machine.repo.workflow().new_session("demo").done();
    machine
        .repo
        .run_plan(&plan("One", &[create("c.txt", "c\n")]));
    for args in [
        &["plan", "-m", "x"][..],
        &["resume", "-m", "x"],
        &["change", "plan", "x", "An idea"],
        &["change", "proposal", "x", "An idea"],
    ] {
        let mut screen = machine.screen(args, &[]);
        screen.wait_for("manual ");
        screen.settled();
        screen.press("\u{3}");
        assert_eq!(screen.end(), 130, "{args:?}: {}", screen.shown());
    }
    assert_eq!(machine.config(), "");
}

#[test]
fn what_needs_no_model_offers_none() {
    let machine = Machine::new().model("claude", "2.1.0", "echo ready");
    machine.repo.workflow().new_session("demo").done();
    let answer = machine.repo.beside("answer.md");
    std::fs::write(&answer, plan("Two", &[create("b.txt", "b\n")])).unwrap();
    let answer = answer.display().to_string();
    let mut screen = machine.screen(&["plan", "--from", &answer], &[]);
    assert_eq!(screen.end(), 0, "{}", screen.shown());

    // The waiting plan runs first.
    let mut screen = machine.screen(&["resume"], &[]);
    screen.wait_for_prompt("(q)uit ›");
    screen.settled();
    screen.press("q");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert!(!screen.written().contains("No model"), "{}", screen.shown());
}

#[test]
fn what_costs_money_is_asked_first() {
    let machine = Machine::new();
    let key = [("MISTRAL_API_KEY", "abcdef123456")];
    let mut screen = machine.screen(&["setup"], &key);
    screen.wait_for("manual ");
    screen.settled();
    screen.press("\r");
    screen.wait_for("Try mistral with one short request? It may cost a fraction of a cent. (y/n)");
    screen.settled();
    screen.press("n");
    assert_eq!(screen.end(), 0);
    assert!(
        machine.config().starts_with("model: mistral\n"),
        "{}",
        machine.config()
    );
}

#[test]
fn ctrl_c_at_the_question_about_money_writes_nothing() {
    let machine = Machine::new();
    let key = [("MISTRAL_API_KEY", "abcdef123456")];
    for args in [&["setup"][..], &["setup", "--model", "mistral"]] {
        let mut screen = machine.screen(args, &key);
        if args.len() == 1 {
            screen.wait_for("manual ");
            screen.settled();
            screen.press("\r");
        }
        screen.wait_for("It may cost a fraction of a cent. (y/n)");
        screen.settled();
        screen.press("\u{3}");
        assert_eq!(screen.end(), 130, "{}", screen.shown());
        assert!(!screen.shown().contains("Wrote"), "{}", screen.shown());
        assert_eq!(machine.config(), "", "{}", screen.shown());
    }
}

#[test]
fn teddy_alone_says_where_things_stand() {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.configure("");
    insta::assert_snapshot!(repo.printed(&[]), @r"
    No session in this repository yet.
    No model is configured yet; `teddy setup` finds one.
    --- stderr
    Next: teddy start '<what you want>'
    `teddy help` lists the commands; `teddy demo` plays a complete session.
    exit code 0
    ");
    repo.reply(&plan("Make b", &[create("b.txt", "b\n")]));
    repo.workflow().new_session("demo").done();
    repo.workflow().plan("make b").done();
    insta::assert_snapshot!(repo.printed(&[]), @r"
    Model replay:[dir]/answers
    Session demo, turn 0, on branch main
    A plan is waiting for turn 1: Make b (1 action)
    No file changed since HEAD
    --- stderr
    Next: teddy execute
    exit code 0
    ");
    assert_eq!(repo.json(&[], 0), repo.json(&["status"], 0));

    let outside = repo.teddy_in(&repo.beside("home"), &[]);
    insta::assert_snapshot!(outside.shown(&repo), @r"
    TeDDy makes each turn of AI-assisted coding a git commit: reviewed, undoable, replayable.
    In a repository, `teddy start '<what you want>'` begins; `teddy setup` finds a model first.
    `teddy demo` plays a complete session in a scratch repository; `teddy help` lists the commands.
    exit code 0
    ");
}

#[test]
fn a_mistake_in_a_model_or_a_setting_suggests_the_right_one() {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.configure("models: { sonnet: { kind: anthropic, id: x } }\n");
    repo.workflow().new_session("demo").done();
    let refused = [
        &["plan", "-m", "x", "--model", "gpt-5"][..],
        &["plan", "-m", "x", "--model", "sonet"],
        &["-c", "modle=x", "status"],
        &["-c", "execute.timout=5", "status"],
    ]
    .map(|args| repo.printed(args));
    insta::assert_snapshot!(refused.concat(), @r"
    --- stderr
    error: `gpt-5` is not a known model
    hint: did you mean `openai:gpt-5`? configured: `sonnet`
    exit code 1
    --- stderr
    error: `sonet` is not a known model
    hint: did you mean `sonnet`? configured: `sonnet`
    exit code 1
    --- stderr
    error: -c: unknown setting `modle`
    hint: did you mean `model`?
    exit code 2
    --- stderr
    error: -c: unknown setting `execute.timout`
    hint: did you mean `execute.timeout`?
    exit code 2
    ");

    repo.configure("# mine\nlimit: { cost: 1 }\n");
    insta::assert_snapshot!(repo.printed(&["status"]), @r"
    --- stderr
    error: [dir]/teddy.yaml, line 2: unknown setting `limit`
    hint: did you mean `limits`?
    exit code 1
    ");
    repo.configure("");
    repo.write(".teddy/config.yaml", "agnet: x\nmodel: y\n");
    insta::assert_snapshot!(repo.printed(&["status"]), @r"
    Session demo, turn 0, on branch main
    Ready for turn 1
    1 file changed since HEAD:
      .teddy/config.yaml
    --- stderr
    warning: settings of this repository are ignored: model (a repository may not decide that), agnet (unknown; did you mean `agent`?)
    Next: teddy '<what you want>'
    exit code 0
    ");
}
