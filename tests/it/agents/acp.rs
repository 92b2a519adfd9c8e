//! `acp`: TeDDy as an agent inside an editor, which the test plays.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::plans::{create, execute, plan};
use crate::support::TestRepo;
use crate::support::landing::project;

struct Editor {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    calls: u64,
    /// Answer to permission requests. `None` cancels the prompt.
    allows: Option<&'static str>,
    updates: Vec<Value>,
}

impl Editor {
    /// Starts `teddy acp` outside of the project.
    fn new(repo: &TestRepo) -> Editor {
        let mut command = repo.teddy_command(&["acp"]);
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

    fn prompt(&mut self, session: &str, words: &str) -> Value {
        let prompt = json!([{ "type": "text", "text": words }]);
        let params = json!({ "sessionId": session, "prompt": prompt });
        self.call("session/prompt", &params)
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
    let folder = repo.beside("agent");
    std::fs::create_dir_all(&folder).unwrap();
    let work = "tool 1 'Look around' read completed; ask 'touch it' execute; test $allowed = yes && echo 1 > asked.txt; message 'Did it.'";
    let agent = crate::scripted_agent::scripted_agent(&folder, work);
    repo.configure(&format!(
        "model: scripted\nmodels:\n  scripted: {{ kind: acp, run: [{}] }}\n",
        agent.display()
    ));
    let mut editor = Editor::new(&repo);
    let session = editor.begin(&repo);
    let done = editor.prompt(&session, "touch it");
    assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
    assert_eq!(repo.read("asked.txt"), "1\n");
    let thoughts = editor.told("agent_thought_chunk");
    let is_told = |update: &Value| {
        update["content"]["text"]
            .to_string()
            .contains("Look around")
    };
    assert!(thoughts.iter().any(is_told), "{thoughts:?}");
    editor.leave();
}
