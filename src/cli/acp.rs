//! `teddy acp`: serves an editor as an agent of the Agent Client Protocol, over stdin and stdout.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use uuid::Uuid;

use super::app::App;
use super::exit;
use crate::session::name::SessionName;
use crate::ui::acp::AcpUser;
use crate::ui::acp::wire::AcpWire;
use crate::workflow::execute::result::{RecordedTurn, TurnEnding};
use crate::workflow::lifecycle;
use crate::workflow::model::agents;
use crate::workflow::plan::{PlanOptions, plan_next_turn};
use crate::workflow::project::{Project, ProjectOptions};
use crate::workflow::resume::{Console, Ended, ResumeOptions, Typed, resume};

/// Protocol version.
const VERSION: u32 = 1;
const MAX_SESSIONS: usize = 64;
/// Longest prompt, in bytes.
const MAX_PROMPT: usize = 4 << 20;
/// JSON-RPC: method not found.
const NO_METHOD: i32 = -32601;
/// JSON-RPC: invalid parameters.
const WRONG: i32 = -32602;
/// JSON-RPC: internal error.
const FAILED: i32 = -32603;

/// Work inside an editor, as an agent of the Agent Client Protocol
///
/// An editor such as Zed starts this and speaks to it over standard input and output. Each prompt
/// is a turn with the configured model: the plan and its differences are shown in the editor, and
/// run once you allow it. Each conversation has a session of its own.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  teddy acp")]
pub(super) struct Args {}

pub(super) fn run(_args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    // Each conversation names its own directory. One given with `-C` must exist anyway.
    app.dir()?;
    let mut server = AcpServer {
        app,
        wire: AcpWire::new(io::stdin(), Box::new(io::stdout())),
        sessions: BTreeMap::new(),
    };
    while let Some(message) = server.wire.next_message() {
        server.take(&message);
    }
    Ok(exit::SUCCESS.into())
}

#[derive(Debug, Clone)]
struct AcpSession {
    dir: PathBuf,
    /// `None` before the first prompt, which names the session.
    name: Option<SessionName>,
}

/// Error of a request: code and message.
type Refused = (i32, String);

struct AcpServer<'a> {
    app: &'a App,
    wire: AcpWire,
    /// Conversations by the ids that we gave the editor.
    sessions: BTreeMap<String, AcpSession>,
}

impl AcpServer<'_> {
    /// Answers a request; ignores any other message.
    fn take(&mut self, message: &Value) {
        let (method, id, params) = (&message["method"], &message["id"], &message["params"]);
        let Some(method) = method.as_str().filter(|_| !id.is_null()) else {
            return;
        };
        let result = match method {
            "initialize" => Ok(introduction()),
            "authenticate" => Ok(json!({})),
            "session/new" => self.begin(params),
            "session/prompt" => self.prompt(params),
            _ => Err((NO_METHOD, format!("there is no method `{method}`"))),
        };
        match result {
            Ok(result) => self.wire.answer(id, &result),
            Err((code, text)) => self.wire.fail(id, code, &text),
        }
    }

    fn begin(&mut self, params: &Value) -> Result<Value, Refused> {
        let dir = PathBuf::from(params["cwd"].as_str().unwrap_or_default());
        if !dir.is_absolute() {
            return Err((WRONG, "`cwd` is not an absolute path".to_owned()));
        }
        if self.sessions.len() >= MAX_SESSIONS {
            return Err((FAILED, format!("there are {MAX_SESSIONS} sessions already")));
        }
        self.open(&dir).map_err(failed)?;

        let id = Uuid::now_v7().to_string();
        let session = AcpSession { dir, name: None };
        self.sessions.insert(id.clone(), session);
        Ok(json!({ "sessionId": id }))
    }

    fn open(&self, dir: &Path) -> anyhow::Result<Project> {
        Project::open(dir, self.app.user_dirs()?, ProjectOptions::default())
    }

    fn prompt(&mut self, params: &Value) -> Result<Value, Refused> {
        let id = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let Some(session) = self.sessions.get(&id).cloned() else {
            return Err((WRONG, "there is no such session".to_owned()));
        };
        let text = prompt_text(&params["prompt"]);
        if text.trim().is_empty() || text.len() > MAX_PROMPT {
            return Err((WRONG, "the prompt is empty, or too long".to_owned()));
        }

        self.wire.begin_prompt();
        let result = self.turn(&id, session, text);
        let is_cancelled = self.wire.end_prompt();
        match result {
            _ if is_cancelled => Ok(json!({ "stopReason": "cancelled" })),
            Ok(reason) => Ok(json!({ "stopReason": reason })),
            Err(error) => Err(failed(error)),
        }
    }

    /// Plans, asks, runs, and continues as long as the model has work. Returns the stop reason.
    fn turn(
        &mut self,
        id: &str,
        session: AcpSession,
        text: String,
    ) -> anyhow::Result<&'static str> {
        let mut project = self.open(&session.dir)?;
        let root = project.repository.workdir().to_owned();
        let mut user = AcpUser::new(&mut self.wire, id, root);
        let name = match session.name {
            Some(name) => name,
            None => start(&project, &text, &mut user)?,
        };
        project.work_on(&name);
        if let Some(session) = self.sessions.get_mut(id) {
            session.name = Some(name);
        }

        let plan_options = PlanOptions {
            message: Some(text),
            ..PlanOptions::default()
        };
        plan_next_turn(&project, &plan_options, &mut user)?;
        let resume_options = ResumeOptions {
            alone: true,
            ..ResumeOptions::default()
        };
        let resumed = resume(&mut project, resume_options, &mut user, &mut AcpConsole)?;
        let has_failed = resumed.last.as_ref().is_some_and(|last| has_failed(last));
        user.ended(has_failed);
        Ok(report_end(&resumed.ended, &mut user))
    }
}

fn has_failed(turn: &RecordedTurn) -> bool {
    !matches!(turn.ending, TurnEnding::Ran { failed: false, .. })
}

/// Starts a session named after the prompt. The session in use stays in use.
fn start(project: &Project, text: &str, user: &mut AcpUser<'_>) -> anyhow::Result<SessionName> {
    let name = project.free_name(SessionName::from_title(text))?;
    let agent = agents::agent(project, &project.settings.agent)?;
    let transaction = project.enter("acp", user)?;
    lifecycle::create_session(&transaction, project, &name, &agent)?;
    Ok(name)
}

/// Tells the user how the loop ended, and returns the protocol's stop reason.
fn report_end(ended: &Ended, user: &mut AcpUser<'_>) -> &'static str {
    match ended {
        Ended::Complete(message) | Ended::Question(message) => user.send_text(message),
        Ended::Overlap => user.send_text(
            "The result is not in all of your files; `teddy status` names those that lack it.",
        ),
        Ended::Rejected => user.send_text("The plan was wrong, and no other plan was made."),
        Ended::NextCall(why) => user.send_text(why),
        Ended::InDoubt(_) => user.send_text(
            "The plan has words beside a command and was not run; `teddy execute` reviews it.",
        ),
        Ended::Turns(_) | Ended::Cost { .. } => return "max_turn_requests",
        Ended::InputCut => {
            user.send_text("The server read only a part of the input; the plan waits.")
        }
        Ended::NoPlan => user.send_text("The model answered without a plan."),
        Ended::Left | Ended::Failed | Ended::Undecided(_) | Ended::Repeated => {}
    }
    "end_turn"
}

/// Console of a loop in an editor, which has no prompt of its own.
struct AcpConsole;

impl Console for AcpConsole {
    fn recorded(&mut self, _turn: &RecordedTurn) -> anyhow::Result<()> {
        Ok(())
    }

    fn failed(&mut self, _error: anyhow::Error) {}

    fn typed(&mut self, _project: &mut Project, text: String) -> anyhow::Result<Typed> {
        Ok(Typed::Message(text))
    }
}

/// Describes the agent and its capabilities.
fn introduction() -> Value {
    json!({
        "protocolVersion": VERSION,
        "agentCapabilities": {
            "loadSession": false,
            "promptCapabilities": { "image": false, "audio": false, "embeddedContext": true },
        },
        "agentInfo": { "name": "teddy", "title": "TeDDy", "version": env!("CARGO_PKG_VERSION") },
        "authMethods": [],
    })
}

/// Returns the text of a prompt: text blocks, embedded resources, and the names of links.
fn prompt_text(prompt: &Value) -> String {
    let block = |block: &Value| match block["type"].as_str()? {
        "text" => Some(block["text"].as_str()?.to_owned()),
        "resource" => Some(block["resource"]["text"].as_str()?.to_owned()),
        "resource_link" => Some(format!("`{}`", block["uri"].as_str()?)),
        _ => None,
    };
    let blocks = prompt.as_array().into_iter().flatten();
    blocks.filter_map(block).collect::<Vec<_>>().join("\n\n")
}

fn failed(error: anyhow::Error) -> Refused {
    (FAILED, format!("{error:#}"))
}
