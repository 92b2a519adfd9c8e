//! Configuration layers: where settings come from, and how they are merged.
//!
//! A repository's layer is confined before it is merged: it can set few keys, most of them only if
//! the user trusts it, and can only lower limits. Errors name the layer that is wrong, with a hint.

use std::path::Path;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_yaml::{Mapping, Value};

use super::settings::Settings;
use super::unknown::{self, insert_at, nested};
use crate::host::file::{is_null_device, read_regular_text};
use crate::text::shell_word::shell_word;
use crate::text::yaml::guard;

/// Bounds memory; [`Layer::parse`] refuses anything over [`MAX_CONFIG`].
const MAX_BYTES: u64 = 1 << 20;

/// In bytes.
pub const MAX_CONFIG: usize = 64 * 1024;

/// Keys that need no trust: they run no program, choose no server for a key, and don't widen what a
/// plan can do. Limits can only be lowered (`Layer::lower`).
const UNTRUSTED: [&str; 5] = [
    "agent",
    "replan.max",
    "execute.output_limit",
    "context.budget",
    "limits.turns",
];

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

/// Whether a repository can set `key` at all. Untrusted, it can't, or only with restrictions.
pub fn takes_trust(key: &str) -> bool {
    TRUSTED.contains(&key) || UNTRUSTED.contains(&key)
}

#[derive(Debug, Clone, Default)]
pub struct Layer {
    /// The file, [`GIT`] or another name of the source.
    pub origin: String,
    pub values: Mapping,
    /// For locating errors. Empty if the source is not a file.
    text: String,
    /// Dotted names and their spelling in git's configuration.
    spelled: Vec<(String, String)>,
}

impl Layer {
    /// A missing file is an empty layer.
    pub fn read(path: &Path) -> Result<Layer, ConfigError> {
        let origin = path.display().to_string();
        // `TEDDY_CONFIG=/dev/null` turns a file off, but `read_regular_text` rejects devices.
        if is_null_device(path) {
            return Layer::parse(&origin, "");
        }

        match read_regular_text(path, MAX_BYTES) {
            Ok(text) => Layer::parse(&origin, &text),
            Err(error)
                if matches!(
                    error.kind(),
                    // `NotADirectory` if the configuration home isn't one, which shouldn't break
                    // every command.
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
                Layer::parse(&origin, "")
            }
            Err(error) => Err(ConfigError::Read(error)),
        }
    }

    pub fn parse(origin: &str, text: &str) -> Result<Layer, ConfigError> {
        let wrong = |message: String| ConfigError::Wrong {
            origin: origin.to_owned(),
            message,
        };
        // Before parsing: deep nesting can keep the parser busy for minutes.
        guard(text, MAX_CONFIG).map_err(|error| wrong(error.to_string()))?;
        let values = match serde_yaml::from_str(text).map_err(|e| wrong(e.to_string()))? {
            Value::Null => Mapping::new(),
            Value::Mapping(values) => values,
            _ => return Err(wrong("must be a mapping of settings".to_owned())),
        };
        Ok(Layer {
            origin: origin.to_owned(),
            values,
            text: text.to_owned(),
            ..Layer::default()
        })
    }

    /// Dotted names and YAML values, as given with `-c`.
    pub fn from_pairs(origin: &str, pairs: &[(String, String)]) -> Result<Layer, ConfigError> {
        let mut layer = Layer {
            origin: origin.to_owned(),
            ..Layer::default()
        };
        for (key, text) in pairs {
            layer.set(key, key, text)?;
        }
        Ok(layer)
    }

    pub fn from_git(pairs: &[(String, String)]) -> Result<Layer, ConfigError> {
        let mut layer = Layer {
            origin: GIT.to_owned(),
            ..Layer::default()
        };
        for (written, text) in pairs {
            // Names of variables can't contain `_` there.
            let key = unknown::spelled(written);
            layer.set(&key, written, text)?;
            layer.spelled.push((key, written.clone()));
        }
        Ok(layer)
    }

    /// `written` is the name as the user wrote it.
    fn set(&mut self, key: &str, written: &str, text: &str) -> Result<(), ConfigError> {
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

    /// Removes what a repository can't set. Returns the dotted names.
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

    /// Names the key and line.
    fn wrong(&self, error: &serde_yaml::Error) -> ConfigError {
        if let Some((name, suggestion)) = unknown::first(&self.values) {
            return self.unknown(name, suggestion);
        }

        let message = error.to_string();
        // serde doesn't report the key, so deserialize each value alone until one fails with the
        // same message.
        let is_wrong = |path: &[String], value: &Value| {
            // Of a mapping in the place of a value, the keys are not wrong.
            let fits = value.is_mapping() || !message.starts_with("invalid type: map");
            fits && error_of(path, value).is_some_and(|error| error == message)
        };
        let Some(path) = innermost_key(&[], &self.values, &is_wrong) else {
            return ConfigError::Wrong {
                origin: self.origin.clone(),
                message: plain_message(&message),
            };
        };

        let key = path.join(".");
        let line = self.line_of_value(&path);
        let plain = plain_message(&self.with_variants(&path, message));
        let has_odd_key = self.has_odd_key(&path);
        match line {
            Some(line) => ConfigError::Wrong {
                origin: format!("{}, line {line}", self.origin),
                message: match plain.starts_with("must ") {
                    true if has_odd_key => format!("a key of `{key}` {plain}"),
                    true => format!("`{key}` {plain}"),
                    false => format!("`{key}`: {plain}"),
                },
            },
            None => ConfigError::Wrong {
                origin: format!("{} {}", self.origin, self.as_written(&key)),
                message: match has_odd_key {
                    true => format!("a key {plain}"),
                    false => plain,
                },
            },
        }
    }

    /// Returns whether a value is a mapping with a key that is not a string, such as `{1: a}`.
    fn has_odd_key(&self, path: &[String]) -> bool {
        matches!(self.value_at(path), Some(Value::Mapping(mapping))
            if mapping.keys().any(|key| !key.is_string()))
    }

    fn value_at(&self, path: &[String]) -> Option<&Value> {
        let (first, path) = path.split_first()?;
        let mut keys = path.iter();
        keys.try_fold(self.values.get(first)?, |value, key| value.get(key))
    }

    /// serde names the variants of an enum only if the value is a text.
    fn with_variants(&self, path: &[String], message: String) -> String {
        let Some((actual, _)) = message.split_once(", expected a Value::Tagged enum") else {
            return message;
        };
        let text = Value::String(String::new());
        let text = match self.value_at(path) {
            Some(Value::Sequence(_)) => Value::Sequence(vec![text]),
            _ => text,
        };
        let error = error_of(path, &text).unwrap_or_default();
        let variants = error.split_once("unknown variant ``, expected ");
        match variants {
            Some((_, variants)) => format!("{actual}, expected {variants}"),
            None => message,
        }
    }

    /// `None` if the layer isn't a file.
    fn line_of_value(&self, path: &[String]) -> Option<usize> {
        // An error in an item of a list has the line of the item.
        let item = format!("{}[", path.join("."));
        let in_list = serde_yaml::from_str::<Settings>(&self.text).err();
        let in_list = in_list.filter(|error| error.to_string().starts_with(&item));
        let at_value = || {
            let text = serde_yaml::Deserializer::from_str(&self.text);
            ValueAt(path).deserialize(text).err()
        };
        Some(in_list.or_else(at_value)?.location()?.line())
    }

    fn as_written<'k>(&'k self, key: &'k str) -> &'k str {
        let entry = self.spelled.iter().find(|(dotted, _)| dotted == key);
        entry.map_or(key, |(_, written)| written)
    }

    fn unknown(&self, name: String, suggestion: Option<String>) -> ConfigError {
        // `Value` keeps no locations, so parse the text again.
        let error = serde_yaml::from_str::<Settings>(&self.text).err();
        let error = error.filter(|error| error.to_string().contains("unknown field"));
        let line = error.and_then(|error| Some(error.location()?.line()));
        let line = line.map(|line| format!(", line {line}"));

        ConfigError::Unknown {
            origin: format!("{}{}", self.origin, line.unwrap_or_default()),
            name,
            suggestion,
        }
    }

    /// Lowers limits to those of `others`, because an untrusted repository can only tighten them.
    /// Returns the dotted names of lowered settings.
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

/// Later layers take precedence. The error names the layer.
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

/// Fails at the value that a path of keys leads to, to find its line.
struct ValueAt<'a>(&'a [String]);

impl<'de> DeserializeSeed<'de> for ValueAt<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.0 {
            // The visitor takes none, so this fails.
            [] => deserializer.deserialize_bool(self),
            _ => deserializer.deserialize_map(self),
        }
    }
}

impl<'de> Visitor<'de> for ValueAt<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("another value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match self.0 {
                [first, path @ ..] if key == *first => map.next_value_seed(ValueAt(path))?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// The error of a setting without the others.
fn error_of(path: &[String], value: &Value) -> Option<String> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    settings(&nested(&path, value.clone()))
        .err()
        .map(|error| error.to_string())
}

fn settings(values: &Mapping) -> Result<Settings, serde_yaml::Error> {
    serde_yaml::from_value(Value::Mapping(values.clone()))
}

/// Merges `above` into `below`, recursively.
pub(super) fn overlay(base: &mut Mapping, above: &Mapping) {
    for (key, value) in above {
        match (base.get_mut(key), value) {
            // Key by key: a layer that sets one value of a section keeps the others.
            (Some(Value::Mapping(old)), Value::Mapping(new)) => overlay(old, new),
            _ => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}

fn innermost_key(
    above: &[String],
    values: &Mapping,
    is_wrong: &dyn Fn(&[String], &Value) -> bool,
) -> Option<Vec<String>> {
    values.iter().find_map(|(key, value)| {
        let key = key.as_str().unwrap_or_default().to_owned();
        let path = [above, &[key]].concat();
        let inner = value.as_mapping();
        // Inner values first: an outer one is wrong for the same reason.
        inner
            .and_then(|inner| innermost_key(&path, inner, is_wrong))
            .or_else(|| is_wrong(&path, value).then(|| path.clone()))
    })
}

/// One level: keys are `a` or `a.b`.
pub(super) fn flatten(values: &Mapping) -> Vec<(String, Value)> {
    let mut flat = Vec::new();
    for (key, value) in values {
        let key = key.as_str().unwrap_or_default().to_owned();
        match value {
            Value::Mapping(inner) => {
                flat.extend(inner.iter().map(|(sub, value)| {
                    (
                        format!("{key}.{}", sub.as_str().unwrap_or_default()),
                        value.clone(),
                    )
                }));
            }
            value => flat.push((key, value.clone())),
        }
    }

    flat
}

/// Returns unknown messages unchanged.
pub(super) fn plain_message(message: &str) -> String {
    reword(message).unwrap_or_else(|| message.to_owned())
}

/// `None` if the form is unknown.
fn reword(message: &str) -> Option<String> {
    if let Some(details) = message.strip_prefix("unknown variant ") {
        let (actual, expected) = details.split_once(", expected ")?;
        return Some(format!("must be {expected}, not {actual}"));
    }

    let details = ["invalid type: ", "invalid value: "]
        .iter()
        .find_map(|form| message.strip_prefix(form))?;
    let (actual, expected) = details.rsplit_once(", expected ")?;
    Some(format!(
        "must be {}, not {}",
        describe_type(expected),
        describe_value(actual)
    ))
}

fn describe_type(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "`true` or `false`",
        "a sequence" => "a list",
        "a map" => "a mapping",
        "path string" => "a string",
        _ if expected.starts_with("struct ") => "a mapping",
        other => other,
    }
}

fn describe_value(actual: &str) -> String {
    if let Some(text) = actual.strip_prefix("string ") {
        return format!("`{}`", text.trim_matches('"'));
    }

    let forms = ["integer ", "floating point ", "boolean "];
    let literal = forms.iter().find_map(|form| actual.strip_prefix(form));
    match (literal, actual) {
        (Some(shown), _) => shown.to_owned(),
        (None, "sequence") => "a list".to_owned(),
        (None, "map") => "a mapping".to_owned(),
        (None, "unit value" | "null") => "empty".to_owned(),
        (None, other) => other.to_owned(),
    }
}

pub const CALL: &str = "-c";
pub const GIT: &str = "git config";

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error(transparent)]
    Read(std::io::Error),
    #[error("{origin}: {message}")]
    Wrong {
        /// The file, [`CALL`] or [`GIT`], with details.
        origin: String,
        message: String,
    },
    #[error("{origin}: unknown setting `{name}`")]
    Unknown {
        /// The file and line, [`CALL`] or [`GIT`].
        origin: String,
        name: String,
        suggestion: Option<String>,
    },
}

fn unset(name: &str) -> String {
    let key = shell_word(format!("teddy.{name}"));
    format!("`git config --unset {key}` removes it")
}

impl ConfigError {
    pub fn hint(&self) -> String {
        let origin = match self {
            ConfigError::Wrong { origin, .. } | ConfigError::Unknown { origin, .. } => {
                origin.as_str()
            }
            ConfigError::Read(_) => "",
        };
        let suggestion = self.suggestion();
        match (origin.strip_prefix(GIT), self) {
            (Some(_), ConfigError::Unknown { name, .. }) => {
                let suggestion = suggestion
                    .map(|suggestion| format!("{suggestion} "))
                    .unwrap_or_default();
                suggestion + &unset(name)
            }
            (Some(key), _) => unset(key.trim()),
            (None, _) if suggestion.is_some() => suggestion.unwrap_or_default(),
            (None, _) if origin.contains("/.teddy/") => {
                "correct the file; only commands that run and record nothing do without it"
                    .to_owned()
            }
            (None, _) => {
                "correct the file; `TEDDY_CONFIG=/dev/null teddy <command>` runs without it"
                    .to_owned()
            }
        }
    }

    /// `did you mean ..?`
    pub fn suggestion(&self) -> Option<String> {
        match self {
            ConfigError::Unknown {
                origin, suggestion, ..
            } => suggestion.as_ref().map(|suggestion| {
                let suggestion = match origin == GIT {
                    true => in_git(suggestion),
                    false => suggestion.clone(),
                };
                format!("did you mean `{suggestion}`?")
            }),
            _ => None,
        }
    }

    pub fn is_of_call(&self) -> bool {
        matches!(
            self,
            ConfigError::Wrong { origin, .. } | ConfigError::Unknown { origin, .. }
                if origin.split(' ').next() == Some(CALL)
        )
    }
}

/// `on_failure` becomes `teddy.onFailure`.
fn in_git(setting: &str) -> String {
    let (section, name) = match setting.rsplit_once('.') {
        Some((section, name)) => (format!("{section}."), name),
        None => (String::new(), setting),
    };
    let mut parts = name.split('_');
    let mut spelled = parts.next().unwrap_or_default().to_owned();
    for word in parts {
        let mut letters = word.chars();
        spelled.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        spelled.push_str(letters.as_str());
    }

    format!("teddy.{section}{spelled}")
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod wording_tests {
    use super::*;

    fn check(message: &str, expected: &str) {
        assert_eq!(plain_message(message), expected);
    }

    #[test]
    fn messages_have_no_names_of_types() {
        check(
            "invalid type: string \"many\", expected u32",
            "must be a whole number that is not negative, not `many`",
        );
        check(
            "invalid value: integer `-1`, expected u32",
            "must be a whole number that is not negative, not `-1`",
        );
        check(
            "invalid type: string \"maybe\", expected a boolean",
            "must be `true` or `false`, not `maybe`",
        );
        check(
            "invalid type: integer `3`, expected struct Execute",
            "must be a mapping, not `3`",
        );
        check(
            "invalid type: map, expected a sequence",
            "must be a list, not a mapping",
        );
        check(
            "invalid type: unit value, expected a string",
            "must be a string, not empty",
        );
        check(
            "unknown variant `foo`, expected `a` or `b`",
            "must be `a` or `b`, not `foo`",
        );
        check(
            "unknown variant `x`, expected one of `a`, `b`, `c`",
            "must be one of `a`, `b`, `c`, not `x`",
        );
    }

    #[test]
    fn other_messages_stay() {
        check("missing field `kind`", "missing field `kind`");
        check("`a` is not a valid size", "`a` is not a valid size");
    }
}

#[cfg(test)]
mod error_tests {
    use super::*;

    #[test]
    fn a_setting_has_a_name_that_git_takes() {
        let check = |setting: &str, expected: &str| assert_eq!(in_git(setting), expected);
        check("model", "teddy.model");
        check("on_failure", "teddy.onFailure");
        check("snapshot.max_new_files", "teddy.snapshot.maxNewFiles");
        check("models.my_own.base_url", "teddy.models.my_own.baseUrl");
    }
}
