//! Agent programs seen from outside: their changes and events, and the processes they leave.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use teddy::config::settings::ModelSettings;
use teddy::host::sandbox::{Availability, Network, Policy, availability};
use teddy::model::acting::clock::AgentLimits;
use teddy::model::acting::open::open_acting;
use teddy::model::acting::transcript::render_transcript;
use teddy::model::acting::{
    AgentFailure, AgentHost, AgentProgress, AgentResult, AgentTask, EarlierConversation,
    PermissionAnswer, PermissionDecision, PermissionGiver, PermissionQuestion,
};
use teddy::model::model_env::ModelEnv;

use crate::scripted_agent::{scripted_agent, scripted_agent_with, scripted_command};
use crate::worktree::shell::launcher;

/// Records an agent's events.
struct Watcher {
    /// All events except silence.
    heard: Vec<String>,
    asked: Vec<PermissionQuestion>,
    decision: PermissionDecision,
    /// Stops the agent after this event.
    stop_at: Option<&'static str>,
    is_stopped: Cell<bool>,
}

impl Watcher {
    fn new(trial: &Trial) -> Watcher {
        Watcher {
            heard: Vec::new(),
            asked: Vec::new(),
            decision: trial.decision,
            stop_at: trial.stop_at,
            is_stopped: Cell::new(false),
        }
    }
}

impl AgentHost for Watcher {
    fn progress(&mut self, progress: AgentProgress<'_>) {
        if matches!(progress, AgentProgress::Idle(_)) {
            return;
        }
        let text = format!("{progress:?}");
        if self.stop_at.is_some_and(|word| text.contains(word)) {
            self.is_stopped.set(true);
        }
        self.heard.push(text);
    }

    fn permission(&mut self, question: &PermissionQuestion) -> PermissionAnswer {
        self.asked.push(question.clone());
        PermissionAnswer {
            decision: self.decision,
            by: PermissionGiver::Person,
        }
    }

    fn stopped(&self) -> bool {
        self.is_stopped.get()
    }
}

struct Worked {
    folder: tempfile::TempDir,
    result: Result<AgentResult, Box<AgentFailure>>,
    watcher: Watcher,
}

impl Worked {
    /// Returns the result, which must be `Ok`.
    fn work(&self) -> &AgentResult {
        match &self.result {
            Ok(work) => work,
            Err(failure) => &failure.work,
        }
    }

    /// Returns the error and its remedy.
    #[track_caller]
    fn error(&self) -> (String, String) {
        let failure = self.result.as_ref().unwrap_err();
        (failure.error.to_string(), failure.error.remedy())
    }

    fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.folder.path().join(name)).ok()
    }

    fn transcript(&self) -> Vec<Value> {
        let text = str::from_utf8(&self.work().transcript).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

struct Trial {
    /// Further lines of the agent's configuration.
    entry: &'static str,
    /// Conversation to resume.
    conversation: Option<&'static str>,
    limits: AgentLimits,
    decision: PermissionDecision,
    stop_at: Option<&'static str>,
    /// Runs in the sandbox.
    is_confined: bool,
}

impl Default for Trial {
    fn default() -> Trial {
        Trial {
            entry: "",
            conversation: None,
            limits: AgentLimits {
                total: Duration::from_secs(30),
                idle: Duration::from_secs(30),
                output: 1 << 30,
            },
            decision: PermissionDecision::Once,
            stop_at: None,
            is_confined: false,
        }
    }
}

impl Trial {
    fn run(self, kind: &str, write: impl FnOnce(&Path) -> String) -> Worked {
        let (folder, beside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let run = write(beside.path());
        let entry = format!("{{ kind: {kind}, run: {run} {} }}", self.entry);
        let entry: ModelSettings = serde_yaml::from_str(&entry).unwrap();
        let model = open_acting("mine", &entry, &ModelEnv::default()).unwrap();

        let mut watcher = Watcher::new(&self);
        let policy = Policy {
            write: vec![folder.path().to_owned(), "/dev/null".into()],
            network: Network::On,
            ..Policy::default()
        };
        let task = AgentTask {
            text: "SYSTEM\n\nINPUT\n\n# Message\n\ngo\n",
            message: "go",
            dir: folder.path(),
            launcher: launcher(self.is_confined.then_some(policy)),
            variables: vec![("MINE".to_owned(), "1".to_owned())],
            further: None,
            conversation: self.conversation.map(|id| EarlierConversation {
                id: id.to_owned(),
                ..EarlierConversation::default()
            }),
            limits: self.limits,
            mcp_servers: &[],
            is_confined: self.is_confined,
        };
        let result = model.act(&task, &mut watcher);
        Worked {
            folder,
            result,
            watcher,
        }
    }

    fn acp(self, work: &str) -> Worked {
        self.run("acp", |beside| {
            format!("[{}]", scripted_agent(beside, work).display())
        })
    }

    /// Like [`Trial::acp`], with shell functions that replace the defaults.
    fn acp_with(self, parts: &str) -> Worked {
        self.run("acp", |beside| {
            format!("[{}]", scripted_agent_with(beside, parts).display())
        })
    }

    fn command(self, arguments: &str, work: &str) -> Worked {
        self.run("agent", |beside| {
            format!("[{}{arguments}]", scripted_command(beside, work).display())
        })
    }
}

/// Checks whether a process, whose id is in a file, is still alive after a short wait.
fn lives(worked: &Worked, file: &str) -> bool {
    let pid = worked.file(file).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
fn an_agent_works_in_its_folder_and_tells_what_it_does() {
    let worked = Trial::default().acp(
        "message 'I will.'; tool 1 'Write b.txt' edit in_progress; echo new > b.txt
         tool 1 'Write b.txt' edit completed; cost 0.25; message 'Done, '; message 'really.'",
    );
    let work = worked.result.as_ref().unwrap();
    assert_eq!(worked.file("b.txt").as_deref(), Some("new\n"));
    assert_eq!(
        (
            work.message.as_str(),
            work.conversation.as_deref(),
            work.resumed
        ),
        ("Done, really.", Some("s-1"), false)
    );
    let agent = work.agent.clone().unwrap();
    assert_eq!(
        (agent.name.as_str(), agent.version.as_str()),
        ("scripted", "1.2.3")
    );
    assert_eq!(
        (work.usage.input, work.usage.output, work.cost),
        (100, 20, Some(0.25))
    );
    assert_eq!(work.stop, None);
    assert!(
        worked
            .watcher
            .heard
            .iter()
            .any(|told| told.contains("Write b.txt"))
    );
}

#[test]
fn tr1_the_transcript_has_both_sides_and_no_lists() {
    let worked = Trial::default().acp("say 'not json'; message hello; echo oops >&2");
    let lines = worked.transcript();
    assert!(lines.iter().all(|line| line["time"].is_string()));
    let methods: Vec<&str> = lines
        .iter()
        .filter(|line| line["from"] == "teddy")
        .filter_map(|line| line["message"]["method"].as_str())
        .collect();
    assert_eq!(methods, ["initialize", "session/new", "session/prompt"]);
    let text = lines.iter().map(Value::to_string).collect::<String>();
    assert!(text.contains("not json") && text.contains("oops") && text.contains("hello"));
    assert!(
        !text.contains("availableModels") && !text.contains("SYSTEM"),
        "{text}"
    );
    assert_eq!(lines.last().unwrap()["end"]["message"], "hello");
}

#[test]
fn tr2_the_first_line_is_the_start_and_the_last_one_the_end() {
    for worked in [
        Trial::default().acp("message hi"),
        Trial::default().acp("exit 1"),
        Trial::default().command("", "echo hi"),
        Trial::default().command("", "exit 1"),
    ] {
        let lines = worked.transcript();
        let (first, last) = (lines.first().unwrap(), lines.last().unwrap());
        assert!(
            first["start"]["run"][0]
                .as_str()
                .unwrap()
                .ends_with("agent.sh")
        );
        assert_eq!(last["end"]["error"].is_string(), worked.result.is_err());
        let text = render_transcript(&worked.work().transcript);
        assert_eq!(text.contains("\n- Failed: "), worked.result.is_err());
    }
}

#[test]
fn a_mode_is_set_where_the_agent_has_it() {
    let mode = |mode: &'static str| {
        let trial = Trial {
            entry: mode,
            ..Trial::default()
        };
        let worked = trial.acp("echo $mode > mode");
        let is_told = worked
            .watcher
            .heard
            .iter()
            .any(|told| told.contains("was not set"));
        (worked.file("mode").unwrap(), is_told)
    };
    assert_eq!(mode(", mode: free"), ("free\n".to_owned(), false));
    assert_eq!(mode(", mode: default"), ("default\n".to_owned(), false));
    assert_eq!(mode(", mode: other"), ("default\n".to_owned(), true));
    assert_eq!(mode(""), ("default\n".to_owned(), false));
}

#[test]
fn a_question_is_asked_once_each_time_or_once_for_all() {
    let asked = |decision: PermissionDecision| {
        let trial = Trial {
            decision,
            ..Trial::default()
        };
        let worked = trial.acp(
            "ask 'Edit a' edit; echo $allowed > 1; ask 'Edit b' edit; echo $allowed > 2
             ask 'Run' execute; echo $allowed > 3",
        );
        let answers: String = ["1", "2", "3"].map(|n| worked.file(n).unwrap()).concat();
        let given = worked
            .transcript()
            .iter()
            .filter(|l| l["permission"]["by"] == "person")
            .count();
        (answers, worked.watcher.asked.len(), given)
    };
    assert_eq!(
        asked(PermissionDecision::Once),
        ("yes\nyes\nyes\n".into(), 3, 3)
    );
    assert_eq!(
        asked(PermissionDecision::Always),
        ("yes\nyes\nyes\n".into(), 2, 2)
    );
    assert_eq!(asked(PermissionDecision::No), ("no\nno\nno\n".into(), 3, 3));
    assert_eq!(
        asked(PermissionDecision::Cancelled).0,
        "cancelled\ncancelled\ncancelled\n"
    );
}

#[test]
fn the_sandbox_answers_an_agent_that_cannot_but_ask() {
    if matches!(availability(), Availability::None(_)) {
        return;
    }
    let asked = |entry: &'static str, name: &str| {
        let trial = Trial {
            entry,
            is_confined: true,
            ..Trial::default()
        };
        let worked = trial.run("acp", |beside| {
            let agent = scripted_agent(beside, "ask 'Edit a' edit; echo $allowed > 1");
            let named = beside.join(name);
            std::fs::rename(agent, &named).unwrap();
            format!("[{}]", named.display())
        });
        let by = worked.transcript().iter().find_map(|line| {
            let by = line.pointer("/permission/by")?;
            Some(by.as_str()?.to_owned())
        });
        (by.unwrap(), worked.watcher.asked.len())
    };
    assert_eq!(asked(", state: []", "gemini"), ("sandbox".to_owned(), 0));
    assert_eq!(
        asked(", state: [], mode: default", "gemini"),
        ("person".to_owned(), 1)
    );
    assert_eq!(asked("", "other"), ("person".to_owned(), 1));
}

#[test]
fn a_conversation_is_gone_on_with_or_begun_anew_with_a_note() {
    let go_on = |parts: &str| {
        let trial = Trial {
            conversation: Some("s-7"),
            ..Trial::default()
        };
        let worked = trial.acp_with(&format!("work() {{ message hi; }}\n{parts}"));
        let is_told = worked
            .watcher
            .heard
            .iter()
            .any(|told| told.contains("a new one begins"));
        let work = worked.result.unwrap();
        (work.conversation.unwrap(), work.resumed, is_told)
    };
    assert_eq!(go_on(""), ("s-7".to_owned(), true, false));
    assert_eq!(
        go_on("resume() { fail 1 'not found'; }"),
        ("s-1".to_owned(), false, true)
    );
    let plain = "greet() { answer '{\"protocolVersion\":1}'; }";
    assert_eq!(go_on(plain), ("s-1".to_owned(), false, true));
}

#[test]
fn a_conversation_is_loaded_if_the_agent_does_not_know_how_to_resume() {
    let trial = Trial {
        conversation: Some("s-7"),
        ..Trial::default()
    };
    let worked = trial.acp_with(
        r#"work() { message hi; }
greet() { answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"resume":{}}}}'; }
resume() { say '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"unknown"}}'; }
fail() { answer '{}'; }"#,
    );
    let work = worked.result.unwrap();
    assert_eq!(
        (work.conversation.as_deref(), work.resumed),
        (Some("s-7"), true)
    );
}

#[test]
fn what_an_earlier_conversation_tells_again_is_not_said_again() {
    let trial = Trial {
        conversation: Some("s-7"),
        ..Trial::default()
    };
    let worked = trial.acp_with("work() { message new; }\nresume() { message old; answer '{}'; }");
    assert_eq!(worked.work().message, "new");
    assert!(!String::from_utf8_lossy(&worked.work().transcript).contains("\"old\""));
}

#[test]
fn an_agent_that_refuses_says_so() {
    let worked = Trial::default().acp("message 'I will not.'; stop=refusal");
    let stop = worked.result.unwrap().stop;
    assert_eq!(stop.as_deref(), Some("refusal"));
}

#[test]
fn an_agent_that_is_not_logged_in_says_how_to() {
    let worked = Trial::default().acp_with("new() { fail -32000 'Authentication required'; }");
    let (error, remedy) = worked.error();
    assert!(
        error.ends_with("agent.sh` is not logged in: Authentication required"),
        "{error}"
    );
    assert!(remedy.ends_with("; it knows Log in"), "{remedy}");
}

#[test]
fn an_agent_of_another_version_is_told_so() {
    for (version, shown) in [("2", "2"), ("0", "0"), ("\"1\"", "none"), ("null", "none")] {
        let greeting = format!("greet() {{ answer '{{\"protocolVersion\":{version}}}'; }}");
        let (error, _) = Trial::default().acp_with(&greeting).error();
        let expected = format!("speaks version {shown} of the Agent Client Protocol");
        assert!(error.contains(&expected), "{error}");
    }
}

#[test]
fn an_adapter_that_reports_less_or_more_than_this_version_works() {
    let older = r#"greet() { answer '{"protocolVersion":1}'; }
new() { answer '{"sessionId":"s-1"}'; }
work() { message Done; usage='null'; }"#;
    let newer = r#"greet() { answer '{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":3,"new":[]},"agentInfo":[],"new":{}}'; }
new() { answer '{"sessionId":"s-1","modes":[],"configOptions":{"new":1}}'; }
work() {
    update '{"sessionUpdate":"agent_message_chunk","content":[{"type":"new"}]}'
    update '{"sessionUpdate":"tool_call","toolCallId":7,"content":{"type":"new"},"locations":"new","rawOutput":[1]}'
    update '{"sessionUpdate":"usage_update","cost":"free"}'
    message Done
    stop=new_reason
}"#;
    let stop = |parts: &str| {
        let worked = Trial::default().acp_with(parts);
        let work = worked.result.unwrap();
        assert_eq!((work.message.as_str(), work.cost), ("Done", None));
        work.stop
    };
    assert_eq!(stop(older), None);
    assert_eq!(stop(newer).as_deref(), Some("new_reason"));
}

#[test]
fn an_agent_that_is_not_there_or_dies_is_named() {
    let missing = Trial::default().run("acp", |_| "[teddy-no-such-agent]".to_owned());
    assert_eq!(
        missing.error().0,
        "cannot find the program `teddy-no-such-agent`"
    );
    let claude = Trial::default().run("acp", |_| "[/nonexistent/claude-agent-acp]".to_owned());
    assert_eq!(
        claude.error().1,
        "install it with `npm install -g @agentclientprotocol/claude-agent-acp`"
    );

    let dead = Trial::default().acp("message Half; echo 'no more' >&2; exit 3");
    let (error, _) = dead.error();
    assert!(
        error.ends_with("ended before its work was done (exit status: 3): no more"),
        "{error}"
    );
    assert_eq!(dead.work().message, "Half");
    assert!(dead.transcript().last().unwrap()["end"]["error"].is_string());
}

#[test]
fn an_agent_that_is_killed_at_any_stage_is_an_error_with_what_it_did() {
    let question = "say '{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"s-1\",\"toolCall\":{\"toolCallId\":\"t\",\"title\":\"x\",\"kind\":\"edit\"},\"options\":[{\"optionId\":\"y\",\"kind\":\"allow_once\"}]}}'";
    let at_question = format!("work() {{ echo x > made; {question}; kill -9 $$; }}");
    for (parts, made) in [
        ("greet() { kill -9 $$; }", None),
        ("new() { kill -9 $$; }", None),
        (
            "work() { sleep 300 & echo x > made; kill -9 $$; }",
            Some("x\n"),
        ),
        (
            "work() { echo x > made; tool 1 Edit edit in_progress; kill -9 $$; }",
            Some("x\n"),
        ),
        (at_question.as_str(), Some("x\n")),
        (
            "work() { echo x > made; message Done; kill -9 $$; }",
            Some("x\n"),
        ),
    ] {
        let killed = Trial::default().acp_with(parts);
        let (error, _) = killed.error();
        assert!(error.contains("signal: 9"), "{parts}: {error}");
        assert_eq!(killed.file("made").as_deref(), made, "{parts}");
        let end = killed.transcript().pop();
        assert!(
            end.is_none_or(|end| end["end"]["error"].is_string()),
            "{parts}"
        );
    }
    let resumed = Trial {
        conversation: Some("s-7"),
        ..Trial::default()
    };
    let (error, _) = resumed.acp_with("resume() { kill -9 $$; }").error();
    assert!(error.contains("signal: 9"), "{error}");
}

#[test]
fn a_silent_agent_meets_the_limit_but_a_tool_may_work() {
    let silent = |work: &str| {
        let trial = Trial {
            limits: AgentLimits {
                idle: Duration::from_millis(300),
                ..Trial::default().limits
            },
            ..Trial::default()
        };
        trial
            .acp(work)
            .result
            .map_err(|failure| failure.error.to_string())
    };
    let waits = "while :; do update '{\"sessionUpdate\":\"session_info_update\"}'; sleep 0.1; done";
    // Each waits until the agent is ended.
    std::thread::scope(|scope| {
        let other = scope.spawn(|| silent(waits));
        let limit = "nothing arrived for 0.3 s";
        assert_eq!(silent("sleep 60").unwrap_err(), limit);
        assert_eq!(other.join().unwrap().unwrap_err(), limit);
    });
    assert!(silent("tool 1 Build execute in_progress; sleep 1").is_ok());
}

#[test]
fn an_agent_that_is_stopped_is_cancelled_and_not_heard_any_more() {
    let trial = Trial {
        stop_at: Some("begin"),
        ..Trial::default()
    };
    // The agent waits for the cancellation, then still asks and sends messages.
    let worked = trial.acp(
        "message begin; read -r told; echo \"$told\" > told; ask late edit; echo $allowed > late
         message late; stop=cancelled",
    );
    assert_eq!(worked.error().0, "interrupted");
    assert!(worked.file("told").unwrap().contains("session/cancel"));
    assert_eq!(worked.file("late").as_deref(), Some("cancelled\n"));
    assert_eq!(worked.work().message, "begin");
    assert!(worked.watcher.asked.is_empty());
}

#[test]
fn an_agent_that_does_not_stop_is_ended() {
    let trial = Trial {
        stop_at: Some("begin"),
        ..Trial::default()
    };
    let worked = trial.acp("trap '' TERM; echo $$ > pid; message begin; while :; do sleep 1; done");
    assert_eq!(worked.error().0, "interrupted");
    assert!(!lives(&worked, "pid"));
}

#[test]
fn a_daemon_does_not_outlive_its_agent() {
    let worked = Trial::default().acp(
        "(setsid sh -c 'echo $$ > pid; exec sleep 300' > /dev/null 2>&1 &)
              while ! test -s pid; do sleep 0.05; done; message Done",
    );
    assert!(worked.result.is_ok());
    assert!(!lives(&worked, "pid"));
}

#[test]
fn an_endless_line_and_endless_lines_are_bounded() {
    let limited = || Trial {
        limits: AgentLimits {
            output: 1 << 20,
            ..Trial::default().limits
        },
        ..Trial::default()
    };
    let line = limited().acp("head -c 1073741824 /dev/zero | tr '\\0' a");
    assert_eq!(line.error().0, "the agent printed more than 1 MB");
    assert!(line.work().transcript.len() < 1 << 20);
    let lines = limited().acp("yes \"not json $(printf %0200d 0)\"");
    assert_eq!(lines.error().0, "the agent printed more than 1 MB");
    let complaints = limited().acp("yes \"no $(printf %0200d 0)\" >&2");
    assert_eq!(complaints.error().0, "the agent printed more than 1 MB");
}

#[test]
fn what_is_unknown_is_passed_over() {
    let worked = Trial::default().acp(
        "say '[1]'; say '{}'; say '{\"method\":\"new/thing\"}'; update '{\"sessionUpdate\":\"x\"}'
         say '{\"id\":77,\"method\":\"fs/read_text_file\",\"params\":{}}'; read -r refused
         echo \"$refused\" > refused; message Done",
    );
    assert_eq!(worked.result.as_ref().unwrap().message, "Done");
    assert!(worked.file("refused").unwrap().contains("-32601"));
}

#[test]
fn an_agent_is_confined_to_its_folder_and_its_state() {
    if matches!(availability(), Availability::None(_)) {
        return;
    }
    let trial = Trial {
        is_confined: true,
        ..Trial::default()
    };
    let worked = trial.acp(
        "echo in > in; echo tmp > \"$TMPDIR/t\" && echo yes > tmp
         (echo out > ../out-of-it) 2> /dev/null; test -e ../out-of-it && echo out > out; message Done",
    );
    assert!(worked.result.is_ok(), "{:?}", worked.error());
    assert_eq!(
        (worked.file("in"), worked.file("tmp"), worked.file("out")),
        (Some("in\n".into()), Some("yes\n".into()), None)
    );
}

#[test]
fn a_command_reads_its_task_where_it_says() {
    let told = |arguments: &str| {
        let worked = Trial::default().command(
            arguments,
            "cat > stdin; echo \"$*\" > words; cat \"$2\" > file 2> /dev/null; echo done",
        );
        assert_eq!(worked.result.as_ref().unwrap().message, "done");
        let read = |name: &str| worked.file(name).unwrap();
        (read("stdin"), read("words"), read("file"))
    };
    let all = "SYSTEM\n\nINPUT\n\n# Message\n\ngo\n".to_owned();
    assert_eq!(told(", -p"), (all.clone(), "-p\n".into(), String::new()));
    assert_eq!(
        told(", -m, '{message}'"),
        (String::new(), "-m go\n".into(), String::new())
    );
    let (stdin, _, file) = told(", -f, '{input}'");
    assert_eq!((stdin, file), (String::new(), all));
}

#[test]
fn a_message_that_is_too_long_for_an_argument_says_what_to_do() {
    let (folder, words) = (tempfile::tempdir().unwrap(), "x".repeat(3 << 20));
    let config = ModelSettings::from_spec("agent:sh -c 'echo $0' '{message}'").unwrap();
    let model = open_acting("mine", &config, &ModelEnv::default()).unwrap();
    let mut watcher = Watcher::new(&Trial::default());
    let task = AgentTask {
        text: &words,
        message: &words,
        dir: folder.path(),
        launcher: launcher(None),
        variables: Vec::new(),
        further: None,
        conversation: None,
        limits: Trial::default().limits,
        mcp_servers: &[],
        is_confined: false,
    };
    let failure = model.act(&task, &mut watcher).unwrap_err();
    assert_eq!(
        failure.error.to_string(),
        "the arguments of `sh` are longer than the system allows"
    );
    assert!(failure.error.remedy().contains("`{input}`"));
}

#[test]
fn an_agent_cannot_name_a_conversation_that_would_be_an_option() {
    let worked = Trial::default()
        .acp_with("work() { message hi; }\nnew() { answer '{\"sessionId\":\"--yolo\"}'; }");
    assert_eq!(worked.result.unwrap().conversation, None);
}

#[test]
fn a_command_tells_facts_in_json_lines() {
    let trial = Trial {
        entry: ", go_on: [sh, -c, 'echo again $0', '{conversation}'], facts: { conversation: id, message: text, cost: usd, tokens_in: use.in }",
        ..Trial::default()
    };
    let worked = trial.command(
        "",
        r#"echo '{"id":"c-9","text":"half"}'; echo '{"text":"whole","usd":0.5,"use":{"in":7}}'; echo plain"#,
    );
    let work = worked.result.unwrap();
    assert_eq!(
        (work.message.as_str(), work.conversation.as_deref()),
        ("whole", Some("c-9"))
    );
    assert_eq!((work.cost, work.usage.input), (Some(0.5), 7));

    let again = |conversation| {
        let trial = Trial {
            entry: ", go_on: [sh, -c, 'echo again $0', '{conversation}']",
            conversation,
            ..Trial::default()
        };
        let work = trial.command("", "echo first").result.unwrap();
        (work.message, work.resumed)
    };
    assert_eq!(again(Some("c-9")), ("again c-9".into(), true));
    assert_eq!(again(Some("--yolo")), ("first".into(), false));
    assert_eq!(again(None), ("first".into(), false));
}

#[test]
fn the_stream_of_a_known_command_is_shown_and_rendered() {
    let codex = [
        r#"{"type":"item.completed","item":{"id":"a","type":"agent_message","text":"I will test it."}}"#,
        r#"{"type":"item.started","item":{"id":"b","type":"command_execution","command":"sh test.sh","status":"in_progress","exit_code":null,"aggregated_output":""}}"#,
        r#"{"type":"item.completed","item":{"id":"b","type":"command_execution","command":"sh test.sh","status":"failed","exit_code":1,"aggregated_output":"not 5\nbut 0\n"}}"#,
        r#"{"type":"item.completed","item":{"id":"c","type":"agent_message","text":"It fails."}}"#,
    ];
    let claude = [
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"I will test it."},{"type":"tool_use","id":"b","name":"Bash","input":{"command":"sh test.sh"}}]}}"#,
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"b","is_error":true,"content":"Exit code 1\nbut 0"}]}}"#,
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"It fails."}]}}"#,
    ];
    let gemini = [
        r#"{"type":"message","role":"assistant","content":"I will test it.","delta":true}"#,
        r#"{"type":"tool_use","tool_name":"run_shell_command","tool_id":"b","parameters":{"command":"sh test.sh"}}"#,
        r#"{"type":"tool_result","tool_id":"b","status":"error","output":"but 0"}"#,
        r#"{"type":"message","role":"assistant","content":"It fails.","delta":true}"#,
    ];
    let opencode = [
        r#"{"type":"text","part":{"type":"text","text":"I will test it."}}"#,
        r#"{"type":"tool_use","part":{"type":"tool","tool":"bash","callID":"b","state":{"status":"completed","input":{"command":"sh test.sh"},"output":"but 0","metadata":{"exit":1}}}}"#,
        r#"{"type":"text","part":{"type":"text","text":"It fails."}}"#,
    ];
    let ended = [
        (&codex[..], "failed, exit code 1", "not 5\nbut 0"),
        (&claude[..], "failed, exit code 1", "Exit code 1\nbut 0"),
        (&gemini[..], "failed", "but 0"),
        (&opencode[..], "completed, exit code 1", "but 0"),
    ];
    for (lines, status, output) in ended {
        let trial = Trial {
            entry: ", facts: { message: none }",
            ..Trial::default()
        };
        let words: Vec<String> = lines.iter().map(|line| format!("'{line}'")).collect();
        let worked = trial.command("", &format!("printf '%s\\n' {}", words.join(" ")));
        let heard = &worked.watcher.heard;
        let told = |part: &str| heard.iter().any(|told| told.contains(part));
        assert!(
            told("title: \"sh test.sh\"") && told("It fails."),
            "{heard:?}"
        );
        let result = output.lines().next().unwrap();
        assert!(told(&format!("result: \"{result}\"")), "{heard:?}");

        let text = render_transcript(&worked.work().transcript);
        let (_, course) = text.split_once("## Course\n\n").unwrap();
        assert_eq!(
            course,
            format!(
                "```text\nI will test it.\n```\n\n- `sh test.sh` (`execute`): {status}\n\n\
                 ```text\n{output}\n```\n\n```text\nIt fails.\n```\n"
            )
        );
    }
}

#[test]
fn a_command_that_fails_hangs_or_is_stopped_is_an_error() {
    let failed = Trial::default().command("", "echo part; echo no key >&2; exit 4");
    let (error, _) = failed.error();
    assert!(
        error.ends_with("failed (exit status: 4): no key"),
        "{error}"
    );
    assert_eq!(failed.work().message, "part");

    let trial = Trial {
        limits: AgentLimits {
            total: Duration::from_millis(300),
            ..Trial::default().limits
        },
        ..Trial::default()
    };
    let slow = trial.command("", "echo $$ > pid; sleep 60");
    assert_eq!(slow.error().0, "the answer was not complete after 0.3 s");
    assert!(!lives(&slow, "pid"));

    let trial = Trial {
        stop_at: Some("begin"),
        ..Trial::default()
    };
    let stopped = trial.command("", "echo begin; sleep 60");
    assert_eq!(stopped.error().0, "interrupted");
}

#[test]
fn an_agent_has_a_plain_terminal_and_is_where_it_works() {
    let worked = Trial::default().command("", "echo $TERM $NO_COLOR $MINE; tr '\\0' '\\n' < /proc/$$/environ | grep -qx \"PWD=$(pwd -P)\" && echo there; test -n \"$HOME\" && echo home; test -n \"$PATH\" && echo path");
    assert_eq!(worked.work().message, "dumb 1 1\nthere\nhome\npath");
}
