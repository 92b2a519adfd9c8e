//! A plan that ran, compared with what its report says was approved.

use crate::plan::Plan;
use crate::session::report::read;

/// Returns whether a plan changes nothing and keeps nothing.
pub(super) fn only_tells(plan: &Plan) -> bool {
    let mut actions = plan.actions.iter();
    plan.memos.is_empty() && actions.all(|action| action.kind.only_tells())
}

/// Compares the actions of a plan that ran with those that a report says were approved: all of
/// them, or where one failed those up to it.
pub(super) fn differences(plan: &Plan, report: &read::ReportFacts, whole: bool) -> Vec<String> {
    let is_approved = |action: &&read::ReportAction| {
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
    let found: Vec<&str> = reported.iter().map(|action| action.name.as_str()).collect();
    if !planned.starts_with(&found) || (whole && planned.len() > found.len()) {
        return vec![format!(
            "the plan that ran has the actions {}, and the report says that these were approved: {}",
            names(planned),
            names(found)
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
        if command.is_some_and(|block| block.content.trim_end() != execute.command.trim_end()) {
            wrong.push(format!(
                "the command of action {} in the report is not that of the plan that ran",
                at + 1
            ));
        }
    }

    wrong
}
