//! Reads large files in blocks: hashes them, then compresses them into a pack.
//!
//! git keeps a file below `core.bigFileThreshold` in memory; the id is the same.

use std::fs::File;
use std::io::{self, Read};

use gix::objs::Kind as ObjectKind;
use rustix::fd::AsFd as _;

use super::contents::{ContentReader, Filtered, ReadOutcome, failed};
use super::limits::{Reason, display_path};
use super::stable::{READ_ATTEMPTS, read_stable};
use crate::git::object::large::{FileReader, hash_of};
use crate::git::stat::{self, NameStat};
use crate::host::interrupt;

/// Reads until ctrl-c: a sparse file of terabytes takes hours.
struct UntilInterrupted<R> {
    source: R,
    /// Whether an interruption had been requested before, and the program continues anyway.
    before: bool,
}

impl<R: Read> Read for UntilInterrupted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if interrupt::requested() && !self.before {
            return Err(io::Error::other("interrupted"));
        }
        self.source.read(out)
    }
}

impl ContentReader<'_, '_> {
    /// Reads a large file into an object, retrying while it changes.
    pub(super) fn read_large(
        &mut self,
        path: &[u8],
        file: &File,
        tracked: bool,
    ) -> anyhow::Result<ReadOutcome> {
        // After an earlier ctrl-c the program finishes its work, so only a new one stops the read.
        let was_interrupted = interrupt::requested();
        for _ in 0..READ_ATTEMPTS {
            let before = match stat::stat_fd(file.as_fd()) {
                Ok(before) => before,
                Err(error) => return failed(path, error),
            };
            let outcome = self.large_once(path, (file, was_interrupted), tracked, &before);
            anyhow::ensure!(
                was_interrupted || !interrupt::requested(),
                "interrupted while `{}` was read",
                display_path(path)
            );
            let outcome = outcome?;
            let is_same = stat::stat_fd(file.as_fd()).is_ok_and(|now| now.stat == before.stat);
            if let Some(outcome) = outcome.filter(|_| is_same) {
                return Ok(outcome);
            }
        }

        // It keeps changing, or is unreadable.
        match read_stable(file) {
            Ok((data, stat)) => self.take(path, data, stat, tracked),
            Err(error) => failed(path, error),
        }
    }

    /// Reads a large file once. `None` if it must be read again.
    fn large_once(
        &mut self,
        path: &[u8],
        (file, before): (&File, bool),
        tracked: bool,
        name_stat: &NameStat,
    ) -> anyhow::Result<Option<ReadOutcome>> {
        let read = || UntilInterrupted {
            source: FileReader::start(file),
            before,
        };
        let secret = if tracked {
            None
        } else {
            match self.secret_in(path, file) {
                Ok(secret) => secret,
                Err(_) => return Ok(None),
            }
        };

        let id = match self.filtered(path, read()) {
            Ok(Filtered::Unchanged) => {
                if let Some(reason) = secret {
                    let id = hash_of(self.repo.object_hash(), read(), name_stat.size).ok();
                    if !id.flatten().is_some_and(|id| self.is_made_as(path, id)) {
                        return Ok(Some(ReadOutcome::LeftOut(reason)));
                    }
                }
                if !tracked && self.sink.is_private(self.mode) {
                    let id = hash_of(self.repo.object_hash(), read(), name_stat.size);
                    if let Some(id) = id.ok().flatten() {
                        self.sink.note_private(id);
                    }
                }
                self.sink.add_large(name_stat.size, read)?
            }
            Ok(Filtered::Bytes(data)) => match secret.filter(|_| !self.is_made(path, &data)) {
                Some(reason) => return Ok(Some(ReadOutcome::LeftOut(reason))),
                None if tracked => Some(self.sink.add(ObjectKind::Blob, data)?),
                None => Some(self.sink.add_untracked(data, self.mode)?),
            },
            Err(error) => return self.unfiltered(path, error).map(Some),
        };
        Ok(id.map(|id| ReadOutcome::Read(id, name_stat.stat)))
    }

    fn secret_in(&self, path: &[u8], file: &File) -> std::io::Result<Option<Reason>> {
        let limits = self.scan.limits;
        if limits.is_secret(path) {
            return Ok(Some(Reason::Secret));
        }
        let key = limits.key_in_parts(path, &mut FileReader::start(file))?;
        Ok(key.map(Reason::Key))
    }
}
