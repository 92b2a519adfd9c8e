//! Finds unknown settings and suggests similar ones.
//!
//! serde has the list of settings: deserializing a name that doesn't exist fails with an error that
//! lists all valid names. So there is no second list to keep up to date.

use std::borrow::Cow;

use serde_yaml::{Mapping, Value};

use super::settings::Settings;
use crate::text::near::nearest;

/// A name that no setting has.
const PLACEHOLDER: &str = "\u{0}";
/// Names below this key are chosen by the user.
const MODELS: &str = "models";

/// Returns its dotted name and a suggestion.
pub fn first(values: &Mapping) -> Option<(String, Option<String>)> {
    find_unknown(&[], values)
}

/// The outer `None` means that the name is known.
pub fn suggest(name: &str) -> Option<Option<String>> {
    let parts: Vec<&str> = name.split('.').collect();
    first(&nested(&parts, Value::Null)).map(|(_, suggestion)| suggestion)
}

/// By dotted name, without `models`.
pub fn keys() -> Vec<String> {
    let sections = names(&[]).into_iter().filter(|name| name != MODELS);
    let section_keys = |section: String| {
        let inner = names(&[&section]).into_iter();
        let keys: Vec<String> = inner.map(|name| format!("{section}.{name}")).collect();
        if keys.is_empty() { vec![section] } else { keys }
    };
    sections.flat_map(section_keys).collect()
}

/// From git's spelling, which ignores case and has no `_`. Returns unknown names unchanged.
pub fn spelled(written: &str) -> String {
    let mut parts: Vec<&str> = written.split('.').collect();
    let Some(name) = parts.pop() else {
        return written.to_owned();
    };
    let letters = |name: &str| name.replace(['-', '_'], "").to_lowercase();
    let candidates = names(&parts).into_iter();
    let mut candidates = candidates.filter(|candidate| letters(candidate) == letters(name));

    match candidates.next() {
        Some(candidate) => [parts.as_slice(), &[candidate.as_str()]].concat().join("."),
        None => written.to_owned(),
    }
}

fn find_unknown(section: &[&str], values: &Mapping) -> Option<(String, Option<String>)> {
    let valid = names(section);
    values.iter().find_map(|(key, value)| {
        let key = key_text(key);
        let key = key.as_ref();
        let path = [section, &[key]].concat();
        // The user chooses the names of models.
        let is_free = section == [MODELS];
        if !is_free && !valid.is_empty() && !valid.iter().any(|name| name == key) {
            return Some((path.join("."), suggest_key(section, key, &valid)));
        }

        let inner = value.as_mapping()?;
        (is_free || valid.iter().any(|name| name == key))
            .then(|| find_unknown(&path, inner))
            .flatten()
    })
}

/// Keys can have any type, and all settings are named by texts.
fn key_text(key: &Value) -> Cow<'_, str> {
    match key.as_str() {
        Some(text) => text.into(),
        None => serde_json::to_string(key).unwrap_or_default().into(),
    }
}

/// Prefers the same section, then the same name in another section.
fn suggest_key(section: &[&str], key: &str, valid: &[String]) -> Option<String> {
    let dotted = |name: &str| [section, &[name]].concat().join(".");
    if let Some(near) = nearest(key, valid.iter().map(String::as_str)) {
        return Some(dotted(near));
    }

    let last = key.rsplit('.').next().unwrap_or(key);
    names(&[])
        .iter()
        .filter(|section| *section != MODELS)
        .find_map(|section| {
            let inner = names(&[section]);
            let setting = inner.iter().find(|name| *name == last)?;
            Some(format!("{section}.{setting}"))
        })
}

/// Empty if `section` is itself a setting.
fn names(section: &[&str]) -> Vec<String> {
    let values = nested(&[section, &[PLACEHOLDER]].concat(), Value::Null);
    let Err(error) = serde_yaml::from_value::<Settings>(Value::Mapping(values)) else {
        return Vec::new();
    };
    let message = error.to_string();
    // unknown field `x`, expected one of `a`, `b`
    match message.split_once("unknown field") {
        Some((_, list)) => list
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|name| *name != PLACEHOLDER)
            .map(str::to_owned)
            .collect(),
        None => Vec::new(),
    }
}

/// One value in mappings.
pub(super) fn nested(path: &[&str], value: Value) -> Mapping {
    let mut values = Mapping::new();
    insert_at(&mut values, path, value);
    values
}

/// Creates mappings as needed, replacing other values.
pub(super) fn insert_at(into: &mut Mapping, path: &[&str], value: Value) {
    let [first, tail @ ..] = path else { return };
    let key = Value::String((*first).to_owned());
    if tail.is_empty() {
        into.insert(key, value);
        return;
    }

    let inner = into.entry(key).or_insert(Value::Null);
    if !inner.is_mapping() {
        *inner = Value::Mapping(Mapping::new());
    }
    if let Value::Mapping(inner) = inner {
        insert_at(inner, tail, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(&str, Option<&str>)>) {
        let values: Mapping = serde_yaml::from_str(text).unwrap();
        let actual = first(&values);
        let actual = actual
            .as_ref()
            .map(|(name, suggestion)| (name.as_str(), suggestion.as_deref()));
        assert_eq!(actual, expected, "{text}");
    }

    #[test]
    fn cf2_an_unknown_setting_gets_the_nearest_name() {
        check("modle: x", Some(("modle", Some("model"))));
        check(
            "execute: {timout: 5}",
            Some(("execute.timout", Some("execute.timeout"))),
        );
        check("exeucte: {timeout: 5}", Some(("exeucte", Some("execute"))));
        check("timeout: 5", Some(("timeout", Some("execute.timeout"))));
        check(
            "change: {roles: {author: x}, role: {}}",
            Some(("change.role", Some("change.roles"))),
        );
        check(
            "models: {any: {kind: openai, base-url: x}}",
            Some(("models.any.base-url", Some("models.any.base_url"))),
        );
        check("nonsense: x", Some(("nonsense", None)));
    }

    #[test]
    fn every_setting_is_in_the_table_of_its_document() {
        let document = include_str!("../../docs/formats/config.md");
        let rows = document.lines().filter(|line| line.starts_with("| `"));
        let rows: Vec<&str> = rows.collect();
        for key in keys() {
            let last = key.rsplit('.').next().unwrap_or_default();
            let section = key.strip_suffix(last).unwrap_or_default();
            let is_in = |row: &&str| {
                let names = row.split(" | ").next().unwrap_or_default();
                let is_short = names.starts_with(&format!("| `{section}"));
                names.contains(&format!("`{key}`"))
                    || is_short && names.contains(&format!("`.{last}`"))
            };
            assert!(rows.iter().any(is_in), "`{key}` is in no row");
        }
    }

    #[test]
    fn what_is_known_is_not_suspected() {
        check(
            "model: x\nmodels: {any: {kind: openai}}\nexecute: {timeout: 5}",
            None,
        );
        check(
            "models: {any: {extra: {a: {b: 1}}, price: {input: 1, output: 2}, headers: {X-A: b}}}",
            None,
        );
        check("change: {roles: {painter: x}}", None);
        check("execute: 5", None);
    }

    #[test]
    fn a_name_of_gits_configuration_is_that_of_a_setting() {
        let check = |written: &str, expected: &str| assert_eq!(spelled(written), expected);
        check("onFailure", "on_failure");
        check("onfailure", "on_failure");
        check("on-failure", "on_failure");
        check("Model", "model");
        check("execute.outputLimit", "execute.output_limit");
        check("models.My.apiKeyEnv", "models.My.api_key_env");
        check("change.roles.Author", "change.roles.Author");
        check("onFail", "onFail");
    }

    #[test]
    fn a_dotted_name_is_looked_up() {
        assert_eq!(suggest("execute.timeout"), None);
        assert_eq!(
            suggest("execute.timout"),
            Some(Some("execute.timeout".to_owned()))
        );
        assert_eq!(suggest("nonsense"), Some(None));
    }
}
