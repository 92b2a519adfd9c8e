//! Filters of a tree: line endings, encodings, LFS and others, according to its attributes.
//!
//! The attributes come from the tree that contains the files and never from the worktree, so
//! `.gitattributes` and the files that it affects can change in any order.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};

use anyhow::Context as _;
use gix::ObjectId;
use gix::attrs::StateRef;
use gix::bstr::{BStr, ByteSlice};
use gix::filter::plumbing::driver::apply::{Delay, MaybeDelayed};
use gix::filter::plumbing::pipeline::convert::to_worktree::{Options, UnknownEncoding};
use gix::filter::plumbing::pipeline::convert::{ToGitOutcome, ToWorktreeOutcome};
use gix::index::entry::{Flags, Stat};
use gix::objs::{Kind, compute_hash};
use gix::worktree::stack::state::attributes::Source;

use super::During;
use super::paths::parent_dirs;
use super::repository::Repository;
use crate::git::object::large::{FileReader, Hashed};
use crate::git::object::{BlobId, TreeEntry, TreeId};
use crate::host::file::read_regular;
use crate::text::transplant::{Insertion, transplant_changes};

const AT_ONCE: Options = Options {
    can_delay: Delay::Forbid,
    unknown_encoding: UnknownEncoding::Ignore,
};

const FILTERS: [&str; 3] = ["filter", "ident", ENCODING];
const ATTRIBUTES: &str = ".gitattributes";
const SYSTEM: &str = "/etc/gitattributes";

/// Upper bound for an attributes file.
const MOST: u64 = 16 << 20;

const IDENT_START: &[u8] = b"$Id";

const ENCODING: &str = "working-tree-encoding";

const READING_ATTRIBUTES: &str = "reading attributes";

pub(in crate::git) struct Filter<'repo> {
    repository: &'repo gix::Repository,
    pipeline: gix::filter::Pipeline<'repo>,
    /// The attribute files, and the files themselves, as far as needed.
    index: gix::index::State,
    attributes: Option<gix::AttributeStack<'repo>>,
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
    for (path, TreeEntry { mode, id }) in repository.entries_at(tree, &needed)? {
        if !mode.is_file() {
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

/// Returns a file's bytes in the byte order that gix reads: swaps them if the attributes leave the
/// order to the byte order mark, and the mark is big-endian.
pub(in crate::git) fn in_byte_order(
    repository: &gix::Repository,
    index: &gix::index::State,
    path: &[u8],
    bytes: Vec<u8>,
) -> anyhow::Result<Vec<u8>> {
    if !bytes.starts_with(&BIG_ENDIAN_MARK) {
        return Ok(bytes);
    }
    let encoding = encoding_of(repository, index, path)?;
    Ok(match encoding.and_then(|name| Utf16::from_name(&name)) {
        Some(encoding) => encoding.turned(bytes),
        None => bytes,
    })
}

/// Returns the `working-tree-encoding` of a path of the worktree.
pub(in crate::git) fn encoding_of(
    repository: &gix::Repository,
    index: &gix::index::State,
    path: &[u8],
) -> anyhow::Result<Option<Vec<u8>>> {
    let opened = repository.attributes_only(index, Source::WorktreeThenIdMapping);
    let mut attributes = opened.during(READING_ATTRIBUTES)?;
    first_attribute(&mut attributes, path, [ENCODING], |state| match state {
        StateRef::Value(name) => Some(name.as_bstr().to_vec()),
        _ => None,
    })
}

/// Returns the answer of `says` to the first of these attributes of a path for which it has one.
fn first_attribute<const N: usize, T>(
    attributes: &mut gix::AttributeStack<'_>,
    path: &[u8],
    names: [&str; N],
    says: fn(StateRef<'_>) -> Option<T>,
) -> anyhow::Result<Option<T>> {
    let mut chosen = attributes.selected_attribute_matches(names);
    attributes
        .at_entry(BStr::new(path), None)
        .during(READING_ATTRIBUTES)?
        .matching_attributes(&mut chosen);

    let mut states = chosen.iter_selected().map(|one| one.assignment.state);
    Ok(states.find_map(says))
}

/// Reads what filters made of a file; `None` if they changed nothing.
pub(in crate::git) fn read_converted(
    converted: ToGitOutcome<'_, impl Read>,
) -> io::Result<Option<Vec<u8>>> {
    Ok(match converted {
        ToGitOutcome::Unchanged(_) => None,
        ToGitOutcome::Buffer(buffer) => Some(buffer.to_vec()),
        ToGitOutcome::Process(mut output) => {
            let mut bytes = Vec::new();
            output.read_to_end(&mut bytes)?;
            Some(bytes)
        }
    })
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
        let converted = self.pipeline.convert_to_git(bytes, &native, &self.index);
        read_converted(converted.during(during())?).with_context(during)
    }

    /// Returns the content that git stores for a file.
    pub(in crate::git) fn stored(&mut self, path: &[u8], bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
        let cleaned = self.clean(path, bytes)?;
        Ok(cleaned.unwrap_or_else(|| bytes.to_vec()))
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
            let applied = match self.utf16(path)? {
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

    fn utf16(&mut self, path: &[u8]) -> anyhow::Result<Option<Utf16>> {
        self.first_of(path, [ENCODING], |state| match state {
            StateRef::Value(name) => Utf16::from_name(name.as_bstr()),
            _ => None,
        })
    }

    fn first_of<const N: usize, T>(
        &mut self,
        path: &[u8],
        names: [&str; N],
        says: fn(StateRef<'_>) -> Option<T>,
    ) -> anyhow::Result<Option<T>> {
        let attributes = match &mut self.attributes {
            Some(attributes) => attributes,
            none => {
                let opened = self
                    .repository
                    .attributes_only(&self.index, Source::IdMapping);
                none.insert(opened.during(READING_ATTRIBUTES)?)
            }
        };
        first_attribute(attributes, path, names, says)
    }

    /// Returns the content that a checkout writes for a blob.
    pub(in crate::git) fn smudge(&mut self, path: &[u8], blob: Vec<u8>) -> anyhow::Result<Vec<u8>> {
        let encoding = self.utf16(path)?;
        let has_ids = blob.find(IDENT_START).is_some() && self.expands_ids(path)?;
        let expanded = match has_ids {
            true => {
                let id = compute_hash(self.repository.object_hash(), Kind::Blob, &blob);
                expand_ident(&blob, &id.during("hashing")?.to_string())
            }
            false => None,
        };
        let smudged = self.smudge_with_gix(path, expanded.unwrap_or(blob))?;
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Utf16 {
    little: bool,
    mark: bool,
    /// Whether the mark of an existing file determines its byte order.
    either: bool,
}

const BYTE_ORDER_MARK: char = '\u{feff}';

const BIG_ENDIAN_MARK: [u8; 2] = [0xfe, 0xff];

impl Utf16 {
    /// Returns the encoding that git means by a name; `None` if it is not UTF-16.
    fn from_name(name: &[u8]) -> Option<Utf16> {
        let name = name.to_ascii_uppercase();
        let (little, mark) = match name.as_slice() {
            // The system's byte order, as in iconv.
            b"UTF-16" | b"UTF16" => (cfg!(target_endian = "little"), true),
            b"UTF-16LE" | b"UTF16LE" => (true, false),
            b"UTF-16BE" | b"UTF16BE" => (false, false),
            b"UTF-16LE-BOM" => (true, true),
            b"UTF-16BE-BOM" => (false, true),
            _ => return None,
        };
        let either = mark && !name.ends_with(b"-BOM");
        Some(Utf16 {
            little,
            mark,
            either,
        })
    }

    /// Encodes a text. Content that is not UTF-8 is returned unchanged.
    fn encode(self, text: Vec<u8>) -> Vec<u8> {
        let Ok(text) = std::str::from_utf8(&text) else {
            return text;
        };
        let mark = self
            .mark
            .then_some(BYTE_ORDER_MARK)
            .filter(|_| !text.is_empty());
        let mut buffer = [0; 2];
        let mut bytes = Vec::with_capacity(2 * text.len() + 2);
        for character in mark.into_iter().chain(text.chars()) {
            for unit in character.encode_utf16(&mut buffer) {
                bytes.extend(match self.little {
                    true => unit.to_le_bytes(),
                    false => unit.to_be_bytes(),
                });
            }
        }
        bytes
    }

    /// Returns the text, and its actual byte order and mark. `None` if it is not valid UTF-16.
    fn decode(self, bytes: &[u8]) -> Option<(String, Utf16)> {
        let (little, mark) = match bytes {
            [0xff, 0xfe, ..] => (true, true),
            [0xfe, 0xff, ..] => (false, true),
            _ => (self.little, false),
        };
        let bytes = if mark { &bytes[2..] } else { bytes };
        let units = bytes.chunks_exact(2);
        if !units.remainder().is_empty() {
            return None;
        }
        let unit = |pair: &[u8]| match little {
            true => u16::from_le_bytes([pair[0], pair[1]]),
            false => u16::from_be_bytes([pair[0], pair[1]]),
        };
        let units: Vec<u16> = units.map(unit).collect();
        let form = Utf16 {
            little,
            mark,
            either: false,
        };
        Some((String::from_utf16(&units).ok()?, form))
    }

    /// Swaps the bytes to little-endian, which gix assumes for both orders.
    fn turned(self, mut bytes: Vec<u8>) -> Vec<u8> {
        if self.either && bytes.starts_with(&BIG_ENDIAN_MARK) {
            bytes.chunks_exact_mut(2).for_each(<[u8]>::reverse);
        }
        bytes
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

#[cfg(test)]
mod utf16_tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, text: &str, expected: &[u8]) {
        let encoding = Utf16::from_name(name.as_bytes()).unwrap();
        assert_eq!(encoding.encode(text.into()), expected, "{name}");
    }

    #[test]
    fn a_text_is_encoded_as_git_names_it() {
        check("utf-16le", "a\u{10000}", b"a\0\0\xd8\0\xdc");
        check("UTF-16BE", "a\u{e9}", b"\0a\0\xe9");
        check("UTF-16LE-BOM", "a", b"\xff\xfea\0");
        check("UTF-16BE-BOM", "a", b"\xfe\xff\0a");
        #[cfg(target_endian = "little")]
        check("UTF-16", "a", b"\xff\xfea\0");
        check("UTF-16", "", b"");
        assert_eq!(Utf16::from_name(b"ISO-8859-1"), None);
    }

    #[test]
    fn a_text_is_encoded_in_the_form_that_it_had() {
        let encoding = Utf16::from_name(b"UTF-16").unwrap();
        for bytes in [&b"\xff\xfea\0"[..], b"\xfe\xff\0a", b"a\0"] {
            let (text, form) = encoding.decode(bytes).unwrap();
            assert_eq!(
                (text.as_str(), form.encode(text.clone().into())),
                ("a", bytes.to_vec())
            );
        }
        assert!(encoding.decode(b"abc").is_none());
    }

    #[test]
    fn what_is_no_text_stays() {
        let encoding = Utf16::from_name(b"UTF-16LE").unwrap();
        assert_eq!(encoding.encode(b"h\0\xff\xfe".to_vec()), b"h\0\xff\xfe");
    }

    #[test]
    fn a_mark_says_which_byte_comes_first() {
        let either = Utf16::from_name(b"UTF-16").unwrap();
        assert_eq!(either.turned(b"\xfe\xff\0a".to_vec()), b"\xff\xfea\0");
        assert_eq!(either.turned(b"\xff\xfea\0".to_vec()), b"\xff\xfea\0");
        let big = Utf16::from_name(b"UTF-16BE").unwrap();
        assert_eq!(big.turned(b"\xfe\xff\0a".to_vec()), b"\xfe\xff\0a");
    }
}
