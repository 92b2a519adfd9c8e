//! Renders `report.md`: the outcome of every action, in order (`docs/formats/report.md`).
//!
//! Pure. Shows the changes of files, not their content, which is in the input of the next turn.

pub mod reading;

use std::borrow::Cow;
use std::fmt::Write as _;

use super::artifact::MAX_REPORT;
use super::meta::{Approver, NotCaptured, Status};
use crate::plan::Plan;
use crate::plan::action::Action;
use crate::plan::action::behavior::ReportPart;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::memo::{MemoChange, Verb};
use crate::plan::repair::Note;
use crate::plan::run::{Ending, Outcome};
use crate::text::edit::Tier;
use crate::text::fence::fence_for;
use crate::text::sanitize::{excerpt, sanitize_line, sanitize_text, strip_ansi};
use crate::text::secret::redact;

const PROMPT: &str = "User Prompt";

#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// As in context lists: `.teddy/demo/03/plan.md`.
    pub plan_name: &'a str,
    pub status: Status,
    /// In RFC 3339.
    pub started: &'a str,
    pub ended: &'a str,
    pub user_prompt: &'a str,
    /// The plan that ran, or the proposed one if none did.
    pub plan: &'a Plan,
    /// By action. Empty if the plan did not run.
    pub outcomes: &'a [Outcome],
    /// For each memo change, whether it was applied.
    pub memos: &'a [bool],
    /// The user can have modified these.
    pub proposed_memos: &'a [MemoChange],
    /// With the index of the action.
    pub modifications: &'a [(usize, Modification)],
    pub approved_by: Option<Approver>,
    pub interruption: Option<&'a str>,
    pub repairs: &'a [Note],
    /// If the plan was rejected.
    pub diagnostics: &'a [Diagnostic],
    /// The plan's structure as parsed, if a mistake concerns it.
    pub outline: Option<&'a str>,
    /// Paths that conflicted with the user's edits.
    pub overlaps: &'a [String],
    pub not_captured: &'a [NotCaptured],
    /// Changes of a command to the repository itself.
    pub repository_changes: &'a [String],
    /// In lines, for a command's output and for a diff. The middle is left out.
    pub output_limit: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Modification {
    /// Diff of the file that the proposed CREATE or EDIT would have made.
    File(String),
    /// Diff between the proposed action and the one that ran.
    Action(String),
}

pub fn without_prompt(report: &str) -> Cow<'_, str> {
    let heading = format!("\n## {PROMPT}\n");
    let Some(start) = report
        .find("\n## ")
        .filter(|&at| report[at..].starts_with(&heading))
    else {
        return Cow::Borrowed(report);
    };
    let body = &report[start + heading.len()..];
    let fence = &body[..body.len() - body.trim_start_matches('`').len()];

    // The fence is longer than any run of backticks in the message.
    let closing = format!("\n{fence}\n");
    match body.find(&closing).filter(|_| !fence.is_empty()) {
        Some(end) => Cow::Owned([&report[..start], &body[end + closing.len()..]].concat()),
        None => Cow::Borrowed(report),
    }
}

impl Report<'_> {
    /// Cuts long lines of output if the report would exceed [`MAX_REPORT`].
    pub fn render(&self) -> String {
        // A longer report could not be read again.
        let text = self.written(false);
        match text.len() > MAX_REPORT {
            true => self.written(true),
            false => text,
        }
    }

    fn written(&self, are_lines_cut: bool) -> String {
        let mut text = format!("# Execution Report: {}\n", sanitize_line(&self.plan.title));
        self.head(&mut text);
        self.warnings(&mut text);
        if !self.diagnostics.is_empty() {
            text.push_str("\n## Validation Errors\n\n");
            text.push_str(&errors(self.diagnostics));
        }

        if let Some(outline) = self.outline {
            text.push_str("\n## How the Plan Was Read\n");
            write_block(&mut text, "text", outline);
        }

        text.push_str("\n## 1. Rationale\n");
        write_block(&mut text, "text", &self.plan.rationale);
        text.push_str("\n## 2. Execution Summary\n\n### Applied State Changes\n");
        self.state_changes(&mut text);
        text.push_str("\n### Action Log\n");

        for (index, action) in self.plan.actions.iter().enumerate() {
            let modification = self
                .modifications
                .iter()
                .find(|(at, _)| *at == index)
                .map(|(_, modification)| modification);
            write_action(
                &mut text,
                action,
                ActionFacts {
                    outcome: self.outcomes.get(index),
                    modification,
                    limit: self.output_limit,
                    are_lines_cut,
                    index,
                },
            );
        }

        text
    }

    fn head(&self, text: &mut String) {
        let skipped = self
            .outcomes
            .iter()
            .filter(|o| o.ending == Ending::Skipped)
            .count();
        let count = |ending: Ending| self.outcomes.iter().filter(|o| o.ending == ending).count();
        write_item(
            text,
            "Overall Status",
            &format!(
                "{} {}",
                status_label(self.status).0,
                status_label(self.status).1
            ),
        );

        if let Some(why) = self.interruption {
            let why = sanitize_line(why);
            write_item(
                text,
                "Interrupted",
                &format!("{why}; the user's files are unchanged"),
            );
        }

        if let Some(approver) = self.approved_by {
            write_item(text, "Approved By", approver.describe());
        }

        write_item(
            text,
            "Original Plan",
            &format!("[{0}](/{0})", self.plan_name),
        );
        write_item(text, "Start Time", self.started);
        write_item(text, "End Time", self.ended);
        let total = self.plan.actions.len();

        write_item(
            text,
            "Actions",
            &format!(
                "{total} Total / {} Approved / {} Skipped",
                self.outcomes.len() - skipped,
                total - (self.outcomes.len() - skipped)
            ),
        );
        write_item(
            text,
            "Outcomes",
            &format!(
                "{} Succeeded / {} Failed",
                count(Ending::Success),
                count(Ending::Failure)
            ),
        );
        if !self.user_prompt.trim().is_empty() {
            writeln!(text, "\n## {PROMPT}").expect("writing to a string");
            write_block(text, "text", self.user_prompt);
        }
    }

    fn warnings(&self, text: &mut String) {
        let mut section = |title: &str, lines: Vec<String>| {
            if !lines.is_empty() {
                writeln!(text, "\n## {title}\n").expect("writing to a string");
                lines
                    .iter()
                    .for_each(|line| writeln!(text, "- {line}").expect("writing to a string"));
            }
        };
        section(
            "Repairs",
            self.repairs
                .iter()
                .map(|note| format!("line {}: {}", note.line, sanitize_line(&note.message)))
                .collect(),
        );
        section(
            "Overlaps",
            self.overlaps
                .iter()
                .map(|path| {
                    format!(
                        "`{}` was changed by the user too; it was left as it is",
                        sanitize_line(path)
                    )
                })
                .collect(),
        );
        section(
            "Not Captured",
            self.not_captured
                .iter()
                .map(|entry| format!("`{}`: {}", sanitize_line(&entry.path), entry.reason))
                .collect(),
        );

        section(
            "Repository Changes",
            self.repository_changes
                .iter()
                .map(|change| sanitize_line(change).into_owned())
                .collect(),
        );
    }

    fn state_changes(&self, text: &mut String) {
        if self.plan.memos.is_empty() {
            text.push_str("*(No state changes were proposed in the plan.)*\n");
        }

        for (index, memo) in self.plan.memos.iter().enumerate() {
            let applied = self.memos.get(index).copied().unwrap_or(false);
            let changed = self
                .proposed_memos
                .get(index)
                .filter(|proposed| *proposed != memo);
            let note = changed
                .map(|proposed| format!(" (user modified; proposed: {})", memo_line(proposed)))
                .unwrap_or_default();
            writeln!(
                text,
                "- {} {}{note}",
                if applied { "Applied:" } else { "Not applied:" },
                memo_line(memo)
            )
            .expect("writing to a string");
        }

        let is_cut = matches!(self.status, Status::Failed | Status::Interrupted);
        if !self.plan.memos.is_empty() && is_cut {
            text.push_str("\nThe plan did not run to its end, so its memos were left out.\n");
        }
    }
}

fn memo_line(memo: &MemoChange) -> String {
    let mark = match memo.verb {
        Verb::Add => "[+]",
        Verb::Remove => "[-]",
    };
    let rendered = sanitize_line(&memo.text);
    let ticks = "`".repeat(crate::text::fence::longest_run(&rendered, '`') + 1);
    format!("{ticks} {mark} {rendered} {ticks}")
}

fn status_label(status: Status) -> (&'static str, &'static str) {
    match status {
        Status::Executed => ("Completed", "🟢"),
        Status::Failed => ("Failed", "🔴"),
        Status::Interrupted => ("Interrupted", "🟡"),
        Status::Rejected => ("Rejected", "🔴"),
        Status::Declined => ("Skipped", "🟡"),
        Status::Restored => ("Restored", "🟢"),
        Status::Landed => ("Landed", "🟢"),
        Status::Picked => ("Picked", "🟢"),
        Status::Recorded => ("Recorded", "🟢"),
        Status::Started | Status::Ready | Status::Planned => ("Pending", "🟡"),
    }
}

/// Further lines of a message go into a fenced block.
pub fn errors(diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        let label = if diagnostic.action.is_empty() {
            String::new()
        } else {
            format!("{}: ", sanitize_line(&diagnostic.action))
        };

        let mut lines = diagnostic.message.lines();
        let first = sanitize_line(lines.next().unwrap_or_default());
        writeln!(text, "- line {}: {label}{first}", diagnostic.line).expect("writing to a string");
        let details: Vec<_> = lines.map(sanitize_text).collect();
        if !details.is_empty() {
            let details = format!("{}\n", details.join("\n"));
            let fence = fence_for(&details, 4);
            let indented: String = details.lines().map(|line| format!("  {line}\n")).collect();
            write!(text, "\n  {fence}text\n{indented}  {fence}\n").expect("writing to a string");
        }

        if let Some(hint) = &diagnostic.hint {
            writeln!(text, "  - **Hint:** {}", sanitize_line(hint)).expect("writing to a string");
        }
    }

    text
}

fn write_item(text: &mut String, key: &str, value: &str) {
    writeln!(text, "- **{key}:** {value}").expect("writing to a string");
}

fn write_block(text: &mut String, language: &str, contents: &str) {
    let contents = sanitize_text(contents);
    let fence = fence_for(&contents, 4);
    let end = if contents.is_empty() || contents.ends_with('\n') {
        ""
    } else {
        "\n"
    };

    write!(text, "{fence}{language}\n{contents}{end}{fence}\n").expect("writing to a string");
}

// In characters. Applies to lines of diffs, and to lines of output if the report would be too long.
const MAX_DIFF_LINE: usize = 500;

#[derive(Clone, Copy)]
struct ActionFacts<'a> {
    pub outcome: Option<&'a Outcome>,
    pub modification: Option<&'a Modification>,
    pub limit: usize,
    pub are_lines_cut: bool,
    pub index: usize,
}

fn write_action(text: &mut String, action: &Action, facts: ActionFacts<'_>) {
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
    write_difference(text, caption, change, &name, facts.limit);
}

fn write_difference(text: &mut String, caption: &str, change: &str, name: &str, limit: usize) {
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

/// Keeps head and tail of a diff with more than `limit` lines or with long lines. `None` if it can
/// be shown in full.
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
        write_difference(
            text,
            "Change of the file:",
            &outcome.difference,
            artifact.0,
            artifact.1,
        );
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

pub fn output_name(index: usize) -> String {
    format!("{}{:02}.txt", crate::session::artifact::OUTPUT, index + 1)
}

pub fn difference_name(index: usize) -> String {
    format!("{}{:02}.diff", crate::session::artifact::CHANGES, index + 1)
}

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
