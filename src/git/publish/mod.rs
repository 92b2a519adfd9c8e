//! Publishing: brings the user's files from one tree to another without losing a byte.
//!
//! Each path is compared with what the old tree says and exchanged in one step; what was there is
//! compared once more afterwards, and given back if somebody changed it in between or has it open
//! for writing. Even then it is not removed but put away until the next command, for a program that
//! found the file before the exchange and writes to it after the last look. So each file is old or
//! new and never torn, a user's save at any moment survives, and a run that was interrupted is
//! finished by running it again. Nothing outside the two trees is touched:
//! ignored files, repositories within, and what no snapshot holds.

mod apply;
pub mod displaced;
mod durable;
mod judge;
mod onto;
pub(in crate::git) mod replaced;
pub mod rescue;
mod rescued;
mod settle;
mod twins;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use durable::Flush;
use settle::DisplacedFile;
use twins::CaseTwins;

use super::diff::TreeChange;
use super::place::{IfMissing, Place, Recent, Top, WalkResult};
use super::repository::Repository;
use super::sparse::Hidden;
use super::spread;
use super::version::TreeVersion;
use crate::git::diff;
use crate::git::object::TreeId;
use crate::git::version;

/// What a publication must respect.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// Names the temporary files; letters, digits and `-` only.
    pub operation: String,
    /// Files and folders that no snapshot holds and that must therefore stay.
    pub untouchable: BTreeSet<Vec<u8>>,
    /// What to do when a path is not as the old tree says.
    pub overlap: OverlapRule,
    /// Whether what was written must survive a power cut once this returns.
    pub durable: bool,
    /// Whether a change that does not fit the bytes on disk replaces them; they are kept in
    /// `undo/replaced`.
    pub overwrite: bool,
}

/// What to do when a path is neither as the old tree says nor as the new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OverlapRule {
    /// Nothing at all is written.
    #[default]
    Stop,
    /// The path is left alone and the others go on: for finishing what was begun.
    PassOver,
}

/// What a publication did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Published {
    /// Written, sorted.
    pub written: Vec<Vec<u8>>,
    /// Deleted, sorted.
    pub deleted: Vec<Vec<u8>>,
    /// Left as they are, because they are neither as the old tree says nor as the new one.
    pub conflicts: Vec<Vec<u8>>,
    /// Those among the conflicts that another program has open for writing.
    pub busy: Vec<Vec<u8>>,
    /// Those among the conflicts that may not be changed: the folder, or the file itself, is
    /// protected.
    pub closed: Vec<Vec<u8>>,
    /// Those among the conflicts whose bytes on disk git does not store and the change does not
    /// fit.
    pub unfit: Vec<Vec<u8>>,
    /// Why the new version of a conflict could not be made, a filter that failed say.
    pub failed: Vec<String>,
    /// Bytes of unknown origin, moved to where they can be read.
    pub rescued: Vec<Rescued>,
}

/// A file of unknown bytes that was found in the place of one of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rescued {
    /// The path beside which it was.
    pub path: Vec<u8>,
    /// Where it is now.
    pub kept: PathBuf,
}

impl Published {
    /// Adds what a part of the publication did.
    fn add(&mut self, part: Published) {
        self.written.extend(part.written);
        self.deleted.extend(part.deleted);
        self.conflicts.extend(part.conflicts);
        self.busy.extend(part.busy);
        self.closed.extend(part.closed);
        self.unfit.extend(part.unfit);
        self.failed.extend(part.failed);
        self.rescued.extend(part.rescued);
    }
}

/// A publication under way.
struct Publisher<'repo> {
    /// The repository whose worktree it is.
    repository: &'repo Repository,
    /// Its top.
    top: Arc<Top>,
    /// The folder below it that was walked to last.
    recent: Recent,
    /// The tree that the files are brought from.
    from: TreeId,
    /// The tree that they are brought to.
    to: TreeId,
    /// How the old tree's files look on disk.
    old: TreeVersion<'repo>,
    /// How the new tree's files look on disk.
    new: TreeVersion<'repo>,
    /// The names in folders, where case is ignored.
    twins: CaseTwins,
    /// What to respect.
    guard: &'repo Guard,
    /// The folders in which names may change, relative to the top; nothing if they are many.
    folders: Option<BTreeSet<PathBuf>>,
    /// How the new versions become durable.
    flush: Flush,
    /// What was moved aside and is not yet given up.
    held: Vec<DisplacedFile>,
    /// How many temporary names were given out.
    names: usize,
    /// Where files are put away, once one was.
    away_folder: Option<Place>,
    /// How many files were put away.
    away: usize,
    /// What was done.
    done: Published,
}

/// Brings the worktree's files from tree `from` to tree `to`; the caller holds the lock.
///
/// Can be run again after a crash: what is done is passed over, what is not is done.
///
/// # Errors
/// Where an object cannot be read, a filter fails or a file cannot be written; then what was
/// done so far stays, each file whole, and another run finishes it.
pub fn publish(
    repository: &Repository,
    from: TreeId,
    to: TreeId,
    guard: &Guard,
) -> anyhow::Result<Published> {
    let (mut publisher, changes) = publisher(repository, from, to, guard)?;
    if changes.is_empty() {
        return Ok(Published::default());
    }

    let steps = publisher.judge(&changes)?;
    if guard.overlap == OverlapRule::Stop && !publisher.done.conflicts.is_empty() {
        return Ok(publisher.finish());
    }

    publisher.apply(steps)?;
    Ok(publisher.finish())
}

/// Takes the old side off changes of files that a sparse checkout leaves out: on disk there is none.
fn show_hidden(repository: &Repository, changes: &mut [TreeChange]) -> anyhow::Result<()> {
    let hidden = Hidden::of(repository)?;
    let changes = changes.iter_mut().filter(|change| hidden.has(&change.path));
    changes.for_each(|change| change.old = None);
    Ok(())
}

/// Gathers what a publication needs, and what the trees differ in.
fn publisher<'repo>(
    repository: &'repo Repository,
    from: TreeId,
    to: TreeId,
    guard: &'repo Guard,
) -> anyhow::Result<(Publisher<'repo>, Vec<TreeChange>)> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    anyhow::ensure!(
        guard.operation.bytes().all(plain),
        "`{}` cannot be part of a file name",
        guard.operation
    );
    let mut changes = diff::changes(repository, from, to)?;
    show_hidden(repository, &mut changes)?;
    let paths = || changes.iter().map(|change| change.path.as_slice());
    let stays = |folder: &Path| durable::stays(repository, [from, to], folder);
    let publisher = Publisher {
        repository,
        top: Arc::new(Top::open(repository.workdir())?),
        recent: Recent::default(),
        from,
        to,
        old: version::version(repository, from, paths())?,
        new: version::version(repository, to, paths())?,
        twins: CaseTwins::default(),
        guard,
        folders: durable::folders_of(paths(), stays)?,
        flush: Flush::None,
        held: Vec::new(),
        names: 0,
        away_folder: None,
        away: 0,
        done: Published::default(),
    };

    Ok((publisher, changes))
}

impl Publisher<'_> {
    /// Does a part of the work on items; many are spread over the cores, and what each part did is
    /// gathered. What a part needs of the two trees is what they say of `paths`.
    fn spread<T: Send, R: Send>(
        &mut self,
        items: Vec<T>,
        paths: impl Fn(&[T]) -> Vec<&[u8]> + Sync,
        work: impl Fn(&mut Publisher<'_>, Vec<T>) -> R + Sync,
    ) -> anyhow::Result<Vec<R>> {
        let count = items.len();
        if spread::threads(count) == 1 {
            return Ok(vec![work(self, items)]);
        }

        let (guard, flush, top) = (self.guard, self.flush, &self.top);
        let (from, to, names, away) = (self.from, self.to, self.names, self.away);
        let outcomes = spread::spread(self.repository, items, |repository, start, part| {
            let concerned = paths(&part);
            let mut publisher = Publisher {
                repository,
                top: Arc::clone(top),
                recent: Recent::default(),
                from,
                to,
                old: version::version(repository, from, concerned.iter().copied())?,
                new: version::version(repository, to, concerned.iter().copied())?,
                twins: CaseTwins::default(),
                guard,
                folders: None,
                flush,
                held: Vec::new(),
                // Names that other parts take are passed over: none is ever overwritten.
                names: names + start,
                away_folder: None,
                away: away + start,
                done: Published::default(),
            };

            drop(concerned);
            let outcome = work(&mut publisher, part);
            Ok((outcome, publisher.done))
        })?;

        (self.names, self.away) = (names + count, away + count);
        Ok(outcomes
            .into_iter()
            .map(|(outcome, done)| {
                self.done.add(done);
                outcome
            })
            .collect())
    }

    /// Returns what was done, sorted.
    fn finish(mut self) -> Published {
        let done = &mut self.done;
        for paths in [
            &mut done.written,
            &mut done.deleted,
            &mut done.conflicts,
            &mut done.busy,
            &mut done.closed,
            &mut done.unfit,
        ] {
            paths.sort();
            paths.dedup();
        }

        self.done
    }

    /// Walks to the folder of a path, unless it was just there.
    fn walk(&mut self, path: &[u8], missing: IfMissing) -> std::io::Result<WalkResult> {
        self.recent.walk(&self.top, path, missing)
    }

    /// Notes a path that must stay as it is.
    fn conflict(&mut self, path: &[u8]) {
        self.done.conflicts.push(path.to_vec());
    }
}

/// Says what failed.
fn cannot_write(path: &[u8]) -> String {
    format!("cannot write `{}`", String::from_utf8_lossy(path))
}
