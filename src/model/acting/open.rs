//! Opens an agent from its settings, or tries it without a task: an `initialize` of the Agent
//! Client Protocol, or `--version`.
//!
//! A trial runs in `/`, so that no file of a repository changes what the agent does.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::ACP_VERSION;
use super::acp::{AcpModel, initialize_params, request};
use super::agent::{ActingModel, AgentSettings};
use super::command::CommandAgent;
use crate::config::settings::{ModelKind, ModelSettings};
use crate::host::interrupt;
use crate::model::ModelError;
use crate::model::job::{JobEnvironment, ProgramJob};
use crate::model::model_env::{ModelEnv, Variable};
use crate::text::sanitize::sanitize_line;

/// Fails if the settings are invalid or describe another kind of model.
pub fn open_acting(
    name: &str,
    settings: &ModelSettings,
    env: &ModelEnv,
) -> Result<Box<dyn ActingModel>, ModelError> {
    if !settings.kind.is_acting() {
        return Err(ModelError::Settings(format!(
            "model `{name}` does not edit files itself"
        )));
    }

    let agent = AgentSettings::of(name, settings, &*env.variable)?;
    Ok(match settings.kind {
        ModelKind::Acp => Box::new(AcpModel::new(agent)),
        _ => Box::new(CommandAgent::new(agent)?),
    })
}

pub fn program_of(
    name: &str,
    settings: &ModelSettings,
    env: &ModelEnv,
) -> Result<String, ModelError> {
    let agent = AgentSettings::of(name, settings, &*env.variable)?;
    Ok(agent.run.first().cloned().unwrap_or_default())
}

/// Agents in Node.js need some seconds to start.
const PATIENCE: Duration = Duration::from_secs(30);
const MAX_BYTES: usize = 1 << 20;

/// Returns name and version of the agent, as it states them.
pub fn greet_agent(
    name: &str,
    settings: &ModelSettings,
    variable: &Variable,
) -> Result<String, ModelError> {
    let agent = AgentSettings::of(name, settings, variable)?;
    match settings.kind {
        ModelKind::Acp => initialize(&agent),
        _ => ask_version(&agent),
    }
}

fn initialize(agent: &AgentSettings) -> Result<String, ModelError> {
    let request = request(1, "initialize", initialize_params());
    // The agent waits for more requests, so the first answer ends it.
    let reply: Cell<Option<Value>> = Cell::new(None);
    let is_answered = Cell::new(false);
    let job = ProgramJob {
        stopped: &|| is_answered.get() || interrupt::requested(),
        ..job(&agent.run, agent, Some(format!("{request}\n")))
    };
    let ran = job.run(&mut |text| {
        if let Some(value) = text.lines().find_map(read_reply) {
            is_answered.set(true);
            reply.set(Some(value));
        }
    });
    match (reply.into_inner(), ran) {
        (Some(reply), _) => introduce(agent, &reply),
        (None, Err(error)) => Err(error),
        (None, Ok(_)) => Err(failure(agent, "it ended without an answer to `initialize`")),
    }
}

fn read_reply(line: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(line).ok()?;
    let is_reply = value.get("id").and_then(Value::as_u64) == Some(1);
    (is_reply && value.get("method").is_none()).then_some(value)
}

fn introduce(agent: &AgentSettings, reply: &Value) -> Result<String, ModelError> {
    if let Some(message) = reply.pointer("/error/message").and_then(Value::as_str) {
        return Err(failure(agent, &sanitize_line(message)));
    }
    let version = reply.pointer("/result/protocolVersion");
    if version.and_then(Value::as_u64) != Some(ACP_VERSION) {
        return Err(failure(
            agent,
            "it does not speak version 1 of the Agent Client Protocol",
        ));
    }
    let field = |name: &str| {
        let text = reply.pointer(&format!("/result/agentInfo/{name}"));
        text.and_then(Value::as_str).unwrap_or_default()
    };
    let introduction = format!("{} {}", field("name"), field("version"));
    Ok(match introduction.trim() {
        "" => agent.run[0].clone(),
        introduction => sanitize_line(introduction).into_owned(),
    })
}

fn ask_version(agent: &AgentSettings) -> Result<String, ModelError> {
    let argv = [agent.run[0].clone(), "--version".to_owned()];
    let finished = job(&argv, agent, None).run(&mut |_| ())?;
    let mut lines = finished.stdout.lines().map(str::trim);
    let line = lines.find(|line| !line.is_empty());
    Ok(sanitize_line(line.unwrap_or(&agent.run[0])).into_owned())
}

fn job<'a>(argv: &'a [String], agent: &'a AgentSettings, stdin: Option<String>) -> ProgramJob<'a> {
    ProgramJob {
        argv,
        stdin,
        dir: Some(Path::new("/")),
        environment: JobEnvironment::Listed(&agent.needs.keys),
        timeout: PATIENCE,
        idle: None,
        max_bytes: MAX_BYTES,
        stopped: &interrupt::requested,
    }
}

fn failure(agent: &AgentSettings, detail: &str) -> ModelError {
    ModelError::Agent {
        detail: format!("`{}`: {detail}", agent.run[0]),
        remedy: format!("run `{}` by hand once to see why", agent.run[0]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(spec: &str, expected: Result<&str, &str>) {
        let opened = ModelSettings::from_spec(spec)
            .and_then(|settings| open_acting("m", &settings, &ModelEnv::default()));
        let got = opened
            .map(|model| model.agent().name.clone())
            .map_err(|error| error.to_string());
        assert_eq!(got.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn both_kinds_are_opened() {
        check("acp:claude", Ok("m"));
        check("agent:aider", Ok("m"));
        check("agent:sh -c true", Ok("m"));
    }

    #[test]
    fn a_model_that_answers_does_not_act() {
        check("manual", Err("model `m` does not edit files itself"));
    }

    #[test]
    fn a_fact_that_is_none_is_found_before_anything_runs() {
        let mut settings = ModelSettings::from_spec("agent:sh -c true").unwrap();
        settings.facts.insert("price".into(), "a".into());
        let error = open_acting("m", &settings, &ModelEnv::default()).err();
        assert_eq!(
            error.map(|error| error.to_string()).as_deref(),
            Some(
                "model `m`: `price` is not a fact; use one of `conversation`, `message`, `cost`, \
                 `tokens_in`, `tokens_out`, `cached`, `version`"
            )
        );
    }

    #[track_caller]
    fn check_greeting(script: &str, expected: Result<&str, &str>) {
        let settings = ModelSettings {
            kind: ModelKind::Acp,
            run: ["sh", "-c", script].map(str::to_owned).to_vec(),
            ..ModelSettings::default()
        };
        let greeted = greet_agent("m", &settings, &|_| None).map_err(|error| error.to_string());
        let actual = greeted.as_deref().map_err(String::as_str);
        assert_eq!(actual, expected, "{script}");
    }

    #[test]
    fn an_agent_is_tried_without_a_task() {
        let greeting = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"toy","version":"0.3"}}}"#;
        check_greeting(
            &format!("read line; echo log; echo '{greeting}'; sleep 100"),
            Ok("toy 0.3"),
        );
        check_greeting(
            "exit 0",
            Err("`sh`: it ended without an answer to `initialize`"),
        );
        check_greeting(
            r#"echo '{"id":1,"error":{"message":"log in"}}'"#,
            Err("`sh`: log in"),
        );
        check_greeting(
            r#"echo '{"id":1,"result":{"protocolVersion":7}}'"#,
            Err("`sh`: it does not speak version 1 of the Agent Client Protocol"),
        );
    }
}
