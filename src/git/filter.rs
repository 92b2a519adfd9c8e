//! Filters: line ends, encodings, LFS and their like, as the attributes of one tree say.
//!
//! The attributes come from the tree whose files are meant and never from the worktree, so that a
//! change to `.gitattributes` and to the files that it governs can be made in any order.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;

use anyhow::Context as _;
use gix::ObjectId;
use gix::attrs::StateRef;
use gix::bstr::{BStr, ByteSlice};
use gix::filter::plumbing::driver::apply::{Delay, MaybeDelayed};
use gix::filter::plumbing::pipeline::convert::to_worktree::{Options, UnknownEncoding};
use gix::filter::plumbing::pipeline::convert::{ToGitOutcome, ToWorktreeOutcome};
use gix::index::entry::{Flags, Stat};
use gix::worktree::stack::state::attributes::Source;

use super::During;
use super::repository::Repository;
use crate::git::object::large::{From, Hashed};
use crate::git::object::{EntryMode, TreeEntry, TreeId};

/// How a blob becomes a file.
const AT_ONCE: Options = Options {
    can_delay: Delay::Forbid,
    unknown_encoding: UnknownEncoding::Ignore,
};

/// The attributes that choose a filter.
const FILTERS: [&str; 3] = ["filter", "ident", "working-tree-encoding"];

/// The filters that hold for some paths of a tree.
pub(in crate::git) struct Filter<'repo> {
    /// The repository.
    repository: &'repo gix::Repository,
    /// gix's filters.
    pipeline: gix::filter::Pipeline<'repo>,
    /// The attribute files and the files themselves, as far as they matter.
    index: gix::index::State,
}

/// Returns the filters of a tree for the given paths.
///
/// # Errors
/// Where the tree or the configuration cannot be read.
pub(in crate::git) fn filter<'a>(
    repository: &Repository,
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

    let mut index = gix::index::State::new(repository.gix.object_hash());
    let wanted = wanted.iter().map(Vec::as_slice).collect();
    for (path, TreeEntry { mode, id }) in repository.entries_at(tree, &wanted)? {
        if !matches!(mode, EntryMode::File | EntryMode::Executable) {
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
    let attributes = repository
        .gix
        .attributes_only(&index, Source::IdMapping)
        .during("reading attributes")?
        .detach();
    let pipeline =
        gix::filter::Pipeline::new(&repository.gix, attributes).during("preparing filters")?;

    Ok(Filter {
        repository: &repository.gix,
        pipeline,
        index,
    })
}

impl Filter<'_> {
    /// Returns the bytes that git stores for a file's bytes; nothing where no filter changes them.
    ///
    /// # Errors
    /// Where a filter fails.
    pub(in crate::git) fn clean(
        &mut self,
        path: &[u8],
        bytes: impl Read,
    ) -> anyhow::Result<Option<Vec<u8>>> {
        let during = || format!("filtering `{}`", path.to_str_lossy());
        let native = gix::path::from_bstr(BStr::new(path)).during(during())?;
        Ok(
            match self
                .pipeline
                .convert_to_git(bytes, &native, &self.index)
                .during(during())?
            {
                ToGitOutcome::Unchanged(_) => None,
                ToGitOutcome::Buffer(buffer) => Some(buffer.to_vec()),
                ToGitOutcome::Process(mut output) => {
                    let mut cleaned = Vec::new();
                    output.read_to_end(&mut cleaned).with_context(during)?;
                    Some(cleaned)
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

    /// Returns the bytes that git stores for a large file with this id and size; nothing where no
    /// filter changes them, or they are others by now.
    ///
    /// # Errors
    /// Where it cannot be read or a filter fails.
    pub(in crate::git) fn clean_large(
        &mut self,
        path: &[u8],
        file: &File,
        (id, size): (ObjectId, u64),
    ) -> anyhow::Result<Option<Vec<u8>>> {
        let mut read = Hashed::new(From::start(file), id.kind(), size);
        let cleaned = self.clean(path, &mut read)?;
        // A filter may leave a part.
        read.drain()?;
        Ok(cleaned.filter(|_| read.id().is_ok_and(|now| now == id)))
    }

    /// Returns whether a checkout writes any blob for a path as it is.
    ///
    /// # Errors
    /// Where attributes cannot be read.
    pub(in crate::git) fn keeps(&mut self, path: &[u8]) -> anyhow::Result<bool> {
        let during = "reading attributes";
        let mut attributes = self
            .repository
            .attributes_only(&self.index, Source::IdMapping)
            .during(during)?;
        let mut chosen = attributes.selected_attribute_matches(FILTERS);
        attributes
            .at_entry(BStr::new(path), None)
            .during(during)?
            .matching_attributes(&mut chosen);
        let is_chosen = |state| matches!(state, StateRef::Set | StateRef::Value(_));

        if chosen
            .iter_selected()
            .any(|attribute| is_chosen(attribute.assignment.state))
        {
            return Ok(false);
        }

        // Line ends are all that is left: whether they change, one tells.
        let line = b"\n".to_vec();
        Ok(self.smudge(path, line.clone())? == line)
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
                anyhow::bail!("{}: the filter delayed its answer", during())
            }
        }

        Ok(blob)
    }
}
