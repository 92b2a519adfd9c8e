//! Applies a judged publication: stages new versions, deletes, then swaps each file in.
//!
//! Every write is one `rename` or `renameat2(RENAME_EXCHANGE)`, so readers see the old or the new
//! file and never a gap. A path that changed since it was judged becomes a conflict, and its
//! current file keeps the name.
//!
//! Limitation: on a file system without `RENAME_EXCHANGE`, a save between the final comparison and
//! the rename is lost ([`Publisher::write_without_exchange`]).

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Arc;

use anyhow::Context;
use gix::bstr::ByteSlice as _;

use super::durable::Flush;
use super::judge::PublishStep;
use super::onto::NewBytes;
use super::settle::DisplacedFile;
use super::{OverlapRule, Publisher, cannot_write};
use crate::git::place::{Content, IfMissing, Place, Trace, WalkResult};
use crate::git::publish::durable;
use crate::git::publish::replaced;
use crate::git::publish::rescue;
use crate::git::publish::settle;
use crate::git::version;
use crate::git::version::Mark;
use crate::host::fault;

/// A new version, written and flushed next to its destination under a temporary name.
struct StagedVersion {
    step: PublishStep,
    temporary: Vec<u8>,
    /// Identifies our file later, so that we never delete another program's file that took its
    /// name.
    ours: Mark,
    /// Open handle to the staged file. Survives a rename of its directory. `None` beyond
    /// `MOST_OPEN`.
    lies: Option<Arc<Place>>,
}

#[derive(Default)]
struct Laid {
    ready: Vec<StagedVersion>,
    /// Steps whose directory cannot be created until a deleted file frees its name.
    late: Vec<PublishStep>,
}

/// Limit of open handles to staged files, and of those to displaced files.
const MOST_OPEN: usize = 64;

impl Publisher<'_> {
    /// Stages new versions, deletes, then swaps the staged files in.
    ///
    /// After an error the files that are not swapped in yet are discarded. Displaced files are
    /// finished in any case: each either goes to the undo directory or gets its name back.
    pub(super) fn apply(&mut self, steps: Vec<PublishStep>) -> anyhow::Result<()> {
        let (deletions, writes): (Vec<_>, Vec<_>) = steps
            .into_iter()
            .partition(|step| step.change.new.is_none());
        let mut prepared = Vec::new();
        let outcome = self.prepare_and_write(deletions, writes, &mut prepared);
        if outcome.is_err() {
            self.discard(&prepared);
        }

        // Even after an error: displaced files must not stay under temporary names.
        settle::settle(self)?;
        outcome?;
        durable::flush_names(self)
    }

    /// `prepared` is an out parameter: after an error the caller discards what it still contains.
    fn prepare_and_write(
        &mut self,
        deletions: Vec<PublishStep>,
        writes: Vec<PublishStep>,
        prepared: &mut Vec<StagedVersion>,
    ) -> anyhow::Result<()> {
        let mut late = Vec::new();
        // Decided by the total before the work is split among threads.
        self.flush = durable::flush_of(self, writes.len());
        let mut failed = None;
        for (laid, outcome) in self.spread(writes, paths, |part, steps| part.prepare_all(steps))? {
            prepared.extend(laid.ready);
            late.extend(laid.late);
            failed = failed.or(outcome.err());
        }

        if let Some(error) = failed {
            return Err(error);
        }

        if self.guard.overlap == OverlapRule::Stop && !self.done.conflicts.is_empty() {
            self.discard(prepared);
            prepared.clear();
            return Ok(());
        }

        // Before the first swap: a power cut after it must not find an empty file.
        durable::flush_prepared(
            self,
            prepared
                .iter()
                .map(|ready| (&*ready.step.change.path, &*ready.temporary)),
        )?;
        fault::point("publish-prepared")?;
        // Deletions come first: a new file can need the name of a deleted directory, or the other
        // way round.
        for step in &deletions {
            self.delete(step)?;
        }

        // Displaced files must leave their directories, otherwise these are not empty.
        settle::settle(self)?;
        // Each directory once: checking that a directory is empty can make the kernel scan all
        // names that it ever had.
        let emptied: BTreeSet<&[u8]> = deletions
            .iter()
            .filter_map(|step| Some(step.change.path.rsplit_once_str(b"/")?.0))
            .collect();
        for folder in emptied.into_iter().rev() {
            self.remove_empty_folders(&[folder, b"/x"].concat())?;
        }

        // These waited until a file freed the name of their directory. The others are flushed
        // already, so these are flushed one by one.
        self.flush = durable::flush_of(self, 0);
        for step in late {
            if let Some(step) = self.prepare(step, prepared)? {
                self.conflict(&step.change.path);
            }
        }

        while let Some(ready) = prepared.pop() {
            self.write(ready)?;
        }

        Ok(())
    }

    /// Stages new versions until one fails; returns what was staged even then.
    fn prepare_all(&mut self, steps: Vec<PublishStep>) -> (Laid, anyhow::Result<()>) {
        let mut laid = Laid::default();
        for step in steps {
            match self.prepare(step, &mut laid.ready) {
                Ok(late) => laid.late.extend(late),
                Err(error) => return (laid, Err(error)),
            }
        }
        (laid, Ok(()))
    }

    /// Stages one new version. Returns the step if its directory cannot be created yet.
    fn prepare(
        &mut self,
        step: PublishStep,
        prepared: &mut Vec<StagedVersion>,
    ) -> anyhow::Result<Option<PublishStep>> {
        let WalkResult::Place(place) = self.walk(&step.change.path, IfMissing::Make)? else {
            return Ok(Some(step));
        };
        let Some(entry) = &step.change.new else {
            anyhow::bail!("a deletion writes nothing")
        };
        let made = match &step.onto.bytes {
            NewBytes::Bytes(bytes) => {
                Ok(self.new.content_of(bytes.clone(), entry, step.permissions))
            }
            NewBytes::CheckedOut | NewBytes::Unfit => {
                self.new.content(&step.change.path, entry, step.permissions)
            }
        };
        let content = match made {
            Ok(content) => content,
            Err(error) => {
                self.done.failed.push(format!("{error:#}"));
                self.conflict(&step.change.path);
                return Ok(None);
            }
        };

        let (temporary, executable) = self
            .lay(&place, &content)
            .with_context(|| cannot_write(&step.change.path))?;
        let lies = place.sibling(&temporary);
        let ours = version::mark(self.repository, &content, executable)?;
        // Limits the descriptors that a large publication keeps open.
        let lies = (prepared.len() < MOST_OPEN).then(|| Arc::new(lies));

        prepared.push(StagedVersion {
            step,
            temporary,
            ours,
            lies,
        });
        Ok(None)
    }

    fn lay(&mut self, place: &Place, content: &Content) -> std::io::Result<(Vec<u8>, bool)> {
        loop {
            let temporary = rescue::temporary(self);
            let durable = self.flush == Flush::Each;
            match place.sibling(&temporary).create(content, durable) {
                Ok(executable) => return Ok((temporary, executable)),
                // Left by an interrupted run.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Swaps a staged file in, or records a conflict if the path changed.
    fn write(&mut self, ready: StagedVersion) -> anyhow::Result<()> {
        let path = ready.step.change.path.clone();
        fault::point("publish-before-exchange")?;
        let WalkResult::Place(place) = self.walk(&path, IfMissing::Stop)? else {
            self.conflict(&path);
            return self.fetch_back(&ready);
        };

        let temporary = place.sibling(&ready.temporary);
        let written = match ready.step.was {
            Mark::Absent => self.write_new(&place, &temporary, &ready)?,
            _ => self.write_over(&place, &temporary, &ready)?,
        };
        fault::point("publish-after-exchange")?;

        if written {
            self.done.written.push(path);
            return Ok(());
        }

        self.conflict(&path);
        self.fetch_back(&ready)?;
        self.remove_empty_folders(&path)
    }

    /// Discards a staged file whose directory was renamed, through the open handle. Without a
    /// handle the file stays; nothing refers to it.
    fn fetch_back(&mut self, ready: &StagedVersion) -> anyhow::Result<()> {
        match &ready.lies {
            Some(lies) => rescue::let_go(self, lies, &ready.ours, &ready.step.change.path),
            None => Ok(()),
        }
    }

    /// Renames a staged file to a name that must still be free (`RENAME_NOREPLACE`).
    ///
    /// If another program created the file first, returns whether its content is the new version.
    fn write_new(
        &mut self,
        place: &Place,
        temporary: &Place,
        ready: &StagedVersion,
    ) -> anyhow::Result<bool> {
        // git does not track empty directories, so they do not occupy the name.
        place.remove_empty_folders()?;
        match temporary.move_to(place) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                rescue::let_go(self, temporary, &ready.ours, &ready.step.change.path)?;
                {
                    let change = &ready.step.change;
                    self.new.is(
                        &change.path,
                        change.new.as_ref(),
                        &version::look(self.repository, place)?,
                    )
                }
            }
            // The directory was renamed, and the staged file with it.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error).with_context(|| cannot_write(&ready.step.change.path)),
        }
    }

    /// Swaps the staged file with the current one and keeps the old version as *displaced*.
    ///
    /// The old version is compared right after the swap, and again once no process has it open for
    /// writing (`settle`): an editor that opened it before the swap can still save into it.
    ///
    /// Returns `false` if the file changed since it was judged; it has its name back then.
    fn write_over(
        &mut self,
        place: &Place,
        temporary: &Place,
        ready: &StagedVersion,
    ) -> anyhow::Result<bool> {
        let path = &ready.step.change.path;
        match temporary.exchange(place) {
            Ok(true) => {}
            Ok(false) => return self.write_without_exchange(place, temporary, ready),
            Err(error) if error.kind() == ErrorKind::NotFound || is_refused(&error) => {
                rescue::let_go(self, temporary, &ready.ours, path)?;
                if is_refused(&error) {
                    self.done.closed.push(path.clone());
                }
                return Ok(false);
            }
            Err(error) => return Err(error).with_context(|| cannot_write(path)),
        }

        let held = DisplacedFile {
            path: path.clone(),
            temporary: ready.temporary.clone(),
            was: ready.step.was.clone(),
            ours: ready.ours.clone(),
            lies: ready.lies.clone(),
            kept_as: ready.step.onto.kept_as.clone(),
        };
        // Equal metadata suffices here, because `settle` compares the bytes under a lease.
        let trace = temporary.stat()?.map(|stat| Trace::of(&stat));
        let is_traced = trace.is_some() && trace == ready.step.trace;

        if !is_traced && version::look(self.repository, temporary)?.mark != held.was {
            settle::give_back(self, place, temporary, &held)?;
            return Ok(false);
        }

        self.held.push(held);
        Ok(true)
    }

    /// Replaces a file on a file system without `RENAME_EXCHANGE`.
    ///
    /// Race: a save between the comparison and the rename is overwritten.
    fn write_without_exchange(
        &mut self,
        place: &Place,
        temporary: &Place,
        ready: &StagedVersion,
    ) -> anyhow::Result<bool> {
        if version::look(self.repository, place)?.mark != ready.step.was {
            rescue::let_go(self, temporary, &ready.ours, &ready.step.change.path)?;
            return Ok(false);
        }

        if let Some(kept_as) = &ready.step.onto.kept_as {
            replaced::copy(self.repository, place, kept_as, &ready.step.change.path)?;
        }
        temporary
            .replace(place)
            .with_context(|| cannot_write(&ready.step.change.path))?;
        Ok(true)
    }

    /// Moves a file to a temporary name next to it. `settle` compares it there and restores it if
    /// it differs from the old tree.
    fn delete(&mut self, step: &PublishStep) -> anyhow::Result<()> {
        let path = &step.change.path;
        let WalkResult::Place(place) = self.walk(path, IfMissing::Stop)? else {
            return Ok(());
        };
        fault::point("publish-before-delete")?;
        let name = loop {
            let name = rescue::temporary(self);
            match place.move_to(&place.sibling(&name)) {
                Ok(()) => break name,
                // Left by an interrupted run.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                Err(error) if is_refused(&error) => {
                    self.done.closed.push(path.clone());
                    self.conflict(path);
                    return Ok(());
                }
                Err(error) => return Err(error).with_context(|| cannot_write(path)),
            }
        };

        // Moved, not unlinked: the file can have changed since it was judged.
        fault::point("publish-after-delete")?;
        // `settle` takes it off the list again if the file must be restored.
        self.done.deleted.push(path.clone());
        let lies = if self.held.len() < MOST_OPEN {
            Some(Arc::new(place.sibling(&name)))
        } else {
            None
        };

        self.held.push(DisplacedFile {
            path: path.clone(),
            temporary: name,
            was: step.was.clone(),
            ours: Mark::Absent,
            lies,
            kept_as: step.onto.kept_as.clone(),
        });
        Ok(())
    }

    pub(super) fn remove_empty_folders(&mut self, path: &[u8]) -> anyhow::Result<()> {
        self.recent.forget();
        let mut path = path;
        while let Some(end) = path.iter().rposition(|&byte| byte == b'/') {
            path = &path[..end];
            let WalkResult::Place(folder) = self.top.walk(path, IfMissing::Stop)? else {
                break;
            };
            if !folder.remove_empty_folder()? && !folder.look()?.is_absent() {
                break;
            }
        }

        Ok(())
    }

    fn discard(&mut self, prepared: &[StagedVersion]) {
        for ready in prepared {
            let path = &ready.step.change.path;
            // The next run sweeps what cannot be removed now.
            let _ = match (&ready.lies, self.top.walk(path, IfMissing::Stop)) {
                (Some(lies), _) => rescue::let_go(self, lies, &ready.ours, path),
                (None, Ok(WalkResult::Place(place))) => {
                    rescue::let_go(self, &place.sibling(&ready.temporary), &ready.ours, path)
                }
                _ => Ok(()),
            };
        }
    }
}

fn paths(steps: &[PublishStep]) -> Vec<&[u8]> {
    steps
        .iter()
        .map(|step| step.change.path.as_slice())
        .collect()
}

/// Returns whether the kernel refuses to change a name although the earlier checks passed. Not every
/// system can answer them, and permissions can have changed since.
fn is_refused(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied | ErrorKind::ResourceBusy
    )
}
