//! Opens a model from its settings. The only module that knows every kind of model.

use super::local::{CommandModel, Manual, Replay};
use super::model_env::ModelEnv;
use super::remote::Remote;
use super::{Model, ModelError};
use crate::config::settings::{ModelKind, ModelSettings};

/// Finds invalid settings and missing keys before the user types anything.
pub fn open(
    name: &str,
    settings: &ModelSettings,
    env: &ModelEnv,
) -> Result<Box<dyn Model>, ModelError> {
    Ok(match settings.kind {
        kind if kind.is_remote() => Box::new(Remote::new(name, settings, env)?),
        ModelKind::Command => Box::new(CommandModel::new(name, settings, env.stopped.clone())?),
        ModelKind::Replay => Box::new(replay(name, settings, env)?),
        ModelKind::Manual => Box::new(Manual {
            give: env.give.clone(),
            take: env.take.clone(),
        }),
        _ => return Err(acts(name)),
    })
}

fn acts(name: &str) -> ModelError {
    ModelError::Agent {
        detail: format!("model `{name}` edits files itself and cannot be asked for an answer here"),
        remedy:
            "use a model that answers with a text, such as `openai:<id>` or `command:<program>`"
                .to_owned(),
    }
}

fn replay(name: &str, settings: &ModelSettings, env: &ModelEnv) -> Result<Replay, ModelError> {
    let path = settings
        .path
        .as_deref()
        .ok_or_else(|| ModelError::Settings(format!("model `{name}` has no `path`")))?;
    let recorded = path.to_str().and_then(|text| (env.recorded)(text));
    let replay = recorded.map_or_else(
        || Replay::from_path(path),
        |texts| Ok(Replay::from_texts(texts)),
    )?;

    Ok(replay.starting_at(env.replayed))
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::ModelRequest;
    use super::*;

    fn check(spec: &str, env: &ModelEnv, expected: &str) {
        let got = ModelSettings::from_spec(spec)
            .and_then(|settings| open("m", &settings, env))
            .and_then(|model| model.answer(&ModelRequest::default(), &mut |_| ()));
        assert_eq!(
            got.map_or_else(|error| error.to_string(), |answer| answer.text),
            expected
        );
    }

    #[test]
    fn a_recorded_session_is_replayed_from_a_position() {
        let recorded = Rc::new(|path: &str| {
            (path == "demo").then(|| vec!["one".to_owned(), "two".to_owned()])
        });
        check(
            "replay:demo",
            &ModelEnv {
                recorded,
                replayed: 1,
                ..ModelEnv::default()
            },
            "two",
        );
    }

    #[test]
    fn a_replay_without_path_is_no_model() {
        let settings = ModelSettings {
            kind: ModelKind::Replay,
            ..ModelSettings::default()
        };
        assert_eq!(
            open("m", &settings, &ModelEnv::default()).err(),
            Some(ModelError::Settings("model `m` has no `path`".into()))
        );
    }

    #[test]
    fn a_person_answers_through_the_context() {
        let env = ModelEnv {
            give: Rc::new(|_| Ok(())),
            take: Rc::new(|| Ok(Some("hi".into()))),
            ..ModelEnv::default()
        };
        check("manual", &env, "hi");
        check(
            "manual",
            &ModelEnv::default(),
            "passing the input to you: there is no terminal",
        );
    }

    #[test]
    fn a_missing_key_is_found_before_anything_is_sent() {
        let env = ModelEnv {
            variable: Rc::new(|_| None),
            ..ModelEnv::default()
        };
        check(
            "openai:gpt-5",
            &env,
            "model `m` has no key: OPENAI_API_KEY is not set, empty or a placeholder",
        );
        check(
            "anthropic:claude",
            &env,
            "model `m` has no key: ANTHROPIC_API_KEY is not set, empty or a placeholder",
        );
    }
}
