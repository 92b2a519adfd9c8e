//! CHAT_WITH_USER: sends a message to the user and waits for the answer.

use super::behavior::{Behavior, PreviewPart, edited_message};
use super::body::Body;
use super::{ActionKind, ActionRow, BodyShape, SummaryGroup};
use crate::plan::field::Field;
use crate::plan::run::{ActionError, Effect, Outcome, Stage};
use crate::plan::validate::Step;

/// Table entry of CHAT_WITH_USER.
pub static ROW: ActionRow = ActionRow {
    name: "CHAT_WITH_USER",
    aliases: &["PROMPT"],
    other_names: &["CHAT", "ASK_USER", "ASK", "MESSAGE", "REPLY", "RESPOND"],
    keys: &[],
    other_keys: &[],
    shape: BodyShape::Message,
    group: SummaryGroup::Messages,
    unit: ("message", "messages"),
    counts_targets: false,
    read: |body| read(body).map(ActionKind::from),
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatWithUser {
    /// Markdown as in the plan, without blank lines at its ends.
    pub message: String,
}

impl Behavior for ChatWithUser {
    fn fields(&self) -> Vec<Field> {
        Vec::new()
    }

    fn message(&self) -> Option<&str> {
        Some(&self.message)
    }

    fn perform(&self, _stage: &mut Stage<'_>) -> Result<Outcome, ActionError> {
        let message = self.message.clone();
        Ok(Outcome::with("asks the user", Effect::Chat { message }))
    }

    fn preview<'a>(&'a self, _step: &'a Step) -> Vec<PreviewPart<'a>> {
        vec![PreviewPart::Message(&self.message)]
    }

    fn question(&self) -> Option<&str> {
        Some(&self.message)
    }

    fn is_informational(&self) -> bool {
        true
    }

    fn set_text(&mut self, text: &str) {
        self.message = edited_message(text);
    }
}

fn read(body: &mut Body<'_>) -> Option<ChatWithUser> {
    Some(ChatWithUser {
        message: body.message()?,
    })
}
