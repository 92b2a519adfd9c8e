//! The writing: each path is exchanged in one step, and what was there is looked at once more.

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

/// A new version that lies ready beside its place.
struct StagedVersion {
    /// What it is for.
    step: PublishStep,
    /// The temporary name.
    temporary: Vec<u8>,
    /// What it is recognised by.
    ours: Mark,
    /// Where it lies, whatever becomes of the name of its folder; of so many as may be open at
    /// once.
    lies: Option<Arc<Place>>,
}

/// What came of laying new versions ready.
#[derive(Default)]
struct Laid {
    /// What lies ready.
    ready: Vec<StagedVersion>,
    /// What has to wait for its folder.
    late: Vec<PublishStep>,
}

/// How many places are kept open at once.
const MOST_OPEN: usize = 64;

impl Publisher<'_> {
    /// Makes the changes: new versions laid ready, deletions, then the exchanges.
    pub(super) fn apply(&mut self, steps: Vec<PublishStep>) -> anyhow::Result<()> {
        let (deletions, writes): (Vec<_>, Vec<_>) = steps
            .into_iter()
            .partition(|step| step.change.new.is_none());
        let mut prepared = Vec::new();
        let outcome = self.prepare_and_write(deletions, writes, &mut prepared);
        if outcome.is_err() {
            self.discard(&prepared);
        }

        settle::settle(self)?;
        outcome?;
        durable::flush_names(self)
    }

    /// Does the work of [`Publisher::apply`]; `prepared` holds what lies ready and is not used yet.
    fn prepare_and_write(
        &mut self,
        deletions: Vec<PublishStep>,
        writes: Vec<PublishStep>,
        prepared: &mut Vec<StagedVersion>,
    ) -> anyhow::Result<()> {
        let mut late = Vec::new();
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

        durable::flush_prepared(
            self,
            prepared
                .iter()
                .map(|ready| (&*ready.step.change.path, &*ready.temporary)),
        )?;
        fault::point("publish-prepared")?;
        for step in &deletions {
            self.delete(step)?;
        }

        settle::settle(self)?;
        // Each folder once: to tell that one is not empty, the system may look through all the
        // names that were in it.
        let emptied: BTreeSet<&[u8]> = deletions
            .iter()
            .filter_map(|step| Some(step.change.path.rsplit_once_str(b"/")?.0))
            .collect();
        for folder in emptied.into_iter().rev() {
            self.remove_empty_folders(&[folder, b"/x"].concat())?;
        }

        // These had to wait until a file left the name that their folder takes, and come after the
        // flush of the others.
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

    /// Lays new versions ready, up to the first that fails.
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

    /// Lays the new version ready beside its place; gives the step back where its folder cannot be
    /// made yet.
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
        let lies = (prepared.len() < MOST_OPEN).then(|| Arc::new(lies));

        prepared.push(StagedVersion {
            step,
            temporary,
            ours,
            lies,
        });
        Ok(None)
    }

    /// Writes a temporary file and returns its name, and whether it can be executed.
    fn lay(&mut self, place: &Place, content: &Content) -> std::io::Result<(Vec<u8>, bool)> {
        loop {
            let temporary = rescue::temporary(self);
            let durable = self.flush == Flush::Each;
            match place.sibling(&temporary).create(content, durable) {
                Ok(executable) => return Ok((temporary, executable)),
                // Left by a run that was interrupted.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Exchanges what is at a path with what lies ready.
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

    /// Removes what lay ready in a folder that was moved away with it.
    fn fetch_back(&mut self, ready: &StagedVersion) -> anyhow::Result<()> {
        match &ready.lies {
            Some(lies) => rescue::let_go(self, lies, &ready.ours, &ready.step.change.path),
            None => Ok(()),
        }
    }

    /// Gives a new file its name, if that is still free.
    fn write_new(
        &mut self,
        place: &Place,
        temporary: &Place,
        ready: &StagedVersion,
    ) -> anyhow::Result<bool> {
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
            // The folder was moved away with what lay ready in it.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error).with_context(|| cannot_write(&ready.step.change.path)),
        }
    }

    /// Exchanges a file that is there; what it was is held until nobody can be writing to it.
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
        // The same trace suffices here: once nobody can be writing to it, its bytes are compared.
        let trace = temporary.stat()?.map(|stat| Trace::of(&stat));
        let is_traced = trace.is_some() && trace == ready.step.trace;

        if !is_traced && version::look(self.repository, temporary)?.mark != held.was {
            settle::give_back(self, place, temporary, &held)?;
            return Ok(false);
        }

        self.held.push(held);
        Ok(true)
    }

    /// Replaces a file on a file system that cannot exchange: a moment stays open between the last
    /// look and the rename.
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

    /// Moves a file aside, if it is what it was when it was judged.
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
                // Left by a run that was interrupted.
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

        fault::point("publish-after-delete")?;
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

    /// Removes the folders above a path that are empty now, nearest first.
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

    /// Removes what lies ready after a failure.
    fn discard(&mut self, prepared: &[StagedVersion]) {
        for ready in prepared {
            let path = &ready.step.change.path;
            // What cannot be removed is swept by the next run.
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

/// Returns the paths of some steps.
fn paths(steps: &[PublishStep]) -> Vec<&[u8]> {
    steps
        .iter()
        .map(|step| step.change.path.as_slice())
        .collect()
}

/// Returns whether the system keeps a name as it is, for a reason that no look before told.
fn is_refused(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied | ErrorKind::ResourceBusy
    )
}
