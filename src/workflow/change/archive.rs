//! The workflow `archive`: merges a change's specs into the project's.
//!
//! The merge is three-way, with the specs from the start of the change as base. The result is
//! applied to the user's files like that of a turn, so their edits survive. On a conflict nothing
//! is written.

use std::collections::BTreeMap;

use serde::Serialize;

use super::OpenChange;
use super::judge::require_session;
use super::reopen::newest_turn;
use super::work::create_work_session;
use crate::change::id::ChangeId;
use crate::change::phase::{ChangePhase, ChangeStep};
use crate::change::spec;
use crate::change::state::ChangeEntry;
use crate::change::store::{BASE, Change, ChangeError};
use crate::git::diff;
use crate::git::merge::merge_trees;
use crate::git::object::read::small_blob;
use crate::git::object::{BlobId, EntryMode, TreeEntry, TreeId};
use crate::git::repository::Repository;
use crate::project::Project;
use crate::session::meta::Status;
use crate::session::turn::{Turn, archive_title};
use crate::text::hint::error_with_hint;
use crate::text::keep_bytes::keep_bytes;
use crate::text::path::{lossy, lossy_paths};
use crate::workflow::open_session::EnteredSession;
use crate::workflow::restore::OnOverlap;
use crate::workspace::complete::SessionMove;
use crate::workspace::draft_transfer;
use crate::workspace::file_move::{FileMove, find_conflict_markers};
use crate::workspace::files_turn::FilesTurn;
use crate::workspace::snapshot::RecordedFiles;
use crate::workspace::stack::record::publish_turn;

#[derive(Debug, Clone, Serialize)]
pub struct Archived {
    pub change: ChangeId,
    pub phase: ChangePhase,
    /// One line for each spec that was written or deleted.
    pub done: Vec<String>,
    /// Nothing was written in that case, unless `turn` is set.
    pub conflicts: Vec<String>,
    /// Specs that were written with conflict markers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marked: Vec<String>,
    /// Recorded although something was in the way of a spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
}

pub fn archive(open: &mut OpenChange<'_>, on_overlap: OnOverlap) -> anyhow::Result<Archived> {
    let (id, phase) = (open.change.id.clone(), open.change.state.phase);
    let project = open.project;
    if phase != ChangePhase::Complete {
        return Err(ChangeError::ChangeNotComplete { id, phase }.into());
    }

    open.require_usable()?;
    require_session(project, &open.change)?;
    create_work_session(project, &open.change, open.user)?;
    open.report_lacking()?;
    let entered = EnteredSession::enter(project, &id.session(), "archive", open.user)?;
    let mut archived = Archived {
        change: id,
        phase,
        done: Vec::new(),
        conflicts: Vec::new(),
        marked: Vec::new(),
        turn: None,
    };
    let waiting = draft_transfer::waiting(&project.checkout(), &entered.tip)?;
    if merge_specs(&entered, &open.change, on_overlap, &mut archived)? {
        entered.carry(waiting, open.user);
    }
    if archived.conflicts.is_empty() {
        record_archived(open, &archived.done)?;
        archived.phase = open.change.state.phase;
    }
    Ok(archived)
}

/// As a turn, unless the specs are merged already. Returns whether there is a turn.
fn merge_specs(
    entered: &EnteredSession<'_>,
    change: &Change,
    on_overlap: OnOverlap,
    archived: &mut Archived,
) -> anyhow::Result<bool> {
    let EnteredSession {
        project,
        tip,
        transaction,
        ..
    } = entered;
    // Specs count even if git ignores them.
    let specs = change.documents.specs();
    let forced: Vec<Vec<u8>> = specs.map(|path| path.as_bytes().to_vec()).collect();
    let recorded = transaction.record(&project.checkout(), tip, &forced)?;
    let (base, target) = spec_trees(&project.repository, change, recorded.tree)?;
    let merged = merge_trees(&project.repository, base, recorded.tree, target)?;
    let files = FileMove {
        from: recorded.tree,
        to: on_overlap.resolve(&merged),
    };
    let mut met = merged.paths;
    let marked = match on_overlap {
        OnOverlap::Markers => find_conflict_markers(&project.repository, files.to, &met)?,
        _ => Vec::new(),
    };
    // Our side would be taken without a word.
    if on_overlap == OnOverlap::Markers && met != marked {
        met.retain(|path| !marked.contains(path));
        archived.conflicts = lossy_paths(&met);
        return Ok(false);
    }
    if on_overlap == OnOverlap::Stop && !met.is_empty() {
        archived.conflicts = lossy_paths(&met);
        return Ok(false);
    }

    // Also after a crash between the turn and its step.
    if files.from == files.to {
        return Ok(false);
    }

    let (step, summary) = write_archive_turn(project, &change.id, tip, &recorded, &files, &met)?;
    let published = transaction
        .complete(&project.checkout(), &tip.session, &step, Some(&files))?
        .published;
    if published.conflicts.is_empty() {
        archived.done = summary;
        archived.marked = lossy_paths(&marked);
    } else {
        archived.conflicts = lossy_paths(&published.conflict_paths());
        archived.turn = Some(tip.number() + 1);
    }
    Ok(true)
}

/// Base and target of the merge: the user's tree with the specs from the start of the change, and
/// with those of the change.
fn spec_trees(
    repository: &Repository,
    change: &Change,
    now: TreeId,
) -> anyhow::Result<(TreeId, TreeId)> {
    if let Some(entry) = repository.entry(now, b"specs")? {
        anyhow::ensure!(
            entry.mode == EntryMode::Tree,
            "`specs` is not a directory, so the specs cannot be written"
        );
    }

    // A spec that the change never had is not in the base, so the merge keeps it.
    let paths = repository.leaves(now)?.into_iter().map(|leaf| leaf.path);
    let specs = paths.filter(|path| path.starts_with(spec::DIR.as_bytes()));
    let mut old: BTreeMap<Vec<u8>, Option<TreeEntry>> = specs.map(|path| (path, None)).collect();

    let mut new = BTreeMap::new();
    for leaf in repository.leaves(change.tree)? {
        let entry = Some(TreeEntry {
            mode: leaf.mode,
            id: leaf.id,
        });
        let path = String::from_utf8_lossy(&leaf.path).into_owned();
        if let Some(suffix) = path.strip_prefix(BASE) {
            old.insert(
                [spec::DIR.trim_end_matches('/'), suffix]
                    .concat()
                    .into_bytes(),
                entry,
            );
        } else if change.documents.0.contains_key(&path)
            && spec::id_of(&path).is_some()
            && leaf.mode == EntryMode::Blob
        {
            new.insert(leaf.path, entry);
        }
    }

    for (path, entry) in &mut new {
        let current = repository.entry(now, path)?;
        check_no_link(path, current.as_ref())?;
        let before = old.get(path).cloned().flatten().or(current);
        if let (Some(before), Some(after)) = (before, entry) {
            keep_form(repository, &before, after)?;
        }
    }

    let base = diff::tree_with(repository, now, &old)?;
    let target = diff::tree_with(repository, base, &new)?;
    Ok((base, target))
}

fn check_no_link(path: &[u8], current: Option<&TreeEntry>) -> anyhow::Result<()> {
    match current {
        Some(current) if current.mode == EntryMode::Link => Err(error_with_hint(
            format!(
                "`{}` is a symbolic link, so the spec cannot be written",
                lossy(path)
            ),
            "put a file in its place, then archive again",
        )),
        _ => Ok(()),
    }
}

/// Keeps the mode of the project's spec and the bytes of its unchanged lines. The author of the
/// change knows only its text.
fn keep_form(
    repository: &Repository,
    before: &TreeEntry,
    after: &mut TreeEntry,
) -> anyhow::Result<()> {
    if !before.is_file() {
        return Ok(());
    }

    after.mode = before.mode;
    let [old, new] = [before.id, after.id].map(|id| small_blob(repository, BlobId::of(id)));
    if let (Some(old), Some(new)) = (old?, new?) {
        after.id = repository.write_blob(&keep_bytes(&old, &new))?.into();
    }
    Ok(())
}

/// The caller holds the lock.
fn record_archived(open: &mut OpenChange<'_>, summary: &[String]) -> anyhow::Result<()> {
    let specs: Vec<String> = open.change.documents.specs().cloned().collect();
    let about = if specs.is_empty() {
        "no specs".to_owned()
    } else {
        specs.join(", ")
    };
    let title = format!("Archive: {about}");
    let entry = ChangeEntry {
        about: Some(about),
        newest_turn: newest_turn(open.project, &open.change)?,
        ..ChangeEntry::default()
    };
    open.save_locked(ChangeStep::Archive, entry, &title, summary)
}

fn write_archive_turn(
    project: &Project,
    id: &ChangeId,
    tip: &Turn,
    recorded: &RecordedFiles,
    files: &FileMove,
    met: &[Vec<u8>],
) -> anyhow::Result<(SessionMove, Vec<String>)> {
    let repository = &project.repository;
    let title = archive_title(id.as_str());
    let mut turn = FilesTurn::begin(repository, tip, Status::Executed, recorded)?;
    let workspace = turn.set_files(&title, recorded.commit, files.to)?;
    turn.continue_from(tip)?;
    let summary = files.lines(repository)?;

    let published = publish_turn(repository, tip, &workspace, Some(files.to), met)?;
    let step = turn.finish(&title, &summary, published, "teddy: archive".to_owned())?;
    Ok((step, summary))
}
