//! Compares a plan that ran with the approved actions in its report.

use crate::plan::Plan;
use crate::session::report::reading;
use crate::text::redaction::redact;
use crate::text::sanitize::sanitize_text;

/// Returns `true` if a plan has no effects on files or memos.
pub(super) fn is_informational(plan: &Plan) -> bool {
    let mut actions = plan.actions.iter();
    plan.memos.is_empty() && actions.all(|action| action.kind.is_informational())
}

/// Returns the differences between the plan and the approved actions of its report. If an action
/// failed, `whole` is `false`, and the report can end early.
pub(super) fn approval_differences(
    plan: &Plan,
    report: &reading::ReportFacts,
    is_complete: bool,
) -> Vec<String> {
    let is_approved = |action: &&reading::ReportAction| {
        let status = action.field("Status").unwrap_or_default();
        status.starts_with("Approved")
    };
    let reported: Vec<_> = report.actions.iter().filter(is_approved).collect();
    let names = |names: Vec<&str>| match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    };

    let planned: Vec<&str> = plan
        .actions
        .iter()
        .map(|action| action.kind.name())
        .collect();
    let approved: Vec<&str> = reported.iter().map(|action| action.name.as_str()).collect();
    if !planned.starts_with(&approved) || (is_complete && planned.len() > approved.len()) {
        return vec![format!(
            "the plan that ran has the actions {}, and the report says that these were approved: {}",
            names(planned),
            names(approved)
        )];
    }

    let mut wrong = Vec::new();
    for (at, (action, reported)) in plan.actions.iter().zip(reported).enumerate() {
        let Some(execute) = action.kind.command() else {
            continue;
        };
        let command = reported
            .blocks
            .iter()
            .find(|block| block.caption == "Command:");
        if command
            .is_some_and(|block| reported_as(&block.contents) != reported_as(&execute.command))
        {
            wrong.push(format!(
                "the command of action {} in the report is not that of the plan that ran",
                at + 1
            ));
        }
    }

    wrong
}

/// Returns a command as reports show it, sanitized and redacted.
fn reported_as(command: &str) -> String {
    // Redact both sides: an older report can contain keys that are recognized only now.
    redact(&sanitize_text(command)).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, reported: &str, is_same: bool) {
        let plan = format!(
            "# T\n## Rationale\n````text\nx\n````\n## Action Plan\n### `EXECUTE`\n````shell\n{command}\n````\n"
        );
        let status = reading::ReportField {
            key: "Status".to_owned(),
            value: "Approved".to_owned(),
            ..reading::ReportField::default()
        };
        let block = reading::CodeBlock {
            caption: "Command:".to_owned(),
            contents: format!("{reported}\n"),
            ..reading::CodeBlock::default()
        };
        let action = reading::ReportAction {
            name: "EXECUTE".to_owned(),
            fields: vec![status],
            blocks: vec![block],
            ..reading::ReportAction::default()
        };
        let report = reading::ReportFacts {
            actions: vec![action],
            ..reading::ReportFacts::default()
        };
        let actual = approval_differences(&crate::plan::parse(&plan).0, &report, true);
        assert_eq!(actual.is_empty(), is_same, "{command:?}: {actual:?}");
    }

    #[test]
    fn r2_a_command_is_compared_as_a_report_shows_it() {
        check("echo a", "echo a", true);
        check("echo a", "echo b", false);
        check("echo \u{200d}", "echo \\u{200d}", true);
        check("echo \u{200d}", "echo \\u{200b}", false);
        let key = format!("ghp_{}", "aB3dE5fG7h".repeat(4));
        check(&key, &redact(&key), true);
        check(&key, &key, true);
        check(&key, "echo a", false);
    }
}
