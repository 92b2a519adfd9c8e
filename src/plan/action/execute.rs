//! EXECUTE: runs a command in the worktree.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

pub use super::Execute;

use super::behavior::{Behavior, Editable, PreviewPart, ReportPart, SummaryItem, first_line};
use super::{ActionKind, ActionRow, BodyShape, SummaryGroup, write_block};
use crate::host::file::{FileKind, Root, reason};
use crate::host::shell::{ScriptEnd, may_set_variable, requested_interpreter};
use crate::plan::action::body::{Body, without_optional};
use crate::plan::diagnostic::quote;
use crate::plan::field::Field;
use crate::plan::line::field_item::letters;
use crate::plan::line::key::COMMAND;
use crate::plan::line::value::unquoted;
use crate::plan::run::{ActionError, Ending, Executed, Outcome, STOPPED, Stage};
use crate::plan::validate::simulated_files::Lookup;
use crate::plan::validate::{Mistake, Step, Validator};
use crate::text::path::{PathError, RepoPath};
use crate::text::sanitize::{sanitize_blanks, sanitize_line};
use crate::text::{has_word, link};

/// Key of the field with which the user grants a command the network.
pub const NETWORK: &str = "Network";

/// Table entry of EXECUTE.
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
        NETWORK,
    ],
    other_keys: &[
        (
            "cwd",
            "workingdirectory workingdir workdir directory folder",
        ),
        (
            "env",
            "environment environmentvariables envvars envvariables variables",
        ),
        (
            "Timeout",
            "timelimit timeoutseconds timeoutinseconds timeouts",
        ),
        (
            "Expected Outcome",
            "expected expectedresult expectedoutput outcome",
        ),
        (COMMAND, "command cmd shellcommand script"),
    ],
    shape: BodyShape::Script,
    group: SummaryGroup::Commands,
    unit: ("command", "commands"),
    counts_targets: false,
    read: |body| parse_execute(body).map(ActionKind::from),
};

impl Behavior for Execute {
    fn fields(&self) -> Vec<Field> {
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
        fields.extend(self.network.then(|| Field::new(NETWORK, "true")));
        fields
    }

    fn write(&self, out: &mut String) {
        write_block(&self.command, &self.language, out);
    }

    fn target(&self) -> String {
        sanitize_blanks(&first_line(&self.command)).into_owned()
    }

    fn command(&self) -> Option<&Execute> {
        Some(self)
    }

    fn command_mut(&mut self) -> Option<&mut Execute> {
        Some(self)
    }

    // Its effect on the files is unknown, and validation of later actions takes that into account.
    fn check(&self, validator: &mut Validator<'_>) -> anyhow::Result<()> {
        if self.command.trim().is_empty() {
            validator.refuse(Mistake::new(
                "there is no command",
                "put the command into the code block",
            ));
        }

        if let Some(mistake) = self
            .cwd
            .as_ref()
            .map(|cwd| missing_dir(validator, cwd))
            .transpose()?
            .flatten()
        {
            // Not `refuse`: an earlier command can create the directory.
            validator.refuse_unless_fixable(mistake);
        }

        if let Some(program) = validator.files.facts.missing_interpreter(&self.command) {
            let program = sanitize_line(&program);
            let mistake = Mistake::new(
                format!("the `#!` line asks for `{program}`, which cannot run here"),
                "name a program that is installed, or leave the line out and use a shell",
            );
            // An earlier command can install it.
            validator.refuse_unless_fixable(mistake);
        }

        let mut names = BTreeSet::new();
        for (name, _) in &self.env {
            if let Some(mistake) = wrong_variable(name)
                .or_else(|| (!names.insert(name)).then(|| duplicate_variable(name)))
            {
                validator.refuse(mistake);
            }
        }

        // The command can change any file.
        validator.files.unknown_after_command = true;
        Ok(())
    }

    fn perform(&self, stage: &mut Stage<'_>) -> Result<Outcome, ActionError> {
        if let Some((name, _)) = self.env.iter().find(|(name, _)| !may_set_variable(name)) {
            return Err(format!("a plan may not set `{}`", sanitize_line(name)).into());
        }

        // An earlier command can have removed the directory or replaced it by a link.
        if let Some(cwd) = &self.cwd {
            require_dir(stage.root, cwd)?;
        }

        // A command that fails or cannot start is an outcome. Only a machine that can run nothing is an
        // error.
        let executed = stage.tools.execute(self).map_err(|error| {
            let why = format!("the command cannot be run: {}", reason(&error));
            ActionError::World(io::Error::new(error.kind(), why))
        })?;
        Ok(command_outcome(&executed))
    }

    fn preview<'a>(&'a self, _step: &'a Step) -> Vec<PreviewPart<'a>> {
        vec![PreviewPart::Command(self)]
    }

    fn summary(&self) -> SummaryItem<'_> {
        SummaryItem::Command(self)
    }

    fn json(&self) -> Vec<(&'static str, Value)> {
        vec![("command", self.command.as_str().into())]
    }

    fn report(&self, _outcome: &Outcome) -> Vec<ReportPart<'_>> {
        let command = ReportPart::Block {
            caption: Some("Command"),
            language: "shell",
            text: &self.command,
        };
        vec![command, ReportPart::Output]
    }

    fn risks(&self, _step: &Step) -> Vec<String> {
        let names = self.env.iter().map(|(name, _)| name.as_str());
        let names: Vec<&str> = names.filter(|name| steers_programs(name)).collect();
        let risk = || format!("a command sets {} for itself", names.join(", "));
        (!names.is_empty()).then(risk).into_iter().collect()
    }

    fn texts(&self) -> Vec<&str> {
        let env = self.env.iter();
        env.flat_map(|(name, value)| [name.as_str(), value.as_str()])
            .chain([self.command.as_str()])
            .collect()
    }

    fn text_with_nul(&self) -> Option<&'static str> {
        if self.command.contains('\0') {
            return Some("the command");
        }
        let in_value = self.env.iter().any(|(_, value)| value.contains('\0'));
        in_value.then_some("a variable")
    }

    fn editable(&self) -> Editable<'_> {
        Editable::Text(self.command.clone())
    }

    fn set_text(&mut self, text: &str) {
        // An editor can add or drop the final newline; the script keeps its own.
        let end = if self.command.ends_with('\n') {
            "\n"
        } else {
            ""
        };
        self.command = format!("{}{end}", text.trim_end_matches('\n'));
    }
}

/// Returns whether a variable affects how programs are found or loaded.
fn steers_programs(name: &str) -> bool {
    matches!(name, "PATH" | "IFS" | "ENV" | "BASH_ENV" | "HOME")
        || name.starts_with("LD_")
        || name.starts_with("GIT_")
}

fn missing_dir(validator: &Validator<'_>, cwd: &RepoPath) -> anyhow::Result<Option<Mistake>> {
    let rendered = sanitize_line(cwd.as_str());
    let entry = validator.files.look_up(cwd)?;
    Ok(match entry {
        Lookup::Dir => None,
        Lookup::Absent => Some(Mistake::new(
            format!("there is no directory `{rendered}` to run in"),
            "`cwd` is relative to the project's root",
        )),
        Lookup::File(_) => Some(Mistake::new(
            format!("`{rendered}` is a file, not a directory to run in"),
            "name its directory",
        )),
        other => Some(Mistake::new(
            format!(
                "`{rendered}` {}",
                validator.files.obstacle(cwd, &other)?.unwrap_or_default()
            ),
            "run in a directory of the project",
        )),
    })
}

fn wrong_variable(name: &str) -> Option<Mistake> {
    let rendered = sanitize_line(name);
    if !is_variable_name(name) {
        return Some(Mistake::new(
            format!("`{rendered}` is not a valid variable name"),
            "use letters, digits and `_`",
        ));
    }

    (!may_set_variable(name)).then(|| {
        let hint =
            "it decides which programs and services a command reaches; leave it as the user has it";
        Mistake::new(format!("a plan may not set `{rendered}`"), hint)
    })
}

fn is_variable_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.bytes().all(is_part) && !name.as_bytes()[0].is_ascii_digit()
}

fn duplicate_variable(name: &str) -> Mistake {
    Mistake::new(
        format!("`{}` is set twice", sanitize_line(name)),
        "keep one value",
    )
}

fn require_dir(root: &Root, cwd: &RepoPath) -> Result<(), ActionError> {
    let kind = root.kind(Path::new(cwd.as_str()));
    match kind.map_err(ActionError::reading)? {
        Some(FileKind::Dir) => Ok(()),
        _ => Err(format!(
            "there is no directory `{}` to run in",
            sanitize_line(cwd.as_str())
        )
        .into()),
    }
}

fn command_outcome(Executed { finished, hint }: &Executed) -> Outcome {
    let (ending, detail) = match &finished.end {
        ScriptEnd::Exited(0) => (Ending::Success, "the command succeeded".to_owned()),
        ScriptEnd::Exited(code) => (
            Ending::Failure,
            format!("the command failed with exit code {code}"),
        ),
        ScriptEnd::Signaled(signal) => (
            Ending::Failure,
            format!("the command was killed by signal {signal}"),
        ),
        ScriptEnd::TimedOut(limit) => (
            Ending::Failure,
            format!(
                "the command was stopped after its time limit of {} s",
                limit.as_secs_f64()
            ),
        ),
        ScriptEnd::Interrupted => (Ending::Failure, STOPPED.to_owned()),
        ScriptEnd::NotStarted(why) => (
            Ending::Failure,
            format!("the command did not start: {}", sanitize_line(why)),
        ),
    };
    let detail = match hint {
        Some(hint) => format!("{detail}; {hint}"),
        None => detail,
    };
    Outcome {
        exit_code: Some(finished.end.code()),
        output: finished.output.joined(),
        lost_output: finished.output.lost,
        ..Outcome::of(ending, detail)
    }
}

/// Longest time limit that a plan can set, in seconds: one day.
const MAX_TIMEOUT: u64 = 86_400;

fn parse_execute(body: &mut Body<'_>) -> Option<Execute> {
    let cwd = parse_cwd(body);
    let env = parse_env(body);
    let allow_failure = body.flag("Allow Failure").unwrap_or(false);
    let timeout = parse_timeout(body);
    let network = body.flag(NETWORK).unwrap_or(false);
    let expected_outcome = body
        .field("Expected Outcome")
        .map(|f| f.value.clone())
        .unwrap_or_default();
    let (command, language) = body.one_block()?;

    check_script(body, &command, &language);
    Some(Execute {
        command,
        language,
        cwd: cwd?,
        env,
        expected_outcome,
        allow_failure,
        timeout,
        network,
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

    let parse = |name: &str| {
        let relative = name.strip_prefix("./").unwrap_or(name);
        match RepoPath::parse(relative.trim_end_matches('/')) {
            // `/` itself is an absolute path, not an empty one.
            Err(_) if name.starts_with('/') => Err(PathError::Absolute),
            parsed => parsed,
        }
    };
    body.name(&field, parse).map(Some)
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
    let item = unquoted(item).unwrap_or(item);
    let at = item.find([':', '='])?;
    let name = item[..at].trim_matches(['`', '*', ' ']);
    let value = item[at + 1..].trim_start_matches('*').trim();
    if !is_variable_name(name) {
        return None;
    }

    let inside = |mark: char| value.strip_prefix(mark)?.strip_suffix(mark);
    let inner = ['`', '"', '\''].into_iter().find_map(inside);
    Some((name.to_owned(), inner.unwrap_or(value).to_owned()))
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

/// Languages that no shell runs, in lower case.
const OTHER_LANGUAGES: &str = "\
    python py python3 javascript js typescript ts json yaml yml toml diff patch rust rs go java c \
    cpp csharp cs ruby rb perl php sql html css xml powershell ps1 pwsh bat output";

pub(in crate::plan) const PROMPTS: [&str; 3] = ["$ ", ">>> ", "PS C:\\"];

/// Field keys that repeat the script.
const SCRIPT_KEYS: [&str; 3] = ["command", "cmd", "shellcommand"];

/// Reports a block that is not a script for a shell.
fn check_script(body: &mut Body<'_>, script: &str, language: &str) {
    let first = script.lines().find(|line| !line.trim().is_empty());
    let first = first.unwrap_or_default().trim_start();
    let language = language.to_lowercase();
    if PROMPTS.iter().any(|prompt| first.starts_with(prompt)) {
        let message = format!("the script begins with a prompt: \"{}\"", quote(first));
        let hint = "write the commands alone, without prompts and without what they print";
        body.report(body.line, message, hint);
    } else if let Some(asked) = requested_interpreter(script) {
        let program = asked.program;
        if program.is_empty() || (program.contains('/') && !program.starts_with('/')) {
            let message = format!("the `#!` line names no program: \"{}\"", quote(first));
            body.report(
                body.line,
                message,
                "write `#!/usr/bin/env python3`, or leave the line out",
            );
        }
    } else if has_word(OTHER_LANGUAGES, &language) {
        let message = format!("the code block is {language}, and EXECUTE runs a shell script");
        let hint = "write the shell command that does it, such as `python script.py`";
        body.report(body.line, message, hint);
    }

    let other = body.fields.iter().find(|field| {
        let value = field.value.trim_matches(['`', ' ']);
        let is_command =
            field.value.starts_with('`') && SCRIPT_KEYS.contains(&&*letters(&field.key));
        is_command && !script.contains(value)
    });
    if let Some(line) = other.map(|field| field.line) {
        let message = "the field and the code block give different commands";
        body.report(line, message, "leave the field out; the code block is run");
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::reading::read;

    fn check(body: &str, expected: &[&str]) {
        let reply = format!(
            "# T\n\n## Rationale\n```\nr\n```\n\n## Action Plan\n\n### `EXECUTE`\n- **Description:** d\n{body}"
        );
        let actual: Vec<String> = read(&reply)
            .diagnostics
            .into_iter()
            .map(|wrong| wrong.message)
            .collect();
        assert_eq!(actual, expected, "{body}");
    }

    #[test]
    fn p15_a_session_and_another_language_are_no_script() {
        check(
            "```console\n$ ls\na b\n```\n",
            &["the script begins with a prompt: \"$ ls\""],
        );
        check(
            "```python\nimport os\n```\n",
            &["the code block is python, and EXECUTE runs a shell script"],
        );
        check("```python\n#!/usr/bin/env python3\nimport os\n```\n", &[]);
        check("```text\n$HOME/bin/x\n```\n", &[]);
    }

    #[test]
    fn p15_a_field_with_another_command_than_the_block_is_a_mistake() {
        check(
            "- **Command:** `make test`\n```sh\nmake clean\n```\n",
            &["the field and the code block give different commands"],
        );
        check("- **Command:** `make`\n```sh\nmake\n```\n", &[]);
    }

    #[test]
    fn p20_a_field_that_would_say_whether_an_action_is_done_is_a_mistake() {
        check(
            "- **Run If:** the tests fail\n```sh\nmake\n```\n",
            &["`Run If` has no meaning in EXECUTE"],
        );
    }
}
