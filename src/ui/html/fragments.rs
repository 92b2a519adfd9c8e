//! Small parts shared by all pages: times, numbers, status badges.

use std::borrow::Cow;

use maud::{Markup, html};

use crate::host::clock;
use crate::session::meta::Status;
use crate::text::sanitize::sanitize_line;
use crate::ui::progress::grouped;
use crate::workflow::log::LogRow;

/// Makes untrusted text safe to show on one line.
pub fn visible_line(text: &str) -> Cow<'_, str> {
    sanitize_line(text)
}

/// Returns a time in the user's time zone.
pub fn local_time(stamp: Option<&str>) -> Markup {
    let formatted = stamp.and_then(|stamp| clock::in_zone(stamp, "%Y-%m-%d %H:%M"));
    html! {
        @if let (Some(stamp), Some(formatted)) = (stamp, formatted) {
            time datetime=(stamp) { (formatted) }
        }
    }
}

/// Returns a badge with the status of a turn.
pub fn status_badge(status: Status) -> Markup {
    html! { span class={ "badge " (status_class(status)) } { (status.word()) } }
}

/// Returns the CSS class for a status.
pub fn status_class(status: Status) -> &'static str {
    match status {
        Status::Executed | Status::Picked | Status::Recorded => "good",
        Status::Failed | Status::Rejected | Status::Interrupted => "bad",
        Status::Declined | Status::Restored => "quiet",
        Status::Landed => "landed",
        Status::Started | Status::Ready | Status::Planned => "plain",
    }
}

/// Formats an amount in dollars: cents, or four digits if it is below ten cents.
pub fn dollars(cost: f64) -> String {
    match cost {
        cost if !cost.is_finite() => "unknown".to_owned(),
        // An empty sum of floats is -0.0.
        0.0 => "$0.00".to_owned(),
        cost if cost.abs() < 0.1 => format!("${cost:.4}"),
        cost => format!("${cost:.2}"),
    }
}

/// Returns a number in groups of three digits.
pub fn grouped_number(number: u64) -> String {
    grouped(usize::try_from(number).unwrap_or(usize::MAX))
}

/// Returns a short form of a number, such as `12.3k`.
pub fn short_number(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{:.1}k", number as f64 / 1e3),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

/// Returns a number of files, as in `1 file` or `3 files`.
pub fn file_count(number: usize) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{number} file{end}")
}

/// Returns model, usage and size of a turn for one line.
pub fn turn_facts(row: &LogRow) -> Markup {
    let tokens = row.tokens_in.zip(row.tokens_out);
    html! {
        @if let Some(model) = &row.model { span { (visible_line(model)) } }
        @if let Some((read, written)) = tokens {
            span title={ (grouped_number(read)) " tokens read, " (grouped_number(written)) " written" } {
                (short_number(read)) " → " (short_number(written)) " tokens"
            }
        }
        @if let Some(cost) = row.cost { span { (dollars(cost)) } }
        @if !row.files.is_empty() {
            span { (file_count(row.files.len())) }
        }
        @if row.too_many_files { span { "too many files to list" } }
        @if row.time.is_some() { span { (local_time(row.time.as_deref())) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_amounts_of_money_have_more_digits() {
        let check = |cost: f64, expected: &str| assert_eq!(dollars(cost), expected);
        check(0.0, "$0.00");
        check(-0.0, "$0.00");
        check(0.0254, "$0.0254");
        check(0.1, "$0.10");
        check(12.345, "$12.35");
        check(f64::NAN, "unknown");
    }

    #[test]
    fn large_numbers_are_short() {
        assert_eq!(
            [0, 999, 1_000, 12_345, 3_456_789].map(short_number),
            ["0", "999", "1.0k", "12.3k", "3.5M"]
        );
    }
}
