//! Text around a message prompt, and detection of misplaced commands.

use super::ask;
use super::markdown;
use super::style::{StyledLine, Tone, block};
use crate::workflow::user::Question;

/// Returns whether a text looks like a slash command at a prompt that takes none. No user means it
/// as a message for the model.
pub fn is_misplaced_command(question: &Question<'_>, written: Option<&str>) -> bool {
    let takes_none = matches!(
        question,
        Question::NextTurn {
            takes_commands: false,
            ..
        }
    );
    let name = written.and_then(|text| text.strip_prefix('/'));
    takes_none
        && name.is_some_and(|name| {
            let word = name.split_whitespace().next().unwrap_or_default();
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase())
        })
}

fn keys_hint(takes_commands: bool) -> StyledLine {
    if takes_commands {
        ask::prompt_hint()
    } else {
        ask::hint()
    }
}

/// Returns the lines shown above the prompt.
pub fn question_lines(question: &Question<'_>) -> Vec<StyledLine> {
    match question {
        Question::NextTurn {
            session,
            turn,
            goes_on,
            takes_commands,
        } => {
            let prompt = if *goes_on {
                "enter lets the model continue, or say what should be done"
            } else {
                "what should be done?"
            };
            vec![
                StyledLine::of(Tone::Strong, session)
                    .with(Tone::Plain, &format!(" · turn {turn}: {prompt}")),
                keys_hint(*takes_commands),
            ]
        }
        Question::Instead { title } => {
            vec![
                StyledLine::plain("Skipped ")
                    .with(Tone::Strong, title)
                    .with(Tone::Plain, ". What should be done instead?"),
                ask::hint(),
            ]
        }
        Question::Reason { change } => {
            vec![
                StyledLine::plain("Why is ")
                    .with(Tone::Strong, change)
                    .with(
                        Tone::Plain,
                        " approved against its review? The reason is recorded.",
                    ),
                ask::hint(),
            ]
        }
        Question::Answer {
            message,
            takes_commands,
        } => {
            let mut lines = markdown::quoted(message);
            lines.extend(block(Tone::Strong, "Your answer:"));
            lines.push(keys_hint(*takes_commands));
            lines
        }
    }
}
