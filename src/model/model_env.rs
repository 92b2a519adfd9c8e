//! The outside world as models see it: environment, user, recorded sessions.
//!
//! All of it is functions, so that tests can replace them and no model touches a terminal.

use std::path::PathBuf;
use std::rc::Rc;

use super::local::{Give, Take};

pub type Variable = dyn Fn(&str) -> Option<String>;
pub type RecordedAnswers = dyn Fn(&str) -> Option<Vec<String>>;

#[derive(Clone)]
pub struct ModelEnv {
    pub variable: Rc<Variable>,
    /// Polled during a request; `true` cancels it.
    pub stopped: Rc<dyn Fn() -> bool>,
    /// Such as an upcoming retry.
    pub note: Rc<dyn Fn(&str)>,
    pub give: Rc<Give>,
    pub take: Rc<Take>,
    /// `None` if the path of a replay doesn't name a session.
    pub recorded: Rc<RecordedAnswers>,
    /// Index of the first answer to replay.
    pub replayed: usize,
    /// Directory that remembers which fields servers reject. `None` forgets them.
    pub adaptations: Option<PathBuf>,
}

impl Default for ModelEnv {
    /// The process environment, and no user.
    fn default() -> ModelEnv {
        ModelEnv {
            variable: Rc::new(crate::host::env::var),
            stopped: Rc::new(|| false),
            note: Rc::new(|_| ()),
            give: Rc::new(|_| Err(std::io::Error::other("there is no terminal"))),
            take: Rc::new(|| Ok(None)),
            recorded: Rc::new(|_| None),
            replayed: 0,
            adaptations: None,
        }
    }
}
