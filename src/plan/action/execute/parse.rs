//! Parses an EXECUTE: directory, variables, time limit, script.

use std::time::Duration;

use super::command::Execute;
use super::script;
use crate::plan::action::body::{Body, without_optional};
use crate::plan::diagnostic::quote;
use crate::text::path::RepoPath;

/// Longest time limit that a plan can set, in seconds: one day.
const MAX_TIMEOUT: u64 = 86_400;

pub(super) fn parse_execute(body: &mut Body<'_>) -> Option<Execute> {
    let cwd = parse_cwd(body);
    let env = parse_env(body);
    let allow_failure = body.flag("Allow Failure").unwrap_or(false);
    let timeout = parse_timeout(body);
    let expected_outcome = body
        .field("Expected Outcome")
        .map(|f| f.value.clone())
        .unwrap_or_default();
    let (command, language) = body.one_block()?;

    script::check_script(body, &command, &language);
    Some(Execute {
        command,
        language,
        cwd: cwd?,
        env,
        expected_outcome,
        allow_failure,
        timeout,
    })
}

/// Reads `cwd`. The outer `None` means that it names no directory of the project.
fn parse_cwd(body: &mut Body<'_>) -> Option<Option<RepoPath>> {
    let Some(mut field) = body.field("cwd").cloned() else {
        return Some(None);
    };
    field.value = without_optional(&field.value).to_owned();
    let plain = field.value.trim_matches('`');
    if matches!(plain, "" | "." | "./") {
        return Some(None);
    }

    body.name(&field, |name| {
        RepoPath::parse(
            name.strip_prefix("./")
                .unwrap_or(name)
                .trim_end_matches('/'),
        )
        .map_err(|e| keep_absolute_error(name, e))
    })
    .map(Some)
}

/// Keeps the "absolute path" error for `/` itself.
fn keep_absolute_error(
    name: &str,
    error: crate::text::path::PathError,
) -> crate::text::path::PathError {
    if name.starts_with('/') {
        crate::text::path::PathError::Absolute
    } else {
        error
    }
}

/// Reads `env`: one nested item per variable.
fn parse_env(body: &mut Body<'_>) -> Vec<(String, String)> {
    let Some(field) = body.field("env").cloned() else {
        return Vec::new();
    };
    let hint = "write each variable as an item of a nested list: - `NAME`: \"value\"";
    if !without_optional(&field.value).is_empty() {
        body.report(
            field.line,
            format!("`env` has a value of its own: \"{}\"", quote(&field.value)),
            hint,
        );
    }

    let mut variables: Vec<(String, String)> = Vec::new();
    for item in &field.items {
        match parse_variable(item) {
            Some(variable) => variables.push(variable),
            None => body.report(
                field.line,
                format!("this is not a variable: \"{}\"", quote(item)),
                hint,
            ),
        }
    }

    variables
}

/// Parses `` `NAME`: "value" ``, with or without backticks and quotes, with `:` or `=`.
fn parse_variable(item: &str) -> Option<(String, String)> {
    let unquoted = item
        .strip_prefix('`')
        .and_then(|tail| tail.strip_suffix('`'))
        .filter(|inner| !inner.contains('`'));
    let item = unquoted.unwrap_or(item);
    let at = item.find([':', '='])?;
    let name = item[..at].trim_matches(['`', '*', ' ']);
    let mut value = item[at + 1..].trim_start_matches('*').trim();
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !name.starts_with(|c: char| c.is_ascii_digit());

    if name.is_empty() || !plain {
        return None;
    }

    for mark in ['`', '"', '\''] {
        let inner = value
            .strip_prefix(mark)
            .and_then(|tail| tail.strip_suffix(mark));
        if let Some(inner) = inner {
            value = inner;
            break;
        }
    }

    Some((name.to_owned(), value.to_owned()))
}

fn parse_timeout(body: &mut Body<'_>) -> Option<Duration> {
    let field = body.field("Timeout")?.clone();
    let value = field.value.trim_matches('`').to_lowercase();
    let number = ["seconds", "second", "secs", "sec", "s"]
        .iter()
        .find_map(|unit| value.strip_suffix(unit))
        .unwrap_or(&value)
        .trim();

    match number.parse::<u64>() {
        Ok(seconds @ 1..=MAX_TIMEOUT) => Some(Duration::from_secs(seconds)),
        _ => {
            let message = format!(
                "`Timeout` is not a number of seconds from 1 to {MAX_TIMEOUT}: \"{}\"",
                quote(&field.value)
            );
            body.report(field.line, message, "write `- **Timeout:** 30`");
            None
        }
    }
}
