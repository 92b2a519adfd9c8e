//! Obtains the user's message for a turn: from the options, from the draft, or by a prompt.

use std::borrow::Cow;

use crate::project::Project;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::meta::MessageOrigin;
use crate::session::turn::Turn;
use crate::text::secret::redact;
use crate::workflow::open_session::OpenSession;
use crate::workflow::user::{EmptyInput, Event, NobodyToAsk, Notice, Question, User};

const MAX_NAMED: usize = 80;

/// Begins the output of a command that the user sends with a message.
pub const RAN: &str = "I ran `";

/// Returns a message without the output of commands that was sent with it.
pub fn without_output(message: &str) -> &str {
    let output = message.find(&format!("\n\n{RAN}"));
    &message[..output.unwrap_or(message.len())]
}

/// The model waits for an answer to this question, and the user gave none.
#[derive(Debug, thiserror::Error)]
#[error("the model waits for your answer")]
pub struct Unanswered(pub String);

#[derive(Debug, thiserror::Error)]
#[error("nothing was planned")]
pub struct MessageCancelled;

/// The given message, or the one in the draft.
pub(in crate::workflow) fn resolve_message(
    message: Option<&str>,
    origin: MessageOrigin,
    draft: &Draft,
    user: &mut dyn User,
) -> Option<(String, MessageOrigin)> {
    if let Some(message) = message {
        return Some((message.to_owned(), origin));
    }
    let (waiting, origin) = draft.waiting_message()?;
    let first = waiting.trim().lines().next().unwrap_or_default();
    user.report(Event::Notice(Notice::MessageUsed(cut(first))));
    Some((waiting, origin))
}

pub(in crate::workflow) fn ask_for_message(
    draft: &Draft,
    tip: &Turn,
    question: Option<String>,
    user: &mut dyn User,
) -> anyhow::Result<String> {
    if let Some(question) = question {
        return ask_for_answer(question, user);
    }

    let question = Question::NextTurn {
        session: tip.session.as_str(),
        turn: draft.meta.number,
        empty: EmptyInput::Nothing,
        takes_commands: false,
    };
    user.ask(&question)?
        .filter(|message| !message.trim().is_empty())
        .ok_or_else(|| MessageCancelled.into())
}

/// Fails with [`Unanswered`] if the user gives no answer.
pub fn ask_for_answer(question: String, user: &mut dyn User) -> anyhow::Result<String> {
    let prompt = Question::Answer {
        message: &question,
        turn_of_loop: None,
    };
    match user.ask(&prompt) {
        Ok(answer) => answer
            .filter(|answer| !answer.trim().is_empty())
            .ok_or_else(|| Unanswered(question).into()),
        Err(error) if error.is::<NobodyToAsk>() => Err(Unanswered(question).into()),
        Err(error) => Err(error),
    }
}

/// For the next turn, unless a plan is waiting.
pub fn keep_message(
    project: &Project,
    message: Option<String>,
    user: &mut dyn User,
) -> anyhow::Result<()> {
    let Some(message) = message.filter(|message| !message.trim().is_empty()) else {
        return Ok(());
    };
    let mut session = OpenSession::current(project, "resume", user)?;
    if keep_in_draft(&mut session, message, user)? {
        user.report(Event::Notice(Notice::MessageKept));
    }
    Ok(())
}

/// Returns `false` if a plan is waiting: it has a message of its own.
pub(in crate::workflow) fn keep_in_draft(
    session: &mut OpenSession<'_>,
    message: String,
    user: &mut dyn User,
) -> anyhow::Result<bool> {
    let draft = &mut session.draft;
    if draft.is_planned() {
        user.report(Event::Notice(Notice::MessageNotUsed));
        return Ok(false);
    }

    let message = without_keys(message, user);
    // The draft can contain an answer that no plan has used yet; keep both.
    let message = match draft.waiting_message() {
        Some((earlier, MessageOrigin::User)) => format!("{}\n\n{message}", earlier.trim_end()),
        _ => message,
    };
    draft.meta.origin = MessageOrigin::User;
    draft.artifacts.insert(artifact::USER_PROMPT, message);
    session.save_draft()?;
    Ok(true)
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(MAX_NAMED) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

/// A message is recorded and sent to the model.
pub fn without_keys(message: String, user: &mut dyn User) -> String {
    let clean = redact(&message);
    if matches!(clean, Cow::Owned(_)) {
        user.report(Event::Notice(Notice::KeyRemoved));
    }
    clean.into_owned()
}
