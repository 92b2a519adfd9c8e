//! What a turn was, above its report: as `git show` has it above a message.

use super::log_row::status_tone;
use super::style::{StyledLine, Tone};
use crate::host::clock;
use crate::session::meta::MessageOrigin;
use crate::workflow::log::LogRow;

/// The format of git's own dates.
const DATE: &str = "%a %b %-d %H:%M:%S %Y %z";
/// The columns of a request; `user_prompt.txt` has it whole.
const MAX_REQUEST: usize = 200;

/// Returns what the message of a turn is called, above its text.
pub fn message_name(origin: MessageOrigin) -> &'static str {
    match origin {
        MessageOrigin::User => "Request",
        MessageOrigin::Validation => "Message from validation",
        MessageOrigin::Loop => "Message from the loop",
    }
}

/// Returns the header of a turn; `message` is what it began with, and whose words that is.
pub fn lines(
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
    lines.push(field("Status", status_tone(row.status), row.status.word()));
    lines.push(field("Agent", Tone::Plain, &row.agent));
    lines.extend(model(row).map(|model| field("Model", Tone::Plain, &model)));
    let date = row
        .time
        .as_deref()
        .and_then(|time| clock::in_zone(time, DATE));
    lines.extend(date.map(|date| field("Date", Tone::Plain, &date)));
    let request = message.and_then(|(text, origin)| request(text, origin));
    lines.extend(request.map(|text| field("Request", Tone::Plain, text).cut(MAX_REQUEST)));

    lines
}

/// Returns the first line of what the user asked for, or why nobody did.
fn request(message: &str, origin: MessageOrigin) -> Option<&str> {
    let first = message.lines().find(|line| !line.trim().is_empty())?;
    Some(match origin {
        MessageOrigin::User => first,
        MessageOrigin::Validation => "none; validation asked for a corrected plan",
        MessageOrigin::Loop => "none; the loop went on by itself",
    })
}

/// Returns the model with its tokens and what it cost.
fn model(row: &LogRow) -> Option<String> {
    let mut words = row.model.clone()?;
    if let (Some(read), Some(written)) = (row.tokens_in, row.tokens_out) {
        words.push_str(&format!(", {read} tokens in, {written} out"));
    }
    if let Some(cost) = row.cost {
        words.push_str(&format!(", ${cost:.4}"));
    }
    Some(words)
}
