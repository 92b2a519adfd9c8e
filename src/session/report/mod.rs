//! `report.md`: what happened, every action once, in order (`docs/formats/report.md`).
//!
//! Pure. Of files it shows what became of them; their contents are in the next turn's input.

pub mod action;
pub mod read;

use std::borrow::Cow;
use std::fmt::Write as _;

use super::artifact::MAX_REPORT;
use super::meta::{Approver, NotCaptured, Status};
use crate::plan::Plan;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::memo::{MemoChange, Verb};
use crate::plan::repair::Note;
use crate::plan::run::{Ending, Outcome};
use crate::text::fence::fence_for;
use crate::text::visible::{visible, visible_text};

/// The section with the message of the turn.
const PROMPT: &str = "User Prompt";

/// What a report says.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// The name under which the plan stands in context lists, `.teddy/demo/03/plan.md`.
    pub plan_name: &'a str,
    /// How the turn ended.
    pub status: Status,
    /// When it began, RFC 3339.
    pub started: &'a str,
    /// When it ended, RFC 3339.
    pub ended: &'a str,
    /// What the user asked for.
    pub user_prompt: &'a str,
    /// The plan as it ran; as proposed where it did not run.
    pub plan: &'a Plan,
    /// What each action came to; empty where the plan did not run.
    pub outcomes: &'a [Outcome],
    /// For each memo whether it was applied.
    pub memos: &'a [bool],
    /// The memos as they were proposed, where the user may have changed them.
    pub proposed_memos: &'a [MemoChange],
    /// The user's changes, for each changed action, by its index.
    pub modifications: &'a [(usize, Modification)],
    /// Who let the plan run.
    pub approved_by: Option<Approver>,
    /// What cut the run short.
    pub interruption: Option<&'a str>,
    /// What repair did.
    pub repairs: &'a [Note],
    /// Every mistake, where the plan was rejected.
    pub diagnostics: &'a [Diagnostic],
    /// How the plan was read, where its structure is at fault.
    pub outline: Option<&'a str>,
    /// Where the result overlapped with the user's own edits.
    pub overlaps: &'a [String],
    /// Files that the snapshot does not have.
    pub not_captured: &'a [NotCaptured],
    /// The repository's own state that a command changed.
    pub repository_changes: &'a [String],
    /// Lines of a command's output, and of a difference, that are shown; the rest is cut out of the
    /// middle.
    pub output_limit: usize,
}

/// What the user changed in an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Modification {
    /// What a CREATE or EDIT would have made of its file as it was proposed.
    File(String),
    /// The difference between the action as it was proposed and as it ran.
    Action(String),
}

/// Returns a report without the message of its turn.
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

    // No run inside is as long as the fence.
    let closing = format!("\n{fence}\n");
    match body.find(&closing).filter(|_| !fence.is_empty()) {
        Some(end) => Cow::Owned([&report[..start], &body[end + closing.len()..]].concat()),
        None => Cow::Borrowed(report),
    }
}

impl Report<'_> {
    /// Writes the report. Where it would have more bytes than are read of one, long lines of output
    /// are cut.
    pub fn render(&self) -> String {
        let text = self.written(false);
        match text.len() > MAX_REPORT {
            true => self.written(true),
            false => text,
        }
    }

    /// Writes the report, with whole lines of output or their start.
    fn written(&self, are_lines_cut: bool) -> String {
        let mut text = format!("# Execution Report: {}\n", visible(&self.plan.title));
        self.head(&mut text);
        self.warnings(&mut text);
        if !self.diagnostics.is_empty() {
            text.push_str("\n## Validation Errors\n\n");
            text.push_str(&errors(self.diagnostics));
        }

        if let Some(outline) = self.outline {
            text.push_str("\n## How the Plan Was Read\n");
            block(&mut text, "text", outline);
        }

        text.push_str("\n## 1. Rationale\n");
        block(&mut text, "text", &self.plan.rationale);
        text.push_str("\n## 2. Execution Summary\n\n### Applied State Changes\n");
        self.state_changes(&mut text);
        text.push_str("\n### Action Log\n");

        for (index, action) in self.plan.actions.iter().enumerate() {
            let modification = self
                .modifications
                .iter()
                .find(|(at, _)| *at == index)
                .map(|(_, modification)| modification);
            action::write(
                &mut text,
                action,
                action::ActionFacts {
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

    /// Writes the list below the title.
    fn head(&self, text: &mut String) {
        let skipped = self
            .outcomes
            .iter()
            .filter(|o| o.ending == Ending::Skipped)
            .count();
        let count = |ending: Ending| self.outcomes.iter().filter(|o| o.ending == ending).count();
        item(
            text,
            "Overall Status",
            &format!("{} {}", overall(self.status).0, overall(self.status).1),
        );

        if let Some(why) = self.interruption {
            let why = visible(why);
            item(
                text,
                "Interrupted",
                &format!("{why}; the user's files are unchanged"),
            );
        }

        if let Some(who) = self.approved_by {
            item(text, "Approved By", who.words());
        }

        item(
            text,
            "Original Plan",
            &format!("[{0}](/{0})", self.plan_name),
        );
        item(text, "Start Time", self.started);
        item(text, "End Time", self.ended);
        let total = self.plan.actions.len();

        item(
            text,
            "Actions",
            &format!(
                "{total} Total / {} Approved / {} Skipped",
                self.outcomes.len() - skipped,
                total - (self.outcomes.len() - skipped)
            ),
        );
        item(
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
            block(text, "text", self.user_prompt);
        }
    }

    /// Writes what the reader should not miss.
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
                .map(|note| format!("line {}: {}", note.line, visible(&note.message)))
                .collect(),
        );
        section(
            "Overlaps",
            self.overlaps
                .iter()
                .map(|path| {
                    format!(
                        "`{}` was changed by the user too; it was left as it is",
                        visible(path)
                    )
                })
                .collect(),
        );
        section(
            "Not Captured",
            self.not_captured
                .iter()
                .map(|left| format!("`{}`: {}", visible(&left.path), left.reason))
                .collect(),
        );

        section(
            "Repository Changes",
            self.repository_changes
                .iter()
                .map(|what| visible(what).into_owned())
                .collect(),
        );
    }

    /// Writes which memos came and went.
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

/// Returns a memo change as the plan writes it, in a code span.
fn memo_line(memo: &MemoChange) -> String {
    let mark = match memo.verb {
        Verb::Add => "[+]",
        Verb::Remove => "[-]",
    };
    let shown = visible(&memo.text);
    let ticks = "`".repeat(crate::text::fence::longest_run(&shown, '`') + 1);
    format!("{ticks} {mark} {shown} {ticks}")
}

/// Returns the word and the sign of a status.
fn overall(status: Status) -> (&'static str, &'static str) {
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

/// Writes mistakes as a list; the lines of a longer message are indented below it.
pub fn errors(diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        let place = if diagnostic.action.is_empty() {
            String::new()
        } else {
            format!("{}: ", visible(&diagnostic.action))
        };

        let mut lines = diagnostic.message.lines();
        let first = visible(lines.next().unwrap_or_default());
        writeln!(text, "- line {}: {place}{first}", diagnostic.line).expect("writing to a string");
        let rest: Vec<_> = lines.map(visible_text).collect();
        if !rest.is_empty() {
            let rest = format!("{}\n", rest.join("\n"));
            let fence = fence_for(&rest, 4);
            let indented: String = rest.lines().map(|line| format!("  {line}\n")).collect();
            write!(text, "\n  {fence}text\n{indented}  {fence}\n").expect("writing to a string");
        }

        if let Some(hint) = &diagnostic.hint {
            writeln!(text, "  - **Hint:** {}", visible(hint)).expect("writing to a string");
        }
    }

    text
}

/// Writes one item of a list.
fn item(text: &mut String, key: &str, value: &str) {
    writeln!(text, "- **{key}:** {value}").expect("writing to a string");
}

/// Writes a block whose fence is longer than any run inside, and at least four; what deceives is
/// made visible.
fn block(text: &mut String, language: &str, content: &str) {
    let content = visible_text(content);
    let fence = fence_for(&content, 4);
    let end = if content.is_empty() || content.ends_with('\n') {
        ""
    } else {
        "\n"
    };

    write!(text, "{fence}{language}\n{content}{end}{fence}\n").expect("writing to a string");
}
