//! Errors with a hint for the user, for cases in which no caller needs to tell them apart.

use std::error::Error;

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
