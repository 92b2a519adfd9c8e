//! The user as a model, who carries the prompt to a chat and returns with the answer.
//!
//! The caller decides how (file, clipboard, editor); this module only defines what is exchanged.

use std::io;
use std::rc::Rc;

use super::{Model, ModelAnswer, ModelError, ModelRequest};

/// For example copies the prompt to the clipboard.
pub type Give = dyn Fn(&str) -> io::Result<()>;
/// From an editor, the clipboard or a file. `None` if the user cancels.
pub type Take = dyn Fn() -> io::Result<Option<String>>;

pub struct Manual {
    pub give: Rc<Give>,
    pub take: Rc<Take>,
}

impl Model for Manual {
    fn answer(
        &self,
        request: &ModelRequest,
        watch: &mut dyn FnMut(&str),
    ) -> Result<ModelAnswer, ModelError> {
        (self.give)(&request.full_text())
            .map_err(|error| ModelError::io("passing the input to you", &error))?;
        let text = (self.take)().map_err(|error| match error.kind() {
            // `ui::manual` reports a missing terminal with this kind.
            io::ErrorKind::Unsupported => ModelError::NoTerminal {
                detail: error.to_string(),
            },
            _ => ModelError::io("taking the answer", &error),
        })?;

        let text = text.ok_or(ModelError::NotTaken)?;
        ModelAnswer::shown(text, "manual", watch)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn check(reply: Option<&str>, expected: Result<&str, ModelError>) {
        let handed_over = Rc::new(RefCell::new(String::new()));
        let request = ModelRequest {
            system: "S\n".into(),
            input: "I\n".into(),
            message: "M".into(),
            max_tokens: None,
        };
        let (sink, reply) = (handed_over.clone(), reply.map(str::to_owned));
        let give = Rc::new(move |text: &str| {
            text.clone_into(&mut sink.borrow_mut());
            Ok(())
        });
        let take = Rc::new(move || Ok(reply.clone()));
        let got = Manual { give, take }.answer(&request, &mut |_| ());
        assert_eq!(got.map(|answer| answer.text), expected.map(str::to_owned));
        assert_eq!(*handed_over.borrow(), "S\n\nI\n\n# Message\n\nM\n");
    }

    #[test]
    fn the_whole_input_is_given_and_the_answer_taken() {
        check(Some("# A\n"), Ok("# A\n"));
    }

    #[test]
    fn leaving_takes_no_answer_and_nothing_is_an_empty_one() {
        check(None, Err(ModelError::NotTaken));
        check(
            Some(" \n"),
            Err(ModelError::Empty {
                reason: String::new(),
            }),
        );
    }
}
