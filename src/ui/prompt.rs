//! What helps at the prompt of a loop: earlier messages, and names that can be completed.

use std::rc::Rc;

/// What helps to write a text.
pub trait TextHelp {
    /// Returns the text before this one, in place of one that is kept for the way back.
    fn earlier(&mut self, _text: &str) -> Option<String> {
        None
    }

    /// Returns the text after the one that is shown.
    fn later(&mut self) -> Option<String> {
        None
    }

    /// Returns what the word at the end of a text may become.
    fn candidates(&mut self, _before: &str) -> Vec<String> {
        Vec::new()
    }
}

/// Nothing helps.
impl TextHelp for () {}

/// Returns the messages that were sent before, the newest last.
pub type History = dyn Fn() -> Vec<String>;
/// Returns what the word at the end of a text may become.
pub type Candidates = dyn Fn(&str) -> Vec<String>;

/// Where help at the prompt comes from.
#[derive(Clone)]
pub struct PromptHelp {
    /// The messages of the session; asked for once somebody goes back.
    pub history: Rc<History>,
    /// Names.
    pub candidates: Rc<Candidates>,
}

impl Default for PromptHelp {
    /// Returns help that knows nothing.
    fn default() -> PromptHelp {
        PromptHelp {
            history: Rc::new(Vec::new),
            candidates: Rc::new(|_| Vec::new()),
        }
    }
}

impl std::fmt::Debug for PromptHelp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PromptHelp").finish_non_exhaustive()
    }
}

/// The help while one text is written.
pub struct PromptText<'a> {
    /// Where it comes from.
    help: &'a PromptHelp,
    /// What was typed in this run.
    typed: &'a [String],
    /// The earlier texts, the newest last, once they are known.
    texts: Option<Vec<String>>,
    /// Which of them is shown; their number stands for the text under way.
    at: usize,
    /// The text under way, while an earlier one is shown.
    kept: String,
}

impl PromptText<'_> {
    /// Returns the help for a new text.
    pub fn new<'a>(help: &'a PromptHelp, typed: &'a [String]) -> PromptText<'a> {
        PromptText {
            help,
            typed,
            texts: None,
            at: 0,
            kept: String::new(),
        }
    }
}

impl TextHelp for PromptText<'_> {
    fn earlier(&mut self, text: &str) -> Option<String> {
        if self.texts.is_none() {
            let texts = texts((self.help.history)(), self.typed);
            self.at = texts.len();
            self.texts = Some(texts);
        }

        let texts = self.texts.as_deref().unwrap_or_default();
        let before = self.at.checked_sub(1)?;
        if self.at == texts.len() {
            text.clone_into(&mut self.kept);
        }
        self.at = before;
        texts.get(before).cloned()
    }

    fn later(&mut self) -> Option<String> {
        let texts = self.texts.as_deref().unwrap_or_default();
        if self.at >= texts.len() {
            return None;
        }

        self.at += 1;
        let is_back = self.at == texts.len();
        if is_back {
            Some(self.kept.clone())
        } else {
            texts.get(self.at).cloned()
        }
    }

    fn candidates(&mut self, before: &str) -> Vec<String> {
        (self.help.candidates)(before)
    }
}

/// Returns the texts that one can go back to: those of the session, then those of this run that
/// were not sent to the model.
fn texts(mut sent: Vec<String>, typed: &[String]) -> Vec<String> {
    let others = typed.iter().filter(|text| !sent.contains(text));
    let others: Vec<String> = others.cloned().collect();
    sent.extend(others);
    sent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_go_through_what_was_sent_and_back_to_what_is_written() {
        let help = PromptHelp {
            history: Rc::new(|| vec!["one".to_owned(), "two".to_owned()]),
            ..PromptHelp::default()
        };
        let typed = ["two".to_owned(), "/undo".to_owned()];
        let mut text = PromptText::new(&help, &typed);
        let mut steps = Vec::new();
        for _ in 0..4 {
            steps.push(text.earlier("new"));
        }
        for _ in 0..4 {
            steps.push(text.later());
        }

        let words: Vec<&str> = steps
            .iter()
            .map(|step| step.as_deref().unwrap_or("-"))
            .collect();
        assert_eq!(
            words,
            ["/undo", "two", "one", "-", "two", "/undo", "new", "-"]
        );
    }
}
