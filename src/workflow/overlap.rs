//! Compares waiting plans with each other and with the user's files, by the merge that applies a
//! turn's result.
//!
//! Takes no lock and moves no ref; the trees of plans stay in memory. What a plan's commands would
//! change is unknown before the run.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::git::merge::merge_in_memory;
use crate::git::object::batch::begin_memory_batch;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::refs;
use crate::git::repository::Repository;
use crate::git::version::tree_version;
use crate::host::interrupt;
use crate::project::Project;
use crate::query::history::{NotCompared, PlanOverlap};
use crate::session::draft::Draft;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::path::lossy_paths;
use crate::text::sized;
use crate::workflow::dry_run::{Rewrite, dry_run_at, reading_of};
use crate::workflow::execute::planned::forced;
use crate::workflow::validation::Beside;
use crate::workspace::snapshot::snapshot;

/// Maximum number of plans that are compared with each other.
pub const MAX_PLANS: usize = 32;

/// Larger files are skipped: all versions of a plan's files are in memory.
const MAX_FILE: usize = 1 << 20;

/// Maximum size of a plan's files. Those beyond it are skipped.
const MAX_PLAN: usize = 16 << 20;

/// Maximum number of lines of a plan's files. The time for a merge of similar lines grows with the
/// square of their number.
const MAX_LINES: usize = 10_000;

/// After this time, the remaining pairs of plans are counted, not compared. A debug build is slower.
const TIME_LIMIT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 3 });

#[derive(Debug, Clone, Default, Serialize)]
pub struct Overlaps {
    /// Most recently changed first.
    pub plans: Vec<ComparedPlan>,
    pub pairs: Vec<PlanPair>,
    /// Number of plans beyond [`MAX_PLANS`].
    pub omitted: usize,
    /// Sessions that cannot be read.
    pub unreadable: Vec<String>,
    /// Number of pairs that were not compared, because it took too long.
    pub late_pairs: usize,
}

#[derive(Debug, Clone, Serialize)]
pub struct ComparedPlan {
    pub session: String,
    pub turn: u64,
    /// Number of commands, whose changes are unknown.
    pub commands: usize,
    /// With the user's present files.
    #[serde(flatten)]
    pub overlap: PlanOverlap,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanPair {
    pub session: String,
    pub other: String,
    pub paths: Vec<String>,
}

/// Of the plan that waits in a session, with the user's edits since its snapshot.
pub fn overlap_with_files(
    project: &Project,
    tip: &Turn,
    draft: &Draft,
) -> anyhow::Result<PlanOverlap> {
    let force = forced(&reading_of(tip, draft)?.plan);
    let now = snapshot(&project.checkout(), &force)?.tree;
    Ok(PlanChange::of(project, tip, draft, now)?.overlap)
}

/// Like [`overlap_with_files`], for the session in use. `None` without a waiting plan.
pub fn overlap_in_use(project: &Project) -> Option<PlanOverlap> {
    let session = project.session().ok()?;
    let (tip, draft) = project.in_progress(&session).ok()?;
    let is_plan = draft.is_planned();
    is_plan.then(|| {
        overlap_with_files(project, &tip, &draft)
            .unwrap_or_else(|error| not_compared(format!("{error:#}")))
    })
}

/// Of all sessions with a waiting plan, among them the lanes of a race.
pub fn overlaps(project: &Project) -> anyhow::Result<Overlaps> {
    let mut overlaps = Overlaps::default();
    let mut waiting = Vec::new();
    let store = project.store();
    for row in store.newest(store.sessions()?)? {
        match PlannedSession::read(project, &row.session) {
            Ok(None) => {}
            Ok(Some(_)) if waiting.len() == MAX_PLANS => overlaps.omitted += 1,
            Ok(Some(plan)) => waiting.push(plan),
            // A damaged session must not hide the others. `doctor` says what is wrong with it.
            Err(_) => overlaps.unreadable.push(row.session.to_string()),
        }
    }
    if waiting.is_empty() {
        return Ok(overlaps);
    }

    let force: Vec<_> = waiting.iter().flat_map(|plan| plan.paths.clone()).collect();
    let now = snapshot(&project.checkout(), &force)?.tree;
    let (mut changes, began) = (Vec::new(), Instant::now());
    for plan in &waiting {
        anyhow::ensure!(!interrupt::requested(), "interrupted");
        changes.push(match began.elapsed() > TIME_LIMIT {
            true => PlanChange::unknown(now, "the comparison took too long".to_owned()),
            // A plan whose objects are missing must not hide the others.
            false => PlanChange::of(project, &plan.tip, &plan.draft, now)
                .unwrap_or_else(|error| PlanChange::unknown(now, format!("{error:#}"))),
        });
    }

    for (index, change) in changes.iter().enumerate() {
        for (other_index, other) in changes.iter().enumerate().skip(index + 1) {
            anyhow::ensure!(!interrupt::requested(), "interrupted");
            if began.elapsed() > TIME_LIMIT {
                overlaps.late_pairs += 1;
                continue;
            }
            let paths = change.conflicts_with(other, &project.repository, now)?;
            if !paths.is_empty() {
                overlaps.pairs.push(PlanPair {
                    session: waiting[index].tip.session.to_string(),
                    other: waiting[other_index].tip.session.to_string(),
                    paths: lossy_paths(&paths),
                });
            }
        }
    }

    let plans = waiting.iter().zip(changes);
    let plans = plans.map(|(plan, change)| ComparedPlan {
        session: plan.tip.session.to_string(),
        turn: plan.draft.meta.number,
        commands: change.commands,
        overlap: change.overlap,
    });
    overlaps.plans = plans.collect();
    Ok(overlaps)
}

struct PlannedSession {
    tip: Turn,
    draft: Draft,
    /// Of the files that it changes.
    paths: Vec<Vec<u8>>,
}

impl PlannedSession {
    fn read(project: &Project, session: &SessionName) -> anyhow::Result<Option<PlannedSession>> {
        // Reads no turn of a session without a draft.
        if refs::read(&project.repository, &session.draft_reference())?.is_none() {
            return Ok(None);
        }
        let (tip, draft) = project.in_progress(session)?;
        if !draft.is_planned() {
            return Ok(None);
        }
        let paths = forced(&reading_of(&tip, &draft)?.plan);
        Ok(Some(PlannedSession { tip, draft, paths }))
    }
}

/// What can still be compared of one plan.
struct PlanLimits {
    bytes: usize,
    lines: usize,
}

impl PlanLimits {
    /// Returns why a file cannot be compared.
    fn take(&mut self, file: &Rewrite) -> Result<(), String> {
        let versions = [file.before.as_deref(), file.after.as_deref()];
        let [before, after] = versions.map(|bytes| bytes.map_or(0, <[u8]>::len));
        let size = before.max(after);
        let [before, after] = versions.map(count_lines);
        let lines = before.max(after);
        if size > MAX_FILE {
            return Err(format!("larger than {}", sized(MAX_FILE as u64)));
        }
        if size > self.bytes {
            return Err(format!(
                "beyond {} of the plan's files",
                sized(MAX_PLAN as u64)
            ));
        }
        if lines > self.lines {
            return Err(format!("beyond {MAX_LINES} lines of the plan's files"));
        }

        self.bytes -= size;
        self.lines -= lines;
        Ok(())
    }
}

fn count_lines(bytes: Option<&[u8]>) -> usize {
    let bytes = bytes.unwrap_or_default();
    bytes.iter().filter(|&&byte| byte == b'\n').count() + 1
}

fn not_compared(reason: String) -> PlanOverlap {
    PlanOverlap {
        paths: Vec::new(),
        not_compared: vec![NotCompared { path: None, reason }],
    }
}

/// Simulated result of a plan.
pub(in crate::workflow) struct PlanChange {
    /// Files on which it was made.
    base: TreeId,
    pub after: TreeId,
    /// The user's present files with the plan's changes. Theirs stay where both conflict.
    on_now: TreeId,
    commands: usize,
    pub overlap: PlanOverlap,
}

impl PlanChange {
    /// Of a plan that was not compared.
    fn unknown(now: TreeId, reason: String) -> PlanChange {
        PlanChange {
            base: now,
            after: now,
            on_now: now,
            commands: 0,
            overlap: not_compared(reason),
        }
    }

    pub fn of(
        project: &Project,
        tip: &Turn,
        draft: &Draft,
        now: TreeId,
    ) -> anyhow::Result<PlanChange> {
        let repository = &project.repository;
        let planned_on = draft.meta.planned_on;
        // `teddy gc` can have removed the snapshot, and a draft from elsewhere comes without it.
        let snapshot = planned_on.and_then(|commit| repository.commit(commit).ok());
        let snapshot = snapshot.map(|commit| commit.tree);
        let base = snapshot.filter(|tree| repository.has(*tree)).unwrap_or(now);

        let run = dry_run_at(project, tip, draft, base, Beside::Nothing)?;
        let paths = run.files.keys().map(String::as_bytes);
        let mut stored = tree_version(repository, base, paths)?;
        let batch = begin_memory_batch(repository);
        let (mut edits, mut skipped) = (BTreeMap::new(), Vec::new());
        let mut limits = PlanLimits {
            bytes: MAX_PLAN,
            lines: MAX_LINES,
        };
        for (path, file) in &run.files {
            if let Err(reason) = limits.take(file) {
                let path = Some(path.clone());
                skipped.push(NotCompared { path, reason });
                continue;
            }
            let entry = match &file.after {
                None => None,
                Some(bytes) => Some(TreeEntry {
                    mode: file_mode(repository, base, path)?,
                    id: batch.blob(&stored.stored(path.as_bytes(), bytes)?)?.into(),
                }),
            };
            edits.insert(path.clone().into_bytes(), entry);
        }

        let after = batch.tree_with(base, &edits)?;
        batch.stage()?;
        if snapshot != Some(base) {
            skipped.push(NotCompared {
                path: None,
                reason: "the files on which it was made are not in this repository".to_owned(),
            });
        }

        let on_now = merge_in_memory(repository, base, now, after)?;
        Ok(PlanChange {
            base,
            after,
            on_now: on_now.ours,
            commands: run.commands,
            overlap: PlanOverlap {
                paths: lossy_paths(&on_now.paths),
                not_compared: skipped,
            },
        })
    }

    fn conflicts_with(
        &self,
        other: &PlanChange,
        repository: &Repository,
        now: TreeId,
    ) -> anyhow::Result<Vec<Vec<u8>>> {
        let (base, ours, theirs) = match self.base == other.base {
            true => (self.base, self.after, other.after),
            false => (now, self.on_now, other.on_now),
        };
        Ok(merge_in_memory(repository, base, ours, theirs)?.paths)
    }
}

/// The plan's own changes of a mode are not compared.
fn file_mode(repository: &Repository, base: TreeId, path: &str) -> anyhow::Result<EntryMode> {
    let entry = repository.entry(base, path.as_bytes())?;
    let file = entry.filter(TreeEntry::is_file);
    Ok(file.map_or(EntryMode::Blob, |file| file.mode))
}
