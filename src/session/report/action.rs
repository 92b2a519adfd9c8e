//! Renders the section of one action in a report.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::{Modification, write_block, write_item};
use crate::plan::action::Action;
use crate::plan::action::behavior::ReportPart;
use crate::plan::run::{Ending, Outcome};
use crate::text::edit::Tier;
use crate::text::redaction::redact;
use crate::text::sanitize::{excerpt, sanitize_line, strip_ansi};

// In characters. Applies to lines of diffs, and to lines of output if the report would be too long.
const MAX_DIFF_LINE: usize = 500;

#[derive(Clone, Copy)]
pub(super) struct ActionFacts<'a> {
    /// `None` if the plan did not run.
    pub outcome: Option<&'a Outcome>,
    pub modification: Option<&'a Modification>,
    /// Maximum number of lines of output, and of a diff.
    pub limit: usize,
    pub are_lines_cut: bool,
    pub index: usize,
}

pub(super) fn write_action(text: &mut String, action: &Action, facts: ActionFacts<'_>) {
    let mark = if facts.modification.is_some() {
        " (user modified)"
    } else {
        ""
    };

    writeln!(text, "\n#### `{}`{mark}", action.kind.name()).expect("writing to a string");
    match facts.outcome {
        None => write_item(text, "Status", "Not run"),
        Some(outcome) => write_ending(text, outcome),
    }

    for field in &action.fields {
        if field.items.is_empty() {
            write_item(
                text,
                &sanitize_line(&field.key),
                &sanitize_line(&field.value),
            );
        } else {
            writeln!(
                text,
                "- **{}:**{}",
                sanitize_line(&field.key),
                pad(&sanitize_line(&field.value))
            )
            .expect("writing to a string");
            field.items.iter().for_each(|value| {
                writeln!(text, "  - {}", sanitize_line(value)).expect("writing to a string")
            });
        }
    }

    if let Some(outcome) = facts.outcome {
        write_details(text, action, outcome, facts);
    }

    let (caption, change, name) = match facts.modification {
        Some(Modification::File(change)) => (
            "The user changed this action. As proposed it would have been:",
            change,
            proposed_name(facts.index),
        ),
        Some(Modification::Action(change)) => (
            "The user changed this action:",
            change,
            proposed_name(facts.index),
        ),
        None => return,
    };
    write_difference(text, caption, change, (&name, facts.limit));
}

fn write_difference(text: &mut String, caption: &str, change: &str, (name, limit): (&str, usize)) {
    writeln!(text, "\n{caption}").expect("writing to a string");
    // Redact first: a key that is cut in half is not recognized.
    let change = redact(change);
    match bounded_difference(&change, limit) {
        None => write_block(text, "diff", &change),
        Some(part) => {
            write_block(text, "diff", &part);
            writeln!(text, "\nThe whole difference is `{name}`.").expect("writing to a string");
        }
    }
}

/// Returns the head and tail of a diff with more than `limit` lines or with long lines. `None` if
/// it can be shown in full.
pub fn bounded_difference(difference: &str, limit: usize) -> Option<String> {
    let lines: Vec<&str> = difference.split_inclusive('\n').collect();
    let is_long = |line: &&str| line.chars().nth(MAX_DIFF_LINE).is_some();
    if lines.len() <= limit && !lines.iter().any(is_long) {
        return None;
    }

    let short = |line: &&str| {
        if !is_long(line) {
            return (*line).to_owned();
        }
        line.chars()
            .take(MAX_DIFF_LINE)
            .chain("…\n".chars())
            .collect()
    };
    let (head, tail) = (limit / 2, limit - limit / 2);
    if lines.len() <= limit {
        return Some(lines.iter().map(short).collect());
    }

    let omitted = lines.len() - limit;
    let first: String = lines[..head].iter().map(short).collect();
    let last: String = lines[lines.len() - tail..].iter().map(short).collect();
    Some(format!("{first}... {omitted} lines left out ...\n{last}"))
}

fn write_ending(text: &mut String, outcome: &Outcome) {
    match outcome.ending {
        Ending::Skipped => write_item(text, "Status", "Skipped 🟡"),
        Ending::Success | Ending::Failure => {
            write_item(text, "Status", "Approved ✅");
            write_item(
                text,
                "Execution",
                if outcome.ending == Ending::Success {
                    "Success 🟢"
                } else {
                    "Failure 🔴"
                },
            );
            write_item(
                text,
                "Duration",
                &format!("{}ms", outcome.duration.as_millis()),
            );
        }
    }

    if !outcome.detail.is_empty() {
        write_item(text, "Outcome", &sanitize_line(&outcome.detail));
    }

    if let Some(code) = outcome.exit_code {
        write_item(text, "Exit Code", &code.to_string());
    }
}

fn write_details(text: &mut String, action: &Action, outcome: &Outcome, facts: ActionFacts<'_>) {
    for (number, position) in outcome.positions.iter().enumerate() {
        let tier = match position.tier {
            Tier::Lines => "whole lines",
            Tier::LineEnds => "whole lines, line ends of the file",
            Tier::Inline => "inside a line",
        };
        writeln!(
            text,
            "- **Match {}:** line {}, {tier}",
            number + 1,
            position.line
        )
        .expect("writing to a string");
    }

    if !outcome.difference.is_empty() {
        let artifact = (&*difference_name(facts.index), facts.limit);
        write_difference(text, "Change of the file:", &outcome.difference, artifact);
    }

    for part in action.kind.report(outcome) {
        match part {
            ReportPart::Block {
                caption,
                language,
                text: contents,
            } => {
                if let Some(caption) = caption {
                    writeln!(text, "\n{caption}:").expect("writing to a string");
                }
                write_block(text, language, contents);
            }
            ReportPart::Output => write_output(text, outcome, facts),
            ReportPart::Sentence(sentence) => {
                writeln!(text, "\n{sentence}").expect("writing to a string");
            }
        }
    }
}

fn write_output(text: &mut String, outcome: &Outcome, facts: ActionFacts<'_>) {
    if outcome.output.is_empty() {
        return;
    }

    let raw = String::from_utf8_lossy(&outcome.output);
    let clean = strip_ansi(&raw);
    let clean = match facts.are_lines_cut {
        // Redact first: a key that is cut in half is not recognized.
        true => redact(&clean),
        false => Cow::Borrowed(&*clean),
    };
    let most = if facts.are_lines_cut {
        MAX_DIFF_LINE
    } else {
        usize::MAX
    };
    let lines: Vec<Cow<'_, str>> = clean.lines().map(|line| excerpt(line, most)).collect();
    text.push_str("\nOutput:\n");
    if lines.len() <= facts.limit {
        write_block(text, "text", &render_lines(&lines));
    } else {
        let (head, tail) = (facts.limit / 2, facts.limit - facts.limit / 2);
        let omitted = lines.len() - facts.limit;
        let cut = format!(
            "{}... {omitted} lines left out ...\n{}",
            render_lines(&lines[..head]),
            render_lines(&lines[lines.len() - tail..])
        );

        write_block(text, "text", &cut);
    }

    writeln!(
        text,
        "\nThe whole output is `{}`.",
        output_name(facts.index)
    )
    .expect("writing to a string");
    if outcome.lost_output > 0 {
        writeln!(
            text,
            "{} bytes were over the limit and are lost.",
            outcome.lost_output
        )
        .expect("writing to a string");
    }
}

/// Returns the name of the artifact with an action's output.
pub fn output_name(index: usize) -> String {
    format!("{}{:02}.txt", crate::session::artifact::OUTPUT, index + 1)
}

/// Returns the name of the artifact with the diff of an action's file.
pub fn difference_name(index: usize) -> String {
    format!("{}{:02}.diff", crate::session::artifact::CHANGES, index + 1)
}

/// Returns the name of the artifact with an action's proposed diff, if the user changed the action.
pub fn proposed_name(index: usize) -> String {
    format!(
        "{}{:02}.proposed.diff",
        crate::session::artifact::CHANGES,
        index + 1
    )
}

fn render_lines(lines: &[Cow<'_, str>]) -> String {
    lines
        .iter()
        .map(|line| format!("{}\n", sanitize_line(line)))
        .collect()
}

fn pad(value: &str) -> String {
    if value.is_empty() {
        String::new()
    } else {
        format!(" {value}")
    }
}
