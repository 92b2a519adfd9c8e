//! What models need from outside: the environment, the user, recorded sessions.
//!
//! Functions, so that a test gives its own and nothing here reaches for a terminal.

use std::rc::Rc;

use super::manual::{Give, Take};

/// Looks a variable up.
pub type Variable = dyn Fn(&str) -> Option<String>;
/// Looks a recorded session's answers up.
pub type RecordedAnswers = dyn Fn(&str) -> Option<Vec<String>>;

/// What models need from outside.
#[derive(Clone)]
pub struct Outside {
    /// Reads an environment variable.
    pub variable: Rc<Variable>,
    /// Says whether the user wants to stop.
    pub stopped: Rc<dyn Fn() -> bool>,
    /// Tells the user something on the way: that a request is tried again.
    pub note: Rc<dyn Fn(&str)>,
    /// Hands a text over to a person.
    pub give: Rc<Give>,
    /// Fetches a person's answer.
    pub take: Rc<Take>,
    /// Returns the answers of a recorded session, if the path of a replay names one.
    pub recorded: Rc<RecordedAnswers>,
    /// The position of the first answer of a replay, from 0.
    pub replayed: usize,
    /// All variables that hold keys, so that no program gets them.
    pub keys: Vec<String>,
}

impl Default for Outside {
    /// Returns the machine's environment, nobody who stops or answers, and the usual variables for
    /// keys.
    fn default() -> Outside {
        Outside {
            variable: Rc::new(crate::host::env::var),
            stopped: Rc::new(|| false),
            note: Rc::new(|_| ()),
            give: Rc::new(|_| {
                Err(std::io::Error::other(
                    "there is no terminal to hand it over at",
                ))
            }),
            take: Rc::new(|| Ok(None)),
            recorded: Rc::new(|_| None),
            replayed: 0,
            keys: ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"]
                .map(str::to_owned)
                .to_vec(),
        }
    }
}
