//! Renders `report.md`: the outcome of every action, in order (`docs/formats/report.md`). Parses
//! its actions.
//!
//! Pure. Shows the changes of files, not their content, which is in the input of the next turn.

use std::borrow::Cow;

use super::artifact::{self, MAX_REPORT};
use super::input;
use super::meta::{Approver, NotCaptured, Status};
use crate::plan::Plan;
use crate::plan::action::Action;
use crate::plan::action::behavior::ReportPart;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::memo::{MemoChange, Verb};
use crate::plan::repair::Note;
use crate::plan::run::{Ending, Outcome};
use crate::text::counted;
use crate::text::edit::Tier;
use crate::text::fence::fence_for;
use crate::text::markdown::{self, BlockKind, Lines, MarkdownBlock};
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
            self.action(&mut text, index, action, are_lines_cut);
        }

        text
    }

    fn head(&self, text: &mut String) {
        let count = |ending: Ending| self.outcomes.iter().filter(|o| o.ending == ending).count();
        let (succeeded, failed) = (count(Ending::Success), count(Ending::Failure));
        let total = self.plan.actions.len();
        let approved = self.outcomes.len() - count(Ending::Skipped);
        let interruption = self.interruption.map(|why| {
            let why = sanitize_line(why);
            format!("{why}; the user's files are unchanged")
        });
        let approver = self.approved_by.map(|by| by.describe().to_owned());
        let actions = format!(
            "{total} Total / {approved} Approved / {} Skipped",
            total - approved
        );
        let items = [
            ("Overall Status", Some(status_label(self.status).to_owned())),
            ("Interrupted", interruption),
            ("Approved By", approver),
            (
                "Original Plan",
                Some(format!("[{0}](/{0})", self.plan_name)),
            ),
            ("Start Time", Some(self.started.to_owned())),
            ("End Time", Some(self.ended.to_owned())),
            ("Actions", Some(actions)),
            (
                "Outcomes",
                Some(format!("{succeeded} Succeeded / {failed} Failed")),
            ),
        ];
        for (key, value) in items {
            value.iter().for_each(|value| write_item(text, key, value));
        }

        if !self.user_prompt.trim().is_empty() {
            *text += &format!("\n## {PROMPT}\n");
            write_block(text, "text", self.user_prompt);
        }
    }

    fn warnings(&self, text: &mut String) {
        let repairs = self.repairs.iter();
        let repairs = repairs.map(|it| format!("line {}: {}", it.line, sanitize_line(&it.message)));
        let overlaps = self.overlaps.iter().map(|path| {
            let path = sanitize_line(path);
            format!("`{path}` was changed by the user too; it was left as it is")
        });
        let not_captured = self.not_captured.iter();
        let not_captured =
            not_captured.map(|it| format!("`{}`: {}", sanitize_line(&it.path), it.reason));
        let changes = self.repository_changes.iter();
        let changes = changes.map(|change| sanitize_line(change).into_owned());
        let sections: [(&str, Vec<String>); 4] = [
            ("Repairs", repairs.collect()),
            ("Overlaps", overlaps.collect()),
            ("Not Captured", not_captured.collect()),
            ("Repository Changes", changes.collect()),
        ];
        for (title, lines) in sections.iter().filter(|(_, lines)| !lines.is_empty()) {
            *text += &format!("\n## {title}\n\n");
            lines
                .iter()
                .for_each(|line| *text += &format!("- {line}\n"));
        }
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
            let mark = if applied { "Applied:" } else { "Not applied:" };
            *text += &format!("- {mark} {}{note}\n", memo_line(memo));
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

fn status_label(status: Status) -> &'static str {
    match status {
        Status::Executed => "Completed 🟢",
        Status::Failed => "Failed 🔴",
        Status::Interrupted => "Interrupted 🟡",
        Status::Rejected => "Rejected 🔴",
        Status::Declined => "Skipped 🟡",
        Status::Restored => "Restored 🟢",
        Status::Landed => "Landed 🟢",
        Status::Picked => "Picked 🟢",
        Status::Recorded => "Recorded 🟢",
        Status::Started | Status::Ready | Status::Planned => "Pending 🟡",
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
        text += &format!("- line {}: {label}{first}\n", diagnostic.line);
        let details: Vec<_> = lines.map(sanitize_text).collect();
        if !details.is_empty() {
            let details = format!("{}\n", details.join("\n"));
            let fence = fence_for(&details, 4);
            let indented: String = details.lines().map(|line| format!("  {line}\n")).collect();
            text += &format!("\n  {fence}text\n{indented}  {fence}\n");
        }

        if let Some(hint) = &diagnostic.hint {
            text += &format!("  - **Hint:** {}\n", sanitize_line(hint));
        }
    }

    text
}

fn write_item(text: &mut String, key: &str, value: &str) {
    *text += &format!("- **{key}:** {value}\n");
}

fn write_block(text: &mut String, language: &str, contents: &str) {
    input::write_block(text, language, &sanitize_text(contents));
}

// In characters. Applies to lines of diffs, and to lines of output if the report would be too long.
const MAX_DIFF_LINE: usize = 500;

impl Report<'_> {
    fn action(&self, text: &mut String, index: usize, action: &Action, are_lines_cut: bool) {
        let mut modifications = self.modifications.iter();
        let modification = modifications.find(|(at, _)| *at == index);
        let mark = if modification.is_some() {
            " (user modified)"
        } else {
            ""
        };
        *text += &format!("\n#### `{}`{mark}\n", action.kind.name());

        let outcome = self.outcomes.get(index);
        match outcome {
            None => write_item(text, "Status", "Not run"),
            Some(outcome) => write_ending(text, outcome),
        }
        for field in &action.fields {
            let (key, value) = (sanitize_line(&field.key), sanitize_line(&field.value));
            let gap = if value.is_empty() && !field.items.is_empty() {
                ""
            } else {
                " "
            };
            *text += &format!("- **{key}:**{gap}{value}\n");
            for item in &field.items {
                *text += &format!("  - {}\n", sanitize_line(item));
            }
        }
        if let Some(outcome) = outcome {
            self.details(text, index, outcome, are_lines_cut);
        }

        let (caption, change) = match modification {
            Some((_, Modification::File(change))) => (
                "The user changed this action. As proposed it would have been:",
                change,
            ),
            Some((_, Modification::Action(change))) => ("The user changed this action:", change),
            None => return,
        };
        write_difference(
            text,
            caption,
            change,
            &proposed_name(index),
            self.output_limit,
        );
    }

    fn details(&self, text: &mut String, index: usize, outcome: &Outcome, are_lines_cut: bool) {
        for (number, position) in (1..).zip(&outcome.positions) {
            let tier = match position.tier {
                Tier::Lines => "whole lines",
                Tier::LineEnds => "whole lines, line ends of the file",
                Tier::Inline => "inside a line",
            };
            *text += &format!("- **Match {number}:** line {}, {tier}\n", position.line);
        }

        if !outcome.difference.is_empty() {
            let (change, name) = (&outcome.difference, difference_name(index));
            write_difference(
                text,
                "Change of the file:",
                change,
                &name,
                self.output_limit,
            );
        }

        for part in self.plan.actions[index].kind.report(outcome) {
            match part {
                ReportPart::Block {
                    caption,
                    language,
                    text: contents,
                } => {
                    if let Some(caption) = caption {
                        *text += &format!("\n{caption}:\n");
                    }
                    write_block(text, language, contents);
                }
                ReportPart::Output => self.output(text, index, outcome, are_lines_cut),
                ReportPart::Sentence(sentence) => *text += &format!("\n{sentence}\n"),
            }
        }
    }

    fn output(&self, text: &mut String, index: usize, outcome: &Outcome, are_lines_cut: bool) {
        if outcome.output.is_empty() {
            return;
        }

        let raw = String::from_utf8_lossy(&outcome.output);
        let clean = strip_ansi(&raw);
        let (clean, most) = match are_lines_cut {
            // Redact first: a key that is cut in half is not recognized.
            true => (redact(&clean), MAX_DIFF_LINE),
            false => (Cow::Borrowed(&*clean), usize::MAX),
        };
        let lines = clean.lines().map(|line| excerpt(line, most));
        let lines: Vec<String> = lines
            .map(|line| format!("{}\n", sanitize_line(&line)))
            .collect();
        *text += "\nOutput:\n";
        write_block(text, "text", &head_and_tail(&lines, self.output_limit));
        *text += &format!("\nThe whole output is `{}`.\n", output_name(index));
        if outcome.lost_output > 0 {
            *text += &match outcome.lost_output {
                1 => "1 byte was over the limit and is lost.\n".to_owned(),
                lost => format!("{lost} bytes were over the limit and are lost.\n"),
            };
        }
    }
}

fn write_difference(text: &mut String, caption: &str, change: &str, name: &str, limit: usize) {
    *text += &format!("\n{caption}\n");
    // Redact first: a key that is cut in half is not recognized.
    let change = redact(change);
    match bounded_difference(&change, limit) {
        None => write_block(text, "diff", &change),
        Some(part) => {
            write_block(text, "diff", &part);
            *text += &format!("\nThe whole difference is `{name}`.\n");
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
    let lines: Vec<String> = lines.iter().map(short).collect();
    Some(head_and_tail(&lines, limit))
}

fn head_and_tail(lines: &[String], limit: usize) -> String {
    let Some(omitted) = lines.len().checked_sub(limit).filter(|it| *it > 0) else {
        return lines.concat();
    };
    let (first, last) = (&lines[..limit / 2], &lines[limit / 2 + omitted..]);
    let (first, last) = (first.concat(), last.concat());
    let omitted = counted(omitted, "line");
    format!("{first}... {omitted} left out ...\n{last}")
}

fn write_ending(text: &mut String, outcome: &Outcome) {
    match outcome.ending {
        Ending::Skipped => write_item(text, "Status", "Skipped 🟡"),
        Ending::Success | Ending::Failure => {
            write_item(text, "Status", "Approved ✅");
            let is_success = outcome.ending == Ending::Success;
            let execution = if is_success {
                "Success 🟢"
            } else {
                "Failure 🔴"
            };
            write_item(text, "Execution", execution);
            let duration = outcome.duration.as_millis();
            write_item(text, "Duration", &format!("{duration}ms"));
        }
    }

    if !outcome.detail.is_empty() {
        write_item(text, "Outcome", &sanitize_line(&outcome.detail));
    }

    if let Some(code) = outcome.exit_code {
        write_item(text, "Exit Code", &code.to_string());
    }
}

pub fn output_name(index: usize) -> String {
    format!("{}{:02}.txt", artifact::OUTPUT, index + 1)
}

pub fn difference_name(index: usize) -> String {
    format!("{}{:02}.diff", artifact::CHANGES, index + 1)
}

pub fn proposed_name(index: usize) -> String {
    format!("{}{:02}.proposed.diff", artifact::CHANGES, index + 1)
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReportField {
    /// In bold, without the colon.
    pub key: String,
    pub value: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReportAction {
    pub name: String,
    pub modified: bool,
    pub fields: Vec<ReportField>,
    pub blocks: Vec<CodeBlock>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodeBlock {
    /// The paragraph above, such as `Command:`. Empty if there is none.
    pub caption: String,
    pub contents: String,
}

impl ReportAction {
    pub fn field(&self, key: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|field| field.key == key)
            .map(|field| field.value.as_str())
    }
}

/// `None` if the text is not a report or exceeds [`MAX_REPORT`].
pub fn read(text: &str) -> Option<Vec<ReportAction>> {
    if text.len() > MAX_REPORT || !text.starts_with("# Execution Report: ") {
        return None;
    }

    let lines = Lines::new(text);
    let mut actions: Vec<ReportAction> = Vec::new();
    let (mut is_summary, mut is_log) = (false, false);
    let mut caption = String::new();
    for block in &markdown::blocks(text) {
        if let BlockKind::Heading { level, text, .. } = &block.node {
            caption.clear();
            match (level, text.as_str()) {
                (2, title) => (is_summary, is_log) = (title == "2. Execution Summary", false),
                (3, "Action Log") => is_log = is_summary,
                (4, title) if is_log => actions.push(ReportAction {
                    name: title.split('`').nth(1).unwrap_or_default().to_owned(),
                    modified: title.ends_with("(user modified)"),
                    ..ReportAction::default()
                }),
                _ => {}
            }
            continue;
        }

        let action = actions.last_mut().filter(|_| is_log);
        match &block.node {
            BlockKind::List { .. } => {
                if let Some(action) = action {
                    action.fields.extend(fields(&span(&lines, block)));
                }
            }
            BlockKind::Code(code) => {
                let caption = std::mem::take(&mut caption);
                if let Some(action) = action {
                    let contents = lines.span(code.line_range.clone()).to_owned();
                    action.blocks.push(CodeBlock { caption, contents });
                }
            }
            _ => caption = span(&lines, block).join("\n"),
        }
    }

    Some(actions)
}

fn span<'a>(lines: &Lines<'a>, block: &MarkdownBlock) -> Vec<&'a str> {
    (block.first..=block.last)
        .map(|number| lines.get(number))
        .collect()
}

fn fields(lines: &[&str]) -> Vec<ReportField> {
    let field = |line: &&str| {
        let (key, value) = line.strip_prefix("- **")?.split_once(":**")?;
        Some(ReportField {
            key: key.to_owned(),
            value: value.strip_prefix(' ').unwrap_or(value).to_owned(),
        })
    };
    lines.iter().filter_map(field).collect()
}

#[cfg(test)]
mod tests;
