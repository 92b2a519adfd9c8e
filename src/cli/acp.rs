//! `teddy acp`

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
use crate::workflow::model::agents;
use crate::workflow::new;
use crate::workflow::plan::{PlanOptions, plan};
use crate::workflow::project::{Project, ProjectOptions};
use crate::workflow::resume::{Console, Ended, ResumeOptions, Typed, resume};

/// The version of the protocol that we speak.
const VERSION: u32 = 1;
/// How many sessions one editor has at most.
const MAX_SESSIONS: usize = 64;
/// The longest prompt, in bytes.
const MAX_PROMPT: usize = 4 << 20;
/// A request has no such method.
const NO_METHOD: i32 = -32601;
/// A request's parameters are wrong.
const WRONG: i32 = -32602;
/// It failed.
const FAILED: i32 = -32603;

/// Work inside an editor, as an agent of the Agent Client Protocol
///
/// An editor such as Zed starts this and speaks to it over standard input and output. Each prompt
/// is a turn with the configured model: the plan and its differences are shown in the editor, and
/// run once you allow it. Each conversation has a session of its own.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  teddy acp")]
pub(super) struct Args {}

/// Serves an editor until it leaves.
pub(super) fn run(_args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    // Each conversation names a folder of its own; one that is named here must be there all the same.
    app.folder()?;
    let mut server = AcpServer {
        app,
        wire: AcpWire::new(io::stdin(), Box::new(io::stdout())),
        sessions: BTreeMap::new(),
    };
    while let Some(message) = server.wire.next_message() {
        server.take(&message);
    }
    Ok(exit::DONE.into())
}

/// A conversation of an editor.
#[derive(Debug, Clone)]
struct AcpSession {
    /// The folder in which it is.
    folder: PathBuf,
    /// Its session, once it has one.
    name: Option<SessionName>,
}

/// Why a request is refused: code and words.
type Refused = (i32, String);

/// What serves an editor.
struct AcpServer<'a> {
    /// The running program.
    app: &'a App,
    /// The editor.
    wire: AcpWire,
    /// Its conversations, by our names for them.
    sessions: BTreeMap<String, AcpSession>,
}

impl AcpServer<'_> {
    /// Takes a message: answers a request, and passes over everything else.
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
            Err((code, words)) => self.wire.fail(id, (code, &words)),
        }
    }

    /// Begins a conversation.
    fn begin(&mut self, params: &Value) -> Result<Value, Refused> {
        let folder = PathBuf::from(params["cwd"].as_str().unwrap_or_default());
        if !folder.is_absolute() {
            return Err((WRONG, "`cwd` is not an absolute path".to_owned()));
        }
        if self.sessions.len() >= MAX_SESSIONS {
            return Err((FAILED, format!("there are {MAX_SESSIONS} sessions already")));
        }
        self.open(&folder).map_err(failed)?;

        let id = Uuid::now_v7().to_string();
        let session = AcpSession { folder, name: None };
        self.sessions.insert(id.clone(), session);
        Ok(json!({ "sessionId": id }))
    }

    /// Opens the project of a folder.
    fn open(&self, folder: &Path) -> anyhow::Result<Project> {
        Project::open(folder, self.app.places()?, ProjectOptions::default())
    }

    /// Works on a prompt.
    fn prompt(&mut self, params: &Value) -> Result<Value, Refused> {
        let id = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let Some(session) = self.sessions.get(&id).cloned() else {
            return Err((WRONG, "there is no such session".to_owned()));
        };
        let words = words(&params["prompt"]);
        if words.trim().is_empty() || words.len() > MAX_PROMPT {
            return Err((WRONG, "the prompt is empty, or too long".to_owned()));
        }

        self.wire.begin_prompt();
        let done = self.turn((&id, session), words);
        let is_cancelled = self.wire.end_prompt();
        match done {
            _ if is_cancelled => Ok(json!({ "stopReason": "cancelled" })),
            Ok(reason) => Ok(json!({ "stopReason": reason })),
            Err(error) => Err(failed(error)),
        }
    }

    /// Plans, asks, runs, and goes on as long as the model has something to do; returns why it
    /// stops.
    fn turn(
        &mut self,
        (id, session): (&str, AcpSession),
        words: String,
    ) -> anyhow::Result<&'static str> {
        let mut project = self.open(&session.folder)?;
        let root = project.repository.workdir().to_owned();
        let mut user = AcpUser::new(&mut self.wire, id, root);
        let name = match session.name {
            Some(name) => name,
            None => start(&project, &words, &mut user)?,
        };
        project.work_on(&name);
        if let Some(session) = self.sessions.get_mut(id) {
            session.name = Some(name);
        }

        let wanted = PlanOptions {
            message: Some(words),
            ..PlanOptions::default()
        };
        plan(&project, &wanted, &mut user)?;
        let wish = ResumeOptions {
            alone: true,
            ..ResumeOptions::default()
        };
        let resumed = resume(&mut project, wish, &mut user, &mut AcpConsole)?;
        let has_failed = resumed.last.as_ref().is_some_and(|last| has_failed(last));
        user.ended(has_failed);
        Ok(tell_end(&resumed.ended, &mut user))
    }
}

/// Returns whether a turn did not do what its plan says.
fn has_failed(turn: &RecordedTurn) -> bool {
    !matches!(turn.ending, TurnEnding::Ran { failed: false, .. })
}

/// Starts a session that is named after the words; the one in use stays the one in use.
fn start(project: &Project, words: &str, user: &mut AcpUser<'_>) -> anyhow::Result<SessionName> {
    let name = project.free_name(SessionName::from_title(words))?;
    let agent = agents::agent(project, &project.settings.agent)?;
    let transaction = project.enter("acp", user)?;
    new::start(&transaction, project, &name, &agent)?;
    Ok(name)
}

/// Says how it ended, and returns that as the protocol has it.
fn tell_end(ended: &Ended, user: &mut AcpUser<'_>) -> &'static str {
    match ended {
        Ended::Complete(said) | Ended::Question(said) => user.say(said),
        Ended::Overlap => user.say("The result overlaps with your own edits and is not in your files; `teddy status` says where."),
        Ended::Rejected => user.say("The plan was wrong, and no other plan was made."),
        Ended::NextCall(why) => user.say(why),
        Ended::InDoubt(_) => user.say("The plan has words beside a command and was not run; `teddy execute` reviews it."),
        Ended::Turns(_) | Ended::Cost { .. } => return "max_turn_requests",
        Ended::Left | Ended::Undecided(_) | Ended::Repeated => {}
    }
    "end_turn"
}

/// What stands around a loop in an editor: nothing.
struct AcpConsole;

impl Console for AcpConsole {
    fn recorded(&mut self, _turn: &RecordedTurn) -> anyhow::Result<()> {
        Ok(())
    }

    fn typed(&mut self, _project: &mut Project, text: String) -> anyhow::Result<Typed> {
        Ok(Typed::Message(text))
    }
}

/// Says who we are and what we can do.
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

/// Returns the words of a prompt: its texts, what is embedded, and the names of what is linked.
fn words(prompt: &Value) -> String {
    let block = |block: &Value| match block["type"].as_str()? {
        "text" => Some(block["text"].as_str()?.to_owned()),
        "resource" => Some(block["resource"]["text"].as_str()?.to_owned()),
        "resource_link" => Some(format!("`{}`", block["uri"].as_str()?)),
        _ => None,
    };
    let blocks = prompt.as_array().into_iter().flatten();
    blocks.filter_map(block).collect::<Vec<_>>().join("\n\n")
}

/// Says why a request failed.
fn failed(error: anyhow::Error) -> Refused {
    (FAILED, format!("{error:#}"))
}
