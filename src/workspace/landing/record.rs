//! The turn that records a landing.

use std::collections::BTreeMap;

use super::{LandingNote, MadeCommit};
use crate::git::diff;
use crate::git::merge::{self, Merged};
use crate::git::object::TreeId;
use crate::git::refs::{self, Expected};
use crate::git::repository::Repository;
use crate::host::clock;
use crate::session::artifact;
use crate::session::meta::{Landed, LandedCommit, Meta, Status, Workspace};
use crate::session::name::SessionName;
use crate::session::store::NewTurn;
use crate::session::turn::{Turn, in_next};
use crate::text::sanitize::sanitize_line;
use crate::workspace::complete::{Completed, SessionMove, complete};
use crate::workspace::file_move::FileMove;
use crate::workspace::snapshot::{self, RecordedFiles};
use crate::workspace::stack::record::publish_turn;
use crate::workspace::{Checkout, draft_transfer};

/// The turns that a title names one by one.
const MAX_TITLE_TURNS: usize = 4;

/// A landing on record.
pub struct Recording {
    /// The number of the turn.
    pub turn: u64,
    /// Result for the session and the files.
    pub completed: Completed,
    /// Files in which what hooks changed overlaps with the user's own edits, which stay.
    pub overlaps: Vec<Vec<u8>>,
    /// The user's files, before anything was written to them.
    pub files: TreeId,
    /// Why a draft that waited was not carried over.
    pub draft_lost: Option<anyhow::Error>,
}

/// Records commits that git made as a turn, and applies the changes of hooks to the user's files. The caller holds TeDDy's lock.
pub fn record_landing(
    checkout: &Checkout<'_>,
    landing: &LandingNote,
    commits: &[MadeCommit],
) -> anyhow::Result<Recording> {
    let session = SessionName::from_ref(&landing.session)?;
    let tip = Turn::read(checkout.repository, &session, landing.tip)?;
    let waiting = draft_transfer::waiting(checkout, &tip)?;
    let recorded = snapshot::record(checkout, &tip, &[])?;
    let changed = hook_changes(checkout.repository, landing, recorded.tree, commits)?;

    let files = FileMove {
        from: recorded.tree,
        to: changed.after,
    };
    let before = match changed.before == recorded.tree {
        true => recorded.commit,
        false => snapshot::commit_of(checkout, changed.before, &tip)?,
    };
    let recorded = RecordedFiles {
        commit: before,
        ..recorded
    };
    let step = write_landing_turn(
        checkout,
        &tip,
        landed_meta(landing, commits),
        &recorded,
        files.to,
    )?;
    let completed = complete(checkout, &session, &step, Some(&files))?;
    let transferred = waiting.map(|draft| draft_transfer::transfer_draft(checkout, &tip, draft));

    Ok(Recording {
        turn: tip.number() + 1,
        completed,
        overlaps: changed.overlaps,
        files: recorded.tree,
        draft_lost: transferred.and_then(Result::err),
    })
}

/// What hooks changed in the files that landed.
struct HookChanges {
    /// The user's files without it.
    before: TreeId,
    /// The user's files with it.
    after: TreeId,
    /// Where it overlaps with the user's own edits.
    overlaps: Vec<Vec<u8>>,
}

/// Finds what hooks changed. Those that ran in the user's checkout wrote it there themselves.
fn hook_changes(
    repository: &Repository,
    landing: &LandingNote,
    now: TreeId,
    commits: &[MadeCommit],
) -> anyhow::Result<HookChanges> {
    let mut changes = HookChanges {
        before: now,
        after: now,
        overlaps: Vec::new(),
    };
    for commit in commits.iter().filter(|_| landing.is_current) {
        let intended = commit.intended.tree;
        if commit.intended.in_checkout {
            let mut edits = BTreeMap::new();
            for change in diff::changes(repository, commit.tree, intended)? {
                if repository.entry(now, &change.path)? == change.old {
                    edits.insert(change.path, change.new);
                }
            }
            changes.before = diff::tree_with(repository, changes.before, &edits)?;
            continue;
        }

        changes.after = match merge::merge_trees(repository, intended, changes.after, commit.tree)?
        {
            Merged::Clean(tree) => tree,
            Merged::Overlap { paths, ours, .. } => {
                changes.overlaps.extend(paths);
                ours
            }
        };
    }

    changes.overlaps.sort();
    changes.overlaps.dedup();
    Ok(changes)
}

/// Writes the turn.
fn write_landing_turn(
    checkout: &Checkout<'_>,
    tip: &Turn,
    landed: Landed,
    recorded: &RecordedFiles,
    files: TreeId,
) -> anyhow::Result<SessionMove> {
    let repository = checkout.repository;
    let title = landing_title(&landed);
    let summary = commit_lines(repository, &landed)?;
    let mut draft = checkout.store().draft(tip)?;
    draft.archive_answer();
    draft.begin();
    let after = snapshot::advance(
        repository,
        recorded.commit,
        files,
        &format!("{title}\n\nTeddy-Session: {}\n", tip.session),
    )?;
    let workspace = Workspace {
        worktree: repository.worktree_name(),
        branch: Some(refs::branch_or_head(repository)?),
        before: recorded.commit,
        after,
        synced: true,
        overlaps: Vec::new(),
    };

    let published = publish_turn(repository, tip, &workspace, Some(files))?;
    let meta = Meta {
        status: Status::Landed,
        ended: Some(clock::stamp()),
        workspace: Some(workspace),
        landed: Some(landed),
        not_captured: recorded.not_captured.clone(),
        model: None,
        repair: None,
        ..draft.meta.clone()
    };

    let mut artifacts = draft.lasting_artifacts();
    tip.hand_on(repository, meta.turn_id, &mut artifacts)?;

    // What the user has put on the list since the newest turn stays there.
    for name in [artifact::TURN_CONTEXT, artifact::SYSTEM_PROMPT] {
        artifacts.insert(&in_next(name), draft.artifacts.text_or_empty(name));
    }

    artifacts.insert(artifact::REPORT, render_landing_report(&title, &summary));

    let commit = checkout.store().write(NewTurn {
        session: &tip.session,
        title: &title,
        results: &summary,
        artifacts,
        meta: &meta,
        previous: Some(tip.commit),
        workspace: Some(after),
        publication: published.id,
    })?;
    Ok(SessionMove {
        expected: Expected::At(tip.commit),
        new: commit,
        published,
        log: format!("teddy: {}", title.to_lowercase()),
        // The commits are on the branch: not to record them would not undo them.
        anyway: true,
        overwrite: false,
    })
}

fn landed_meta(landing: &LandingNote, commits: &[MadeCommit]) -> Landed {
    let commit = |created: &MadeCommit| LandedCommit {
        commit: created.commit,
        turns: created.intended.turns.clone(),
    };
    Landed {
        branch: landing.branch.trim_start_matches("refs/heads/").to_owned(),
        commits: commits.iter().map(commit).collect(),
    }
}

/// Returns a line for each commit.
fn commit_lines(repository: &Repository, landed: &Landed) -> anyhow::Result<Vec<String>> {
    let line = |landed: &LandedCommit| {
        let commit = repository.commit(landed.commit)?;
        Ok(format!(
            "commit {} {}",
            commit.id,
            sanitize_line(commit.subject())
        ))
    };
    landed.commits.iter().map(line).collect()
}

/// Returns the title of the turn: `Land turns 1, 2 on main`.
fn landing_title(landed: &Landed) -> String {
    let turns = landed.commits.iter().flat_map(|commit| &commit.turns);
    let numbers: Vec<u64> = turns.map(|turn| turn.number).collect();
    format!("Land {} on {}", turns_named(&numbers), landed.branch)
}

fn render_landing_report(title: &str, summary: &[String]) -> String {
    let lines: String = summary.iter().map(|line| format!("- {line}\n")).collect();
    format!("# Execution Report: {title}\n- **Overall Status:** Landed 🟢\n\n## Commits\n\n{lines}")
}

/// Returns turns as a title names them: `turn 2`, `turns 1-3`, `turns 1, 3`.
pub fn turns_named(numbers: &[u64]) -> String {
    let follows = |pair: &[u64]| pair[1] == pair[0] + 1;
    match numbers {
        [] => "no turn".to_owned(),
        [one] => format!("turn {one}"),
        [first, .., last] if numbers.len() > 2 && numbers.windows(2).all(follows) => {
            format!("turns {first}-{last}")
        }
        _ => {
            let mut names: Vec<String> = numbers
                .iter()
                .take(MAX_TITLE_TURNS)
                .map(u64::to_string)
                .collect();
            if numbers.len() > MAX_TITLE_TURNS {
                names.push("...".to_owned());
            }
            format!("turns {}", names.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_named_in_a_title() {
        let check = |numbers: &[u64], expected: &str| assert_eq!(turns_named(numbers), expected);
        check(&[2], "turn 2");
        check(&[1, 2], "turns 1, 2");
        check(&[1, 2, 3], "turns 1-3");
        check(&[1, 3, 4], "turns 1, 3, 4");
        check(&[1, 3, 5, 7, 9], "turns 1, 3, 5, 7, ...");
    }
}
