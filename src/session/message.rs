//! Renders the commit message of a turn, readable with plain git.

use std::fmt::Write as _;

use super::meta::Meta;
use super::name::SessionName;
use crate::text::sanitize::sanitize_line;

// In characters.
const MAX_SUBJECT: usize = 100;
// Lines of the user's message.
const MAX_PROMPT_LINES: usize = 12;

/// The content of a commit message.
pub struct TurnMessage<'a> {
    /// The subject.
    pub title: &'a str,
    /// The user's message. Empty if the message has another origin.
    pub asked: &'a str,
    /// One line for each action.
    pub results: &'a [String],
    /// Name of the session.
    pub session: &'a SessionName,
    /// Metadata of the turn.
    pub meta: &'a Meta,
}

impl TurnMessage<'_> {
    /// Renders the message, trailers last.
    pub fn render(&self) -> String {
        let mut text = format!("{}\n\n", commit_subject(self.title));
        let asked: Vec<&str> = self.asked.trim().lines().collect();
        for line in asked.iter().take(MAX_PROMPT_LINES) {
            writeln!(text, "{}", format!("> {}", sanitize_line(line)).trim_end())
                .expect("writing to a string");
        }

        if asked.len() > MAX_PROMPT_LINES {
            writeln!(
                text,
                "> ... ({} more lines)",
                asked.len() - MAX_PROMPT_LINES
            )
            .expect("writing to a string");
        }

        if !asked.is_empty() {
            text.push('\n');
        }

        for line in self.results {
            writeln!(text, "{}", sanitize_line(line)).expect("writing to a string");
        }

        if !self.results.is_empty() {
            text.push('\n');
        }

        text.push_str(&self.trailers());
        text
    }

    fn trailers(&self) -> String {
        let meta = self.meta;
        let mut text = format!(
            "Teddy-Session: {}\nTeddy-Turn: {}\nTeddy-Status: {}\nTeddy-Agent: {}\n",
            self.session,
            meta.number,
            meta.status.word(),
            sanitize_line(&meta.agent)
        );
        if let Some(model) = &meta.model {
            writeln!(text, "Teddy-Model: {}", sanitize_line(&model.asked))
                .expect("writing to a string");
        }

        text
    }
}

/// Returns a title as one sanitized line of bounded length.
pub fn commit_subject(title: &str) -> String {
    let line = sanitize_line(title.trim().lines().next().unwrap_or_default()).into_owned();
    match line.char_indices().nth(MAX_SUBJECT) {
        Some((cut, _)) => format!("{}...", line[..cut].trim_end()),
        None if line.is_empty() => "(no title)".to_owned(),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::meta::Status;

    #[test]
    fn the_message_reads_well_and_ends_with_trailers() {
        let meta = Meta::of(uuid::Uuid::nil(), 3, Status::Executed, "pathfinder");
        let session = SessionName::parse("demo").expect("a good name");
        let results = ["CREATE a.txt: done".to_owned()];
        let message = TurnMessage {
            title: "Add a\nsecond line",
            asked: "Please\nTeddy-Status: evil\u{1b}[0m\n",
            results: &results,
            session: &session,
            meta: &meta,
        };
        assert_eq!(
            message.render(),
            "Add a\n\n> Please\n> Teddy-Status: evil\\u{1b}[0m\n\nCREATE a.txt: done\n\n\
             Teddy-Session: demo\nTeddy-Turn: 3\nTeddy-Status: executed\nTeddy-Agent: pathfinder\n"
        );
    }
}
