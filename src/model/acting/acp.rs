//! Client of the Agent Client Protocol, version 1.
//!
//! One call is one conversation: initialize, open or resume a session, set the mode, send the
//! prompt, end the agent. The agent works with its own tools only, inside the sandbox.

mod talk;

use serde_json::{Value, json};

use talk::{NO_METHOD, NOT_LOGGED_IN, RpcFailure, Talk, TalkError};
pub(super) use talk::{initialize_params, request};

use super::agent::{ActingModel, AgentSettings, private_dir};
use super::call::AgentCall;
use super::facts::is_id;
use super::{
    ACP_VERSION, AgentFailure, AgentHost, AgentIdentity, AgentProgress, AgentResult, AgentTask, mcp,
};
use crate::model::ModelError;
use crate::model::acting::agent_output::sanitize_label;
use crate::model::acting::json_line::text_at;

pub(super) struct AcpModel {
    agent: AgentSettings,
}

#[derive(Default)]
struct Agreement {
    identity: Option<AgentIdentity>,
    /// Empty until there is a session.
    conversation: String,
    /// The session is the one from the task.
    resumed: bool,
    /// `agentCapabilities`, unparsed.
    abilities: Value,
    /// `authMethods`, unparsed.
    logins: Vec<Value>,
}

impl AcpModel {
    pub(super) fn new(agent: AgentSettings) -> AcpModel {
        AcpModel { agent }
    }

    /// Returns why the agent stopped early.
    fn converse(
        &self,
        talk: &mut Talk<'_>,
        task: &AgentTask<'_>,
        agreed: &mut Agreement,
    ) -> Result<Option<String>, TalkError> {
        greet(talk, agreed)?;
        let session = self.open(talk, task, agreed)?;
        self.set_mode(talk, task, &session, &agreed.conversation)?;
        if agreed.resumed {
            talk.call.work.count_on(task);
        }
        let end = talk.prompt(&agreed.conversation, task.prompt(agreed.resumed))?;
        talk.call.work.used(&end);

        let stop = match text_at(&end, "/stopReason") {
            "end_turn" | "" => None,
            reason => Some(sanitize_label(reason)),
        };
        if let Some(reason) = &stop {
            talk.stopped_early(reason);
        }
        Ok(stop)
    }

    /// Resumes the task's session or starts a new one. Returns the agent's answer, which lists its
    /// modes.
    fn open(
        &self,
        talk: &mut Talk<'_>,
        task: &AgentTask<'_>,
        agreed: &mut Agreement,
    ) -> Result<Value, TalkError> {
        let earlier = task.conversation.as_ref().map(|earlier| &*earlier.id);
        if let Some(id) = earlier.filter(|id| is_id(id)) {
            match self.resume(talk, task, id, agreed) {
                Ok(session) => return Ok(session),
                Err(TalkError::Failed(failure)) => {
                    let why = sanitize_label(&failure.message);
                    let note = format!(
                        "the conversation could not be resumed, so a new one begins: {why}"
                    );
                    talk.note(&note);
                }
                Err(error) => return Err(error),
            }
        }

        if let Some(note) = mcp::left_out(task.mcp_servers, &agreed.abilities) {
            talk.note(&note);
        }
        let params = json!({ "cwd": task.dir });
        let params = OpeningParams::new(params, task, agreed);
        let session = match talk.ask_to_open("session/new", params.clone()) {
            Err(TalkError::Failed(failure)) if failure.code == NOT_LOGGED_IN => {
                self.log_in(talk, failure, agreed)?;
                talk.ask_to_open("session/new", params)?
            }
            session => session?,
        };

        agreed.conversation = text_at(&session, "/sessionId").to_owned();
        Ok(session)
    }

    fn resume(
        &self,
        talk: &mut Talk<'_>,
        task: &AgentTask<'_>,
        id: &str,
        agreed: &mut Agreement,
    ) -> Result<Value, TalkError> {
        let resumes = agreed.abilities.pointer("/sessionCapabilities/resume");
        let loads = agreed.abilities.get("loadSession");
        let loads = loads.and_then(Value::as_bool) == Some(true);
        // Preferred: `session/load` makes the agent replay the whole conversation.
        let resumes = resumes.is_some_and(|ability| !ability.is_null());
        let methods = [(resumes, "session/resume"), (loads, "session/load")];
        let methods = methods
            .iter()
            .filter(|(is_offered, _)| *is_offered && self.agent.resumes);

        let mut session = Err(TalkError::Failed(RpcFailure {
            code: 0,
            message: "the agent cannot do that".to_owned(),
        }));
        for (_, method) in methods {
            let params = json!({ "sessionId": id, "cwd": task.dir });
            let params = OpeningParams::new(params, task, agreed);
            session = talk.ask_memory(method, params);
            // Qwen Code offers `session/resume` and does not know it.
            let is_unknown =
                matches!(&session, Err(TalkError::Failed(failure)) if failure.code == NO_METHOD);
            if !is_unknown {
                break;
            }
        }
        let session = session?;
        agreed.conversation = id.to_owned();
        agreed.resumed = true;
        Ok(session)
    }

    /// With an API key, if the agent supports that and there is one.
    fn log_in(
        &self,
        talk: &mut Talk<'_>,
        failure: RpcFailure,
        agreed: &Agreement,
    ) -> Result<(), TalkError> {
        let has_key = !self.agent.secrets.is_empty();
        // The protocol doesn't mark login methods that use a key, so go by their names.
        let takes_key = |login: &&Value| {
            let name = format!("{} {}", text_at(login, "/id"), text_at(login, "/name"));
            let name = name.to_ascii_lowercase().replace(['_', ' '], "-");
            name.contains("api-key") || name.contains("apikey")
        };
        let by_key = agreed.logins.iter().filter(|_| has_key).find(takes_key);
        let Some(login) = by_key else {
            return Err(TalkError::Failed(failure));
        };

        // Some agents save the key to disk, so the user has to know.
        let method = text_at(login, "/id");
        let note = format!(
            "logged in by `{}` with the key of the environment, which the agent may keep",
            sanitize_label(method)
        );
        talk.note(&note);

        talk.ask("authenticate", json!({ "methodId": method }))?;
        Ok(())
    }

    /// Sets the first available mode from the settings. Without one, the agent keeps its default
    /// mode, and its questions are answered as usual.
    fn set_mode(
        &self,
        talk: &mut Talk<'_>,
        task: &AgentTask<'_>,
        session: &Value,
        conversation: &str,
    ) -> Result<(), TalkError> {
        let modes = self.agent.modes(task.is_confined);
        let Some(first) = modes.first() else {
            return Ok(());
        };
        let set = match AgentMode::find(session, &modes) {
            Some(AgentMode::Current) => return Ok(()),
            Some(AgentMode::Plain(mode)) => {
                let params = json!({ "sessionId": conversation, "modeId": mode });
                talk.ask("session/set_mode", params)
            }
            Some(AgentMode::Option { option, mode }) => {
                let params =
                    json!({ "sessionId": conversation, "configId": option, "value": mode });
                talk.ask("session/set_config_option", params)
            }
            None => Err(TalkError::Failed(RpcFailure {
                code: 0,
                message: "the agent has no such mode".to_owned(),
            })),
        };

        match set {
            Ok(_) => Ok(()),
            Err(TalkError::Failed(failure)) => {
                let why = sanitize_label(&failure.message);
                let note = format!("the mode `{first}` was not set, so it may ask more: {why}");
                talk.note(&note);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn failed(&self, failure: &RpcFailure, agreed: &Agreement) -> ModelError {
        let program = &self.agent.run[0];
        let why = sanitize_label(&failure.message);
        if failure.code != NOT_LOGGED_IN {
            return ModelError::Agent {
                detail: format!("`{program}` answered with an error: {why}"),
                remedy: "run `teddy plan` again, or use another model with `--model`".to_owned(),
            };
        }

        let ways = agreed.logins.iter().map(|login| text_at(login, "/name"));
        let ways: Vec<String> = ways
            .filter(|name| !name.is_empty())
            .map(sanitize_label)
            .collect();
        let login = self.agent.login();
        ModelError::Agent {
            detail: format!("`{program}` is not logged in: {why}"),
            remedy: match ways.as_slice() {
                [] => login,
                ways => format!("{login}; it knows {}", ways.join(", ")),
            },
        }
    }

    fn to_model_error(&self, error: TalkError, talk: &Talk<'_>, agreed: &Agreement) -> ModelError {
        let program = &self.agent.run[0];
        match error {
            TalkError::Stop(stop) => stop.error(&talk.call.work.message),
            TalkError::Version(version) => {
                let version = version.map_or_else(|| "none".to_owned(), |it| it.to_string());
                ModelError::Agent {
                    detail: format!(
                        "`{program}` speaks version {version} of the Agent Client Protocol, and TeDDy version {ACP_VERSION}"
                    ),
                    remedy: "install a version of the agent that speaks version 1 as well, or use it as a command with `kind: agent`".to_owned(),
                }
            }
            TalkError::Failed(failure) => self.failed(&failure, agreed),
            TalkError::Over(ending) => {
                let why = talk.call.complaints.behind_colon();
                let when = match &agreed.conversation {
                    id if id.is_empty() => "before it began to work",
                    _ => "before its work was done",
                };
                ModelError::Agent {
                    detail: format!("`{program}` ended {when} ({ending}){why}"),
                    remedy: format!("run it by hand to see more, or try `{program}` again"),
                }
            }
        }
    }
}

/// Negotiates the version. Records the agent's identity, abilities and login methods.
fn greet(talk: &mut Talk<'_>, agreed: &mut Agreement) -> Result<(), TalkError> {
    let greeting = talk.ask("initialize", initialize_params())?;

    let version = greeting.get("protocolVersion").and_then(Value::as_u64);
    if version != Some(ACP_VERSION) {
        return Err(TalkError::Version(version));
    }

    let field = |pointer: &str| sanitize_label(text_at(&greeting, pointer));
    let identity = AgentIdentity {
        name: field("/agentInfo/name"),
        version: field("/agentInfo/version"),
    };
    if !identity.name.is_empty() {
        talk.call.host.progress(AgentProgress::Started(&identity));
        agreed.identity = Some(identity);
    }

    agreed.abilities = greeting
        .get("agentCapabilities")
        .cloned()
        .unwrap_or_default();
    let logins = greeting.get("authMethods").and_then(Value::as_array);
    agreed.logins = logins.cloned().unwrap_or_default();
    Ok(())
}

impl ActingModel for AcpModel {
    fn agent(&self) -> &AgentSettings {
        &self.agent
    }

    fn act(
        &self,
        task: &AgentTask<'_>,
        host: &mut dyn AgentHost,
    ) -> Result<AgentResult, Box<AgentFailure>> {
        let dir = private_dir()?;
        let dialogue = self.agent.start(task, &dir, &self.agent.run)?;
        let mut secrets = self.agent.secrets.clone();
        secrets.extend(mcp::secrets(task.mcp_servers));
        let call = AgentCall::new(&self.agent, task, dialogue, host, secrets);
        let asks_host = self.agent.asks_host(task.is_confined);
        let mut talk = Talk::new(call, asks_host, task.is_confined);
        let mut agreed = Agreement::default();
        let outcome = self.converse(&mut talk, task, &mut agreed);
        // The agent still runs. Ask it to stop before killing it.
        if let Err(TalkError::Stop(_)) = &outcome
            && !agreed.conversation.is_empty()
        {
            talk.cancel(&agreed.conversation);
        }

        let outcome = outcome.map_err(|error| self.to_model_error(error, &talk, &agreed));
        let result = AgentResult {
            message: talk.call.record.redact_text(&talk.call.work.message),
            conversation: Some(agreed.conversation).filter(|id| is_id(id)),
            resumed: agreed.resumed,
            agent: agreed.identity,
            ..AgentResult::default()
        };
        talk.call.end(outcome, result)
    }
}

/// Parameters of a request that opens a session.
#[derive(Debug, Clone)]
struct OpeningParams {
    sent: Value,
    /// Without what the MCP servers are started with.
    recorded: Value,
}

impl OpeningParams {
    /// The protocol requires `mcpServers`, even if empty.
    fn new(params: Value, task: &AgentTask<'_>, agreed: &Agreement) -> OpeningParams {
        let with = |servers: Vec<Value>| {
            let mut params = params.clone();
            params["mcpServers"] = servers.into();
            params
        };
        OpeningParams {
            sent: with(mcp::supported(task.mcp_servers, &agreed.abilities)),
            recorded: with(mcp::recorded(task.mcp_servers, &agreed.abilities)),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum AgentMode {
    Current,
    /// By `session/set_mode`.
    Plain(String),
    /// By `session/set_config_option`.
    Option {
        option: String,
        mode: String,
    },
}

impl AgentMode {
    /// `session` is the answer to `session/new`.
    fn find(session: &Value, preferred: &[&str]) -> Option<AgentMode> {
        preferred.iter().find_map(|mode| {
            find_in_modes(session, mode).or_else(|| find_in_options(session, mode))
        })
    }
}

fn find_in_modes(session: &Value, mode: &str) -> Option<AgentMode> {
    if text_at(session, "/modes/currentModeId") == mode {
        return Some(AgentMode::Current);
    }
    let modes = session.pointer("/modes/availableModes")?.as_array()?;
    let is_there = modes
        .iter()
        .any(|available| text_at(available, "/id") == mode);
    is_there.then(|| AgentMode::Plain(mode.to_owned()))
}

fn find_in_options(session: &Value, mode: &str) -> Option<AgentMode> {
    let options = session.get("configOptions")?.as_array()?;
    let of_modes = |option: &&Value| {
        text_at(option, "/category") == "mode" || text_at(option, "/id") == "mode"
    };
    let option = options.iter().find(of_modes)?;
    if text_at(option, "/currentValue") == mode {
        return Some(AgentMode::Current);
    }

    let values = option.get("options")?.as_array()?;
    let is_there = values.iter().any(|value| text_at(value, "/value") == mode);
    is_there.then(|| AgentMode::Option {
        option: text_at(option, "/id").to_owned(),
        mode: mode.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(session: &Value, preferred: &[&str], expected: Option<AgentMode>) {
        assert_eq!(AgentMode::find(session, preferred), expected);
    }

    #[test]
    fn the_first_mode_that_it_has_is_taken() {
        let session = json!({ "modes": { "currentModeId": "ask", "availableModes": [{ "id": "ask" }, { "id": "all" }] } });
        check(
            &session,
            &["full", "all"],
            Some(AgentMode::Plain("all".into())),
        );
        check(&session, &["ask"], Some(AgentMode::Current));
        check(&session, &["full"], None);
        check(&Value::Null, &["full"], None);
    }

    #[test]
    fn a_mode_may_be_an_option() {
        let session = json!({ "configOptions": [
            { "id": "model", "options": [{ "value": "all" }] },
            { "id": "m", "category": "mode", "currentValue": "ask", "options": [{ "value": "all" }] },
        ] });
        let all = AgentMode::Option {
            option: "m".into(),
            mode: "all".into(),
        };
        check(&session, &["all"], Some(all));
        check(&session, &["ask"], Some(AgentMode::Current));
    }
}
