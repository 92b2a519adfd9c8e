//! `teddy acp`: serves an editor as an agent of the Agent Client Protocol, over stdin and stdout.

mod commands;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use uuid::Uuid;

use self::commands::{COMMANDS, typed_command};
use super::app::App;
use super::complete;
use crate::config::settings::ModelKind;
use crate::model::acting::ACP_VERSION;
use crate::model::acting::mcp::McpServer;
use crate::project::Project;
use crate::query::history::{self, SessionRow};
use crate::session::artifact;
use crate::session::meta::MessageOrigin;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::beginning;
use crate::text::sanitize::{excerpt_at_word, sanitize_line};
use crate::ui::acp::AcpUser;
use crate::ui::acp::wire::{AcpWire, PROMPT};
use crate::workflow::conversation::{conversations, keep_conversation, session_of};
use crate::workflow::execute::result::{RecordedTurn, TurnEnding};
use crate::workflow::lifecycle;
use crate::workflow::model::{budget, choose};
use crate::workflow::plan::{PlanOptions, plan_next_turn};
use crate::workflow::resume::{Console, Ended, ResumeOptions, Typed, resume};

const MAX_SESSIONS: usize = 64;
/// Longest prompt, in bytes.
const MAX_PROMPT: usize = 4 << 20;
/// JSON-RPC: method not found.
const NO_METHOD: i32 = -32601;
/// JSON-RPC: invalid parameters.
const WRONG: i32 = -32602;
/// JSON-RPC: internal error.
const FAILED: i32 = -32603;
/// ACP: resource not found.
const NOT_FOUND: i32 = -32002;

/// Serve an editor over the Agent Client Protocol
///
/// An editor such as Zed starts this and speaks to it over standard input and output. Each prompt
/// is a turn with the session's or the configured model: the plan and its differences are shown in the editor, and
/// run once you allow it. Each conversation has a session of its own.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy acp\n  teddy acp --model acp:claude     an agent, with a turn for each prompt"
)]
pub(super) struct Args {
    /// The model: a name from the configuration, or `kind:id`
    #[arg(long, value_name = "MODEL", add = complete::with(complete::models))]
    model: Option<String>,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<()> {
    // Each conversation names its own directory. One given with `-C` must exist anyway.
    app.dir()?;
    let mut server = AcpServer {
        app,
        wire: AcpWire::new(io::stdin(), Box::new(io::stdout())),
        model: args.model,
        sessions: BTreeMap::new(),
    };
    while let Some(message) = server.wire.next_message() {
        server.take(&message);
    }
    Ok(())
}

#[derive(Debug, Clone)]
struct AcpSession {
    dir: PathBuf,
    /// Programs that the user configured in the editor. Never kept in a file.
    mcp_servers: Vec<McpServer>,
    /// `None` before the first prompt, which names the session.
    name: Option<SessionName>,
}

/// Error of a request: code and message.
type Refused = (i32, String);

struct AcpServer<'a> {
    app: &'a App,
    wire: AcpWire,
    /// `None` for the session's model, else the configured one.
    model: Option<String>,
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
            "session/list" => self.list(params),
            "session/load" => self.reopen(params, true),
            "session/resume" => self.reopen(params, false),
            PROMPT => self.prompt(id, params),
            _ => Err((NO_METHOD, format!("there is no method `{method}`"))),
        };
        match result {
            Ok(result) => {
                self.wire.answer(id, &result);
                self.offer_commands(method, params, &result);
            }
            Err((code, text)) => self.wire.fail(id, code, &text),
        }
    }

    /// Sends the commands of a session that was opened. An editor expects them after its id.
    fn offer_commands(&mut self, method: &str, params: &Value, result: &Value) {
        let id = match method {
            "session/new" => &result["sessionId"],
            "session/load" | "session/resume" => &params["sessionId"],
            _ => return,
        };
        let id = id.as_str().unwrap_or_default();
        AcpUser::new(&mut self.wire, id, PathBuf::new()).send_commands(&COMMANDS);
    }

    fn begin(&mut self, params: &Value) -> Result<Value, Refused> {
        let dir = directory(params)?;
        let mcp_servers = mcp_servers(params)?;
        let id = Uuid::now_v7().to_string();
        self.check_count(&id)?;
        self.open(&dir).map_err(failed)?;

        let session = AcpSession {
            dir,
            mcp_servers,
            name: None,
        };
        self.sessions.insert(id.clone(), session);
        Ok(json!({ "sessionId": id }))
    }

    fn check_count(&self, id: &str) -> Result<(), Refused> {
        if self.sessions.len() >= MAX_SESSIONS && !self.sessions.contains_key(id) {
            return Err((FAILED, format!("there are {MAX_SESSIONS} sessions already")));
        }
        Ok(())
    }

    fn open(&self, dir: &Path) -> anyhow::Result<Project> {
        let mut options = self.app.project_options()?;
        // The editor names the session.
        options.session = None;
        Project::open(dir, self.app.user_dirs()?, options)
    }

    /// Lists the sessions of a repository.
    fn list(&self, params: &Value) -> Result<Value, Refused> {
        let dir = match &params["cwd"] {
            Value::Null => self.app.dir().map_err(failed)?,
            _ => directory(params)?,
        };
        let start = match &params["cursor"] {
            Value::Null => Some(0),
            cursor => cursor.as_str().and_then(|cursor| cursor.parse().ok()),
        };
        let Some(start) = start else {
            return Err((WRONG, "unknown `cursor`".to_owned()));
        };
        let project = self.open(&dir).map_err(failed)?;
        list_conversations(&project, start).map_err(failed)
    }

    /// Opens a session that is in git, and sends its turns if `is_shown`.
    fn reopen(&mut self, params: &Value, is_shown: bool) -> Result<Value, Refused> {
        let dir = directory(params)?;
        let mcp_servers = mcp_servers(params)?;
        let id = params["sessionId"].as_str().unwrap_or_default();
        self.check_count(id)?;
        let is_elsewhere = |open: &AcpSession| open.dir != dir;
        if self.sessions.get(id).is_some_and(is_elsewhere) {
            let message = "this session is open in another directory";
            return Err((WRONG, message.to_owned()));
        }
        let project = self.open(&dir).map_err(failed)?;
        let Some(name) = find_conversation(&project, id).map_err(failed)? else {
            return Err((NOT_FOUND, "this repository has no such session".to_owned()));
        };

        if is_shown {
            let root = project.repository.workdir().to_owned();
            let mut user = AcpUser::new(&mut self.wire, id, root);
            replay(&project, &name, &mut user).map_err(failed)?;
        }
        let session = AcpSession {
            dir,
            mcp_servers,
            name: Some(name),
        };
        self.sessions.insert(id.to_owned(), session);
        Ok(json!({}))
    }

    fn prompt(&mut self, request: &Value, params: &Value) -> Result<Value, Refused> {
        let id = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let was_cancelled = self.wire.begin_prompt(request, &id);
        let result = match was_cancelled {
            true => Ok("cancelled"),
            false => self.answer(&id, params),
        };
        let is_cancelled = self.wire.end_prompt();
        match result {
            Err(refused @ (WRONG, _)) => Err(refused),
            _ if is_cancelled => Ok(json!({ "stopReason": "cancelled" })),
            Ok(reason) => Ok(json!({ "stopReason": reason })),
            Err(refused) => Err(refused),
        }
    }

    /// Runs a command of the editor or a turn. Returns the stop reason.
    fn answer(&mut self, id: &str, params: &Value) -> Result<&'static str, Refused> {
        let Some(mut session) = self.sessions.get(id).cloned() else {
            return Err((WRONG, "there is no such session".to_owned()));
        };
        if session.name.is_some() {
            // It can have been renamed since.
            let project = self.open(&session.dir).map_err(failed)?;
            session.name = find_conversation(&project, id).map_err(failed)?;
            if session.name.is_none() {
                return Err((
                    NOT_FOUND,
                    "the session of this conversation is gone".to_owned(),
                ));
            }
        }
        let text = prompt_text(&params["prompt"]);
        if text.trim().is_empty() || text.len() > MAX_PROMPT {
            return Err((WRONG, "the prompt is empty, or too long".to_owned()));
        }

        let Some(arguments) = typed_text(&params["prompt"]).and_then(typed_command) else {
            return self.turn(id, session, text).map_err(failed);
        };
        let mut user = AcpUser::new(&mut self.wire, id, PathBuf::new());
        match (arguments, &session.name) {
            (Err(message), _) => user.send_text(&message),
            (_, None) => user.send_text("This conversation has no turns yet."),
            (Ok(arguments), Some(name)) => {
                let output =
                    commands::run(&session.dir, name, &self.app.global.setting, &arguments);
                user.send_text(&output.map_err(failed)?);
            }
        }
        Ok("end_turn")
    }

    /// Plans, asks, runs, and continues as long as the model has work. Returns the stop reason.
    fn turn(
        &mut self,
        id: &str,
        session: AcpSession,
        text: String,
    ) -> anyhow::Result<&'static str> {
        let mut project = self.open(&session.dir)?;
        project.mcp_servers = session.mcp_servers;
        let root = project.repository.workdir().to_owned();
        let mut user = AcpUser::new(&mut self.wire, id, root);
        let name = match session.name {
            Some(name) => name,
            None => start(&project, id, &text, &mut user)?,
        };
        project.work_on(&name);
        let tip = project.store().tip(&name)?;
        let draft = project.store().draft(&tip)?;
        user.set_spent(budget::session_spending(&project, &tip, &draft)?);
        let is_first = tip.number() == 0;
        let model = self.model.clone().or_else(|| project.model_of(&name));
        let is_protocol = model.is_some_and(|model| speaks_protocol(&project, &model));
        if let Some(session) = self.sessions.get_mut(id) {
            session.name = Some(name);
        }

        let plan_options = PlanOptions {
            message: Some(text),
            model: self.model.clone(),
            ..PlanOptions::default()
        };
        plan_next_turn(&project, &plan_options, &mut user)?;
        let resume_options = ResumeOptions {
            alone: true,
            model: self.model.clone(),
            ..ResumeOptions::default()
        };
        let resumed = resume(&mut project, resume_options, &mut user, &mut AcpConsole)?;
        let has_failed = resumed.last.as_ref().is_some_and(|last| has_failed(last));
        user.ended(has_failed);
        if is_first && !project.mcp_servers.is_empty() && !is_protocol {
            user.send_thought(
                "The MCP servers of the editor were not used: TeDDy passes them to an agent of the \
                 protocol, such as `teddy acp --model acp:claude`.",
            );
        }
        Ok(report_end(&resumed.ended, &mut user))
    }
}

fn has_failed(turn: &RecordedTurn) -> bool {
    !matches!(turn.ending, TurnEnding::Ran { failed: false, .. })
}

/// Starts a session named after the prompt. The session in use stays in use.
fn start(
    project: &Project,
    id: &str,
    text: &str,
    user: &mut AcpUser<'_>,
) -> anyhow::Result<SessionName> {
    let (name, first) = lifecycle::create_titled(project, text, "acp", user)?;
    keep_conversation(project, Uuid::parse_str(id)?, &name, first)?;
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
        Ended::InDoubt(_) => {
            user.send_text("The plan is in doubt and was not run; `teddy execute` reviews it.")
        }
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
    fn recorded(&mut self, _project: &Project, _turn: &RecordedTurn) -> anyhow::Result<()> {
        Ok(())
    }

    fn failed(&mut self, _error: anyhow::Error) {}

    fn typed(&mut self, _project: &mut Project, text: String) -> anyhow::Result<Typed> {
        Ok(Typed::Message(text))
    }
}

/// Returns whether a model is an agent of the protocol, to which the editor's MCP servers are passed.
fn speaks_protocol(project: &Project, model: &str) -> bool {
    let settings = choose::model_settings(project, model);
    settings.is_ok_and(|settings| settings.kind == ModelKind::Acp)
}

/// Reads the directory that a request names.
fn directory(params: &Value) -> Result<PathBuf, Refused> {
    let dir = PathBuf::from(params["cwd"].as_str().unwrap_or_default());
    match dir.is_absolute() {
        true => Ok(dir),
        false => Err((WRONG, "`cwd` is not an absolute path".to_owned())),
    }
}

fn mcp_servers(params: &Value) -> Result<Vec<McpServer>, Refused> {
    let servers = McpServer::read_list(&params["mcpServers"]);
    servers.map_err(|why| (WRONG, format!("`mcpServers` {why}")))
}

/// Describes the agent and its capabilities.
fn introduction() -> Value {
    json!({
        "protocolVersion": ACP_VERSION,
        "agentCapabilities": {
            "loadSession": true,
            "sessionCapabilities": { "list": {}, "resume": {} },
            // An agent inside that lacks a transport does not get the server, and the user reads it.
            "mcpCapabilities": { "http": true, "sse": true },
            "promptCapabilities": { "image": false, "audio": false, "embeddedContext": true },
        },
        "agentInfo": { "name": "teddy", "title": "TeDDy", "version": env!("CARGO_PKG_VERSION") },
        "authMethods": [],
    })
}

/// Returns what the user typed, if the prompt has nothing else. The text of an embedded file must not
/// run a command.
fn typed_text(prompt: &Value) -> Option<&str> {
    match prompt.as_array()?.as_slice() {
        [block] if block["type"] == "text" => block["text"].as_str(),
        _ => None,
    }
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

// Conversations of an editor that are sessions in git. A session that began in an editor has the id
// from `session/new`, any other one its name.

/// Sessions in one answer.
const PAGE: usize = 100;
/// Newest turns that are sent.
const MAX_TURNS: usize = 500;
/// Longest message that is sent, in bytes.
const MAX_TEXT: usize = 64 << 10;
/// Longest title, in characters.
const MAX_TITLE: usize = 120;

fn find_by_name(project: &Project, name: &str) -> anyhow::Result<Option<SessionName>> {
    let mut sessions = project.store().sessions()?.into_iter();
    let found = sessions.find(|(session, _)| session.as_str() == name);
    Ok(found.map(|(session, _)| session))
}

/// Returns the session of an id that an editor sent.
fn find_conversation(project: &Project, id: &str) -> anyhow::Result<Option<SessionName>> {
    // Only an id has a file. Anything else could be a path.
    if let Ok(uuid) = Uuid::parse_str(id)
        && let Some(name) = session_of(project, uuid)
    {
        return Ok(Some(name));
    }
    find_by_name(project, id)
}

/// Answers `session/list`, most recently changed first.
fn list_conversations(project: &Project, start: usize) -> anyhow::Result<Value> {
    let ids = conversations(project);
    let rows = history::session_rows(project)?;
    let root = project.repository.workdir();
    let session = |row: &SessionRow| {
        let id = ids
            .get(&row.name)
            .map_or_else(|| row.name.clone(), Uuid::to_string);
        let title = match row.label() {
            "" => &row.name,
            label => label,
        };
        json!({ "sessionId": id, "cwd": root, "title": shown_title(title), "updatedAt": row.updated })
    };
    let page: Vec<Value> = rows.iter().skip(start).take(PAGE).map(session).collect();
    let mut answer = json!({ "sessions": page });
    let end = start.saturating_add(PAGE);
    if end < rows.len() {
        answer["nextCursor"] = json!(end.to_string());
    }
    Ok(answer)
}

/// Others may have written the turns, and an editor shows a title in a menu.
fn shown_title(title: &str) -> String {
    sanitize_line(&excerpt_at_word(title, MAX_TITLE)).into_owned()
}

/// Sends the turns of a session as its conversation.
fn replay(project: &Project, name: &SessionName, user: &mut AcpUser<'_>) -> anyhow::Result<()> {
    let store = project.store();
    let history = store.history(store.tip(name)?).take(MAX_TURNS + 1);
    let mut turns = history.collect::<anyhow::Result<Vec<Turn>>>()?;
    if turns.len() > MAX_TURNS {
        turns.truncate(MAX_TURNS);
        user.send_text(&format!(
            "Only the newest {MAX_TURNS} turns are shown; `teddy log` lists all of them."
        ));
    }

    let repository = &project.repository;
    for turn in turns.iter().rev().filter(|turn| turn.number() > 0) {
        if turn.meta.origin == MessageOrigin::User
            && let Some(text) = turn.text(repository, artifact::USER_PROMPT)?
        {
            user.send_request(&beginning(&text, MAX_TEXT));
        }
        let message = match turn.conclusion(repository)? {
            Some(text) => Some(text),
            None => turn.question(repository)?,
        };
        let message = message.unwrap_or_default();
        let text = format!("**{}. {}**\n\n{message}", turn.number(), turn.title);
        user.send_text(&beginning(&text, MAX_TEXT));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_short_and_visible() {
        assert_eq!(
            shown_title("Add \u{1b}[2J\u{202e}d"),
            "Add \\u{1b}[2J\\u{202e}d"
        );
        let title = shown_title(&"word ".repeat(100));
        assert_eq!(title, format!("{}…", "word ".repeat(24).trim_end()));
        assert_eq!(shown_title(&"é".repeat(500)).chars().count(), MAX_TITLE + 1);
    }
}
