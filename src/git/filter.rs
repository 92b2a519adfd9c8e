//! Filters: line ends, encodings, LFS and their like, as the attributes of one tree say.
//!
//! The attributes come from the tree whose files are meant and never from the worktree, so that a
//! change to `.gitattributes` and to the files that it governs can be made in any order.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::Read;

use anyhow::Context as _;
use gix::bstr::{BStr, ByteSlice};
use gix::filter::plumbing::driver::apply::{Delay, MaybeDelayed};
use gix::filter::plumbing::pipeline::convert::to_worktree::{Options, UnknownEncoding};
use gix::filter::plumbing::pipeline::convert::{ToGitOutcome, ToWorktreeOutcome};
use gix::index::entry::{Flags, Stat};
use gix::worktree::stack::state::attributes::Source;

use super::During;
use super::object::{Entry, Mode, TreeId};
use super::repository::Repository;

/// How a blob becomes a file.
const AT_ONCE: Options = Options {
    can_delay: Delay::Forbid,
    unknown_encoding: UnknownEncoding::Ignore,
};

/// The filters that hold for some paths of a tree.
pub(in crate::git) struct Filter<'repo> {
    /// gix's filters.
    pipeline: gix::filter::Pipeline<'repo>,
    /// The attribute files and the files themselves, as far as they matter.
    index: gix::index::State,
}

impl Repository {
    /// Returns the filters of a tree for the given paths.
    ///
    /// # Errors
    /// Where the tree or the configuration cannot be read.
    pub(in crate::git) fn filter<'a>(
        &self,
        tree: TreeId,
        paths: impl Iterator<Item = &'a [u8]>,
    ) -> anyhow::Result<Filter<'_>> {
        let mut wanted = BTreeSet::from([b".gitattributes".to_vec()]);
        for path in paths {
            wanted.insert(path.to_vec());
            for (at, _) in path
                .iter()
                .enumerate()
                .filter(|(_, byte)| **byte == b'/')
                .rev()
            {
                if !wanted.insert([&path[..at], b"/.gitattributes"].concat()) {
                    break;
                }
            }
        }
        let mut index = gix::index::State::new(self.gix.object_hash());
        let wanted = wanted.iter().map(Vec::as_slice).collect();
        for (path, Entry { mode, id }) in self.entries_at(tree, &wanted)? {
            if !matches!(mode, Mode::File | Mode::Executable) {
                continue;
            }
            index.dangerously_push_entry(
                Stat::default(),
                id,
                Flags::empty(),
                gix::index::entry::Mode::FILE,
                path.as_bstr(),
            );
        }
        index.sort_entries();
        let attributes = self
            .gix
            .attributes_only(&index, Source::IdMapping)
            .during("reading attributes")?
            .detach();
        let pipeline =
            gix::filter::Pipeline::new(&self.gix, attributes).during("preparing filters")?;
        Ok(Filter { pipeline, index })
    }
}

impl Filter<'_> {
    /// Returns the bytes that git stores for a file's bytes; borrowed where no filter changes them.
    ///
    /// # Errors
    /// Where a filter fails.
    pub(in crate::git) fn clean<'a>(
        &mut self,
        path: &[u8],
        bytes: &'a [u8],
    ) -> anyhow::Result<Cow<'a, [u8]>> {
        let during = || format!("filtering `{}`", path.to_str_lossy());
        let native = gix::path::from_bstr(BStr::new(path)).during(during())?;
        Ok(
            match self
                .pipeline
                .convert_to_git(bytes, &native, &self.index)
                .during(during())?
            {
                ToGitOutcome::Unchanged(_) => Cow::Borrowed(bytes),
                ToGitOutcome::Buffer(buffer) => Cow::Owned(buffer.to_vec()),
                ToGitOutcome::Process(mut output) => {
                    let mut cleaned = Vec::new();
                    output.read_to_end(&mut cleaned).with_context(during)?;
                    Cow::Owned(cleaned)
                }
            },
        )
    }

    /// Returns whether a checkout writes a blob as it is.
    ///
    /// # Errors
    /// Where a filter fails.
    pub(in crate::git) fn writes_as_is(
        &mut self,
        path: &[u8],
        blob: &[u8],
    ) -> anyhow::Result<bool> {
        let written = self
            .pipeline
            .convert_to_worktree(blob, BStr::new(path), AT_ONCE)
            .during(format_args!("filtering `{}`", path.to_str_lossy()))?;
        Ok(matches!(written, ToWorktreeOutcome::Unchanged(_)))
    }

    /// Returns the bytes that a checkout writes for a blob.
    ///
    /// # Errors
    /// Where a filter fails.
    pub(in crate::git) fn smudge(&mut self, path: &[u8], blob: Vec<u8>) -> anyhow::Result<Vec<u8>> {
        let during = || format!("filtering `{}`", path.to_str_lossy());
        let mut smudged = Vec::new();
        match self
            .pipeline
            .convert_to_worktree(&blob, BStr::new(path), AT_ONCE)
            .during(during())?
        {
            ToWorktreeOutcome::Unchanged(_) => {}
            ToWorktreeOutcome::Buffer(buffer) => return Ok(buffer.to_vec()),
            ToWorktreeOutcome::Process(MaybeDelayed::Immediate(mut output)) => {
                output.read_to_end(&mut smudged).with_context(during)?;
                return Ok(smudged);
            }
            ToWorktreeOutcome::Process(MaybeDelayed::Delayed(_)) => {
                anyhow::bail!("{}: the filter put its answer off", during())
            }
        }
        Ok(blob)
    }
}
