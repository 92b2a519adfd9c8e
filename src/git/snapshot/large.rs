//! Reads large files in blocks: hashes them, then compresses them into a pack.
//!
//! git keeps a file below `core.bigFileThreshold` in memory; the id is the same.

use std::fs::File;
use std::io::{self, Read};

use gix::objs::Kind as ObjectKind;
use rustix::fd::AsFd as _;

use super::content::{ContentReader, Filtered, ReadOutcome, failed};
use super::limits::{Reason, shown};
use super::still::{ATTEMPTS, read_still};
use crate::git::object::large::{From, hash_of};
use crate::git::stat::{self, NameStat};
use crate::host::interrupt;

/// Reads until ctrl-c: a sparse file of terabytes takes hours.
struct UntilAsked<R> {
    source: R,
    /// Whether an interruption had been requested before, and the program continues anyway.
    before: bool,
}

impl<R: Read> Read for UntilAsked<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if interrupt::requested() && !self.before {
            return Err(io::Error::other("interrupted"));
        }
        self.source.read(out)
    }
}

impl ContentReader<'_, '_> {
    /// Reads a large file into an object, retrying while it changes.
    pub(super) fn large(
        &mut self,
        path: &[u8],
        file: &File,
        tracked: bool,
    ) -> anyhow::Result<ReadOutcome> {
        // After an earlier ctrl-c the program finishes its work, so only a new one stops the read.
        let asked = interrupt::requested();
        for _ in 0..ATTEMPTS {
            let before = match stat::look_at(file.as_fd()) {
                Ok(before) => before,
                Err(error) => return failed(path, error),
            };
            let outcome = self.large_once(path, (file, asked), tracked, &before);
            anyhow::ensure!(
                asked || !interrupt::requested(),
                "interrupted while `{}` was read",
                shown(path)
            );
            let outcome = outcome?;
            let is_same = stat::look_at(file.as_fd()).is_ok_and(|now| now.stat == before.stat);
            if let Some(outcome) = outcome.filter(|_| is_same) {
                return Ok(outcome);
            }
        }

        // It keeps changing, or is unreadable.
        match read_still(file) {
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
        seen: &NameStat,
    ) -> anyhow::Result<Option<ReadOutcome>> {
        let read = || UntilAsked {
            source: From::start(file),
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
                    let id = hash_of(self.repo.object_hash(), read(), seen.size).ok();
                    if !id.flatten().is_some_and(|id| self.is_made_as(path, id)) {
                        return Ok(Some(ReadOutcome::LeftOut(reason)));
                    }
                }
                self.sink.add_large(seen.size, read)?
            }
            Ok(Filtered::Bytes(data)) => match secret.filter(|_| !self.is_made(path, &data)) {
                Some(reason) => return Ok(Some(ReadOutcome::LeftOut(reason))),
                None => Some(self.sink.add(ObjectKind::Blob, data)?),
            },
            Err(error) => return self.unfiltered(path, error).map(Some),
        };
        Ok(id.map(|id| ReadOutcome::Read(id, seen.stat)))
    }

    fn secret_in(&self, path: &[u8], file: &File) -> std::io::Result<Option<Reason>> {
        let limits = self.scan.limits;
        if limits.is_secret(path) {
            return Ok(Some(Reason::Secret));
        }
        let found = limits.key_in_parts(path, &mut From::start(file))?;
        Ok(found.map(Reason::Key))
    }
}
