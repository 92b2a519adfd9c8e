//! `acp`: TeDDy as an agent inside an editor, which the test plays.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::plans::{chat, create, execute, plan};
use crate::support::landing::project;
use crate::support::overlay::overlays;
use crate::support::{PATIENCE, TestRepo};

struct Editor {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    calls: u64,
    /// Answer to permission requests. `None` cancels the prompt.
    allows: Option<&'static str>,
    updates: Vec<Value>,
    /// Tool calls of permission requests.
    asked: Vec<Value>,
}

impl Editor {
    /// Starts `teddy acp` outside of the project.
    fn new(repo: &TestRepo) -> Editor {
        Editor::with(repo, &["acp"])
    }

    fn with(repo: &TestRepo, args: &[&str]) -> Editor {
        Editor::start(repo, repo.teddy_command(args))
    }

    fn start(repo: &TestRepo, mut command: Command) -> Editor {
        command
            .current_dir(repo.beside(""))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        Editor {
            stdin: child.stdin.take().unwrap(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
            calls: 0,
            allows: Some("run"),
            updates: Vec::new(),
            asked: Vec::new(),
        }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let id = json!(self.calls);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            assert!(
                self.stdout.read_line(&mut line).unwrap() > 0,
                "it has ended"
            );
            let message: Value = serde_json::from_str(&line).unwrap();
            match message["method"].as_str() {
                None if message["id"] == id => return message,
                Some("session/update") => self.updates.push(message["params"]["update"].clone()),
                Some("session/request_permission") => self.permit(&message),
                _ => panic!("{message}"),
            }
        }
    }

    fn permit(&mut self, message: &Value) {
        self.asked.push(message["params"]["toolCall"].clone());
        let options = &message["params"]["options"];
        assert_eq!(options[0]["kind"], "allow_once");
        let outcome = match self.allows {
            Some(option) => {
                let all = options.as_array().unwrap();
                let is_there = all.iter().any(|it| it["optionId"] == option);
                let first = options[0]["optionId"].as_str().unwrap();
                let option = if is_there { option } else { first };
                json!({ "outcome": "selected", "optionId": option })
            }
            None => {
                let session = &message["params"]["sessionId"];
                let params = json!({ "sessionId": session });
                self.send(&json!({ "method": "session/cancel", "params": params }));
                json!({ "outcome": "cancelled" })
            }
        };
        let id = &message["id"];
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "outcome": outcome } }));
    }

    /// Starts a conversation in a project and returns its id.
    fn begin(&mut self, repo: &TestRepo) -> String {
        let told = self.call("initialize", &json!({ "protocolVersion": 1 }));
        assert_eq!(told["result"]["protocolVersion"], 1);
        let params = json!({ "cwd": repo.path(), "mcpServers": [] });
        let begun = self.call("session/new", &params);
        begun["result"]["sessionId"].as_str().unwrap().to_owned()
    }

    /// Opens an earlier conversation and returns the answer.
    fn reopen(&mut self, method: &str, repo: &TestRepo, session: &str) -> Value {
        let params = json!({ "sessionId": session, "cwd": repo.path(), "mcpServers": [] });
        self.call(method, &params)
    }

    fn list(&mut self, repo: &TestRepo) -> Vec<Value> {
        let listed = self.call("session/list", &json!({ "cwd": repo.path() }));
        listed["result"]["sessions"].as_array().unwrap().clone()
    }

    /// Returns the messages of a kind, and clears all updates.
    fn texts(&mut self, kind: &str) -> Vec<String> {
        let updates = self.told(kind);
        let text = |update: &Value| update["content"]["text"].as_str().map(str::to_owned);
        updates.iter().filter_map(text).collect()
    }

    /// Types a command of the editor and returns what it printed.
    fn command(&mut self, session: &str, words: &str) -> String {
        self.updates.clear();
        let done = self.prompt(session, words);
        assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
        self.texts("agent_message_chunk").concat()
    }

    fn prompt(&mut self, session: &str, words: &str) -> Value {
        let prompt = json!([{ "type": "text", "text": words }]);
        let params = json!({ "sessionId": session, "prompt": prompt });
        self.call("session/prompt", &params)
    }

    /// Leaves the first permission request of a prompt open.
    fn prompt_until_asked(&mut self, session: &str, words: &str) {
        let prompt = json!([{ "type": "text", "text": words }]);
        let params = json!({ "sessionId": session, "prompt": prompt });
        self.send(
            &json!({ "jsonrpc": "2.0", "id": 99, "method": "session/prompt", "params": params }),
        );
        let mut line = String::new();
        while !line.contains("session/request_permission") {
            line.clear();
            assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0);
        }
    }

    /// Returns the updates of a kind, and clears all.
    fn told(&mut self, kind: &str) -> Vec<Value> {
        let mut updates = std::mem::take(&mut self.updates);
        updates.retain(|update| update["sessionUpdate"] == kind);
        updates
    }

    /// Closes stdin and waits for TeDDy to exit.
    fn leave(self) {
        let Editor {
            mut child, stdin, ..
        } = self;
        drop(stdin);
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn a_prompt_is_a_turn_that_runs_once_it_is_allowed() {
    let repo = project();
    repo.reply(&plan("Make d", &[create("d.txt", "d\n")]));
    let mut editor = Editor::new(&repo);
    let session = editor.begin(&repo);
    let done = editor.prompt(&session, "make d");
    assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
    assert_eq!(repo.read("d.txt"), "d\n");

    let updates = editor.updates.clone();
    let call = updates.iter().find(|it| it["sessionUpdate"] == "tool_call");
    let content = &call.unwrap()["content"];
    assert!(
        content[0]["content"]["text"]
            .as_str()
            .unwrap()
            .contains("d.txt")
    );
    assert_eq!(
        [
            &content[1]["path"],
            &content[1]["oldText"],
            &content[1]["newText"]
        ],
        [
            &json!(repo.path().join("d.txt")),
            &Value::Null,
            &json!("d\n")
        ]
    );
    let plans = editor.told("plan");
    assert_eq!(plans[0]["entries"][0]["status"], "pending");
    let last = plans.last().unwrap();
    assert_eq!(last["entries"][0]["status"], "completed");
    assert_eq!(repo.json(&["-s", "make-d", "log"], 0)[0]["title"], "Make d");
    assert_eq!(repo.json(&["status"], 0)["session"], "demo");

    repo.reply(&plan("Make e", &[create("e.txt", "e\n")]));
    editor.prompt(&session, "now make e");
    assert_eq!(repo.json(&["-s", "make-d", "log"], 0)[0]["title"], "Make e");
    editor.leave();
}

#[test]
fn a_plan_that_is_not_allowed_or_is_cancelled_does_not_run() {
    let repo = project();
    repo.reply(&plan("Make d", &[create("d.txt", "d\n")]));
    repo.reply(&plan("Make e", &[create("e.txt", "e\n")]));
    let mut editor = Editor::new(&repo);
    let session = editor.begin(&repo);
    editor.allows = Some("reject");
    let done = editor.prompt(&session, "make d");
    assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
    assert_eq!(
        repo.json(&["-s", "make-d", "log"], 0)[0]["status"],
        "declined"
    );

    editor.allows = None;
    let done = editor.prompt(&session, "make e");
    assert_eq!(done["result"]["stopReason"], "cancelled", "{done}");
    assert!(!repo.path().join("e.txt").exists());
    editor.allows = Some("run");
    let done = editor.prompt(&session, "make e after all");
    assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
    let there = ["d.txt", "e.txt"].map(|file| repo.path().join(file).exists());
    assert_eq!(there, [false, true]);
    editor.leave();
}

#[test]
fn a_command_that_fails_is_told() {
    let repo = project();
    repo.reply(&plan("Fail", &[execute("exit 3")]));
    let mut editor = Editor::new(&repo);
    let session = editor.begin(&repo);
    editor.prompt(&session, "fail");
    let statuses = editor.told("tool_call_update");
    assert_eq!(statuses.last().unwrap()["status"], "failed");
    editor.leave();
}

#[test]
fn what_is_not_asked_as_it_should_be_is_refused() {
    let repo = project();
    let mut editor = Editor::new(&repo);
    let session = editor.begin(&repo);
    let code = |answer: Value| answer["error"]["code"].as_i64().unwrap();
    assert_eq!(code(editor.call("fs/no_such", &json!({}))), -32601);
    assert_eq!(
        code(editor.call("session/new", &json!({ "cwd": "x" }))),
        -32602
    );
    let outside = json!({ "cwd": repo.beside("home") });
    let refused = editor.call("session/new", &outside);
    let words = refused["error"]["message"].as_str().unwrap().to_owned();
    assert!(words.contains("not in a git repository"), "{words}");
    assert_eq!(code(editor.prompt("nobody", "x")), -32602);
    assert_eq!(code(editor.prompt(&session, " ")), -32602);
    // No model is configured.
    assert_eq!(code(editor.prompt(&session, "x")), -32603);
    editor.send(&json!({ "method": "session/cancel", "params": {} }));
    editor.send(&json!({ "id": 99, "result": {} }));
    editor.begin(&repo);
    editor.leave();
}

#[test]
fn what_an_agent_behind_it_does_and_asks_reaches_the_editor() {
    let repo = project();
    let work = "tool 1 'Look around' read completed; tool t 'touch' execute pending; ask 'touch it' execute; test $allowed = yes && echo 1 > asked.txt; message 'Did it.'";
    crate::scripted_agent::use_scripted_agent(&repo, work);
    let mut editor = Editor::new(&repo);
    let session = editor.begin(&repo);
    let done = editor.prompt(&session, "touch it");
    assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
    assert_eq!(repo.read("asked.txt"), "1\n");
    let calls = editor.told("tool_call");
    let of = |call: &Value| ["title", "kind", "status"].map(|key| call[key].clone());
    assert_eq!(
        of(&calls[0]),
        [json!("Look around"), json!("read"), json!("completed")]
    );
    let asked = &editor.asked[0];
    assert_eq!(asked["toolCallId"], calls[1]["toolCallId"]);
    assert_eq!(
        of(asked),
        [
            json!("scripted asks: touch it"),
            json!("execute"),
            json!("pending")
        ]
    );
    let text = asked["content"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("sandbox"), "{text}");
    assert_eq!(editor.asked.len(), 2, "the agent's question, and the plan");
    editor.leave();
}

/// Regression: editors take calls with the same id for one.
#[test]
fn permission_requests_without_a_call_have_different_ids() {
    let repo = project();
    let work = "ask 'one' execute ''; ask 'two' execute ''; message 'Done.'";
    crate::scripted_agent::use_scripted_agent(&repo, work);
    let mut editor = Editor::new(&repo);
    let session = editor.begin(&repo);
    editor.prompt(&session, "go");
    let [one, two] = [0, 1].map(|at| editor.asked[at]["toolCallId"].as_str().unwrap());
    assert_eq!([&one[one.len() - 2..], &two[two.len() - 2..]], [".1", ".2"]);
    editor.leave();
}

#[test]
fn an_agent_with_an_open_question_ends_if_the_prompt_is_cancelled_or_the_editor_exits() {
    let repo = project();
    let dir = repo.beside("agent");
    std::fs::create_dir_all(&dir).unwrap();
    let work = "echo $$ > \"${0%/*}/agent.pid\"; echo 1 > begun.txt; ask 'touch it' execute; echo 2 > asked.txt; sleep 60";
    let agent = crate::scripted_agent::scripted_agent(&dir, work);
    repo.configure(&format!(
        "model: scripted\nmodels:\n  scripted: {{ kind: acp, run: [{}], state: [{}] }}\n",
        agent.display(),
        dir.display()
    ));
    let check_end = |repo: &TestRepo| {
        let pid = std::fs::read_to_string(dir.join("agent.pid")).unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        assert!(stat.is_err(), "{stat:?}");
        assert!(!repo.path().join("begun.txt").exists());
    };
    let mut editor = Editor::new(&repo);
    editor.allows = None;
    let session = editor.begin(&repo);
    let done = editor.prompt(&session, "touch it");
    assert_eq!(done["result"]["stopReason"], "cancelled", "{done}");
    assert_eq!(editor.asked[0]["title"], "scripted asks: touch it");
    check_end(&repo);

    // It leaves without an answer.
    editor.prompt_until_asked(&session, "again");
    editor.leave();
    check_end(&repo);
}

#[test]
fn an_agent_behind_it_gets_the_mcp_servers_and_the_editor_its_usage() {
    let repo = project();
    let dir = repo.beside("agent");
    std::fs::create_dir_all(&dir).unwrap();
    let agent = crate::scripted_agent::scripted_agent_with(
        &dir,
        r#"work() {
    case $opened in *'"value":"secret-of-mine"'*'"name":"files"'*) echo 1 > served.txt ;; esac
    case $opened in *web.example*) echo 2 > served.txt ;; esac
    message "I use secret-of-mine."
    cost ${dollars:-0.25}
    update '{"sessionUpdate":"tool_call_update","toolCallId":"1","title":"cargo test","kind":"execute","status":"completed","content":[{"type":"content","content":{"type":"text","text":"2 failed"}}],"rawOutput":{"exit_code":101}}'
    ask 'touch it' execute
}
new() { opened=$line; answer '{"sessionId":"s-1"}'; }
resume() { opened=$line; dollars=0.5; answer '{}'; }"#,
    );
    repo.configure(&format!(
        "model: scripted\nmodels:\n  scripted: {{ kind: acp, run: [{}] }}\n",
        agent.display()
    ));
    let mut editor = Editor::new(&repo);
    editor.call("initialize", &json!({ "protocolVersion": 1 }));
    let wrong = json!({ "cwd": repo.path(), "mcpServers": [{ "name": "x" }] });
    assert_eq!(editor.call("session/new", &wrong)["error"]["code"], -32602);
    let params = json!({ "cwd": repo.path(), "mcpServers": [
        { "name": "files", "command": "/bin/files", "args": [],
          "env": [{ "name": "KEY", "value": "secret-of-mine" }] },
        { "type": "http", "name": "web", "url": "https://web.example/?k=1", "headers": [] },
    ] });
    let begun = editor.call("session/new", &params);
    let session = begun["result"]["sessionId"].as_str().unwrap().to_owned();
    for amount in [0.25, 0.5] {
        editor.updates.clear();
        let done = editor.prompt(&session, "serve it");
        assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
        assert_eq!(repo.read("served.txt"), "1\n");
        repo.remove("served.txt");
        let updates = editor.updates.clone();
        let of = |kind: &str| {
            let mut updates = updates.iter();
            updates.find(|it| it["sessionUpdate"] == kind).cloned()
        };
        let call = of("tool_call").unwrap();
        assert_eq!(
            call["content"],
            json!([
                { "type": "content", "content": { "type": "text", "text": "2 failed" } },
                { "type": "content", "content": { "type": "text", "text": "exit code 101" } },
            ])
        );
        let usage = of("usage_update").unwrap();
        assert_eq!([&usage["used"], &usage["size"]], [&json!(1), &json!(2)]);
        assert_eq!(
            usage["cost"],
            json!({ "amount": amount, "currency": "USD" })
        );
        // Said once, in the first turn.
        let thoughts = editor.texts("agent_thought_chunk").concat();
        let is_said =
            thoughts.contains("cannot reach these MCP servers of the editor: `web` (http)");
        assert_eq!(is_said, amount == 0.25, "{thoughts}");
    }
    editor.leave();
    let transcript = repo.git(&["show", "teddy/sessions/serve-it:transcript.jsonl"]);
    assert!(
        transcript.contains(r#""mcpServers":[{"name":"files","type":"stdio"}]"#),
        "{transcript}"
    );
    // The agent said it, too.
    let session = "teddy/sessions/serve-it";
    let mut recorded = repo.git(&["log", "--format=%B", session]);
    for name in repo.git(&["ls-tree", "-r", "--name-only", session]).lines() {
        recorded.push_str(&repo.git(&["show", &format!("{session}:{name}")]));
    }
    assert!(recorded.contains("I use [redacted key]."), "{recorded}");
    assert!(!recorded.contains("secret-of-mine"), "{recorded}");
}

#[test]
fn a_model_without_an_agent_says_that_it_has_no_mcp_servers() {
    let repo = project();
    repo.reply(&plan("Say it", &[chat("It is done.")]));
    let mut editor = Editor::new(&repo);
    let params =
        json!({ "cwd": repo.path(), "mcpServers": [{ "name": "files", "command": "/x" }] });
    let begun = editor.call("session/new", &params);
    let session = begun["result"]["sessionId"].as_str().unwrap().to_owned();
    editor.prompt(&session, "say it");
    let thoughts = editor.texts("agent_thought_chunk").concat();
    assert!(
        thoughts.contains("MCP servers of the editor were not used"),
        "{thoughts}"
    );
    editor.leave();
}

/// Returns the id of a conversation with one turn, whose editor has ended.
fn conversation_of_one_turn(repo: &TestRepo) -> String {
    repo.reply(&plan("Make d", &[create("d.txt", "d\n")]));
    let mut editor = Editor::new(repo);
    let session = editor.begin(repo);
    assert_eq!(
        editor.command(&session, "/undo"),
        "This conversation has no turns yet.\n\n"
    );
    editor.prompt(&session, "make d");
    editor.leave();
    session
}

#[test]
fn an_earlier_conversation_is_listed_loaded_and_continued() {
    let repo = project();
    let session = conversation_of_one_turn(&repo);
    let mut editor = Editor::new(&repo);
    let listed = editor.list(&repo);
    let of = |row: &Value| {
        [
            row["sessionId"].clone(),
            row["title"].clone(),
            row["cwd"].clone(),
        ]
    };
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert!(
        listed
            .iter()
            .any(|row| of(row) == [json!(session), json!("make d"), json!(repo.path())])
    );
    assert!(
        listed.iter().any(|row| row["sessionId"] == "demo"),
        "{listed:?}"
    );

    let loaded = editor.reopen("session/load", &repo, &session);
    assert_eq!(loaded["result"], json!({}));
    let told = |update: &Value| {
        update["content"]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let told: Vec<String> = editor.updates.iter().map(told).collect();
    assert_eq!(told, ["make d\n\n", "**1. Make d**\n\n"]);

    repo.reply(&plan("Make e", &[create("e.txt", "e\n")]));
    editor.prompt(&session, "now make e");
    let commands = &editor.told("available_commands_update")[0]["availableCommands"];
    assert_eq!(commands[0]["name"], "undo");
    assert_eq!(repo.json(&["-s", "make-d", "log"], 0)[0]["title"], "Make e");
    assert_eq!(
        editor.reopen("session/resume", &repo, "demo")["result"],
        json!({})
    );
    assert_eq!(editor.texts("agent_message_chunk"), [""; 0]);
    editor.leave();
}

#[test]
fn commands_of_the_editor_do_what_teddy_does() {
    let repo = project();
    let session = conversation_of_one_turn(&repo);
    let mut editor = Editor::new(&repo);
    editor.reopen("session/resume", &repo, &session);
    let is_there = || repo.path().join("d.txt").exists();

    let shown = editor.command(&session, "/diff");
    assert!(
        shown.starts_with("```\n") && shown.contains("+d"),
        "{shown}"
    );
    let undone = editor.command(&session, "/undo");
    assert_eq!(
        undone,
        "```\ndelete d.txt\nYour files match turn 0: 1 file changed.\n```\n\n"
    );
    assert!(!is_there());
    editor.command(&session, "/redo 1");
    assert!(is_there());
    editor.command(&session, "/restore 0");
    assert!(!is_there());
    editor.command(&session, "/restore 1");
    assert!(is_there());
    let refused = editor.command(&session, "/undo --exact");
    assert!(refused.starts_with("`/undo` takes no options"), "{refused}");
    let failed = editor.command(&session, "/restore 99");
    assert!(failed.contains("99"), "{failed}");
    let landed = editor.command(&session, "/land Add d");
    assert_eq!(
        repo.git(&["log", "-1", "--format=%s"]).trim(),
        "Add d",
        "{landed}"
    );
    editor.leave();
}

#[test]
fn a_conversation_of_elsewhere_is_not_opened() {
    let repo = project();
    let other = project();
    let session = conversation_of_one_turn(&repo);
    let mut editor = Editor::new(&repo);
    let long = "x".repeat(1 << 20);
    for id in [
        &session,
        "",
        "make-d",
        "../demo",
        "/",
        "refs/heads/main",
        "origin/demo",
        &long,
    ] {
        let refused = editor.reopen("session/load", &other, id);
        assert_eq!(refused["error"]["code"], -32002, "{refused}");
    }
    for params in [
        json!({}),
        json!({ "cwd": "x" }),
        json!({ "cwd": repo.path(), "cursor": "x" }),
    ] {
        let refused = editor.call("session/list", &params);
        assert!(refused["error"]["code"].is_i64(), "{refused}");
    }

    // The session is gone, and another one has its name.
    repo.done(&["gc", "-y", "make-d"]);
    repo.done(&["new", "make-d"]);
    let refused = editor.reopen("session/load", &repo, &session);
    assert_eq!(refused["error"]["code"], -32002, "{refused}");
    editor.leave();
}

#[test]
fn a_conversation_follows_its_session_and_goes_with_it() {
    let repo = project();
    let session = conversation_of_one_turn(&repo);
    let notes = repo.path().join(".git/teddy/acp");
    repo.done(&["branch", "-m", "make-d", "renamed"]);
    let mut editor = Editor::new(&repo);
    assert_eq!(
        editor.reopen("session/resume", &repo, &session)["result"],
        json!({})
    );
    let ids = |editor: &mut Editor| -> Vec<Value> {
        let listed = editor.list(&repo);
        listed.iter().map(|row| row["sessionId"].clone()).collect()
    };
    assert!(ids(&mut editor).contains(&json!(session)));
    assert_eq!(std::fs::read_dir(&notes).unwrap().count(), 1);

    // Bug: each prompt of the open conversation failed.
    repo.done(&["branch", "-m", "renamed", "again"]);
    editor.command(&session, "/undo");
    assert!(!repo.path().join("d.txt").exists());
    repo.done(&["branch", "-m", "again", "renamed"]);

    repo.done(&["gc", "-y", "renamed"]);
    assert_eq!(std::fs::read_dir(&notes).unwrap().count(), 0);
    editor.leave();
}

#[test]
fn a_child_of_a_hook_that_keeps_the_output_open_does_not_block_a_command() {
    let repo = project();
    let session = conversation_of_one_turn(&repo);
    let file = repo.beside("sleeping.pid");
    let hook = repo.path().join(".git/hooks/post-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(
        &hook,
        format!("#!/bin/sh\nsleep 600 &\necho $! > {}\n", file.display()),
    )
    .unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&hook, executable).unwrap();
    let mut editor = Editor::new(&repo);
    editor.reopen("session/resume", &repo, &session);
    let begun = std::time::Instant::now();
    editor.command(&session, "/land Add d");
    assert!(begun.elapsed() < std::time::Duration::from_secs(300));
    assert_eq!(repo.git(&["log", "-1", "--format=%s"]).trim(), "Add d");
    editor.leave();
    let id: i32 = std::fs::read_to_string(file)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let child = rustix::process::Pid::from_raw(id).unwrap();
    rustix::process::kill_process(child, rustix::process::Signal::TERM).expect("it still ran");
}

#[test]
fn a_prompt_that_was_cancelled_before_it_began_makes_no_turn() {
    let repo = project();
    repo.reply(&plan("Make d", &[create("d.txt", "d\n")]));
    let mut editor = Editor::new(&repo);
    let [first, second] = [editor.begin(&repo), editor.begin(&repo)];
    let prompt = json!([{ "type": "text", "text": "make d" }]);
    // While the first prompt is asked about, the second one waits and is cancelled.
    editor.send(&json!({ "jsonrpc": "2.0", "id": "a", "method": "session/prompt", "params": { "sessionId": first, "prompt": prompt } }));
    editor.send(&json!({ "jsonrpc": "2.0", "id": "b", "method": "session/prompt", "params": { "sessionId": second, "prompt": prompt } }));
    editor.send(
        &json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": second } }),
    );
    let mut reasons = Vec::new();
    while reasons.len() < 2 {
        let mut line = String::new();
        assert!(
            editor.stdout.read_line(&mut line).unwrap() > 0,
            "it has ended"
        );
        let message: Value = serde_json::from_str(&line).unwrap();
        match message["method"].as_str() {
            Some("session/request_permission") => {
                assert_eq!(message["params"]["toolCall"]["title"], "Make d");
                assert_eq!(message["params"]["toolCall"]["content"][1]["type"], "diff");
                editor.permit(&message);
            }
            None => reasons.push([
                message["id"].clone(),
                message["result"]["stopReason"].clone(),
            ]),
            _ => {}
        }
    }
    assert_eq!(
        reasons,
        [
            [json!("a"), json!("end_turn")],
            [json!("b"), json!("cancelled")]
        ]
    );
    assert_eq!(repo.read("d.txt"), "d\n");
    editor.leave();
}

#[test]
fn the_model_of_the_call_is_asked() {
    let repo = project();
    let answer = repo.beside("other.md");
    std::fs::write(&answer, plan("Make o", &[create("o.txt", "o\n")])).unwrap();
    let model = format!("replay:{}", answer.display());
    let mut editor = Editor::with(&repo, &["acp", "--model", &model]);
    let session = editor.begin(&repo);
    let done = editor.prompt(&session, "make o");
    assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
    assert_eq!(repo.read("o.txt"), "o\n");
    editor.leave();
}

#[test]
fn commands_and_agents_behind_it_see_the_ignored_files_at_the_path_of_the_checkout() {
    if !overlays() {
        return;
    }
    let repo = project();
    repo.write(".gitignore", "deps/\n");
    repo.write("deps/lib", "dependency\n");
    let look = "cat deps/lib > lib.txt; pwd > where.txt";
    repo.reply(&plan("Look", &[execute(look)]));
    let seen = || {
        let texts = ["lib.txt", "where.txt"].map(|path| repo.read(path));
        assert!(repo.path().join("deps/lib").exists());
        repo.remove("lib.txt");
        repo.remove("where.txt");
        texts
    };
    let top = repo.path().canonicalize().unwrap();
    let expected = ["dependency\n".to_owned(), format!("{}\n", top.display())];

    let mut editor = Editor::new(&repo);
    let session = editor.begin(&repo);
    let done = editor.prompt(&session, "look");
    assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
    assert_eq!(seen(), expected);
    editor.leave();

    crate::scripted_agent::use_scripted_agent(&repo, look);
    let mut editor = Editor::new(&repo);
    let session = editor.begin(&repo);
    let done = editor.prompt(&session, "look");
    assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
    assert_eq!(seen(), expected);
    editor.leave();
}

#[test]
fn the_text_of_an_embedded_file_runs_no_command() {
    let repo = project();
    let session = conversation_of_one_turn(&repo);
    let mut editor = Editor::new(&repo);
    editor.reopen("session/resume", &repo, &session);
    let file =
        json!({ "type": "resource", "resource": { "uri": "file:///evil.md", "text": "/undo" } });
    let asked = json!({ "type": "text", "text": "what does this file say?" });
    for prompt in [json!([file, asked]), json!([file])] {
        let params = json!({ "sessionId": session, "prompt": prompt });
        repo.reply(&plan("Say it", &[chat("It says undo.")]));
        let done = editor.call("session/prompt", &params);
        assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
        assert!(repo.path().join("d.txt").exists(), "a file undid a turn");
    }
    editor.leave();
}

/// Regression: without a prompt and during a review, the first signal had no effect as long as the
/// editor kept the input open.
#[test]
fn a_signal_ends_it_while_no_prompt_runs_and_during_a_review() {
    let repo = project();
    let mut editor = Editor::new(&repo);
    editor.begin(&repo);
    end_by_signal(editor);

    repo.reply(&plan("Make d", &[create("d.txt", "d\n")]));
    let mut editor = Editor::new(&repo);
    let session = editor.begin(&repo);
    editor.prompt_until_asked(&session, "make d");
    end_by_signal(editor);
    assert!(!repo.path().join("d.txt").exists());
    repo.done(&["-s", "make-d", "execute", "-y"]);
    assert_eq!(repo.read("d.txt"), "d\n");
}

fn end_by_signal(mut editor: Editor) {
    let id = i32::try_from(editor.child.id()).unwrap();
    let child = rustix::process::Pid::from_raw(id).unwrap();
    rustix::process::kill_process(child, rustix::process::Signal::TERM).unwrap();
    let begun = std::time::Instant::now();
    while editor.child.try_wait().unwrap().is_none() {
        let is_slow = begun.elapsed() > PATIENCE;
        if is_slow {
            editor.child.kill().unwrap();
        }
        assert!(!is_slow, "it still runs");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Work of an adapter: a command that the question names by its id only, then in the resumed
/// conversation a file with its difference.
const ADAPTER: &str = r#"
round=1
resume() { round=2; answer '{}'; }
work() {
    if test $round = 1; then
        update '{"sessionUpdate":"tool_call","toolCallId":"toolu_1","title":"Make the notes","kind":"execute","status":"pending","rawInput":{"command":"echo one > notes.txt\nwc -l notes.txt"}}'
        ask '' '' toolu_1
        if test $allowed = yes; then echo one > notes.txt; fi
        update '{"sessionUpdate":"tool_call_update","toolCallId":"toolu_1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"1 notes.txt"}}]}'
        cost 0.25
        message 'Made the notes.'
    else
        update '{"sessionUpdate":"tool_call","toolCallId":"toolu_2","title":"Edit notes.txt","kind":"edit","status":"pending","content":[{"type":"diff","path":"notes.txt","oldText":"one\n","newText":"two\n"}]}'
        ask '' '' toolu_2
        if test $allowed = yes; then echo two > notes.txt; fi
        update '{"sessionUpdate":"tool_call_update","toolCallId":"toolu_2","status":"completed"}'
        cost 0.5
        message 'Changed the notes.'
    fi
}
"#;

/// Starts `teddy acp --model acp:claude` with the adapter in `PATH`.
fn editor_of_adapter(repo: &TestRepo) -> Editor {
    let bin = repo.beside("bin");
    if !bin.exists() {
        std::fs::create_dir_all(&bin).unwrap();
        let script = crate::scripted_agent::scripted_agent_with(&bin, ADAPTER);
        std::fs::rename(script, bin.join("claude-agent-acp")).unwrap();
    }
    let path = teddy::host::env::var("PATH").unwrap();
    let mut command = repo.teddy_command(&["acp", "--model", "acp:claude"]);
    command.env("PATH", format!("{}:{path}", bin.display()));
    Editor::start(repo, command)
}

/// Sends a prompt. Returns what the editor was asked, the messages and the cost so far.
fn turn_of(editor: &mut Editor, repo: &TestRepo, session: &str, words: &str) -> String {
    editor.updates.clear();
    editor.asked.clear();
    let done = editor.prompt(session, words);
    assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
    let usage = editor
        .updates
        .iter()
        .rfind(|it| it["sessionUpdate"] == "usage_update");
    let usage = usage.map(|it| it["cost"]["amount"].clone());
    let content = |part: &Value| match part["type"].as_str() {
        Some("diff") => format!("{} -> {}", part["oldText"], part["newText"]),
        _ => part["content"]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    };
    let asked = editor.asked.iter().map(|call| {
        let parts = call["content"].as_array().unwrap().iter().map(content);
        let parts: Vec<String> = parts.collect();
        format!("{} {}\n{}", call["kind"], call["title"], parts.join("\n"))
    });
    let asked: Vec<String> = asked.collect();
    let messages = editor.texts("agent_message_chunk").concat();
    let text = format!("{}\n{messages}\ncost {usage:?}", asked.join("\n"));
    // This machine might have no sandbox.
    repo.plain(&text)
        .replace("without a sandbox", "in the sandbox")
}

#[test]
fn a_whole_conversation_with_an_adapter_inside() {
    let repo = project();
    let mut editor = editor_of_adapter(&repo);
    let session = editor.begin(&repo);
    let turn = |editor: &mut Editor, words: &str| turn_of(editor, &repo, &session, words);
    insta::assert_snapshot!(turn(&mut editor, "make notes"), @r#"
    "execute" "acp:claude asks: Make the notes"
    ```text
      echo one > notes.txt
      wc -l notes.txt
    It runs in the sandbox.
    ```
    "execute" "Made the notes"
    ```text
    ▶ Reviewing Plan: "Made the notes"
      make-notes · turn 1
      The agent ran 1 command
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Made the notes.
     Changes: 1 file  +1
      notes.txt  +1  new file
        +one
     Action Plan:
      - CREATE: 1 file
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ```
    null -> "one\n"
    Made the notes.


    cost Some(Number(0.25))
    "#);
    assert_eq!(repo.read("notes.txt"), "one\n");
    insta::assert_snapshot!(turn(&mut editor, "change the notes"), @r#"
    "edit" "acp:claude asks: Edit notes.txt"
    ```text
    It runs in the sandbox.
    ```
    "one\n" -> "two\n"
    "execute" "Changed the notes"
    ```text
    ▶ Reviewing Plan: "Changed the notes"
      make-notes · turn 2
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Changed the notes.
     Changes: 1 file  +1 -1
      notes.txt  +1 -1
        @@ -1 +1 @@
        -one
        +two
     Action Plan:
      - EDIT: 1 file
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ```
    "one\n" -> "two\n"
    Changed the notes.


    cost Some(Number(0.75))
    "#);
    assert_eq!(repo.read("notes.txt"), "two\n");
    assert!(editor.command(&session, "/diff").contains("+two"));
    editor.command(&session, "/undo");
    assert_eq!(repo.read("notes.txt"), "one\n");
    editor.leave();

    let mut editor = editor_of_adapter(&repo);
    let listed = editor.list(&repo);
    let row = listed.iter().find(|row| row["sessionId"] == json!(session));
    assert_eq!(row.unwrap()["cwd"], json!(repo.path()));
    let loaded = editor.reopen("session/load", &repo, &session);
    assert_eq!(loaded["result"], json!({}));
    let replayed = editor.updates.iter();
    let replayed: Vec<&str> = replayed
        .filter_map(|it| it["content"]["text"].as_str())
        .collect();
    insta::assert_snapshot!(replayed.concat(), @r#"
    make notes

    **1. Made the notes**

    change the notes

    **2. Changed the notes**

    **3. Undo 2: Changed the notes**
    "#);
    editor.command(&session, "/redo");
    assert_eq!(repo.read("notes.txt"), "two\n");
    editor.leave();
    repo.done(&["verify"]);
}
