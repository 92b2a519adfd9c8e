//! Configuration of a model: an entry under `models:`, or `kind:id` on the command line.

use std::path::PathBuf;
use std::time::Duration;

use super::ModelError;
use super::acting::preset;
use crate::config::settings::{ModelKind, ModelSettings, Settings};

impl ModelSettings {
    /// Fails on a missing kind or a limit of 0.
    pub fn check(&self, name: &str) -> Result<(), ModelError> {
        let wrong = |detail: String| ModelError::Settings(format!("model `{name}`: {detail}"));
        if self.kind == ModelKind::Missing {
            let names = ModelKind::quoted_names();
            return Err(wrong(format!("it has no `kind`; use one of {names}")));
        }

        let limits = [
            ("timeout", self.timeout),
            ("idle_timeout", self.idle_timeout),
            ("first_byte_timeout", self.first_byte_timeout),
            ("connect_timeout", self.connect_timeout),
        ];
        let mut limits = limits.iter();
        match limits.find(|(_, limit)| *limit == Some(Duration::ZERO)) {
            Some((key, _)) => Err(wrong(format!("a `{key}` of 0 leaves no time"))),
            None => Ok(()),
        }
    }

    /// Parses `kind:rest`, such as `openai:gpt-5`, `command:claude -p`, `replay:answers/` or
    /// `manual`. Fails with [`ModelError::NoSuchModel`] on an unknown kind and
    /// [`ModelError::Unknown`] on an invalid rest.
    pub fn from_spec(spec: &str) -> Result<ModelSettings, ModelError> {
        let (kind, value) = spec.split_once(':').unwrap_or((spec, ""));
        let (kind, value) = (
            ModelKind::parse(kind).ok_or_else(|| unknown(spec, &[]))?,
            value.trim(),
        );
        if value.is_empty() && kind != ModelKind::Manual {
            return Err(ModelError::Unknown(match spec.contains(':') {
                true => format!("`{spec}` names nothing after the colon"),
                false => format!("`{spec}` is a kind of model; `{spec}:...` names one"),
            }));
        }

        let settings = ModelSettings {
            kind,
            ..ModelSettings::default()
        };
        Ok(match kind {
            ModelKind::Command => ModelSettings {
                run: split_args(value)?,
                ..settings
            },
            ModelKind::Replay => ModelSettings {
                path: Some(PathBuf::from(value)),
                ..settings
            },
            ModelKind::Acp | ModelKind::Agent => agent(settings, value)?,
            ModelKind::Manual => settings,
            _ => ModelSettings {
                id: value.to_owned(),
                ..settings
            },
        })
    }

    /// A configured name, or `kind:rest`.
    pub fn resolve(word: &str, settings: &Settings) -> Result<ModelSettings, ModelError> {
        if let Some(entry) = settings.models.get(word) {
            entry.check(word)?;
            return Ok(entry.clone());
        }
        ModelSettings::from_spec(word).map_err(|error| match error {
            ModelError::NoSuchModel { word, .. } => {
                let configured: Vec<String> = settings.models.keys().cloned().collect();
                unknown(&word, &configured)
            }
            error => error,
        })
    }

    /// Fails if the id is missing or empty.
    pub fn require_id(&self, name: &str) -> Result<&str, ModelError> {
        match self.id.trim() {
            "" => Err(ModelError::Settings(format!("model `{name}` has no `id`"))),
            _ => Ok(&self.id),
        }
    }
}

/// The part after `acp:` or `agent:`: a known agent's name, or a command line if it contains a
/// space or `/`.
fn agent(settings: ModelSettings, value: &str) -> Result<ModelSettings, ModelError> {
    if value.contains(['/', ' ']) {
        let run = split_args(value)?;
        return Ok(ModelSettings { run, ..settings });
    }

    if preset::find_by_name(preset::of_kind(settings.kind), value).is_none() {
        return Err(ModelError::Unknown(preset::unknown(settings.kind, value)));
    }
    Ok(ModelSettings {
        id: value.to_owned(),
        ..settings
    })
}

/// Like a shell, without running one.
fn split_args(line: &str) -> Result<Vec<String>, ModelError> {
    shlex::split(line).ok_or_else(|| {
        ModelError::Unknown(format!("`{line}` has a quotation mark that is not closed"))
    })
}

fn unknown(word: &str, configured: &[String]) -> ModelError {
    ModelError::NoSuchModel {
        word: word.to_owned(),
        configured: configured.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::Price;

    fn parse(yaml: &str) -> Result<ModelSettings, String> {
        let entry: ModelSettings = serde_yaml::from_str(yaml).unwrap();
        let checked = entry.check("m").map(|()| entry);
        checked.map_err(|error| error.to_string())
    }

    #[test]
    fn an_entry_is_read_with_its_limits_and_prices() {
        let settings = parse("{ kind: openai, id: qwen3, timeout: 600, price: { input: 3, output: 15 }, extra: { top_k: 4 } }").unwrap();
        assert_eq!(
            (settings.kind, settings.id.as_str(), settings.timeout),
            (ModelKind::Openai, "qwen3", Some(Duration::from_secs(600)))
        );
        assert_eq!(
            settings.price,
            Some(Price {
                input: 3.0,
                output: 15.0,
                cache_read: None,
                cache_write: None
            })
        );
        assert_eq!(settings.extra["top_k"], 4);
    }

    #[test]
    fn a_kind_alone_names_no_model() {
        for (spec, expected) in [
            (
                "openai",
                "`openai` is a kind of model; `openai:...` names one",
            ),
            ("openai:", "`openai:` names nothing after the colon"),
        ] {
            let error = ModelSettings::from_spec(spec).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn an_entry_that_makes_no_model_is_explained() {
        let kinds =
            "`openai`, `responses`, `anthropic`, `command`, `replay`, `manual`, `acp`, `agent`";
        assert_eq!(
            parse("{ id: x }"),
            Err(format!("model `m`: it has no `kind`; use one of {kinds}"))
        );
        assert_eq!(
            parse("{ kind: command, timeout: 0 }"),
            Err("model `m`: a `timeout` of 0 leaves no time".into())
        );
    }

    #[test]
    fn a_spec_names_kind_and_rest() {
        assert_eq!(
            ModelSettings::from_spec("openai:meta/llama:free")
                .unwrap()
                .id,
            "meta/llama:free"
        );
        assert_eq!(
            ModelSettings::from_spec("command:claude -p 'a b'")
                .unwrap()
                .run,
            ["claude", "-p", "a b"]
        );
        assert_eq!(
            ModelSettings::from_spec("replay:answers/").unwrap().path,
            Some(PathBuf::from("answers/"))
        );
        assert_eq!(
            ModelSettings::from_spec("manual").unwrap().kind,
            ModelKind::Manual
        );
    }

    #[test]
    fn a_spec_names_an_agent_or_its_command_line() {
        let read = |spec: &str| ModelSettings::from_spec(spec);
        let config = read("acp:claude").unwrap();
        assert_eq!(
            (config.kind, config.id.as_str(), config.run.is_empty()),
            (ModelKind::Acp, "claude", true)
        );
        assert_eq!(read("agent:./go 'a b'").unwrap().run, ["./go", "a b"]);
        assert_eq!(
            read("agent:aidr").unwrap_err().to_string(),
            "`agent:aidr` is not a known agent; did you mean `agent:aider`?"
        );
    }

    #[test]
    fn a_spec_that_is_none_lists_the_kinds() {
        let error = ModelSettings::from_spec("nonsense").unwrap_err();
        assert_eq!(error.to_string(), "`nonsense` is not a known model");
        assert!(error.remedy().contains("anthropic:<id>"), "{error:?}");
        assert!(ModelSettings::from_spec("openai:").is_err());
        assert!(ModelSettings::from_spec("command:a 'b").is_err());
    }

    #[test]
    fn debug_shows_no_header_value() {
        let settings = parse("{ kind: openai, headers: { X-Secret: hunter2 } }").unwrap();
        let debug = format!("{settings:?}");
        assert!(
            debug.contains("X-Secret") && !debug.contains("hunter2"),
            "{debug}"
        );
    }
}
