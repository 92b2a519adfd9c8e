//! Conversations of an editor that are sessions in git.
//!
//! A session that began in an editor has the id from `session/new`, any other one its name.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::project::Project;
use crate::query::history::{self, SessionRow};
use crate::session::artifact;
use crate::session::meta::MessageOrigin;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::beginning;
use crate::text::sanitize::sanitize_line;
use crate::ui::acp::AcpUser;
use crate::workflow::conversation::{conversations, session_of};

/// Sessions in one answer.
const PAGE: usize = 100;
/// Newest turns that are sent.
const MAX_TURNS: usize = 500;
/// Longest message that is sent, in bytes.
const MAX_TEXT: usize = 64 << 10;
/// Longest title, in characters.
const MAX_TITLE: usize = 120;

fn find_by_name(project: &Project, name: &str) -> anyhow::Result<Option<SessionName>> {
    let mut sessions = project.store().sessions()?.into_iter();
    let found = sessions.find(|(session, _)| session.as_str() == name);
    Ok(found.map(|(session, _)| session))
}

/// Returns the session of an id that an editor sent.
pub(super) fn find_conversation(
    project: &Project,
    id: &str,
) -> anyhow::Result<Option<SessionName>> {
    // Only an id has a file. Anything else could be a path.
    if let Ok(uuid) = Uuid::parse_str(id)
        && let Some(name) = session_of(project, uuid)
    {
        return Ok(Some(name));
    }
    find_by_name(project, id)
}

/// Answers `session/list`, most recently changed first.
pub(super) fn list_conversations(project: &Project, start: usize) -> anyhow::Result<Value> {
    let ids = conversations(project);
    let rows = history::session_rows(project)?;
    let root = project.repository.workdir();
    let session = |row: &SessionRow| {
        let id = ids
            .get(&row.name)
            .map_or_else(|| row.name.clone(), Uuid::to_string);
        let title = match row.title.is_empty() {
            true => &row.name,
            false => &row.title,
        };
        json!({ "sessionId": id, "cwd": root, "title": shown_title(title), "updatedAt": row.updated })
    };
    let page: Vec<Value> = rows.iter().skip(start).take(PAGE).map(session).collect();
    let mut answer = json!({ "sessions": page });
    let end = start.saturating_add(PAGE);
    if end < rows.len() {
        answer["nextCursor"] = json!(end.to_string());
    }
    Ok(answer)
}

/// Others may have written the turns, and an editor shows a title in a menu.
fn shown_title(title: &str) -> String {
    let mut short: String = title.chars().take(MAX_TITLE).collect();
    if short.len() < title.len() {
        // At a word, if one ends in the second half.
        if let Some(end) = short.rfind(' ').filter(|end| *end > short.len() / 2) {
            short.truncate(end);
        }
        short.push('…');
    }
    sanitize_line(&short).into_owned()
}

/// Sends the turns of a session as its conversation.
pub(super) fn replay(
    project: &Project,
    name: &SessionName,
    user: &mut AcpUser<'_>,
) -> anyhow::Result<()> {
    let store = project.store();
    let history = store.history(store.tip(name)?).take(MAX_TURNS + 1);
    let mut turns = history.collect::<anyhow::Result<Vec<Turn>>>()?;
    if turns.len() > MAX_TURNS {
        turns.truncate(MAX_TURNS);
        user.send_text(&format!(
            "Only the newest {MAX_TURNS} turns are shown; `teddy log` lists all of them."
        ));
    }

    let repository = &project.repository;
    for turn in turns.iter().rev().filter(|turn| turn.number() > 0) {
        if turn.meta.origin == MessageOrigin::User
            && let Some(text) = turn.text(repository, artifact::USER_PROMPT)?
        {
            user.send_request(&beginning(&text, MAX_TEXT));
        }
        let message = match turn.conclusion(repository)? {
            Some(text) => Some(text),
            None => turn.question(repository)?,
        };
        let message = message.unwrap_or_default();
        let text = format!("**{}. {}**\n\n{message}", turn.number(), turn.title);
        user.send_text(&beginning(&text, MAX_TEXT));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_short_and_visible() {
        assert_eq!(
            shown_title("Add \u{1b}[2J\u{202e}d"),
            "Add \\u{1b}[2J\\u{202e}d"
        );
        let title = shown_title(&"word ".repeat(100));
        assert_eq!(title, format!("{}…", "word ".repeat(24).trim_end()));
        assert_eq!(shown_title(&"é".repeat(500)).chars().count(), MAX_TITLE + 1);
    }
}
