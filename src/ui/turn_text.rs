//! Formats a turn as one line of a list, for any screen width.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr;

use super::style::{StyledLine, Tone, shortened};
use crate::host::clock;
use crate::query::log::LogRow;
use crate::session::meta::{MessageOrigin, Status};
use crate::text::counted;
use crate::text::sanitize::sanitize_line;

/// A title keeps this many columns before facts after it are shown.
const MIN_TITLE: usize = 24;

/// A title keeps this many columns before time and id are shown.
const LEAST_TITLE: usize = 14;

/// Columns before the title, which are the same in each row of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogColumns {
    All,
    WithoutTime,
    WithoutTimeAndId,
}

impl LogColumns {
    /// Returns the columns that leave the title of each row enough space. `None` means unlimited
    /// width.
    pub fn fitting(rows: &[(String, &LogRow)], width: Option<usize>) -> LogColumns {
        let fits = |columns: &LogColumns| {
            rows.iter().all(|(name, row)| {
                let title = row.title.width().min(LEAST_TITLE);
                let start = log_start(name, row, width, *columns);
                width.is_none_or(|width| width >= start.width() + title + notes(row).width())
            })
        };
        let candidates = [LogColumns::All, LogColumns::WithoutTime];
        let fitting = candidates.into_iter().find(fits);
        fitting.unwrap_or(LogColumns::WithoutTimeAndId)
    }
}

/// Returns a turn as one line. Turns of an invoked agent are indented. A narrow screen omits facts,
/// then the time, then the id. `None` means unlimited width.
pub fn log_line(name: &str, row: &LogRow, width: Option<usize>, columns: LogColumns) -> StyledLine {
    let facts = facts(row);
    let notes = notes(row);
    let start = log_start(name, row, width, columns);
    let Some(width) = width else {
        return finish_log_line(start, &sanitize_line(&row.title), &facts, &notes);
    };
    let available = width.saturating_sub(start.width() + notes.width());
    let title_width = row.title.width().min(MIN_TITLE);
    let fits = |count: &usize| available >= title_width + ending(&facts[..*count]).width();
    let count = (0..=facts.len()).rev().find(fits).unwrap_or(0);
    let facts = &facts[..count];
    let max_title = available.saturating_sub(ending(facts).width()).max(1);
    let title = shortened(&sanitize_line(&row.title), max_title);

    finish_log_line(start, &title, facts, &notes).cut(width)
}

fn log_start(name: &str, row: &LogRow, width: Option<usize>, columns: LogColumns) -> StyledLine {
    let mut start = StyledLine::of(Tone::Strong, &format!("{name} "));
    if columns != LogColumns::WithoutTimeAndId {
        start = start.with(Tone::Accent, &format!("{:.8} ", row.commit));
    }
    if columns == LogColumns::All {
        let time = row.time.as_deref().map(|time| shown_time(time, width));
        start = start.with(Tone::Faint, &format!("{} ", time.unwrap_or_default()));
    }
    let status = format!("{:9}", format!("{} ", row.shown_status().word()));
    start
        .with(status_tone(row.shown_status()), &status)
        .blanks(2 * row.depth)
}

/// Returns a turn in the format of `git log --oneline`.
pub fn log_oneline(name: &str, row: &LogRow, width: Option<usize>) -> StyledLine {
    let line = StyledLine::of(Tone::Strong, &format!("{name} "))
        .with(Tone::Accent, &format!("{:.8} ", row.commit));
    let notes = notes(row);
    let title = sanitize_line(&row.title);
    let Some(width) = width else {
        return line.with(Tone::Plain, &title).with(Tone::Warning, &notes);
    };
    let available = width.saturating_sub(line.width() + notes.width()).max(1);
    let title = shortened(&title, available);
    line.with(Tone::Plain, &title)
        .with(Tone::Warning, &notes)
        .cut(width)
}

fn finish_log_line(start: StyledLine, title: &str, facts: &[String], notes: &str) -> StyledLine {
    start
        .with(Tone::Plain, title)
        .with(Tone::Faint, &ending(facts))
        .with(Tone::Warning, notes)
}

pub fn status_tone(status: Status) -> Tone {
    match status {
        Status::Executed
        | Status::Restored
        | Status::Landed
        | Status::Picked
        | Status::Recorded => Tone::Added,
        Status::Failed | Status::Rejected | Status::Interrupted => Tone::Removed,
        _ => Tone::Faint,
    }
}

fn shown_time(time: &str, width: Option<usize>) -> String {
    let text = match width {
        Some(_) => clock::age_or_day(time).map(|text| format!("{text:10}")),
        None => clock::in_zone(time, "%Y-%m-%d %H:%M"),
    };
    text.unwrap_or_else(|| time.to_owned())
}

/// Most important first.
fn facts(row: &LogRow) -> Vec<String> {
    let mut facts = Vec::new();
    if !row.files.is_empty() {
        facts.push(counted(row.files.len(), "file"));
    }
    if row.too_many_files {
        facts.push("too many files to list".to_owned());
    }
    if row.without_code {
        facts.push("files not pushed".to_owned());
    }
    facts.extend(row.cost.map(|cost| format!("${cost:.2}")));
    facts.extend(
        row.model
            .as_deref()
            .map(|model| sanitize_line(model).into_owned()),
    );
    facts
}

fn ending(facts: &[String]) -> String {
    match facts {
        [] => String::new(),
        facts => format!(" ({})", facts.join(", ")),
    }
}

/// Where the turn landed, and whether its result is missing from the files.
fn notes(row: &LogRow) -> String {
    let mut notes = String::new();
    let landed = row.landed.iter().flat_map(|landed| &landed.commits);
    let ids: Vec<String> = landed
        .map(|landed| format!("{:.8}", landed.commit))
        .collect();
    if !ids.is_empty() {
        let _ = write!(notes, " as {}", ids.join(", "));
    }

    if !row.not_brought.is_empty() {
        notes.push_str(" (not in your files)");
    }
    notes
}

/// Git's default date format.
const DATE_FORMAT: &str = "%a %b %-d %H:%M:%S %Y %z";

/// In columns. `user_prompt.txt` has the full text.
const MAX_REQUEST: usize = 200;

/// Returns the label of a turn's message.
pub fn message_label(origin: MessageOrigin) -> &'static str {
    match origin {
        MessageOrigin::User => "Request",
        MessageOrigin::Validation => "Message from validation",
        MessageOrigin::Loop => "Message from the loop",
    }
}

/// Returns the header of a turn. `message` is its first message and that message's author.
pub fn header_lines(
    session: &str,
    row: &LogRow,
    message: Option<(&str, MessageOrigin)>,
) -> Vec<StyledLine> {
    let title = format!("turn {session}:{} {}", row.number, row.commit);
    let mut lines = vec![StyledLine::of(Tone::Accent, &title)];
    let field = |name: &str, tone: Tone, value: &str| {
        StyledLine::plain(&format!("{:9}", format!("{name}:"))).with(tone, value)
    };
    lines.push(field("Title", Tone::Strong, &row.title));
    lines.push(field(
        "Status",
        status_tone(row.shown_status()),
        row.shown_status().word(),
    ));
    lines.push(field("Agent", Tone::Plain, &row.agent));
    lines.extend(model_usage(row).map(|model| field("Model", Tone::Plain, &model)));
    let date = row
        .time
        .as_deref()
        .and_then(|time| clock::in_zone(time, DATE_FORMAT));
    lines.extend(date.map(|date| field("Date", Tone::Plain, &date)));
    let request = message.and_then(|(text, origin)| request_line(text, origin));
    lines.extend(request.map(|text| field("Request", Tone::Plain, text).cut(MAX_REQUEST)));

    lines
}

/// The first line, or a note that no user wrote the message.
fn request_line(message: &str, origin: MessageOrigin) -> Option<&str> {
    let first = message.lines().find(|line| !line.trim().is_empty())?;
    Some(match origin {
        MessageOrigin::User => first,
        MessageOrigin::Validation => "none; validation asked for a corrected plan",
        MessageOrigin::Loop => "none; the loop continued without one",
    })
}

fn model_usage(row: &LogRow) -> Option<String> {
    let mut text = row.model.clone()?;
    if let (Some(read), Some(written)) = (row.tokens_in, row.tokens_out) {
        let read = counted(read, "token");
        text.push_str(&format!(", {read} in, {written} out"));
    }
    if let Some(cost) = row.cost {
        text.push_str(&format!(", ${cost:.4}"));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(title: &str) -> LogRow {
        let commit = "9e3779b185eb9e3779b185eb9e3779b185eb9e37".parse().unwrap();
        LogRow {
            number: 3,
            turn_id: uuid::Uuid::nil(),
            commit,
            status: Status::Executed,
            title: title.to_owned(),
            agent: "Pathfinder".to_owned(),
            depth: 0,
            model: Some("anthropic:claude".to_owned()),
            tokens_in: None,
            tokens_out: None,
            cost: Some(0.017),
            spent: None,
            before: None,
            after: None,
            files: vec!["a".to_owned(), "b".to_owned()],
            too_many_files: false,
            without_code: false,
            not_brought: Vec::new(),
            landed: None,
            showed_files: false,
            time: Some("2026-01-23T10:00:59Z".to_owned()),
        }
    }

    /// Compares a row at a width. Converts the expected time to the local time zone.
    fn check(title: &str, width: Option<usize>, expected: &str) {
        let row = row(title);
        let time = |format| clock::in_zone(row.time.as_ref().unwrap(), format).unwrap();
        let expected = expected
            .replace("2026-01-23 10:00", &time("%Y-%m-%d %H:%M"))
            .replace("2026-01-23", &time("%Y-%m-%d"));
        let columns = LogColumns::fitting(&[("   3".to_owned(), &row)], width);
        let text = log_line("   3", &row, width, columns).text();
        assert_eq!(text, expected);
        assert!(width.is_none_or(|width| text.width() <= width), "{text}");
    }

    #[test]
    fn a_row_fits_screens_of_any_width() {
        let title = "Greet all users by their name, in their language";
        check(
            title,
            None,
            "   3 9e3779b1 2026-01-23 10:00 executed Greet all users by their name, in their language (2 files, $0.02, anthropic:claude)",
        );
        check(
            title,
            Some(200),
            "   3 9e3779b1 2026-01-23 executed Greet all users by their name, in their language (2 files, $0.02, anthropic:claude)",
        );
        check(
            title,
            Some(80),
            "   3 9e3779b1 2026-01-23 executed Greet all users by their… (2 files, $0.02)",
        );
        check(
            title,
            Some(60),
            "   3 9e3779b1 2026-01-23 executed Greet all users by their…",
        );
        check(
            title,
            Some(50),
            "   3 9e3779b1 2026-01-23 executed Greet all users…",
        );
        check(title, Some(40), "   3 9e3779b1 executed Greet all users…");
        check(title, Some(30), "   3 executed Greet all users…");
        check(
            "日本語で挨拶する",
            Some(60),
            "   3 9e3779b1 2026-01-23 executed 日本語で挨拶する (2 files)",
        );
    }
}
