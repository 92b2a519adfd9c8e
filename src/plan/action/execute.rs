//! EXECUTE: runs a command in the worktree.

use std::time::Duration;

use super::body::{Body, without_optional};
use super::script;
use super::shape::{BodyShape, SummaryGroup};
use super::{ActionKind, ActionRow, write_block};
use crate::plan::Field;
use crate::plan::diagnostic::quote;
use crate::plan::spelling::key::COMMAND;
use crate::text::link;
use crate::text::path::RepoPath;

/// The longest time limit that a plan may ask for, in seconds: a day.
const MAX_TIMEOUT: u64 = 86_400;

/// The row of the table.
pub static ROW: ActionRow = ActionRow {
    name: "EXECUTE",
    aliases: &[],
    other_names: &["RUN", "EXEC", "SHELL", "BASH", "COMMAND", "TERMINAL"],
    keys: &[
        "Description",
        "Expected Outcome",
        "cwd",
        "env",
        "Allow Failure",
        "Timeout",
    ],
    other_keys: &[
        (
            "cwd",
            &[
                "workingdirectory",
                "workingdir",
                "workdir",
                "directory",
                "folder",
            ],
        ),
        (
            "env",
            &[
                "environment",
                "environmentvariables",
                "envvars",
                "envvariables",
                "variables",
            ],
        ),
        (
            "Timeout",
            &[
                "timelimit",
                "timeoutseconds",
                "timeoutinseconds",
                "timeouts",
            ],
        ),
        (
            "Expected Outcome",
            &["expected", "expectedresult", "expectedoutput", "outcome"],
        ),
        (COMMAND, &["command", "cmd", "shellcommand", "script"]),
    ],
    shape: BodyShape::Script,
    group: SummaryGroup::Commands,
    unit: ("command", "commands"),
    counts_targets: false,
    read: |body| read(body).map(ActionKind::Execute),
};

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execute {
    /// The script, as `sh` gets it.
    pub command: String,
    /// The info string of the block.
    pub language: String,
    /// The folder to run in; the project's root without one.
    pub cwd: Option<RepoPath>,
    /// Variables for this command alone.
    pub env: Vec<(String, String)>,
    /// What the model expects to see.
    pub expected_outcome: String,
    /// `- **Allow Failure:** true`: an exit code other than 0 does not stop the plan.
    pub allow_failure: bool,
    /// `- **Timeout:** 30`: a limit of its own, in seconds.
    pub timeout: Option<Duration>,
}

impl Execute {
    /// Returns the fields of its value.
    pub fn fields(&self) -> Vec<Field> {
        let mut fields = vec![Field::new("Description", "")];
        if !self.expected_outcome.is_empty() {
            fields.push(Field::new(
                "Expected Outcome",
                self.expected_outcome.as_str(),
            ));
        }
        fields.extend(
            self.cwd
                .as_ref()
                .map(|path| Field::new("cwd", link::write_path(path.as_str()))),
        );
        if !self.env.is_empty() {
            let items = self
                .env
                .iter()
                .map(|(name, value)| format!("`{name}`: \"{value}\""))
                .collect();
            fields.push(Field {
                items,
                ..Field::new("env", "")
            });
        }
        if self.allow_failure {
            fields.push(Field::new("Allow Failure", "true"));
        }
        fields.extend(
            self.timeout
                .map(|limit| Field::new("Timeout", limit.as_secs().to_string())),
        );
        fields
    }

    /// Writes the command's block.
    pub fn write(&self, out: &mut String) {
        write_block(&self.command, &self.language, out);
    }
}

/// Reads the action.
fn read(body: &mut Body<'_>) -> Option<Execute> {
    let cwd = cwd(body);
    let env = env(body);
    let allow_failure = body.flag("Allow Failure").unwrap_or(false);
    let timeout = timeout(body);
    let expected_outcome = body
        .field("Expected Outcome")
        .map(|f| f.value.clone())
        .unwrap_or_default();
    let (command, language) = body.one_block()?;
    script::check(body, &command, &language);
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

/// Reads `cwd`; `None` where it names no folder of the project.
fn cwd(body: &mut Body<'_>) -> Option<Option<RepoPath>> {
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
        .map_err(|e| absolute(name, e))
    })
    .map(Some)
}

/// Keeps the reason for a folder that is the file system's root.
fn absolute(name: &str, error: crate::text::path::PathError) -> crate::text::path::PathError {
    if name.starts_with('/') {
        crate::text::path::PathError::Absolute
    } else {
        error
    }
}

/// Reads `env`: one nested item for each variable.
fn env(body: &mut Body<'_>) -> Vec<(String, String)> {
    let Some(field) = body.field("env").cloned() else {
        return Vec::new();
    };
    let hint = "write each variable as an item of a nested list: - `NAME`: \"value\"";
    if !without_optional(&field.value).is_empty() {
        body.wrong(
            field.line,
            format!("`env` has a value of its own: \"{}\"", quote(&field.value)),
            hint,
        );
    }
    let mut variables: Vec<(String, String)> = Vec::new();
    for item in &field.items {
        match variable(item) {
            Some(found) => variables.push(found),
            None => body.wrong(
                field.line,
                format!("this is not a variable: \"{}\"", quote(item)),
                hint,
            ),
        }
    }
    variables
}

/// Reads `` `NAME`: "value" ``, with or without backticks and quotes, with `:` or `=`.
fn variable(item: &str) -> Option<(String, String)> {
    let whole = item
        .strip_prefix('`')
        .and_then(|rest| rest.strip_suffix('`'))
        .filter(|inner| !inner.contains('`'));
    let item = whole.unwrap_or(item);
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
            .and_then(|rest| rest.strip_suffix(mark));
        if let Some(inner) = inner {
            value = inner;
            break;
        }
    }
    Some((name.to_owned(), value.to_owned()))
}

/// Reads `Timeout`, in seconds.
fn timeout(body: &mut Body<'_>) -> Option<Duration> {
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
            body.wrong(field.line, message, "write `- **Timeout:** 30`");
            None
        }
    }
}
