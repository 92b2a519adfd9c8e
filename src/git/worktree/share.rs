//! Creates files of a session's worktree by sharing blocks with the user's files, if these have the
//! same content.
//!
//! The comparison is made with the new file after it was cloned, so a later write to the user's
//! file does not matter.

use crate::git::filter;
use crate::git::path_handle;
use crate::git::version;
use anyhow::Context as _;
use gix::index::State;
use gix::index::entry::Mode as IndexMode;
use gix::index::entry::Stat;

use super::progress::WriteProgress;
use super::switch::Switch;
use crate::git::filter::Filter;
use crate::git::path_handle::{FileBody, IfMissing, OnDisk, PathHandle, Top, WalkResult};
use crate::git::stat::as_in_index;

/// Smaller files are written as fast as they are compared.
const LARGE: u64 = 16 << 10;

enum ShareAttempt {
    /// The file was cloned. Its content must still be compared.
    Created(PathHandle),
    Write,
    /// All remaining files must be written: the file system cannot share blocks.
    Stop,
}

impl Switch<'_> {
    /// Clones files from the user's, and returns the entries that must be written. The paths must
    /// be free.
    pub(super) fn share_files(
        &self,
        new: &mut State,
        to_write: &[usize],
        progress: &WriteProgress<'_>,
    ) -> anyhow::Result<Vec<usize>> {
        let Some(user) = self.may_share() else {
            return Ok(to_write.to_vec());
        };
        let (mut filter, mut remaining) = (None, Vec::new());
        for (nth, &at) in to_write.iter().enumerate() {
            let handle = match self.attempt(&user, new, at)? {
                ShareAttempt::Created(handle) => handle,
                ShareAttempt::Write => {
                    remaining.push(at);
                    continue;
                }
                ShareAttempt::Stop => {
                    remaining.extend(&to_write[nth..]);
                    break;
                }
            };
            let filter = match &mut filter {
                Some(filter) => filter,
                none => none.insert(self.filter_of(new, to_write)?),
            };
            match self.compare(filter, new, at, &handle)? {
                Some(stat) => {
                    new.entries_mut()[at].stat = stat;
                    progress.one_more()?;
                }
                None => {
                    handle.remove()?;
                    remaining.push(at);
                }
            }
        }

        Ok(remaining)
    }

    /// Returns the top of the user's files, if both directories can share blocks.
    fn may_share(&self) -> Option<Top> {
        let may = self.top.may_share_blocks();
        may.then(|| Top::open(self.user.workdir()).ok()).flatten()
    }

    /// Tries to clone the file of an entry from a user's file of the same size.
    fn attempt(&self, user: &Top, new: &State, at: usize) -> anyhow::Result<ShareAttempt> {
        let (entry, path) = (new.entry(at), new.entry(at).path(new));
        let is_executable = entry.mode == IndexMode::FILE_EXECUTABLE;
        if !is_executable && entry.mode != IndexMode::FILE {
            return Ok(ShareAttempt::Write);
        }

        // Treated as small. The checkout reports an unreadable object.
        let size = self.repository.gix.find_header(entry.id);
        let size = size.map(|header| header.size()).unwrap_or_default();
        if size < LARGE {
            return Ok(ShareAttempt::Write);
        }

        let source = match user.walk(path, IfMissing::Stop) {
            Ok(WalkResult::Handle(handle)) => path_handle::open_file_of_size(&handle, size),
            _ => None,
        };
        let Some(source) = source else {
            return Ok(ShareAttempt::Write);
        };

        let WalkResult::Handle(handle) = self.top.walk(path, IfMissing::Make)? else {
            return Ok(ShareAttempt::Write);
        };
        let keeps_bit = version::abilities(self.repository).executable;
        Ok(
            match path_handle::clone_blocks(&handle, &source, is_executable && keeps_bit) {
                Ok(()) => ShareAttempt::Created(handle),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                    ShareAttempt::Write
                }
                Err(_) => ShareAttempt::Stop,
            },
        )
    }

    pub(super) fn filter_of(&self, new: &State, to_write: &[usize]) -> anyhow::Result<Filter<'_>> {
        let paths = to_write.iter().map(|&at| new.entry(at).path(new).as_ref());
        filter::open_filter(self.repository, self.tree, paths)
    }

    /// Returns the stat of a new file, if its content is exactly what a checkout would write.
    fn compare(
        &self,
        filter: &mut Filter<'_>,
        new: &State,
        at: usize,
        handle: &PathHandle,
    ) -> anyhow::Result<Option<Stat>> {
        let (entry, path) = (new.entry(at), new.entry(at).path(new));
        // The stat is taken before reading, so a later write is noticed.
        let stat = handle.stat()?.context("a new file is gone")?;
        let OnDisk::File { body, .. } = handle.read()? else {
            return Ok(None);
        };
        let is_same = version::body_id(self.repository, &body)? == Some(entry.id)
            && match body {
                FileBody::Bytes(bytes) => filter.writes_as_is(path, &bytes)?,
                FileBody::Large { .. } => filter.keeps(path)?,
            };

        Ok(is_same.then(|| as_in_index(&stat)))
    }
}
