//! Header of a turn, in the style of `git show`.

use super::style::{StyledLine, Tone};
use super::turn_text::status_tone;
use crate::host::clock;
use crate::session::meta::MessageOrigin;
use crate::workflow::log::LogRow;

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
    lines.push(field("Status", status_tone(row.status), row.status.word()));
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
        text.push_str(&format!(", {read} tokens in, {written} out"));
    }
    if let Some(cost) = row.cost {
        text.push_str(&format!(", ${cost:.4}"));
    }
    Some(text)
}
