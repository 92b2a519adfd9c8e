//! Configuration layers: where settings come from, and how they are merged.

use std::path::Path;

use serde_yaml::{Mapping, Value};

use super::error::{ConfigError, GIT};
use super::nested::{flatten, innermost_key, insert_at, overlay};
use super::settings::Settings;
use super::unknown;
use super::wording::plain_message;
use crate::host::file::{is_null_device, read_regular_text};
use crate::text::yaml::guard;

/// Bounds the memory only. [`Layer::parse`] refuses anything over [`MAX_CONFIG`].
const MAX_BYTES: u64 = 1 << 20;

/// Maximum size of a configuration file in bytes.
pub const MAX_CONFIG: usize = 64 * 1024;

/// Settings that a repository can set without being trusted. They run no program, don't choose
/// where keys are sent, and don't widen what a plan is allowed to do. Limits can only be lowered
/// (`Layer::lower`).
const UNTRUSTED: [&str; 5] = [
    "agent",
    "replan.max",
    "execute.output_limit",
    "context.budget",
    "limits.turns",
];

/// Settings that a repository can set if it is trusted.
const TRUSTED: [&str; 8] = [
    "pipeline",
    "preview_command",
    "worktree.copy",
    "worktree.link",
    "worktree.setup",
    "execute.timeout",
    "snapshot.exclude",
    "change.planning_iterations",
];

/// `true` if a repository can set `key` if trusted. Untrusted, it can't, or only with restrictions.
pub fn takes_trust(key: &str) -> bool {
    TRUSTED.contains(&key) || UNTRUSTED.contains(&key)
}

/// Settings from one source.
#[derive(Debug, Clone, Default)]
pub struct Layer {
    /// The file, [`GIT`] or another name of the source.
    pub origin: String,
    /// Nested settings.
    pub values: Mapping,
    /// The file's text, for locating errors. Empty for other sources.
    text: String,
    /// Dotted names of settings and their spelling in git's configuration.
    spelled: Vec<(String, String)>,
}

impl Layer {
    /// Reads a YAML file. A missing file is an empty layer.
    pub fn read(path: &Path) -> Result<Layer, ConfigError> {
        // `TEDDY_CONFIG=/dev/null` turns a file off, but `read_regular_text` rejects devices.
        if is_null_device(path) {
            return Layer::parse(&path.display().to_string(), "");
        }

        match read_regular_text(path, MAX_BYTES) {
            Ok(text) => Layer::parse(&path.display().to_string(), &text),
            Err(error)
                if matches!(
                    error.kind(),
                    // `NotADirectory` if the configuration home isn't one, which shouldn't break
                    // every command.
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
                Ok(Layer {
                    origin: path.display().to_string(),
                    ..Layer::default()
                })
            }
            Err(error) => Err(ConfigError::Read(error)),
        }
    }

    /// Parses the text of a YAML file.
    pub fn parse(origin: &str, text: &str) -> Result<Layer, ConfigError> {
        let wrong = |message: String| ConfigError::Wrong {
            origin: origin.to_owned(),
            message,
        };
        // Before parsing: deep nesting can keep the parser busy for minutes.
        guard(text, MAX_CONFIG).map_err(|error| wrong(error.to_string()))?;
        match serde_yaml::from_str::<Value>(text).map_err(|e| wrong(e.to_string()))? {
            Value::Null => Ok(Layer {
                origin: origin.to_owned(),
                ..Layer::default()
            }),
            Value::Mapping(values) => Ok(Layer {
                origin: origin.to_owned(),
                values,
                text: text.to_owned(),
                ..Layer::default()
            }),
            _ => Err(wrong("must be a mapping of settings".to_owned())),
        }
    }

    /// Creates a layer from dotted names and YAML values, as given with `-c`.
    pub fn from_pairs(origin: &str, pairs: &[(String, String)]) -> Result<Layer, ConfigError> {
        let mut layer = Layer {
            origin: origin.to_owned(),
            ..Layer::default()
        };
        for (key, text) in pairs {
            layer.set((key, key), text)?;
        }
        Ok(layer)
    }

    /// Creates a layer from the `teddy` section of git's configuration.
    pub fn from_git(pairs: &[(String, String)]) -> Result<Layer, ConfigError> {
        let mut layer = Layer {
            origin: GIT.to_owned(),
            ..Layer::default()
        };
        for (written, text) in pairs {
            // Names of variables can't contain `_` there.
            let key = unknown::spelled(written);
            layer.set((&key, written), text)?;
            layer.spelled.push((key, written.clone()));
        }
        Ok(layer)
    }

    /// Sets a value. `written` is the name as the user wrote it.
    fn set(&mut self, (key, written): (&str, &str), text: &str) -> Result<(), ConfigError> {
        let wrong = |message: String| ConfigError::Wrong {
            origin: format!("{} {written}", self.origin),
            message,
        };
        guard(text, MAX_CONFIG).map_err(|error| wrong(error.to_string()))?;
        let value = serde_yaml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let parts: Vec<&str> = key.split('.').collect();

        insert_at(&mut self.values, &parts, value);
        Ok(())
    }

    /// Removes settings that a repository isn't allowed to set. Returns their dotted names.
    pub fn confine(&mut self, trusted: bool) -> Vec<String> {
        let allowed = |key: &str| UNTRUSTED.contains(&key) || (trusted && TRUSTED.contains(&key));
        let (retained, dropped): (Vec<_>, Vec<_>) = flatten(&self.values)
            .into_iter()
            .partition(|(key, _)| allowed(key));
        self.values = Mapping::new();
        for (key, value) in retained {
            insert_at(&mut self.values, &key.split('.').collect::<Vec<_>>(), value);
        }

        dropped.into_iter().map(|(key, _)| key).collect()
    }

    /// Turns a serde error into one that names the key and line.
    fn wrong(&self, error: &serde_yaml::Error) -> ConfigError {
        if let Some((name, suggestion)) = unknown::first(&self.values) {
            return self.unknown(name, suggestion);
        }

        let message = error.to_string();
        // serde doesn't report the key, so deserialize each value alone until one fails with the
        // same message.
        let is_wrong = |path: &[String], value: &Value| {
            let mut alone = Mapping::new();
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            insert_at(&mut alone, &path, value.clone());
            settings(&alone).is_err_and(|error| error.to_string() == message)
        };
        let culprit = innermost_key(&[], &self.values, &is_wrong);
        let plain = plain_message(&message);
        match (culprit, self.line_of(&message)) {
            (Some(key), Some(line)) => ConfigError::Wrong {
                origin: format!("{}, line {line}", self.origin),
                message: match plain.starts_with("must ") {
                    true => format!("`{key}` {plain}"),
                    false => format!("`{key}`: {plain}"),
                },
            },
            (Some(key), None) => ConfigError::Wrong {
                origin: format!("{} {}", self.origin, self.as_written(&key)),
                message: plain,
            },
            (None, _) => ConfigError::Wrong {
                origin: self.origin.clone(),
                message: plain,
            },
        }
    }

    /// The name of a setting as the user wrote it.
    fn as_written<'k>(&'k self, key: &'k str) -> &'k str {
        let entry = self.spelled.iter().find(|(dotted, _)| dotted == key);
        entry.map_or(key, |(_, written)| written)
    }

    /// Line of an error. `None` if the layer isn't a file.
    fn line_of(&self, message: &str) -> Option<usize> {
        // `Value` keeps no locations, so parse the text again.
        let error = serde_yaml::from_str::<Settings>(&self.text).err()?;
        let is_it = error.to_string().contains(message);
        is_it.then(|| error.location())?.map(|at| at.line())
    }

    fn unknown(&self, name: String, suggestion: Option<String>) -> ConfigError {
        let line = self.line_of("unknown field");
        let line = line.map(|line| format!(", line {line}"));

        ConfigError::Unknown {
            origin: format!("{}{}", self.origin, line.unwrap_or_default()),
            name,
            suggestion,
        }
    }

    /// Lowers limits to those in `others`: an untrusted repository can tighten limits but not raise
    /// them. Returns the dotted names of lowered settings.
    pub fn lower(&mut self, others: &Settings) -> Vec<String> {
        let mut lowered = Vec::new();
        let limits = [
            ("replan.max", u64::from(others.replan.max)),
            ("execute.output_limit", others.execute.output_limit as u64),
            ("context.budget", others.context.budget as u64),
            ("limits.turns", u64::from(others.limits.turns)),
        ];
        for (key, most) in limits {
            let Some((section, name)) = key.split_once('.') else {
                continue;
            };
            let Some(Value::Mapping(section)) = self.values.get_mut(section) else {
                continue;
            };
            if section
                .get(name)
                .and_then(Value::as_u64)
                .is_some_and(|number| number > most)
            {
                section.insert(Value::String(name.to_owned()), Value::Number(most.into()));
                lowered.push(key.to_owned());
            }
        }

        lowered
    }
}

/// Merges layers, later ones taking precedence. The error names the layer.
pub fn merge(layers: &[Layer]) -> Result<Settings, ConfigError> {
    let mut all = Mapping::new();
    for layer in layers {
        // Separately, so that the error can name its layer.
        settings(&layer.values).map_err(|e| layer.wrong(&e))?;
        overlay(&mut all, &layer.values);
    }

    settings(&all).map_err(|e| ConfigError::Wrong {
        origin: "configuration".to_owned(),
        message: e.to_string(),
    })
}

fn settings(values: &Mapping) -> Result<Settings, serde_yaml::Error> {
    serde_yaml::from_value(Value::Mapping(values.clone()))
}

#[cfg(test)]
mod tests;
