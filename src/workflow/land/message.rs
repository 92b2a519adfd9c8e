//! The message of a commit: what the user says, or a draft of the turns' titles and requests; and
//! the trailers that lead back to them.

use super::error::LandError;
use crate::git::repository::Repository;
use crate::session::artifact;
use crate::session::message::subject;
use crate::session::meta::MessageOrigin;
use crate::session::turn::Turn;
use crate::text::visible::visible;

/// How many lines of a request a draft has.
const MAX_LINES: usize = 12;

/// What a draft says of a turn.
#[derive(Debug, Clone, Default)]
pub(super) struct TurnSummary {
    /// The number and the id.
    pub name: String,
    /// The session.
    pub session: String,
    /// The title.
    pub title: String,
    /// What the user asked for; nothing if nobody said it.
    pub request: String,
    /// The agent.
    pub agent: String,
    /// The model that was asked.
    pub model: Option<String>,
}

/// Reads what a draft says of a turn.
///
/// # Errors
/// If the repository cannot be read.
pub(super) fn told(repository: &Repository, turn: &Turn) -> anyhow::Result<TurnSummary> {
    let request = match turn.meta.origin {
        MessageOrigin::User => turn.text(repository, artifact::USER_PROMPT)?,
        MessageOrigin::Validation | MessageOrigin::Loop => None,
    };
    Ok(TurnSummary {
        name: format!("{} {}", turn.number(), turn.meta.turn_id),
        session: turn.session.to_string(),
        title: match &turn.meta.picked {
            Some(picked) => subject(&picked.title),
            None => subject(&turn.title),
        },
        request: request.unwrap_or_default(),
        agent: turn.meta.agent.clone(),
        model: turn.meta.model.as_ref().map(|model| model.asked.clone()),
    })
}

/// Returns a draft without trailers.
pub(super) fn draft(turns: &[TurnSummary]) -> String {
    let Some(first) = turns.first() else {
        return String::new();
    };
    let mut text = format!("{}\n", first.title);
    if let [one] = turns {
        let request = quotation(&one.request, "");
        if !request.is_empty() {
            text.push_str(&format!("\n{request}"));
        }
        return text;
    }

    text.push('\n');
    for turn in turns {
        let request = quotation(&turn.request, "  ");
        text.push_str(&format!("- {}\n{request}", turn.title));
    }

    text
}

/// Returns a request as a quotation: no line of it is a comment of git's, or a trailer.
fn quotation(request: &str, indent: &str) -> String {
    let lines: Vec<&str> = request.trim().lines().collect();
    let mut text: String = lines
        .iter()
        .take(MAX_LINES)
        .map(|line| format!("{indent}{}\n", format!("> {}", visible(line)).trim_end()))
        .collect();
    if lines.len() > MAX_LINES {
        let more = lines.len() - MAX_LINES;
        text.push_str(&format!("{indent}> ... ({more} more lines)\n"));
    }

    text
}

/// Adds the trailers of turns to a message, and those of the settings.
///
/// # Errors
/// [`LandError::Trailer`].
pub(super) fn with_trailers(
    message: &str,
    turns: &[TurnSummary],
    further: &[String],
) -> Result<String, LandError> {
    let mut trailers: Vec<String> = Vec::new();
    let mut add = |trailer: String| {
        if !trailers.contains(&trailer) {
            trailers.push(trailer);
        }
    };
    for turn in turns {
        add(format!("Teddy-Session: {}", turn.session));
    }

    for turn in turns {
        add(format!("Teddy-Turn: {}", turn.name));
    }

    for template in further {
        if !is_trailer(template) {
            return Err(LandError::Trailer(visible(template).into_owned()));
        }

        for turn in turns {
            if let Some(trailer) = filled(template, turn) {
                add(trailer);
            }
        }
    }

    let message = message.trim_end();
    let last = message.rsplit("\n\n").next().unwrap_or_default();
    let has_trailers = last.len() < message.len() && last.lines().all(is_trailer);
    let gap = if has_trailers { "\n" } else { "\n\n" };
    Ok(format!("{message}{gap}{}\n", trailers.join("\n")))
}

/// Returns a trailer of the settings for a turn; nothing if it speaks of a model and there was
/// none.
fn filled(template: &str, turn: &TurnSummary) -> Option<String> {
    let mut text = template
        .replace("{session}", &turn.session)
        .replace("{agent}", &turn.agent);
    if text.contains("{model}") {
        text = text.replace("{model}", turn.model.as_deref()?);
    }
    Some(visible(text.trim()).into_owned())
}

/// Returns whether a line is a trailer.
fn is_trailer(line: &str) -> bool {
    let Some((key, value)) = line.split_once(':') else {
        return false;
    };
    let is_key = |c: char| c.is_ascii_alphanumeric() || c == '-';
    !key.is_empty() && key.chars().all(is_key) && !value.trim().is_empty() && !line.contains('\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a turn of session `demo`.
    fn turn(number: u64, title: &str, request: &str) -> TurnSummary {
        TurnSummary {
            name: format!("{number} id-{number}"),
            session: "demo".to_owned(),
            title: title.to_owned(),
            request: request.to_owned(),
            agent: "dev".to_owned(),
            model: (number == 1).then(|| "sonnet".to_owned()),
        }
    }

    #[test]
    fn a_draft_has_titles_and_requests() {
        let one = [turn(1, "Add a form", "# please\nSigned-off-by: x\n")];
        assert_eq!(
            draft(&one),
            "Add a form\n\n> # please\n> Signed-off-by: x\n"
        );
        let two = [turn(1, "Add a form", "please"), turn(2, "Test it", "")];
        assert_eq!(
            draft(&two),
            "Add a form\n\n- Add a form\n  > please\n- Test it\n"
        );
        assert_eq!(draft(&[turn(1, "Add a form", " ")]), "Add a form\n");
    }

    #[test]
    fn trailers_stand_at_the_end_and_each_once() {
        let turns = [turn(1, "One", ""), turn(2, "Two", "")];
        let further = ["Assisted-by: {agent} {model}", "Reviewed: yes"].map(str::to_owned);
        let check = |message: &str, expected: &str| {
            let text = with_trailers(message, &turns, &further).unwrap();
            assert_eq!(text, expected);
        };
        let trailers = "Teddy-Session: demo\nTeddy-Turn: 1 id-1\nTeddy-Turn: 2 id-2\n\
                        Assisted-by: dev sonnet\nReviewed: yes\n";
        check("One\n\nWords.\n", &format!("One\n\nWords.\n\n{trailers}"));
        check("fix: one", &format!("fix: one\n\n{trailers}"));
        check(
            "One\n\nSigned-off-by: A <a@b>\n",
            &format!("One\n\nSigned-off-by: A <a@b>\n{trailers}"),
        );
    }

    #[test]
    fn a_setting_that_is_no_trailer_is_refused() {
        for wrong in ["", "no trailer", "A b: c", "Key:", "Key: a\nB: c"] {
            let further = [wrong.to_owned()];
            let result = with_trailers("One", &[turn(1, "One", "")], &further);
            assert!(result.is_err(), "{wrong:?}");
        }
    }
}
