//! Converts the content of a file as git does when it stores or checks out a file. gix does most of
//! it, but not UTF-16 and UTF-32 with the byte order marks that git requires, refuses or writes.

use std::io::Read;

use anyhow::Context as _;
use gix::Repository;
use gix::attrs::search::MetadataCollection;
use gix::attrs::{Search, StateRef};
use gix::bstr::BStr;
use gix::filter::plumbing::driver::apply::{Delay, MaybeDelayed};
use gix::filter::plumbing::pipeline::convert::to_worktree::{Options, UnknownEncoding};
use gix::filter::plumbing::pipeline::convert::{ToGitOutcome, ToWorktreeOutcome};
use gix::filter::{Pipeline, plumbing};
use gix::glob::pattern::Case;
use gix::index::State;
use gix::objs::{Find as _, Kind};
use gix::worktree::Stack;
use gix::worktree::stack::state::Attributes;
use gix::worktree::stack::state::attributes::Source;
use gix::worktree::stack::{self, Platform};

use super::ENCODING;
use crate::git::During;
use crate::git::reclean::is_attributes;

const AT_ONCE: Options = Options {
    can_delay: Delay::Forbid,
    unknown_encoding: UnknownEncoding::Ignore,
};

const DRIVER: &str = "filter";

/// The attributes of conversions between the encoding and the stored form.
const OF_TEXT: [&str; 4] = ["crlf", "text", "eol", "ident"];

/// git's filters, and the attributes that choose among them.
pub(in crate::git) struct Converter<'repo> {
    repository: &'repo Repository,
    pipeline: plumbing::Pipeline,
    attributes: Stack,
}

impl<'repo> Converter<'repo> {
    pub(in crate::git) fn new(
        repository: &'repo Repository,
        index: &State,
        source: Source,
    ) -> anyhow::Result<Converter<'repo>> {
        let attributes = repository.attributes_only(index, source);
        let attributes = attributes.during("reading git's attributes")?.detach();
        Converter::with(repository, attributes)
    }

    fn with(repository: &'repo Repository, attributes: Stack) -> anyhow::Result<Converter<'repo>> {
        let pipeline = Pipeline::new(repository, attributes);
        let pipeline = pipeline.during("reading the configuration of filters")?;
        let (pipeline, attributes) = pipeline.into_parts();
        Ok(Converter {
            repository,
            pipeline,
            attributes,
        })
    }

    /// Returns the content that git stores for a file; `None` if no filter changes it.
    pub(in crate::git) fn convert_to_git(
        &mut self,
        path: &[u8],
        mut bytes: impl Read,
        index: &State,
    ) -> anyhow::Result<Option<Vec<u8>>> {
        if is_attributes(path) {
            return self
                .without_encoding(path)?
                .convert_to_git_with_gix(path, bytes, index);
        }
        let Some(encoding) = self.wide(path)? else {
            return self.convert_to_git_with_gix(path, bytes, index);
        };
        let mut data = Vec::new();
        bytes.read_to_end(&mut data)?;
        if let Some(mut driver) = self.driver(path)? {
            let cleaned = driver.convert_to_git_with_gix(path, data.as_slice(), index)?;
            data = cleaned.unwrap_or(data);
        }
        let text = encoding.decode(&data);
        let text = text.context("git refuses its encoding")?.0.into_bytes();
        let mut others = self.only(path, &OF_TEXT, "")?;
        let stored = others.convert_to_git_with_gix(path, text.as_slice(), index)?;
        Ok(Some(stored.unwrap_or(text)))
    }

    /// Returns the content that a checkout writes for a blob; `None` if no filter changes it.
    pub(super) fn convert_to_worktree(
        &mut self,
        path: &[u8],
        blob: &[u8],
    ) -> anyhow::Result<Option<Vec<u8>>> {
        if is_attributes(path) {
            return self
                .without_encoding(path)?
                .convert_to_worktree_with_gix(path, blob);
        }
        let Some(encoding) = self.wide(path)? else {
            return self.convert_to_worktree_with_gix(path, blob);
        };
        let mut others = self.only(path, &OF_TEXT, "")?;
        let text = others.convert_to_worktree_with_gix(path, blob)?;
        let bytes = encoding.encode(text.unwrap_or_else(|| blob.to_vec()));
        let smudged = match self.driver(path)? {
            Some(mut driver) => driver.convert_to_worktree_with_gix(path, &bytes)?,
            None => None,
        };
        Ok(Some(smudged.unwrap_or(bytes)))
    }

    /// Returns the encoding of a path if it is UTF-16 or UTF-32.
    pub(super) fn wide(&mut self, path: &[u8]) -> anyhow::Result<Option<Wide>> {
        if is_attributes(path) {
            return Ok(None);
        }
        self.first_of(path, [ENCODING], |state| match state {
            StateRef::Value(name) => Wide::from_name(name.as_bstr()),
            _ => None,
        })
    }

    /// Returns why a file cannot be stored, if it has an encoding.
    pub(in crate::git) fn encoding_problem(
        &mut self,
        path: &[u8],
    ) -> anyhow::Result<Option<String>> {
        self.first_of(path, [ENCODING], |state| {
            let StateRef::Value(name) = state else {
                return None;
            };
            let name = name.as_bstr();
            let is_known = Wide::from_name(name).is_some()
                || plumbing::worktree::encoding::for_label(name).is_ok();
            Some(match is_known {
                true => "its content is not in its `working-tree-encoding`".to_owned(),
                false => "TeDDy cannot convert its `working-tree-encoding`".to_owned(),
            })
        })
    }

    /// Returns the answer of `says` to the first of these attributes of a path for which it has one.
    pub(super) fn first_of<const N: usize, T>(
        &mut self,
        path: &[u8],
        names: [&str; N],
        says: fn(StateRef<'_>) -> Option<T>,
    ) -> anyhow::Result<Option<T>> {
        let mut chosen = self.attributes.selected_attribute_matches(names);
        attributes_at(&mut self.attributes, self.repository, path)?
            .matching_attributes(&mut chosen);

        let mut states = chosen.iter_selected().map(|one| one.assignment.state);
        Ok(states.find_map(says))
    }

    /// Returns a converter that only runs the program that a path chooses. `None` if it has none.
    fn driver(&mut self, path: &[u8]) -> anyhow::Result<Option<Converter<'repo>>> {
        let is_value = |state: StateRef<'_>| matches!(state, StateRef::Value(_)).then_some(());
        match self.first_of(path, [DRIVER], is_value)? {
            Some(()) => self.only(path, &[DRIVER], " -text").map(Some),
            None => Ok(None),
        }
    }

    /// Returns a converter for an attributes file. git reads it as it is, so what it says of the other
    /// files would not hold if it was left out of a turn, or encoded, for what it says of itself.
    fn without_encoding(&mut self, path: &[u8]) -> anyhow::Result<Converter<'repo>> {
        self.only(path, &[&[DRIVER], &OF_TEXT[..]].concat(), "")
    }

    /// Returns a converter for which a path has only these attributes, and others as written.
    fn only(
        &mut self,
        path: &[u8],
        names: &[&str],
        others: &str,
    ) -> anyhow::Result<Converter<'repo>> {
        let mut chosen = self
            .attributes
            .selected_attribute_matches(names.iter().copied());
        attributes_at(&mut self.attributes, self.repository, path)?
            .matching_attributes(&mut chosen);

        let mut line = format!("*{others}");
        for (name, found) in names.iter().zip(chosen.iter_selected()) {
            match found.assignment.state {
                StateRef::Set => line += &format!(" {name}"),
                StateRef::Unset => line += &format!(" -{name}"),
                StateRef::Value(value) => line += &format!(" {name}={}", value.as_bstr()),
                StateRef::Unspecified => {}
            }
        }
        let (mut search, mut collection) = (Search::default(), MetadataCollection::default());
        search.add_patterns_buffer(line.as_bytes(), "".into(), None, &mut collection, false)?;
        let attributes = Attributes::new(search, None, Source::IdMapping, collection);
        let state = stack::State::AttributesStack(attributes);
        let root = self.repository.git_dir();
        let stack = Stack::new(root, state, Case::Sensitive, Vec::new(), Vec::new());
        Converter::with(self.repository, stack)
    }

    fn convert_to_git_with_gix(
        &mut self,
        path: &[u8],
        bytes: impl Read,
        index: &State,
    ) -> anyhow::Result<Option<Vec<u8>>> {
        let objects = &self.repository.objects;
        let entry = attributes_at(&mut self.attributes, self.repository, path)?;
        let native = gix::path::from_bstr(BStr::new(path)).during("reading its path")?;
        let converted = self.pipeline.convert_to_git(
            bytes,
            &native,
            &mut |_, chosen| {
                entry.matching_attributes(chosen);
            },
            &mut |buffer| {
                let Some(entry) = index.entry_by_path(BStr::new(path)) else {
                    return Ok(None);
                };
                let object = objects.try_find(&entry.id, buffer)?;
                Ok(object
                    .filter(|object| object.kind == Kind::Blob)
                    .map(|_| ()))
            },
        );
        Ok(match converted.during("converting it")? {
            ToGitOutcome::Unchanged(_) => None,
            ToGitOutcome::Buffer(buffer) => Some(buffer.to_vec()),
            ToGitOutcome::Process(mut output) => {
                let mut bytes = Vec::new();
                output.read_to_end(&mut bytes)?;
                Some(bytes)
            }
        })
    }

    /// Writes UTF-8 instead of UTF-16.
    fn convert_to_worktree_with_gix(
        &mut self,
        path: &[u8],
        blob: &[u8],
    ) -> anyhow::Result<Option<Vec<u8>>> {
        let entry = attributes_at(&mut self.attributes, self.repository, path)?;
        let choose = &mut |_: &BStr, chosen: &mut gix::attrs::search::Outcome| {
            entry.matching_attributes(chosen);
        };
        let written = self
            .pipeline
            .convert_to_worktree(blob, BStr::new(path), choose, AT_ONCE)
            .during("converting it")?;
        Ok(match written {
            ToWorktreeOutcome::Unchanged(_) => None,
            ToWorktreeOutcome::Buffer(buffer) => Some(buffer.to_vec()),
            ToWorktreeOutcome::Process(MaybeDelayed::Immediate(mut output)) => {
                let mut bytes = Vec::new();
                output.read_to_end(&mut bytes)?;
                Some(bytes)
            }
            ToWorktreeOutcome::Process(MaybeDelayed::Delayed(_)) => {
                anyhow::bail!("the filter delayed its answer")
            }
        })
    }
}

fn attributes_at<'a>(
    attributes: &'a mut Stack,
    repository: &Repository,
    path: &[u8],
) -> anyhow::Result<Platform<'a>> {
    let entry = attributes.at_entry(BStr::new(path), None, &repository.objects);
    entry.context("reading attributes")
}

const BYTE_ORDER_MARK: char = '\u{feff}';

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wide {
    unit: Unit,
    little: bool,
    /// Whether a checkout writes a byte order mark.
    mark: bool,
    reads: Reads,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Two,
    Four,
}

/// Which files git stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    WithMark,
    WithoutMark,
    Both,
    /// git passes the name to iconv, which does not know it. A checkout writes these files.
    Empty,
}

impl Wide {
    /// Returns the encoding that git means by a name; `None` if it is another one.
    fn from_name(name: &[u8]) -> Option<Wide> {
        // The system's byte order, as in iconv.
        const NATIVE: bool = cfg!(target_endian = "little");

        let name = name.to_ascii_uppercase();
        let name = name.strip_prefix(b"UTF")?;
        let (unit, little, mark, reads) = match name.strip_prefix(b"-").unwrap_or(name) {
            b"16" => (Unit::Two, NATIVE, true, Reads::WithMark),
            b"16LE" => (Unit::Two, true, false, Reads::WithoutMark),
            b"16BE" => (Unit::Two, false, false, Reads::WithoutMark),
            b"16LE-BOM" => (Unit::Two, true, true, Reads::Both),
            b"16BE-BOM" => (Unit::Two, false, true, Reads::Empty),
            b"32" => (Unit::Four, NATIVE, true, Reads::WithMark),
            b"32LE" => (Unit::Four, true, false, Reads::WithoutMark),
            b"32BE" => (Unit::Four, false, false, Reads::WithoutMark),
            _ => return None,
        };
        Some(Wide {
            unit,
            little,
            mark,
            reads,
        })
    }

    /// Encodes a text. Content that is not UTF-8 is returned unchanged, as git writes it.
    pub(super) fn encode(self, text: Vec<u8>) -> Vec<u8> {
        let Ok(text) = std::str::from_utf8(&text) else {
            return text;
        };
        let mark = self
            .mark
            .then_some(BYTE_ORDER_MARK)
            .filter(|_| !text.is_empty());
        let mut bytes = Vec::with_capacity(2 * text.len() + 4);
        for character in mark.into_iter().chain(text.chars()) {
            self.push(&mut bytes, character);
        }
        bytes
    }

    fn push(self, bytes: &mut Vec<u8>, character: char) {
        match (self.unit, self.little) {
            (Unit::Two, little) => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    bytes.extend(match little {
                        true => unit.to_le_bytes(),
                        false => unit.to_be_bytes(),
                    });
                }
            }
            (Unit::Four, true) => bytes.extend(u32::from(character).to_le_bytes()),
            (Unit::Four, false) => bytes.extend(u32::from(character).to_be_bytes()),
        }
    }

    /// Returns the text, and the encoding with the byte order and mark of these bytes. `None` if git
    /// refuses them.
    pub(super) fn decode(self, bytes: &[u8]) -> Option<(String, Wide)> {
        if bytes.is_empty() {
            return Some((String::new(), self));
        }
        let found = [true, false].into_iter().find_map(|little| {
            let mut mark = Vec::new();
            Wide { little, ..self }.push(&mut mark, BYTE_ORDER_MARK);
            Some((little, bytes.strip_prefix(mark.as_slice())?))
        });
        let (little, text) = match (self.reads, found) {
            (Reads::WithMark | Reads::Both, Some(found)) => found,
            (Reads::WithoutMark | Reads::Both, None) => (self.little, bytes),
            _ => return None,
        };
        let form = Wide {
            little,
            mark: found.is_some(),
            ..self
        };
        Some((form.decode_unmarked(text)?, form))
    }

    fn decode_unmarked(self, bytes: &[u8]) -> Option<String> {
        match self.unit {
            Unit::Two => {
                let (units, rest) = bytes.as_chunks();
                let unit = match self.little {
                    true => u16::from_le_bytes,
                    false => u16::from_be_bytes,
                };
                let units: Vec<u16> = units.iter().copied().map(unit).collect();
                String::from_utf16(&units).ok().filter(|_| rest.is_empty())
            }
            Unit::Four => {
                let (units, rest) = bytes.as_chunks();
                let unit = match self.little {
                    true => u32::from_le_bytes,
                    false => u32::from_be_bytes,
                };
                let text = units.iter().map(|bytes| char::from_u32(unit(*bytes)));
                text.collect::<Option<String>>().filter(|_| rest.is_empty())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Wide {
        Wide::from_name(name.as_bytes()).unwrap()
    }

    #[track_caller]
    fn check(name: &str, text: &str, expected: &[u8]) {
        assert_eq!(named(name).encode(text.into()), expected, "{name}");
    }

    #[test]
    fn a_text_is_encoded_as_git_names_it() {
        check("utf-16le", "a\u{10000}", b"a\0\0\xd8\0\xdc");
        check("UTF-16BE", "a\u{e9}", b"\0a\0\xe9");
        check("UTF-16LE-BOM", "a", b"\xff\xfea\0");
        check("UTF-16BE-BOM", "a", b"\xfe\xff\0a");
        check("utf32le", "\u{1f600}", b"\0\xf6\x01\0");
        check("UTF-32BE", "a", b"\0\0\0a");
        #[cfg(target_endian = "little")]
        {
            check("UTF-16", "a", b"\xff\xfea\0");
            check("UTF-32", "a", b"\xff\xfe\0\0a\0\0\0");
        }
        check("UTF-16", "", b"");
        for other in ["ISO-8859-1", "UTF-8", "UTF-7", "UTF-32LE-BOM"] {
            assert_eq!(Wide::from_name(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_text_is_encoded_in_the_form_that_it_had() {
        let forms: [(&str, &[u8]); 7] = [
            ("UTF-16", b"\xff\xfea\0"),
            ("UTF-16", b"\xfe\xff\0a"),
            ("UTF-16LE-BOM", b"a\0"),
            ("UTF-16LE-BOM", b"\xfe\xff\0a"),
            ("UTF-32", b"\xff\xfe\0\0a\0\0\0"),
            ("UTF-32", b"\0\0\xfe\xff\0\0\0a"),
            ("UTF-32BE", b"\0\0\0a"),
        ];
        for (name, bytes) in forms {
            let (text, form) = named(name).decode(bytes).unwrap();
            assert_eq!(
                (text.as_str(), form.encode(text.clone().into())),
                ("a", bytes.to_vec()),
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_no_text_stays() {
        assert_eq!(
            named("UTF-16LE").encode(b"h\0\xff\xfe".to_vec()),
            b"h\0\xff\xfe"
        );
    }
}
