//! Compares a whole worktree with its index: which tracked files are unchanged, and which other
//! names exist.
//!
//! Directories of one level are read in parallel. No file is read.

use std::ffi::OsStr;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gix::bstr::ByteSlice;
use gix::index::entry::{Flags, Mode, Stage, stat::Options};
use gix::index::{Entry, State};
use rustix::fs::{AtFlags, Dir, FileType, Mode as Permissions, OFlags};

use crate::git::stat::{NameKind, as_in_index, look};
use crate::host::file::{Mounts, open_beneath};
use crate::host::threads::{at_once, cores};

/// Upper bound on threads. More of them would wait for each other.
const MAX_THREADS: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Survey {
    /// For each entry of the index, whether the file on disk is certainly unchanged.
    pub(super) same: Vec<bool>,
    /// Names that are not in the index. A directory represents everything in it.
    pub(super) others: Vec<Other>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Other {
    pub(super) path: Vec<u8>,
    pub(super) folder: bool,
}

/// A directory to list, and its entries in the index.
#[derive(Debug)]
struct SurveyedFolder {
    /// Path with a final `/`; empty for the top.
    path: Vec<u8>,
    entries: Range<usize>,
}

#[derive(Debug, Default)]
struct SurveyResult {
    same: Vec<usize>,
    others: Vec<Other>,
    /// Subdirectories to list next.
    below: Vec<SurveyedFolder>,
}

enum Child {
    Leaf(usize),
    Folder(Range<usize>),
}

pub(super) fn survey(top: &Path, index: &State, options: Options) -> anyhow::Result<Survey> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let look = SurveyRun {
        top: crate::host::file::openat(rustix::fs::CWD, top, flags, Permissions::empty())?,
        known: IndexFacts { index, options },
    };
    let mut survey = Survey {
        same: vec![false; index.entries().len()],
        others: Vec::new(),
    };

    let mut level = vec![SurveyedFolder {
        path: Vec::new(),
        entries: 0..index.entries().len(),
    }];
    while !level.is_empty() {
        let mut below = Vec::new();
        for found in look.at_all(&level)? {
            found
                .same
                .into_iter()
                .for_each(|entry| survey.same[entry] = true);
            survey.others.extend(found.others);
            below.extend(found.below);
        }

        level = below;
    }

    Ok(survey)
}

struct SurveyRun<'a> {
    top: OwnedFd,
    known: IndexFacts<'a>,
}

pub(super) struct IndexFacts<'a> {
    pub(super) index: &'a State,
    /// Which fields of the stat are compared.
    pub(super) options: Options,
}

impl SurveyRun<'_> {
    fn at_all(&self, folders: &[SurveyedFolder]) -> anyhow::Result<Vec<SurveyResult>> {
        let threads = cores().min(MAX_THREADS);
        let share = folders.len().div_ceil(threads).max(16);
        if folders.len() <= share {
            return Ok(vec![self.at_some(folders)?]);
        }

        let found = at_once(folders.chunks(share), |folders| self.at_some(folders));
        found.into_iter().collect()
    }

    fn at_some(&self, folders: &[SurveyedFolder]) -> anyhow::Result<SurveyResult> {
        let mut found = SurveyResult::default();
        for folder in folders {
            self.at(folder, &mut found)?;
        }
        Ok(found)
    }

    fn at(&self, folder: &SurveyedFolder, found: &mut SurveyResult) -> anyhow::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let path = folder.path.strip_suffix(b"/").unwrap_or_default();
        // Resolved without following symlinks: a command that is still running could replace the
        // directory.
        let path = Path::new(OsStr::from_bytes(path));
        let mut open = Dir::new(open_beneath(&self.top, path, flags, Mounts::Entered)?)?;
        let children = self.children(folder);

        while let Some(entry) = open.read() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." || (folder.path.is_empty() && name == b".git") {
                continue;
            }

            let is_folder = match entry.file_type() {
                // Not every file system returns the type.
                FileType::Unknown => look(open.fd()?, name)?.kind == NameKind::Folder,
                kind => kind == FileType::Directory,
            };
            match children
                .binary_search_by(|(known, _)| (*known).cmp(name))
                .map(|at| &children[at].1)
            {
                Ok(Child::Leaf(at)) if self.is_same(open.fd()?, name, *at) => found.same.push(*at),
                Ok(Child::Leaf(_)) if !is_folder => {}
                Ok(Child::Folder(entries)) if is_folder => {
                    let path = [folder.path.as_slice(), name, b"/"].concat();
                    found.below.push(SurveyedFolder {
                        path,
                        entries: entries.clone(),
                    });
                }

                _ => found.others.push(Other {
                    path: [folder.path.as_slice(), name].concat(),
                    folder: is_folder,
                }),
            }
        }

        Ok(())
    }

    /// Returns the index's names in a directory, sorted.
    fn children(&self, folder: &SurveyedFolder) -> Vec<(&[u8], Child)> {
        let entries = self.known.index.entries();
        let mut children = Vec::new();
        let mut at = folder.entries.start;
        while at < folder.entries.end {
            let path: &[u8] = entries[at].path(self.known.index);
            let name = &path[folder.path.len()..];
            let Some(length) = name.find_byte(b'/') else {
                children.push((name, Child::Leaf(at)));
                at += 1;
                continue;
            };

            let prefix = &path[..=folder.path.len() + length];
            let rest = &entries[at..folder.entries.end];
            let end =
                at + rest.partition_point(|entry| entry.path(self.known.index).starts_with(prefix));
            children.push((&name[..length], Child::Folder(at..end)));
            at = end;
        }

        children.sort_unstable_by_key(|(name, _)| *name);
        children
    }

    fn is_same(&self, folder: impl AsFd, name: &[u8], at: usize) -> bool {
        rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| self.known.is_same(at, &stat))
    }
}

impl IndexFacts<'_> {
    /// Returns whether a file certainly equals an entry.
    pub(super) fn is_same(&self, at: usize, stat: &rustix::fs::Stat) -> bool {
        let entry = &self.index.entries()[at];
        if entry.mode == Mode::COMMIT {
            return FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        }

        self.is_plain(entry)
            && is_mode(entry.mode, stat.st_mode)
            && entry
                .stat
                .matches(&as_in_index(stat), self.options_for(entry))
    }

    /// Returns whether an entry is merged, not flagged, and not racy: its file was not written in
    /// the same tick as the index.
    pub(super) fn is_plain(&self, entry: &Entry) -> bool {
        let odd = Flags::INTENT_TO_ADD | Flags::ASSUME_VALID;
        let is_racy = entry
            .stat
            .is_racy(self.index.timestamp(), self.options_for(entry));
        entry.stage() == Stage::Unconflicted && !entry.flags.intersects(odd) && !is_racy
    }

    /// Compares nanoseconds if the file system has them. With whole seconds, no file of the second
    /// in which the index was written could be trusted.
    fn options_for(&self, entry: &Entry) -> Options {
        Options {
            use_nsec: entry.stat.mtime.nsecs != 0,
            ..self.options
        }
    }
}

fn is_mode(mode: Mode, raw: rustix::fs::RawMode) -> bool {
    match FileType::from_raw_mode(raw) {
        FileType::RegularFile if raw & 0o100 != 0 => mode == Mode::FILE_EXECUTABLE,
        FileType::RegularFile => mode == Mode::FILE,
        FileType::Symlink => mode == Mode::SYMLINK,
        _ => false,
    }
}
