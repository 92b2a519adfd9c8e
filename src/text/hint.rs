//! Errors with a hint for the user, for cases in which no caller needs to tell them apart.

use std::borrow::Cow;
use std::cell::RefCell;
use std::error::Error;

thread_local! {
    /// The session that hints name, because the next command would use another one.
    static NAMED_SESSION: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Commands that work on the session in use.
const SESSION_COMMANDS: [&str; 24] = [
    "ask", "bisect", "blame", "branch", "compare", "context", "diff", "execute", "land", "log",
    "pick", "plan", "race", "record", "redo", "replay", "restore", "resume", "retry", "run",
    "show", "status", "summary", "undo",
];

/// From now on, hints in this thread name this session, or none.
pub fn name_session(session: Option<String>) {
    NAMED_SESSION.set(session);
}

/// Adds the session to the commands in a text, if hints name one.
pub fn with_session(text: &str) -> Cow<'_, str> {
    NAMED_SESSION.with_borrow(|session| match session {
        Some(session) => add_session(text, session).into(),
        None => text.into(),
    })
}

/// A command is in backticks, or follows `Next: `. After a `switch`, the session is that one.
fn add_session(text: &str, session: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut parts = text.split("teddy ");
    result.push_str(parts.next().unwrap_or_default());
    let mut is_switched = false;
    for part in parts {
        let is_command = result.ends_with('`') || result.ends_with("Next: ");
        let first = part.split([' ', '`', '\n']).next().unwrap_or_default();
        let takes_session = SESSION_COMMANDS.contains(&first) || first.starts_with('\'');
        result.push_str("teddy ");
        is_switched |= is_command && first == "switch";
        if is_command && takes_session && !is_switched {
            result.push_str(&format!("-s {session} "));
        }
        result.push_str(part);
    }
    result
}

#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct HintedError {
    what: String,
    /// Usually a command.
    pub hint: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

pub fn error_with_hint(message: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
    HintedError {
        what: message.into(),
        hint: hint.into(),
        source: None,
    }
    .into()
}

/// The message and its causes stay the same.
pub fn with_hint(error: anyhow::Error, hint: impl Into<String>) -> anyhow::Error {
    let (message, is_all) = (error.to_string(), error.source().is_none());
    HintedError {
        what: message,
        hint: hint.into(),
        source: (!is_all).then(|| WithoutContext(error).into()),
    }
    .into()
}

#[derive(Debug)]
struct WithoutContext(anyhow::Error);

impl std::fmt::Display for WithoutContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.source() {
            Some(source) => write!(f, "{source}"),
            None => Ok(()),
        }
    }
}

impl Error for WithoutContext {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()?.source()
    }
}

#[cfg(test)]
mod tests {

    #[test]
    fn a_hint_names_the_session_in_commands_that_take_it() {
        for (text, expected) in [
            (
                "`teddy restore @ --theirs` takes it, `teddy log` lists the turns",
                "`teddy -s one restore @ --theirs` takes it, `teddy -s one log` lists the turns",
            ),
            ("Next: teddy '<what>'", "Next: teddy -s one '<what>'"),
            ("Next: teddy execute", "Next: teddy -s one execute"),
            (
                "`teddy pick two:1`, or `teddy switch two` and `teddy undo`",
                "`teddy -s one pick two:1`, or `teddy switch two` and `teddy undo`",
            ),
            ("`teddy -s x undo`", "`teddy -s x undo`"),
            ("the teddy plan of `teddy`", "the teddy plan of `teddy`"),
        ] {
            assert_eq!(add_session(text, "one"), expected);
        }
    }

    use anyhow::Context as _;

    use super::*;

    #[test]
    fn a_hint_leaves_the_words_as_they_are() {
        let io = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let error = Err::<(), _>(io()).context("reading it").context("asking");
        let error = error.unwrap_err();
        let text = format!("{error:#}");
        let result = with_hint(error, "`true` helps");
        assert_eq!(format!("{result:#}"), text);
        assert_eq!(
            result.downcast_ref::<HintedError>().unwrap().hint,
            "`true` helps"
        );
        assert_eq!(format!("{:#}", error_with_hint("no", "yes")), "no");
    }
}
