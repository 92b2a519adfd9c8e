//! Remembers which session a conversation of an editor became.
//!
//! An editor keeps the id from `session/new`, which is older than the name of the session. A file in
//! the repository's own directory, named after the id, has the session's name and its first commit:
//! another session can get the name later.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use uuid::Uuid;

use crate::git::object::CommitId;
use crate::host::file::{make_dirs, read_regular_text, write_atomic};
use crate::project::Project;
use crate::session::name::SessionName;

/// In bytes.
const MAX_FILE: u64 = 1024;
/// Most files that are read.
const MAX_FILES: usize = 10_000;

fn dir(project: &Project) -> PathBuf {
    project.repository.teddy_dir().join("acp")
}

pub fn keep_conversation(
    project: &Project,
    id: Uuid,
    name: &SessionName,
    first: CommitId,
) -> anyhow::Result<()> {
    let dir = dir(project);
    make_dirs(&dir)?;
    let text = format!("{name} {first}\n");
    Ok(write_atomic(&dir.join(id.to_string()), text.as_bytes())?)
}

/// `None` if the session is gone, also if another one has its name now.
pub fn session_of(project: &Project, id: Uuid) -> Option<SessionName> {
    let (recorded, first) = read(project, id)?;
    let sessions = project.store().sessions().ok()?.into_iter();
    let mut names = sessions.map(|(name, _)| name);
    let name = names.find(|name| name.as_str() == recorded)?;
    is_first(project, &name, &first).then_some(name)
}

/// Ids by the name of the session.
pub fn conversations(project: &Project) -> BTreeMap<String, Uuid> {
    let sessions = project.store().sessions().unwrap_or_default().into_iter();
    let names: BTreeMap<String, SessionName> = sessions
        .map(|(name, _)| (name.as_str().to_owned(), name))
        .collect();
    let named = |id| {
        let (name, first) = read(project, id)?;
        let is_same = is_first(project, names.get(&name)?, &first);
        is_same.then_some((name, id))
    };
    ids(project).into_iter().filter_map(named).collect()
}

/// Follows a session that is renamed. Both names have its turns.
pub(in crate::workflow) fn rename(
    project: &Project,
    old: &SessionName,
    new: &SessionName,
) -> anyhow::Result<()> {
    let Some(first) = first_commit(project, old) else {
        return Ok(());
    };
    let expected = (old.as_str().to_owned(), first.to_string());
    for id in ids(project) {
        if read(project, id).as_ref() == Some(&expected) {
            keep_conversation(project, id, new, first)?;
        }
    }
    Ok(())
}

/// Deletes the files of a session that is gone.
pub(in crate::workflow) fn forget(project: &Project, session: &SessionName) {
    for id in ids(project) {
        if read(project, id).is_some_and(|(name, _)| name == session.as_str()) {
            // A file that stays names no session.
            let _ = fs::remove_file(dir(project).join(id.to_string()));
        }
    }
}

fn ids(project: &Project) -> Vec<Uuid> {
    let entries = fs::read_dir(dir(project)).into_iter().flatten();
    let id = |entry: fs::DirEntry| Uuid::parse_str(entry.file_name().to_str()?).ok();
    entries
        .take(MAX_FILES)
        .filter_map(|entry| id(entry.ok()?))
        .collect()
}

/// Name of the session and its first commit, as recorded.
fn read(project: &Project, id: Uuid) -> Option<(String, String)> {
    let text = read_regular_text(&dir(project).join(id.to_string()), MAX_FILE).ok()?;
    let (name, first) = text.trim().split_once(' ')?;
    Some((name.to_owned(), first.to_owned()))
}

fn is_first(project: &Project, name: &SessionName, commit: &str) -> bool {
    first_commit(project, name).is_some_and(|first| first.to_string() == commit)
}

fn first_commit(project: &Project, name: &SessionName) -> Option<CommitId> {
    let store = project.store();
    let first = store.earlier(&store.tip(name).ok()?, 0).ok()?;
    Some(first.commit)
}
