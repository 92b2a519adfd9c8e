//! Reads files and symlinks and converts them to the form in which git stores them.
//!
//! Only filters of the user's own configuration run; `.gitattributes` selects among them.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;

use anyhow::Context as _;
use gix::ObjectId;
use gix::bstr::ByteSlice as _;
use gix::index::entry::Stat;
use gix::objs::Kind as ObjectKind;
use gix::objs::tree::EntryKind;
use gix::worktree::stack::state::attributes::Source;
use rustix::fs::OFlags;

use super::cache::{CacheOrigin, mark};
use super::context::ScanContext;
use super::dir_scan::Scanned;
use super::limits::{LeftOut, Reason, display_path};
use crate::git::filter::Converter;
use crate::git::object::BlobId;
use crate::git::object::large::{FileReader, LARGE, hash_of};
use crate::git::object::writer::Sink;
use crate::git::paths;
use crate::git::stat::{self, NameKind, NameStat, is_absent, is_exhausted};
use crate::host::file::read_sized;
use crate::host::interrupt;
use crate::host::threads::{cores, parallel_map};
use crate::text::git_file::refused;
use crate::text::path::must_be_file;

const PER_THREAD: usize = 16;

struct ReadJob {
    dir: usize,
    entry: usize,
    path: Vec<u8>,
    kind: EntryKind,
    /// Size at that time, modulo 2^32 as in git's index.
    size: u32,
    tracked: bool,
}

pub(super) enum ReadOutcome {
    /// The object. The stat is null if the file kept changing, so the next snapshot reads it again.
    Read(ObjectId, Stat),
    Missing,
    /// A tracked file is recorded as in the index.
    LeftOut(Reason),
}

enum PathContent {
    Bytes(Vec<u8>, Stat),
    Large(File),
}

/// Reads every file without a known id and fills in the ids.
pub(super) fn read_all(
    scan: &ScanContext<'_>,
    scanned: &mut [Scanned],
    sink: &Sink,
) -> anyhow::Result<()> {
    let jobs = jobs(scanned);
    if jobs.is_empty() {
        return Ok(());
    }

    // Tracked files do not count towards the limits.
    let new = jobs.iter().filter(|job| !job.tracked);
    let new = new.map(|job| (job.path.as_slice(), u64::from(job.size)));

    // Before any file is read, so nothing is written if there are too many.
    scan.limits.allow(new)?;
    let threads = cores().min(jobs.len().div_ceil(PER_THREAD));
    let part = jobs.len().div_ceil(threads);
    let run = |jobs: &[ReadJob]| -> anyhow::Result<Vec<ReadOutcome>> {
        let mut repo = scan.shared.to_thread_local();
        // An unknown object is new. Searching for packs that appeared in the meantime would be
        // slow.
        repo.objects.refresh_never();
        let mut reader = ContentReader::new(scan, &repo, sink);
        jobs.iter()
            .map(|job| reader.read(&job.path, job.kind, job.tracked))
            .collect()
    };

    let outcomes = parallel_map(jobs.chunks(part), run).into_iter();
    let outcomes: Vec<Vec<ReadOutcome>> = outcomes.collect::<anyhow::Result<_>>()?;

    // Last to first, so removing an entry moves none of those that are still to come.
    let outcomes: Vec<ReadOutcome> = outcomes.into_iter().flatten().collect();
    for (job, outcome) in jobs.iter().zip(outcomes).rev() {
        record_outcome(scan, &mut scanned[job.dir], job, outcome)?;
    }

    Ok(())
}

fn jobs(scanned: &[Scanned]) -> Vec<ReadJob> {
    let mut jobs = Vec::new();
    for (dir, scan) in scanned.iter().enumerate() {
        scan.listing.each_fresh(|at, entry| {
            if entry.id.is_null() && entry.origin == CacheOrigin::Scanned {
                jobs.push(ReadJob {
                    dir,
                    entry: at,
                    path: paths::join(&scan.path, &entry.name),
                    kind: entry.kind,
                    size: entry.stat.size,
                    // Entries in the user's index have a basis.
                    tracked: entry.basis != 0,
                });
            }
        });
    }

    jobs
}

fn record_outcome(
    scan: &ScanContext<'_>,
    dir: &mut Scanned,
    job: &ReadJob,
    outcome: ReadOutcome,
) -> anyhow::Result<()> {
    let cache = scan.cache.as_deref();
    let Some(entry) = dir.listing.fresh_at(job.entry) else {
        return Ok(());
    };
    match outcome {
        ReadOutcome::Read(id, stat) => {
            entry.id = id;
            entry.stat = stat;
        }
        ReadOutcome::Missing => {
            dir.listing.remove(job.entry, cache);
            dir.marks |= mark::RELIST;
        }
        ReadOutcome::LeftOut(reason) => {
            dir.marks |= mark::RELIST;
            dir.left_out.push(LeftOut {
                path: display_path(&job.path),
                reason,
            });
            // A tracked file that is left out is not deleted: record it as in the index.
            let tracked = scan.index()?.state.entry_by_path(job.path.as_bstr());
            match tracked
                .and_then(|entry| Some((entry.mode.to_tree_entry_mode()?.kind(), entry.id)))
            {
                Some((kind, id)) => {
                    (entry.kind, entry.id, entry.stat) = (kind, id, Stat::default());
                }
                None => dir.listing.remove(job.entry, cache),
            }
        }
    }

    Ok(())
}

pub(super) struct ContentReader<'g, 'r> {
    pub(super) scan: &'g ScanContext<'g>,
    pub(super) repo: &'r gix::Repository,
    pub(super) sink: &'g Sink,
    /// Permissions of the file that was opened last.
    pub(super) mode: u32,
    converter: Option<Converter<'r>>,
}

impl<'g, 'r> ContentReader<'g, 'r> {
    pub(super) fn new(
        scan: &'g ScanContext<'g>,
        repo: &'r gix::Repository,
        sink: &'g Sink,
    ) -> ContentReader<'g, 'r> {
        ContentReader {
            scan,
            repo,
            sink,
            mode: 0,
            converter: None,
        }
    }

    /// Reads a file or symlink into an object. An untracked secret is left out.
    pub(super) fn read(
        &mut self,
        path: &[u8],
        kind: EntryKind,
        tracked: bool,
    ) -> anyhow::Result<ReadOutcome> {
        let link = || {
            self.link(path)
                .map(|(target, stat)| PathContent::Bytes(target, stat))
        };
        let read = match kind {
            // Without `core.symlinks`, a file can stand for a symlink.
            EntryKind::Link => link().or_else(|error| match self.scan.links {
                true => Err(error),
                false => self.file(path),
            }),
            _ => self.file(path),
        };

        let (data, stat) = match read {
            Ok(PathContent::Bytes(data, stat)) => (data, stat),
            Ok(PathContent::Large(_)) if must_be_file(&name_of(path)) => {
                let why = format!("larger than {} MiB, and git reads it whole", LARGE >> 20);
                return Ok(ReadOutcome::LeftOut(Reason::Refused(why)));
            }
            Ok(PathContent::Large(file)) => return self.read_large(path, &file, tracked),
            Err(error) => return failed(path, error),
        };
        if kind == EntryKind::Link {
            return Ok(ReadOutcome::Read(
                self.sink.add(ObjectKind::Blob, data)?,
                stat,
            ));
        }

        self.take(path, data, stat, tracked)
    }

    pub(super) fn take(
        &mut self,
        path: &[u8],
        data: Vec<u8>,
        stat: Stat,
        tracked: bool,
    ) -> anyhow::Result<ReadOutcome> {
        let secret = if tracked {
            None
        } else {
            self.secret(path, &data)
        };

        let data = match self.filtered(path, data.as_slice()) {
            Ok(filtered) => filtered.unwrap_or(data),
            Err(error) => return self.unfiltered(path, error),
        };
        // After the filters, because the turn's version is stored filtered.
        if let Some(reason) = secret.filter(|_| !self.is_made(path, &data)) {
            return Ok(ReadOutcome::LeftOut(reason));
        }
        if let Some(why) = self.refused(path, &data)? {
            return Ok(ReadOutcome::LeftOut(Reason::Refused(why)));
        }

        let id = match tracked {
            true => self.sink.add(ObjectKind::Blob, data),
            // Other users must not read an object of a file that they cannot read.
            false => self.sink.add_untracked(data, self.mode),
        };
        Ok(ReadOutcome::Read(id?, stat))
    }

    /// Returns why git refuses a tree with this content; `None` also if the index has a content that
    /// git refuses, because the trees before are as they are.
    fn refused(&self, path: &[u8], data: &[u8]) -> anyhow::Result<Option<String>> {
        let name = name_of(path);
        let Some(why) = refused(&name, data) else {
            return Ok(None);
        };
        let tracked = self.scan.index()?.state.entry_by_path(path.as_bstr());
        let old = tracked.and_then(|entry| self.repo.find_blob(entry.id).ok());
        let is_old = old.is_some_and(|old| refused(&name, &old.data).is_some());
        Ok(Some(why).filter(|_| !is_old))
    }

    /// Result for a file whose filter failed.
    pub(super) fn unfiltered(
        &mut self,
        path: &[u8],
        error: anyhow::Error,
    ) -> anyhow::Result<ReadOutcome> {
        // `git add` refuses the file too, but that is no reason to refuse the whole snapshot.
        match self.converter()?.encoding_problem(path)? {
            Some(why) => Ok(ReadOutcome::LeftOut(Reason::Unreadable(why))),
            None => Err(error),
        }
    }

    fn secret(&self, path: &[u8], data: &[u8]) -> Option<Reason> {
        let limits = self.scan.limits;
        let reason = limits.name_reason(path);
        reason.or_else(|| limits.key_in(path, data).map(Reason::Key))
    }

    /// Returns whether a turn created exactly this content.
    pub(super) fn is_made(&self, path: &[u8], data: &[u8]) -> bool {
        let id = gix::objs::compute_hash(self.repo.object_hash(), ObjectKind::Blob, data);
        id.is_ok_and(|id| self.is_made_as(path, id))
    }

    pub(super) fn is_made_as(&self, path: &[u8], id: ObjectId) -> bool {
        let created = self.scan.forced(path).and_then(|forced| forced.created);
        created.is_some_and(|created| BlobId::of(id) == created.id)
    }

    fn link(&self, path: &[u8]) -> std::io::Result<(Vec<u8>, Stat)> {
        let (dir, name) = paths::split(path);
        let dir = self.scan.open(dir, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let target = rustix::fs::readlinkat(&dir, name, Vec::new())?;
        Ok((target.into_bytes(), stat::stat_name(&dir, name)?.stat))
    }

    /// Reads a file, or only opens it if it is large.
    fn file(&mut self, path: &[u8]) -> std::io::Result<PathContent> {
        let file = File::from(self.scan.open(path, OFlags::RDONLY)?);
        self.mode = file.metadata()?.permissions().mode();
        let name_stat = stat::stat_fd(file.as_fd())?;
        if name_stat.kind == NameKind::File && name_stat.size > LARGE && !self.sink.is_read_only() {
            return Ok(PathContent::Large(file));
        }
        read_stable(&file).map(|(data, stat)| PathContent::Bytes(data, stat))
    }

    /// Returns the content that git stores; `None` if no filter changes it.
    pub(super) fn filtered(
        &mut self,
        path: &[u8],
        data: impl Read,
    ) -> anyhow::Result<Option<Vec<u8>>> {
        let index = self.scan.index()?;
        let converted = self.converter()?.convert_to_git(path, data, &index.state);
        converted
            .with_context(|| format!("cannot record `{}`: its filter failed", display_path(path)))
    }

    fn converter(&mut self) -> anyhow::Result<&mut Converter<'r>> {
        let new = match self.converter.take() {
            Some(converter) => converter,
            None => {
                let index = self.scan.index()?;
                Converter::new(self.repo, &index.state, Source::WorktreeThenIdMapping)?
            }
        };
        Ok(self.converter.insert(new))
    }
}

fn name_of(path: &[u8]) -> String {
    String::from_utf8_lossy(paths::split(path).1).into_owned()
}

/// Result for a file that cannot be read. Fails if the process or system ran out of resources.
pub(super) fn failed(path: &[u8], error: std::io::Error) -> anyhow::Result<ReadOutcome> {
    if is_exhausted(&error) {
        return Err(error).with_context(|| format!("cannot read `{}`", display_path(path)));
    }
    Ok(if is_absent(&error) {
        ReadOutcome::Missing
    } else {
        ReadOutcome::LeftOut(Reason::Unreadable(error.kind().to_string()))
    })
}

// Reads large files in blocks: hashes them, then compresses them into a pack.
//
// git keeps a file below `core.bigFileThreshold` in memory; the id is the same.

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
            let outcome = self.large_once(path, file, was_interrupted, tracked, &before);
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
        file: &File,
        before: bool,
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
            Ok(None) => {
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
            Ok(Some(data)) => match secret.filter(|_| !self.is_made(path, &data)) {
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
        if let Some(reason) = limits.name_reason(path) {
            return Ok(Some(reason));
        }
        let key = limits.key_in_parts(path, &mut FileReader::start(file))?;
        Ok(key.map(Reason::Key))
    }
}

pub(super) const READ_ATTEMPTS: usize = 3;

/// Reads a file until its stat is the same before and after. The stat is null after `READ_ATTEMPTS`
/// changes, so the next snapshot reads the file again.
pub(super) fn read_stable(file: &File) -> std::io::Result<(Vec<u8>, Stat)> {
    let mut data = Vec::new();
    for _ in 0..READ_ATTEMPTS {
        let before = stat::stat_fd(file.as_fd())?;
        // Something else has taken the file's name since it was listed.
        if before.kind != NameKind::File {
            return Err(std::io::ErrorKind::NotFound.into());
        }

        // Read at most the size in the stat, like git: a log that grows while it is read has no
        // end.
        data = read_sized(file, before.size, before.size)?;
        data.truncate(usize::try_from(before.size).unwrap_or(usize::MAX));
        if stat::stat_fd(file.as_fd())?.stat == before.stat {
            return Ok((data, before.stat));
        }
    }

    Ok((data, Stat::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_is_read_no_further_than_the_system_says() {
        // It has content, but its size is 0.
        let (data, _) = read_stable(&File::open("/proc/self/maps").unwrap()).unwrap();
        assert_eq!(data, b"");
        let (data, stat) = read_stable(&File::open("Cargo.toml").unwrap()).unwrap();
        assert_eq!(data.len(), stat.size as usize);
    }
}
