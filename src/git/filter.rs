//! Filters of a tree: line endings, encodings, LFS and others, according to its attributes.
//!
//! The attributes come from the tree that contains the files and never from the worktree, so
//! `.gitattributes` and the files that it affects can change in any order.

mod convert;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;

use anyhow::Context as _;
use gix::ObjectId;
use gix::attrs::StateRef;
use gix::bstr::ByteSlice;
use gix::index::entry::{Flags, Stat};
use gix::objs::{Kind, compute_hash};
use gix::worktree::stack::state::attributes::Source;

pub(in crate::git) use convert::Converter;

use super::During;
use super::paths::parent_dirs;
use super::repository::Repository;
use crate::git::object::TreeId;
use crate::git::object::large::{FileReader, Hashed};
use crate::text::transplant::{Insertion, transplant_changes};

const FILTERS: [&str; 3] = ["filter", "ident", ENCODING];
const ATTRIBUTES: &str = ".gitattributes";

const IDENT_START: &[u8] = b"$Id";

const ENCODING: &str = "working-tree-encoding";

pub(in crate::git) struct Filter<'repo> {
    repository: &'repo gix::Repository,
    converter: Converter<'repo>,
    /// The attribute files, and the files themselves, as far as needed.
    index: gix::index::State,
}

pub(in crate::git) fn open_filter<'a>(
    repository: &Repository,
    tree: TreeId,
    paths: impl Iterator<Item = &'a [u8]>,
) -> anyhow::Result<Filter<'_>> {
    let mut needed = BTreeSet::from([ATTRIBUTES.as_bytes().to_vec()]);
    for path in paths {
        needed.insert(path.to_vec());
        for dir in parent_dirs(path) {
            // A known directory's parents are known too.
            if !needed.insert([dir, b"/.gitattributes"].concat()) {
                break;
            }
        }
    }

    let mut index = gix::index::State::new(repository.gix.object_hash());
    let needed = needed.iter().map(Vec::as_slice).collect();
    for (path, entry) in repository.entries_at(tree, &needed)? {
        if !entry.is_file() {
            continue;
        }

        index.dangerously_push_entry(
            Stat::default(),
            entry.id,
            Flags::empty(),
            gix::index::entry::Mode::FILE,
            path.as_bstr(),
        );
    }

    index.sort_entries();
    Ok(Filter {
        repository: &repository.gix,
        converter: Converter::new(&repository.gix, &index, Source::IdMapping)?,
        index,
    })
}

impl Filter<'_> {
    pub(in crate::git) fn has_encoding(&mut self, path: &[u8]) -> anyhow::Result<bool> {
        Ok(self.converter.encoding_problem(path)?.is_some())
    }

    /// Returns the content that git stores for a file; `None` if no filter changes it.
    pub(in crate::git) fn clean(
        &mut self,
        path: &[u8],
        bytes: impl Read,
    ) -> anyhow::Result<Option<Vec<u8>>> {
        let cleaned = self.converter.convert_to_git(path, bytes, &self.index);
        cleaned.with_context(|| filtering(path))
    }

    /// Returns the content that git stores for a file.
    pub(in crate::git) fn stored(&mut self, path: &[u8], bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
        let cleaned = self.clean(path, bytes)?;
        Ok(cleaned.unwrap_or_else(|| bytes.to_vec()))
    }

    /// Returns the content that git stores for a large file. `None` if no filter changes it, or if
    /// the file does not have this id and size by now.
    pub(in crate::git) fn clean_large(
        &mut self,
        path: &[u8],
        file: &File,
        id: ObjectId,
        size: u64,
    ) -> anyhow::Result<Option<Vec<u8>>> {
        let mut read = Hashed::new(FileReader::start(file), id.kind(), size);
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

    /// Returns whether a checkout writes the blob's id into `$Id$`.
    fn expands_ids(&mut self, path: &[u8]) -> anyhow::Result<bool> {
        let is_set = |state: StateRef<'_>| matches!(state, StateRef::Set).then_some(());
        Ok(self.first_of(path, ["ident"], is_set)?.is_some())
    }

    /// Applies the change between two versions, in checkout form, to the bytes on disk, whose
    /// stored form is the first version. `None` if the change does not fit, or git would not store
    /// the result as `target_id`.
    pub(in crate::git) fn apply_to_disk(
        &mut self,
        path: &[u8],
        versions: [&[u8]; 2],
        disk: &[u8],
        target_id: ObjectId,
    ) -> anyhow::Result<Option<Vec<u8>>> {
        let [base, target] = versions;
        if base == target {
            return Ok(Some(disk.to_vec()));
        }
        // Next to lines that only the disk has, an insertion fits in two ways. What git stores
        // decides.
        for insertion in [Insertion::BehindOwn, Insertion::BeforeOwn] {
            let applied = match self.converter.wide(path)? {
                None if [base, target, disk].iter().any(|text| text.contains(&0)) => None,
                None => transplant_changes(base, target, disk, insertion),
                Some(encoding) => (|| {
                    let (base, target) = (encoding.decode(base)?.0, encoding.decode(target)?.0);
                    let (disk, form) = encoding.decode(disk)?;
                    let [base, target, disk] = [&base, &target, &disk].map(|text| text.as_bytes());
                    Some(form.encode(transplant_changes(base, target, disk, insertion)?))
                })(),
            };
            let Some(applied) = applied else {
                return Ok(None);
            };
            // A result that the filter rejects counts as a change that does not fit.
            let stored = self.stored(path, &applied).ok();
            let hash = self.repository.object_hash();
            let id = stored.map(|stored| compute_hash(hash, Kind::Blob, &stored));
            if id.is_some_and(|id| id.is_ok_and(|id| id == target_id)) {
                return Ok(Some(applied));
            }
        }
        Ok(None)
    }

    /// Returns whether the attributes of a file have `linguist-generated`.
    pub(in crate::git) fn is_marked_generated(&mut self, path: &[u8]) -> anyhow::Result<bool> {
        let says = self.first_of(path, ["linguist-generated"], |state| match state {
            StateRef::Set => Some(true),
            StateRef::Value(value) => Some(value.as_bstr() == "true"),
            _ => None,
        })?;
        Ok(says == Some(true))
    }

    fn first_of<const N: usize, T>(
        &mut self,
        path: &[u8],
        names: [&str; N],
        says: fn(StateRef<'_>) -> Option<T>,
    ) -> anyhow::Result<Option<T>> {
        self.converter.first_of(path, names, says)
    }

    /// Returns the content that a checkout writes for a blob.
    pub(in crate::git) fn smudge(&mut self, path: &[u8], blob: Vec<u8>) -> anyhow::Result<Vec<u8>> {
        let has_ids = blob.find(IDENT_START).is_some() && self.expands_ids(path)?;
        let expanded = match has_ids {
            true => {
                let id = compute_hash(self.repository.object_hash(), Kind::Blob, &blob);
                expand_ident(&blob, &id.during("hashing")?.to_string())
            }
            false => None,
        };
        let blob = expanded.unwrap_or(blob);
        let smudged = self.converter.convert_to_worktree(path, &blob);
        Ok(smudged.with_context(|| filtering(path))?.unwrap_or(blob))
    }
}

fn filtering(path: &[u8]) -> String {
    format!("filtering `{}`", path.to_str_lossy())
}

// `$Id$` in files (attribute `ident`), as git writes it. gix writes no space in front of the last
// `$`, so that git's own checkout has other bytes.

/// Returns the blob as git checks it out. `None` if it has no `$Id$`.
fn expand_ident(blob: &[u8], id: &str) -> Option<Vec<u8>> {
    let mut remaining = blob;
    let mut output = Vec::with_capacity(blob.len() + id.len() + 4);
    let mut any = false;
    while let Some(at) = remaining.iter().position(|&byte| byte == b'$') {
        output.extend(&remaining[..=at]);
        remaining = &remaining[at + 1..];
        if let Some(length) = ident_keyword_len(remaining) {
            output.extend(format!("Id: {id} $").as_bytes());
            remaining = &remaining[length..];
            any = true;
        }
    }

    output.extend(remaining);
    any.then_some(output)
}

/// Returns the length of `Id$` or `Id:...$` at the start of a text. Like git, leaves alone what
/// another version control system wrote: a text with a space in it.
fn ident_keyword_len(text: &[u8]) -> Option<usize> {
    let inside = text.strip_prefix(b"Id")?;
    if inside.first() == Some(&b'$') {
        return Some(3);
    }
    let inside = inside.strip_prefix(b":")?;
    let end = inside.iter().position(|&byte| byte == b'$')?;
    let value = &inside[..end];
    if value.contains(&b'\n') {
        return None;
    }
    let space = value.iter().skip(1).position(|&byte| byte == b' ');
    match space {
        Some(at) if at + 2 < value.len() => None,
        _ => Some(4 + end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_written_as_git_writes_it() {
        let check = |blob: &str, expected: Option<&str>| {
            let actual = expand_ident(blob.as_bytes(), "1f");
            let actual = actual.map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(actual.as_deref(), expected, "{blob}");
        };
        check("a $Id$ b", Some("a $Id: 1f $ b"));
        check("$Id: 0c $\n$Id$", Some("$Id: 1f $\n$Id: 1f $"));
        check("$$Id$$", Some("$$Id: 1f $$"));
        check("$Id: x.c,v 1.2 $", None);
        check("$Id: a\n$", None);
        check("$Identity$ $Id", None);
    }
}
