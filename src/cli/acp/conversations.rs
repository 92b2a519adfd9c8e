//! Conversations of an editor that are sessions in git.
//!
//! An editor keeps the id from `session/new`, which is older than the name of the session, so a file
//! in the repository's own directory says which session it became. Any other session has its name
//! as its id.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::git::object::CommitId;
use crate::host::file::{make_dirs, read_regular_text, write_atomic};
use crate::project::Project;
use crate::query::history::{self, SessionRow};
use crate::session::artifact;
use crate::session::meta::MessageOrigin;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::beginning;
use crate::ui::acp::AcpUser;

/// Sessions in one answer.
const PAGE: usize = 100;
/// Newest turns that are sent.
const MAX_TURNS: usize = 500;
/// Longest message that is sent, in bytes.
const MAX_TEXT: usize = 64 << 10;
/// Largest file with the name of a session, in bytes.
const MAX_NOTE: u64 = 1024;
/// Most files that are read.
const MAX_NOTES: usize = 10_000;

fn notes(project: &Project) -> PathBuf {
    project.repository.teddy_dir().join("acp")
}

/// Remembers which session a conversation became.
pub(super) fn keep_conversation(
    project: &Project,
    id: &str,
    name: &SessionName,
    first: CommitId,
) -> anyhow::Result<()> {
    let dir = notes(project);
    make_dirs(&dir)?;
    Ok(write_atomic(
        &dir.join(id),
        format!("{name} {first}\n").as_bytes(),
    )?)
}

/// Reads the session of an id. `None` if it is gone, also if another one has its name now.
fn kept(project: &Project, id: Uuid) -> Option<SessionName> {
    let text = read_regular_text(&notes(project).join(id.to_string()), MAX_NOTE).ok()?;
    let (name, first) = text.trim().split_once(' ')?;
    let name = find_by_name(project, name).ok()??;
    let store = project.store();
    let turn = store.back_from(store.tip(&name).ok()?).turn(0).ok()?;
    (turn.commit.to_string() == first).then_some(name)
}

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
        && let Some(name) = kept(project, uuid)
    {
        return Ok(Some(name));
    }
    find_by_name(project, id)
}

/// Answers `session/list`, most recently changed first.
pub(super) fn list_conversations(project: &Project, start: usize) -> anyhow::Result<Value> {
    let entries = fs::read_dir(notes(project)).into_iter().flatten();
    let ids = entries
        .take(MAX_NOTES)
        .filter_map(|entry| Uuid::parse_str(entry.ok()?.file_name().to_str()?).ok());
    let ids: BTreeMap<String, Uuid> = ids
        .filter_map(|id| Some((kept(project, id)?.as_str().to_owned(), id)))
        .collect();

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
        json!({ "sessionId": id, "cwd": root, "title": title, "updatedAt": row.updated })
    };
    let page: Vec<Value> = rows.iter().skip(start).take(PAGE).map(session).collect();
    let mut answer = json!({ "sessions": page });
    let end = start.saturating_add(PAGE);
    if end < rows.len() {
        answer["nextCursor"] = json!(end.to_string());
    }
    Ok(answer)
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
