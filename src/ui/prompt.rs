//! History and completion for message prompts.

use std::rc::Rc;

/// Help for a text prompt.
pub trait TextHelp {
    /// Returns the previous text in the history. `_text` is the current one, to return to.
    fn earlier(&mut self, _text: &str) -> Option<String> {
        None
    }

    /// Returns the next text in the history.
    fn later(&mut self) -> Option<String> {
        None
    }

    /// Returns completions for the last word of a text.
    fn candidates(&mut self, _before: &str) -> Vec<String> {
        Vec::new()
    }
}

/// No help.
impl TextHelp for () {}

/// Returns earlier messages, the newest last.
pub type History = dyn Fn() -> Vec<String>;
/// Returns completions for the last word of a text.
pub type Candidates = dyn Fn(&str) -> Vec<String>;

/// Sources of history and completion.
#[derive(Clone)]
pub struct PromptHelp {
    /// Messages of the session. Called only when the user goes back.
    pub history: Rc<History>,
    /// Names to complete.
    pub candidates: Rc<Candidates>,
}

impl Default for PromptHelp {
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

/// History and completion during one prompt.
pub struct PromptText<'a> {
    help: &'a PromptHelp,
    /// Messages typed in this process.
    typed: &'a [String],
    /// Earlier texts, the newest last. Read on first use.
    texts: Option<Vec<String>>,
    /// Index of the shown text. The length of `texts` stands for the user's own.
    at: usize,
    /// The user's text, while an earlier one is shown.
    own_text: String,
}

impl PromptText<'_> {
    /// Returns help for a new prompt.
    pub fn new<'a>(help: &'a PromptHelp, typed: &'a [String]) -> PromptText<'a> {
        PromptText {
            help,
            typed,
            texts: None,
            at: 0,
            own_text: String::new(),
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
        // Keep the user's own text for the way back.
        if self.at == texts.len() {
            text.clone_into(&mut self.own_text);
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
            Some(self.own_text.clone())
        } else {
            texts.get(self.at).cloned()
        }
    }

    fn candidates(&mut self, before: &str) -> Vec<String> {
        (self.help.candidates)(before)
    }
}

/// Texts of the history: those of the session, then those typed in this process that were not sent,
/// such as commands.
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

        let results: Vec<&str> = steps
            .iter()
            .map(|step| step.as_deref().unwrap_or("-"))
            .collect();
        assert_eq!(
            results,
            ["/undo", "two", "one", "-", "two", "/undo", "new", "-"]
        );
    }
}
