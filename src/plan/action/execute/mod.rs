//! EXECUTE: runs a command in the worktree.

mod check;
pub mod command;
mod parse;
mod perform;
mod script;

use serde_json::Value;

use super::behavior::{
    Behavior, Editable, PreviewPart, ReportPart, SummaryItem, UserEdit, first_line,
};
use super::shape::{BodyShape, SummaryGroup};
use super::{Action, ActionKind, ActionRow, write_block};
use crate::plan::Field;
use crate::plan::run::error::ActionError;
use crate::plan::run::{Outcome, Stage};
use crate::plan::spelling::key::COMMAND;
use crate::plan::validate::{Step, Validator};
use crate::text::diff::Counts;
use crate::text::link;
use crate::text::sanitize::sanitize_blanks;
pub use command::Execute;

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
    read: |body| parse::parse_execute(body).map(ActionKind::from),
    #[cfg(test)]
    sample,
};

impl Behavior for Execute {
    fn row(&self) -> &'static ActionRow {
        &ROW
    }

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

    fn may_fail(&self) -> bool {
        self.allow_failure
    }

    fn check(&self, validator: &mut Validator<'_>, action: &Action) -> anyhow::Result<()> {
        check::check_execute(validator, action, self)
    }

    fn perform(&self, stage: &mut Stage<'_>) -> Result<Outcome, ActionError> {
        perform::perform_execute(stage, self)
    }

    fn preview<'a>(&'a self, _step: &'a Step) -> Vec<PreviewPart<'a>> {
        vec![PreviewPart::Command(self)]
    }

    fn summary(&self) -> SummaryItem<'_> {
        SummaryItem::Command(self)
    }

    fn json(&self, _counts: Counts) -> Vec<(&'static str, Value)> {
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

    fn edited(&self, edit: UserEdit<'_>) -> Option<ActionKind> {
        let UserEdit::Text(text) = edit else {
            return None;
        };
        // An editor can add or drop the final newline; the script keeps its own.
        let end = if self.command.ends_with('\n') {
            "\n"
        } else {
            ""
        };

        let command = format!("{}{end}", text.trim_end_matches('\n'));
        let edited = Execute {
            command,
            ..self.clone()
        };
        Some(edited.into())
    }

    #[cfg(test)]
    fn describe(&self) -> String {
        let cwd = self.cwd.as_ref().map(|cwd| format!(" in {cwd}"));
        let env = self
            .env
            .iter()
            .map(|(name, value)| format!(" {name}={value}"));
        let limit = self.timeout.map(|limit| format!(" {}s", limit.as_secs()));
        let failure = self.allow_failure.then(|| " may fail".to_owned());
        let settings = cwd.into_iter().chain(env).chain(limit).chain(failure);

        format!("EXECUTE {:?}{}", self.command, settings.collect::<String>())
    }
}

/// Returns whether a variable affects how programs are found or loaded.
fn steers_programs(name: &str) -> bool {
    matches!(name, "PATH" | "IFS" | "ENV" | "BASH_ENV" | "HOME")
        || name.starts_with("LD_")
        || name.starts_with("GIT_")
}

#[cfg(test)]
fn sample() -> proptest::strategy::BoxedStrategy<ActionKind> {
    use std::time::Duration;

    use crate::plan::samples;
    use proptest::prelude::*;

    let command = samples::block_text().prop_filter("a command", |text| !text.trim().is_empty());
    let env = proptest::collection::btree_map("[A-Z_]{1,5}", "[ -~é]{0,9}", 0..3);
    let cwd = proptest::option::of(samples::path());
    let timeout = proptest::option::of(1_u64..900);
    (command, cwd, env, samples::phrase(), any::<bool>(), timeout)
        .prop_map(|(command, cwd, env, expected, allow_failure, seconds)| {
            let execute = Execute {
                command,
                language: "sh".into(),
                cwd: cwd.filter(|cwd| cwd.as_str() != "(Optional)"),
                env: env.into_iter().collect(),
                expected_outcome: expected,
                allow_failure,
                timeout: seconds.map(Duration::from_secs),
            };
            execute.into()
        })
        .boxed()
}
