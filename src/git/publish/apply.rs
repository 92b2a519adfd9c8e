//! Applies a classified publication: stages new versions, deletes, then swaps each file in.
//!
//! Readers see the old or the new file, never a gap. A path that changed since it was classified
//! becomes a conflict and keeps its current file. Limitation: without `RENAME_EXCHANGE`, a save
//! between the final comparison and the rename is lost ([`Publisher::write_without_exchange`]).

use std::collections::{BTreeSet, HashSet};
use std::io::ErrorKind;
use std::sync::Arc;

use anyhow::Context as _;
use gix::bstr::ByteSlice as _;

use super::classify::PublishStep;
use super::{OverlapRule, Publisher, cannot_write};
use crate::git::path_handle::{FileContents, IfMissing, PathHandle, Trace, WalkResult};
use crate::git::publish::classify::NewBytes;
use crate::git::publish::displaced_files::{self, KeptAs};
use crate::git::publish::{self, Flush};
use crate::git::version::{self, Mark};
use crate::host::fault;

/// A new version, written and flushed next to its destination under a temporary name.
struct StagedVersion {
    step: PublishStep,
    temporary: Vec<u8>,
    /// Identifies our file later, so that we never delete another program's file that took its
    /// name.
    new_mark: Mark,
    /// Open handle to the staged file. Survives a rename of its directory. `None` beyond
    /// `MOST_OPEN`.
    handle: Option<Arc<PathHandle>>,
}

#[derive(Default)]
struct Staged {
    versions: Vec<StagedVersion>,
    /// Steps whose directory cannot be created until a deleted file frees its name.
    deferred: Vec<PublishStep>,
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
        finish_displaced(self)?;
        outcome?;
        publish::flush_names(self)
    }

    /// `prepared` is an out parameter: after an error the caller discards what it still contains.
    fn prepare_and_write(
        &mut self,
        deletions: Vec<PublishStep>,
        writes: Vec<PublishStep>,
        prepared: &mut Vec<StagedVersion>,
    ) -> anyhow::Result<()> {
        let mut deferred = Vec::new();
        // Decided by the total before the work is split among threads.
        self.flush = publish::choose_flush(self, writes.len());
        let mut failed = None;
        for (staged, outcome) in
            self.run_parallel(writes, step_paths, |part, steps| part.prepare_all(steps))?
        {
            prepared.extend(staged.versions);
            deferred.extend(staged.deferred);
            failed = failed.or(outcome.err());
        }

        if let Some(error) = failed {
            return Err(error);
        }

        if self.guard.overlap == OverlapRule::Stop && !self.published.conflicts.is_empty() {
            self.discard(prepared);
            prepared.clear();
            return Ok(());
        }

        // Before the first swap: a power cut after it must not find an empty file.
        publish::flush_staged(
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
        finish_displaced(self)?;
        // Each directory once: checking that a directory is empty can make the kernel scan all
        // names that it ever had.
        let emptied: BTreeSet<&[u8]> = deletions
            .iter()
            .filter_map(|step| Some(step.change.path.rsplit_once_str(b"/")?.0))
            .collect();
        // Subdirectories first.
        for dir in emptied.into_iter().rev() {
            self.remove_empty_dirs(&[dir, b"/x"].concat())?;
        }

        // These waited until a file freed the name of their directory. The others are flushed
        // already, so these are flushed one by one.
        self.flush = publish::choose_flush(self, 0);
        for step in deferred {
            if let Some(step) = self.prepare(step, prepared)? {
                self.conflict(&step.change.path);
            }
        }

        // Taken one by one: after an error, `prepared` has what the caller must discard.
        while let Some(ready) = prepared.pop() {
            self.write(ready)?;
        }

        Ok(())
    }

    /// Stages new versions until one fails; returns what was staged even then.
    fn prepare_all(&mut self, steps: Vec<PublishStep>) -> (Staged, anyhow::Result<()>) {
        let mut staged = Staged::default();
        for step in steps {
            match self.prepare(step, &mut staged.versions) {
                Ok(deferred) => staged.deferred.extend(deferred),
                Err(error) => return (staged, Err(error)),
            }
        }
        (staged, Ok(()))
    }

    /// Stages one new version. Returns the step if its directory cannot be created yet.
    fn prepare(
        &mut self,
        step: PublishStep,
        prepared: &mut Vec<StagedVersion>,
    ) -> anyhow::Result<Option<PublishStep>> {
        let WalkResult::Handle(handle) = self.walk(&step.change.path, IfMissing::Make)? else {
            return Ok(Some(step));
        };
        let Some(entry) = &step.change.new else {
            anyhow::bail!("a deletion writes nothing")
        };
        let contents = match &step.onto.bytes {
            NewBytes::Bytes(bytes) => {
                Ok(self.new.contents_of(bytes.clone(), entry, step.permissions))
            }
            NewBytes::CheckedOut | NewBytes::Unfit => {
                self.new
                    .contents(&step.change.path, entry, step.permissions)
            }
        };
        let new_contents = match contents {
            Ok(new_contents) => new_contents,
            Err(error) => {
                let path = step.change.path.clone();
                self.published.failed.insert(path, format!("{error:#}"));
                self.conflict(&step.change.path);
                return Ok(None);
            }
        };

        let (temporary, executable) = self
            .stage(&handle, &new_contents)
            .with_context(|| cannot_write(&step.change.path))?;
        let staged_handle = handle.sibling(&temporary);
        let new_mark = version::mark(self.repository, &new_contents, executable)?;
        // Limits the descriptors that a large publication keeps open.
        let staged_handle = (prepared.len() < MOST_OPEN).then(|| Arc::new(staged_handle));

        prepared.push(StagedVersion {
            step,
            temporary,
            new_mark,
            handle: staged_handle,
        });
        Ok(None)
    }

    fn stage(
        &mut self,
        handle: &PathHandle,
        contents: &FileContents,
    ) -> std::io::Result<(Vec<u8>, bool)> {
        loop {
            let temporary = displaced_files::next_temporary_name(self);
            let durable = self.flush == Flush::Each;
            match handle.sibling(&temporary).create(contents, durable) {
                Ok(executable) => return Ok((temporary, executable)),
                // Left by an interrupted run.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Swaps a staged file in, or records a conflict if the path changed.
    fn write(&mut self, staged: StagedVersion) -> anyhow::Result<()> {
        let path = staged.step.change.path.clone();
        fault::point("publish-before-exchange")?;
        let WalkResult::Handle(handle) = self.walk(&path, IfMissing::Stop)? else {
            self.conflict(&path);
            return self.discard_staged(&staged);
        };

        let temporary = handle.sibling(&staged.temporary);
        let written = match staged.step.old_mark {
            Mark::Absent => self.write_new(&handle, &temporary, &staged)?,
            _ => self.swap_in(&handle, &temporary, &staged)?,
        };
        fault::point("publish-after-exchange")?;

        if written {
            self.published.written.push(path);
            return Ok(());
        }

        self.conflict(&path);
        self.discard_staged(&staged)?;
        // Staging can have created them.
        self.remove_empty_dirs(&path)
    }

    /// Discards a staged file whose directory was renamed, through the open handle. Without a
    /// handle the file stays; nothing refers to it.
    fn discard_staged(&mut self, staged: &StagedVersion) -> anyhow::Result<()> {
        match &staged.handle {
            Some(handle) => displaced_files::discard_file(
                self,
                handle,
                &staged.new_mark,
                &staged.step.change.path,
            ),
            None => Ok(()),
        }
    }

    /// Renames a staged file to a name that must still be free (`RENAME_NOREPLACE`).
    ///
    /// If another program created the file first, returns whether its content is the new version.
    fn write_new(
        &mut self,
        handle: &PathHandle,
        temporary: &PathHandle,
        staged: &StagedVersion,
    ) -> anyhow::Result<bool> {
        // git does not track empty directories, so they do not occupy the name.
        handle.remove_empty_dirs()?;
        match temporary.move_to(handle) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                displaced_files::discard_file(
                    self,
                    temporary,
                    &staged.new_mark,
                    &staged.step.change.path,
                )?;
                {
                    let change = &staged.step.change;
                    self.new.is(
                        &change.path,
                        change.new.as_ref(),
                        &version::read_disk(self.repository, handle)?,
                    )
                }
            }
            // The directory was renamed, and the staged file with it.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error).with_context(|| cannot_write(&staged.step.change.path)),
        }
    }

    /// Swaps the staged file with the current one and keeps the old version as *displaced*.
    ///
    /// The old version is compared right after the swap, and again once no process has it open for
    /// writing (`finish_displaced`): an editor that opened it before the swap can still save into
    /// it.
    ///
    /// Returns `false` if the file changed since it was classified; it has its name back then.
    fn swap_in(
        &mut self,
        handle: &PathHandle,
        temporary: &PathHandle,
        staged: &StagedVersion,
    ) -> anyhow::Result<bool> {
        let path = &staged.step.change.path;
        match temporary.exchange(handle) {
            Ok(true) => {}
            Ok(false) => return self.write_without_exchange(handle, temporary, staged),
            Err(error) if error.kind() == ErrorKind::NotFound || is_refused(&error) => {
                displaced_files::discard_file(self, temporary, &staged.new_mark, path)?;
                if is_refused(&error) {
                    self.published.unwritable.push(path.clone());
                }
                return Ok(false);
            }
            Err(error) => return Err(error).with_context(|| cannot_write(path)),
        }

        let displaced_file = DisplacedFile {
            path: path.clone(),
            temporary: staged.temporary.clone(),
            old_mark: staged.step.old_mark.clone(),
            new_mark: staged.new_mark.clone(),
            handle: staged.handle.clone(),
            kept_as: staged.step.onto.kept_as.clone(),
        };
        // Equal metadata suffices here, because `finish_displaced` compares the bytes under a
        // lease.
        let trace = temporary.stat()?.map(|stat| Trace::of(&stat));
        let is_traced = trace.is_some() && trace == staged.step.trace;

        if !is_traced
            && version::read_disk(self.repository, temporary)?.mark != displaced_file.old_mark
        {
            restore_original(self, handle, temporary, &displaced_file)?;
            return Ok(false);
        }

        self.displaced_files.push(displaced_file);
        Ok(true)
    }

    /// Replaces a file on a file system without `RENAME_EXCHANGE`.
    ///
    /// Race: a save between the comparison and the rename is overwritten.
    fn write_without_exchange(
        &mut self,
        handle: &PathHandle,
        temporary: &PathHandle,
        staged: &StagedVersion,
    ) -> anyhow::Result<bool> {
        if version::read_disk(self.repository, handle)?.mark != staged.step.old_mark {
            displaced_files::discard_file(
                self,
                temporary,
                &staged.new_mark,
                &staged.step.change.path,
            )?;
            return Ok(false);
        }

        if let Some(kept_as) = &staged.step.onto.kept_as {
            displaced_files::copy_replaced(
                self.repository,
                handle,
                kept_as,
                &staged.step.change.path,
            )?;
        }
        temporary
            .replace(handle)
            .with_context(|| cannot_write(&staged.step.change.path))?;
        Ok(true)
    }

    /// Moves a file to a temporary name next to it. `finish_displaced` compares it there and
    /// restores it if it differs from the old tree.
    fn delete(&mut self, step: &PublishStep) -> anyhow::Result<()> {
        let path = &step.change.path;
        let WalkResult::Handle(handle) = self.walk(path, IfMissing::Stop)? else {
            return Ok(());
        };
        fault::point("publish-before-delete")?;
        let name = loop {
            let name = displaced_files::next_temporary_name(self);
            match handle.move_to(&handle.sibling(&name)) {
                Ok(()) => break name,
                // Left by an interrupted run.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                Err(error) if is_refused(&error) => {
                    self.published.unwritable.push(path.clone());
                    self.conflict(path);
                    return Ok(());
                }
                Err(error) => return Err(error).with_context(|| cannot_write(path)),
            }
        };

        // Moved, not unlinked: the file can have changed since it was classified.
        fault::point("publish-after-delete")?;
        // `finish_displaced` removes it from the list if the file must be restored.
        self.published.deleted.push(path.clone());
        let displaced_handle = if self.displaced_files.len() < MOST_OPEN {
            Some(Arc::new(handle.sibling(&name)))
        } else {
            None
        };

        self.displaced_files.push(DisplacedFile {
            path: path.clone(),
            temporary: name,
            old_mark: step.old_mark.clone(),
            new_mark: Mark::Absent,
            handle: displaced_handle,
            kept_as: step.onto.kept_as.clone(),
        });
        Ok(())
    }

    pub(super) fn remove_empty_dirs(&mut self, path: &[u8]) -> anyhow::Result<()> {
        self.recent.forget();
        let mut path = path;
        while let Some(end) = path.iter().rposition(|&byte| byte == b'/') {
            path = &path[..end];
            let WalkResult::Handle(dir) = self.top.walk(path, IfMissing::Stop)? else {
                break;
            };
            if !dir.remove_empty_dir()? && !dir.read()?.is_absent() {
                break;
            }
        }

        Ok(())
    }

    fn discard(&mut self, prepared: &[StagedVersion]) {
        for staged in prepared {
            let path = &staged.step.change.path;
            // The next run sweeps what cannot be removed now.
            let _ = match (&staged.handle, self.top.walk(path, IfMissing::Stop)) {
                (Some(handle), _) => {
                    displaced_files::discard_file(self, handle, &staged.new_mark, path)
                }
                (None, Ok(WalkResult::Handle(place))) => displaced_files::discard_file(
                    self,
                    &place.sibling(&staged.temporary),
                    &staged.new_mark,
                    path,
                ),
                _ => Ok(()),
            };
        }
    }
}

fn step_paths(steps: &[PublishStep]) -> Vec<&[u8]> {
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

// Compares displaced files a final time, when no process can have them open for writing, and
// restores those that changed.

/// A replaced or deleted file that a process might still write to.
pub(super) struct DisplacedFile {
    pub(super) path: Vec<u8>,
    pub(super) temporary: Vec<u8>,
    /// Content when the change was classified.
    pub(super) old_mark: Mark,
    /// Content that we put in its place; `Absent` after a deletion.
    pub(super) new_mark: Mark,
    /// Open handle, as in `StagedVersion`.
    pub(super) handle: Option<Arc<PathHandle>>,
    /// Set if git cannot restore its bytes.
    pub(super) kept_as: Option<KeptAs>,
}

/// Moves displaced files to `undo/displaced`. A file that changed, or that a process has open for
/// writing, gets its name back and becomes a conflict.
pub(super) fn finish_displaced(publisher: &mut Publisher<'_>) -> anyhow::Result<()> {
    let displaced_files = std::mem::take(&mut publisher.displaced_files);
    // Displaced files are compared with their own mark, so the trees are not needed.
    let results = publisher.run_parallel(
        displaced_files,
        |_| Vec::new(),
        |part, files| {
            let mut undone = Vec::new();
            let outcome = finish_each_displaced(part, files, &mut undone);
            (undone, outcome)
        },
    )?;
    let (undone, outcomes): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    let undone: HashSet<Vec<u8>> = undone.into_iter().flatten().collect();

    for paths in [
        &mut publisher.published.deleted,
        &mut publisher.published.written,
    ] {
        paths.retain(|path| !undone.contains(path));
    }

    outcomes.into_iter().collect()
}

/// `undone` collects the paths of restored files, also if an error follows.
fn finish_each_displaced(
    publisher: &mut Publisher<'_>,
    all: Vec<DisplacedFile>,
    undone: &mut Vec<Vec<u8>>,
) -> anyhow::Result<()> {
    for file in all {
        let WalkResult::Handle(handle) = publisher.walk(&file.path, IfMissing::Stop)? else {
            // Its directory was moved, and the file with it. No file matches `Other`, so bytes that
            // git cannot restore are rescued.
            let expected = match &file.kept_as {
                Some(_) => &Mark::Other,
                None => &file.old_mark,
            };
            file.handle.as_ref().map_or(Ok(()), |lies| {
                displaced_files::discard_file(publisher, lies, expected, &file.path)
            })?;
            continue;
        };

        let temporary = handle.sibling(&file.temporary);
        let state = temporary.find()?;
        // Ask for writers before reading: a process that writes in between is then noticed either
        // way.
        let writers = state.writers();
        if version::read_state(publisher.repository, &state)?.mark == file.old_mark {
            if !writers.are_present() {
                let kept_as = file.kept_as.as_ref();
                displaced_files::move_to_undo(
                    publisher,
                    &temporary,
                    &file.old_mark,
                    kept_as,
                    &file.path,
                )?;
                continue;
            }
            publisher.published.busy.push(file.path.clone());
        }

        restore_original(publisher, &handle, &temporary, &file)?;
        publisher.conflict(&file.path);
        undone.push(file.path);
    }

    Ok(())
}

/// Restores the user's file after a swap or deletion of a file that had changed.
///
/// A newer save of the user's that has taken the name since keeps it; the file in `temporary` is
/// then rescued.
pub(super) fn restore_original(
    publisher: &mut Publisher<'_>,
    handle: &PathHandle,
    temporary: &PathHandle,
    file: &DisplacedFile,
) -> anyhow::Result<()> {
    if file.new_mark == Mark::Absent {
        return match temporary.move_to(handle) {
            Ok(()) => Ok(()),
            // The user saved again: that save keeps the name.
            Err(_) => {
                displaced_files::discard_file(publisher, temporary, &Mark::Absent, &file.path)
            }
        };
    }

    let returned = match temporary.exchange(handle) {
        Ok(returned) => returned,
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => return Err(error).with_context(|| cannot_write(&file.path)),
    };
    if returned && version::read_disk(publisher.repository, temporary)?.mark != file.new_mark {
        // The user replaced our version after the swap: swap again, so the newer save keeps the
        // name.
        let _ = temporary.exchange(handle);
    }

    displaced_files::discard_file(publisher, temporary, &file.new_mark, &file.path)
}
