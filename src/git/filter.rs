//! Filters of a tree: line endings, encodings, LFS and others, according to its attributes.
//!
//! The attributes come from the tree that contains the files and never from the worktree, so
//! `.gitattributes` and the files that it affects can change in any order.

mod utf16;

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

use self::utf16::Utf16;
use super::During;
use super::repository::Repository;
use crate::git::object::large::{From, Hashed};
use crate::git::object::{BlobId, EntryMode, TreeEntry, TreeId};
use crate::host::file::read_regular;

const AT_ONCE: Options = Options {
    can_delay: Delay::Forbid,
    unknown_encoding: UnknownEncoding::Ignore,
};

const FILTERS: [&str; 3] = ["filter", "ident", ENCODING];
const ATTRIBUTES: &str = ".gitattributes";
const SYSTEM: &str = "/etc/gitattributes";
/// Upper bound for an attributes file.
const MOST: u64 = 16 << 20;
const ENCODING: &str = "working-tree-encoding";

pub(in crate::git) struct Filter<'repo> {
    repository: &'repo gix::Repository,
    pipeline: gix::filter::Pipeline<'repo>,
    /// The attribute files, and the files themselves, as far as needed.
    index: gix::index::State,
    /// Loaded on first use.
    attributes: Option<gix::AttributeStack<'repo>>,
}

pub(in crate::git) fn filter<'a>(
    repository: &Repository,
    tree: TreeId,
    paths: impl Iterator<Item = &'a [u8]>,
) -> anyhow::Result<Filter<'_>> {
    let mut wanted = BTreeSet::from([ATTRIBUTES.as_bytes().to_vec()]);
    for path in paths {
        wanted.insert(path.to_vec());
        for (at, _) in path
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'/')
            .rev()
        {
            // A known directory's parents are known too.
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
        attributes: None,
    })
}

/// Returns whether any attributes file, including those in an index, mentions an encoding. That is
/// faster than querying the attributes of thousands of files. Unreadable files are ignored.
pub(in crate::git) fn mentions_encodings(
    repository: &Repository,
    index: &gix::index::State,
) -> bool {
    let has = |text: &[u8]| text.find(ENCODING).is_some();
    let files = [
        repository.common_dir().join("info/attributes"),
        repository.global_file("core.attributesFile", "attributes"),
        SYSTEM.into(),
    ];
    for file in files {
        if read_regular(&file, MOST).is_ok_and(|text| has(&text)) {
            return true;
        }
    }

    for entry in index.entries() {
        let path = entry.path(index);
        if path == ATTRIBUTES || path.ends_with(b"/.gitattributes") {
            let text = repository.blob(BlobId::of(entry.id));
            if text.is_ok_and(|text| has(&text)) {
                return true;
            }
        }
    }
    false
}

impl Filter<'_> {
    pub(in crate::git) fn is_utf16(&mut self, path: &[u8]) -> anyhow::Result<bool> {
        Ok(self.utf16(path)?.is_some())
    }

    /// Returns the content that git stores for a file; `None` if no filter changes it.
    pub(in crate::git) fn clean(
        &mut self,
        path: &[u8],
        mut bytes: impl Read,
    ) -> anyhow::Result<Option<Vec<u8>>> {
        let during = || format!("filtering `{}`", path.to_str_lossy());
        let mut turned = Vec::new();
        let bytes: &mut dyn Read = match self.utf16(path)? {
            Some(encoding) => {
                bytes.read_to_end(&mut turned).with_context(during)?;
                turned = encoding.turned(turned);
                &mut turned.as_slice()
            }
            None => &mut bytes,
        };
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

    /// Returns the content that git stores for a large file. `None` if no filter changes it, or if
    /// the file does not have this id and size by now.
    pub(in crate::git) fn clean_large(
        &mut self,
        path: &[u8],
        file: &File,
        (id, size): (ObjectId, u64),
    ) -> anyhow::Result<Option<Vec<u8>>> {
        let mut read = Hashed::new(From::start(file), id.kind(), size);
        let cleaned = self.clean(path, &mut read)?;
        // The filter can have ignored the rest.
        read.drain()?;
        Ok(cleaned.filter(|_| read.id().is_ok_and(|now| now == id)))
    }

    /// Returns whether a checkout writes every blob at a path unchanged.
    pub(in crate::git) fn keeps(&mut self, path: &[u8]) -> anyhow::Result<bool> {
        let is_chosen =
            |state: StateRef<'_>| matches!(state, StateRef::Set | StateRef::Value(_)).then_some(());
        if self.first_of(path, FILTERS, is_chosen)?.is_some() {
            return Ok(false);
        }

        // Only line endings can still be converted; one line shows whether they are.
        let line = b"\n".to_vec();
        Ok(self.smudge(path, line.clone())? == line)
    }

    fn utf16(&mut self, path: &[u8]) -> anyhow::Result<Option<Utf16>> {
        self.first_of(path, [ENCODING], |state| match state {
            StateRef::Value(name) => Utf16::named(name.as_bstr()),
            _ => None,
        })
    }

    /// Returns the first result of `says` for these attributes of a path.
    fn first_of<const N: usize, T>(
        &mut self,
        path: &[u8],
        names: [&str; N],
        says: fn(StateRef<'_>) -> Option<T>,
    ) -> anyhow::Result<Option<T>> {
        let during = "reading attributes";
        let attributes = match &mut self.attributes {
            Some(attributes) => attributes,
            none => {
                let opened = self
                    .repository
                    .attributes_only(&self.index, Source::IdMapping);
                none.insert(opened.during(during)?)
            }
        };
        let mut chosen = attributes.selected_attribute_matches(names);
        attributes
            .at_entry(BStr::new(path), None)
            .during(during)?
            .matching_attributes(&mut chosen);

        let mut states = chosen.iter_selected().map(|one| one.assignment.state);
        Ok(states.find_map(says))
    }

    /// Returns the content that a checkout writes for a blob.
    pub(in crate::git) fn smudge(&mut self, path: &[u8], blob: Vec<u8>) -> anyhow::Result<Vec<u8>> {
        let encoding = self.utf16(path)?;
        let smudged = self.smudge_with_gix(path, blob)?;
        Ok(match encoding {
            Some(encoding) => encoding.encode(smudged),
            None => smudged,
        })
    }

    /// Like [`Filter::smudge`], except that gix writes UTF-8 instead of UTF-16.
    fn smudge_with_gix(&mut self, path: &[u8], blob: Vec<u8>) -> anyhow::Result<Vec<u8>> {
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
