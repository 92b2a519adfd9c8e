//! Opens an agent from its settings.

use super::acp::AcpModel;
use super::agent::{ActingModel, AgentSettings};
use super::command::CommandAgent;
use crate::config::settings::{ModelKind, ModelSettings};
use crate::model::ModelError;
use crate::model::model_env::ModelEnv;

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
}
