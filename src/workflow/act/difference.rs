//! Writes a plan from the changes that a model left in its worktree.
//!
//! A dry run checks the plan: it must produce exactly the model's files. A change that no EDIT or
//! CREATE reproduces exactly becomes a TAKE.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use anyhow::Context as _;

use super::WorktreeEnv;
use crate::git::diff::{self, TreeChange};
use crate::git::object::{BlobId, EntryMode, TreeEntry, TreeId};
use crate::git::repository::Repository;
use crate::git::version::{TreeVersion, tree_version};
use crate::host::file::{FileKind, Root};
use crate::plan::difference::{
    AgentText, FileState, MadeChange, TakenBytes, WrittenPlan, files_after, plan_with_takes,
};
use crate::session::meta::NotCaptured;
use crate::text::counted;
use crate::text::hint::error_with_hint;
use crate::text::path::{RepoPath, lossy};
use crate::text::sanitize::sanitize_line;
use crate::workflow::execute::stage::WorktreeResult;
use crate::workflow::user::{Event, Notice};
use crate::workflow::validation::state_mode;
use crate::workspace::snapshot;

/// In bytes. Both sides of a change are read into memory.
const MAX_FILE: u64 = 100 << 20;
const MAX_ALL: u64 = 400 << 20;
/// In characters.
const MAX_TITLE: usize = 72;

/// `leaves` lists notes of the program itself, which are not changes.
pub(super) fn plan_from(
    env: &WorktreeEnv<'_, '_>,
    message: &str,
    request: &str,
    result: &WorktreeResult,
    leaves: &[String],
) -> anyhow::Result<WrittenPlan> {
    let repository = &env.project.repository;
    let mut changes = diff::changes(repository, env.recorded.tree, result.tree)?;
    // The agent's notes are not part of its work.
    changes.retain(|change| !is_note(change, leaves));
    let limit = env.project.settings.limits.files;
    if changes.len() > limit {
        return Err(error_with_hint(
            format!(
                "the agent changed {}, but a turn can have at most {}; TeDDy discarded all of them",
                counted(changes.len(), "file"),
                limit
            ),
            "ask for less at once, add what it generated to `.gitignore`, or raise `limits.files`",
        ));
    }

    let unrecorded = take_unrecorded(env, &mut changes)?;
    let too_large = take_too_large(repository, &mut changes)?;
    let changes = read_changes(repository, &changes, env.recorded.tree, result.tree)?;
    let title = title(message, request);
    let description = AgentText {
        title: &title,
        rationale: message,
    };
    let mut planned = exact(&changes, &description)?;
    planned
        .left_out
        .extend(unrecorded.into_iter().chain(too_large));
    report_left_out(env, result, &planned);
    Ok(planned)
}

/// Writes a plan that changes the files of one tree into those of another.
pub(in crate::workflow) fn plan_between(
    repository: &Repository,
    before: TreeId,
    after: TreeId,
    author: &AgentText<'_>,
) -> anyhow::Result<WrittenPlan> {
    let changes = diff::changes(repository, before, after)?;
    let changes = read_changes(repository, &changes, before, after)?;
    exact(&changes, author)
}

/// New files in place of a directory of the user's, or of a file in no snapshot, for example because
/// git ignores it. A CREATE must not replace it (P12), and what the agent changed is unknown.
fn take_unrecorded(
    env: &WorktreeEnv<'_, '_>,
    changes: &mut Vec<TreeChange>,
) -> anyhow::Result<Vec<(Vec<u8>, String)>> {
    let repository = &env.project.repository;
    let disk = Root::open(repository.workdir())?;
    let obstacle = |change: &TreeChange| {
        let path = Path::new(OsStr::from_bytes(&change.path));
        match change.old {
            Some(_) => None,
            None => disk.kind(path).ok().flatten(),
        }
    };
    if !changes.iter().any(|change| obstacle(change).is_some()) {
        return Ok(Vec::new());
    }

    // Another command can have made it meanwhile. Then the plan is checked against that version.
    let now = snapshot::snapshot(&env.project.checkout(), &[])?.tree;
    let mut left_out = Vec::new();
    for change in std::mem::take(changes) {
        let why = match obstacle(&change) {
            Some(_) if repository.entry(now, &change.path)?.is_some() => None,
            Some(FileKind::Dir) => Some("your files have a directory there"),
            Some(_) => Some("your files have it already, in no snapshot"),
            None => None,
        };
        match why {
            Some(why) => left_out.push((change.path, why.to_owned())),
            None => changes.push(change),
        }
    }
    Ok(left_out)
}

fn take_too_large(
    repository: &Repository,
    changes: &mut Vec<TreeChange>,
) -> anyhow::Result<Vec<(Vec<u8>, String)>> {
    let mut left_out = Vec::new();
    let mut all = 0;
    for change in std::mem::take(changes) {
        let mut size = 0;
        for entry in change.old.iter().chain(&change.new) {
            // A gitlink has no blob.
            if !matches!(entry.mode, EntryMode::Tree | EntryMode::Commit) {
                size = size.max(repository.blob_size(BlobId::of(entry.id))?);
            }
        }

        if size > MAX_FILE || all + size > MAX_ALL {
            let why = format!(
                "too large ({size} bytes); a plan has files of at most {MAX_FILE} bytes, and {MAX_ALL} in all"
            );
            left_out.push((change.path, why));
        } else {
            all += size;
            changes.push(change);
        }
    }

    Ok(left_out)
}

/// Retries each path that comes out different as TAKE.
fn exact(changes: &[MadeChange], description: &AgentText<'_>) -> anyhow::Result<WrittenPlan> {
    let mut whole_paths = BTreeSet::new();
    loop {
        // Each round takes at least one more path as a whole, so the loop ends.
        let planned = plan_with_takes(changes, description, &whole_paths);
        let wrong = not_as_made(changes, &planned)?;
        if wrong.is_empty() {
            return Ok(planned);
        }
        let old_len = whole_paths.len();
        whole_paths.extend(wrong);
        anyhow::ensure!(
            whole_paths.len() > old_len,
            "the plan made from the agent's changes does not produce the same files; TeDDy discarded the changes"
        );
    }
}

fn not_as_made(changes: &[MadeChange], planned: &WrittenPlan) -> anyhow::Result<Vec<Vec<u8>>> {
    let (plan, _) = crate::plan::parse(&planned.text);
    let artifact_bytes: TakenBytes = planned.taken_bytes.iter().cloned().collect();
    let by_path: HashMap<&[u8], &MadeChange> = changes
        .iter()
        .map(|change| (change.path.as_slice(), change))
        .collect();
    let before = |path: &RepoPath| {
        let change = by_path.get(path.as_str().as_bytes())?;
        change.before.clone()
    };
    let results = files_after(&plan, &before, &artifact_bytes).map_err(|mistakes| {
        let first = mistakes.first().map(|mistake| mistake.message.clone());
        anyhow::anyhow!(
            "the plan made from the agent's changes has mistakes: {}",
            first.unwrap_or_default()
        )
    })?;

    let left_out: HashSet<&[u8]> = planned
        .left_out
        .iter()
        .map(|(path, _)| path.as_slice())
        .collect();
    let results: HashMap<&[u8], &Option<FileState>> = results
        .iter()
        .map(|(path, state)| (path.as_str().as_bytes(), state))
        .collect();
    let is_wrong = |change: &&MadeChange| {
        let path = change.path.as_slice();
        !left_out.contains(path) && results.get(path).copied() != Some(&change.after)
    };
    let wrong = changes.iter().filter(is_wrong);
    Ok(wrong.map(|change| change.path.clone()).collect())
}

fn is_note(change: &TreeChange, leaves: &[String]) -> bool {
    let begins = |name: &String| change.path.starts_with(name.as_bytes());
    // Only a file that the program created, never one of the user's.
    change.old.is_none() && leaves.iter().any(begins)
}

fn report_left_out(env: &WorktreeEnv<'_, '_>, result: &WorktreeResult, planned: &WrittenPlan) {
    let cannot = planned.left_out.iter().map(|(path, reason)| NotCaptured {
        path: lossy(path),
        reason: reason.clone(),
    });
    let is_named = |path: &str| result.not_captured.iter().any(|file| file.path == path);
    let cannot = cannot.filter(|file| !is_named(&file.path));
    let ignored = result.unreported(&env.recorded.not_captured, &[]);
    let files: Vec<NotCaptured> = cannot.chain(ignored).collect();

    let mut user = env.user.borrow_mut();
    if !files.is_empty() {
        user.report(Event::Notice(Notice::AgentWorkLeftOut(files)));
    }
    for change in &result.repository_changes {
        user.report(Event::Notice(Notice::ModelRemark(change.clone())));
    }
}

/// As a checkout would write them.
fn read_changes(
    repository: &Repository,
    changes: &[TreeChange],
    before: TreeId,
    after: TreeId,
) -> anyhow::Result<Vec<MadeChange>> {
    let paths = || changes.iter().map(|change| change.path.as_slice());
    let mut olds = tree_version(repository, before, paths())?;
    let mut news = tree_version(repository, after, paths())?;
    let mut read = Vec::with_capacity(changes.len());
    for TreeChange { path, old, new } in changes {
        let side = |entry: &Option<TreeEntry>, files: &mut TreeVersion<'_>| {
            let Some(entry) = entry else {
                return Ok(None);
            };
            let state = state(path, entry, files);
            state.with_context(|| format!("reading `{}`", sanitize_line(&lossy(path))))
        };
        read.push(MadeChange {
            path: path.clone(),
            before: side(old, &mut olds)?,
            after: side(new, &mut news)?,
        });
    }

    Ok(read)
}

/// `None` for a nested repository, which no turn records.
fn state(
    path: &[u8],
    entry: &TreeEntry,
    files: &mut TreeVersion<'_>,
) -> anyhow::Result<Option<FileState>> {
    let Some(mode) = state_mode(entry.mode) else {
        return Ok(None);
    };
    let bytes = files.bytes(path, entry)?;
    Ok(Some(FileState { mode, bytes }))
}

/// The first sentence of the agent's message, else of the request.
fn title(message: &str, request: &str) -> String {
    let lines = message.lines().chain(request.lines());
    let mut lines = lines.map(|line| line.trim().trim_matches(['#', '*', '`', ' ']));
    let line = lines.find(|line| line.chars().any(char::is_alphanumeric));
    let line = line.unwrap_or("Changes of the agent");
    let is_end = |(at, sign): &(usize, char)| {
        let tail = &line[at + sign.len_utf8()..];
        matches!(sign, '.' | '!' | '?') && (tail.is_empty() || tail.starts_with(' '))
    };
    let end = line.char_indices().find(is_end);
    let sentence = end.map_or(line, |(at, sign)| &line[..at + sign.len_utf8()]);
    let sentence = sentence.trim_end_matches(['.', ':', ' ']);
    sanitize_line(cut_at_word(sentence).trim()).into_owned()
}

/// Cuts a text to the length of a title, between two words if there are any.
fn cut_at_word(text: &str) -> &str {
    let Some((end, _)) = text.char_indices().nth(MAX_TITLE) else {
        return text;
    };
    let cut = &text[..end];
    let is_between = text[end..].starts_with(' ');
    match cut.rfind(' ').filter(|_| !is_between) {
        Some(space) => cut[..space].trim_end_matches([',', ';', ':', ' ']),
        None => cut,
    }
}

#[cfg(test)]
mod tests {
    use super::title;

    fn check(message: &str, expected: &str) {
        assert_eq!(title(message, "do it. Now"), expected);
    }

    #[test]
    fn a_title_is_the_first_sentence_that_says_something() {
        check("\n## Added a form.\n\nIt works.", "Added a form");
        check("Done! All tests pass.", "Done!");
        check("Wrote made.txt. It is new.", "Wrote made.txt");
        check("\n---\n", "do it");
        check(&"long ".repeat(40), "long ".repeat(14).trim());
        check(&"x".repeat(80), &"x".repeat(72));
        assert_eq!(title("", ""), "Changes of the agent");
    }
}
