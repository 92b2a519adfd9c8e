//! Compares a whole worktree with its index: which tracked files are unchanged, and which other
//! names exist.
//!
//! Directories of one level are read in parallel. No file is read.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gix::bstr::ByteSlice;
use gix::index::entry::stat::Options;
use gix::index::entry::{Flags, Mode, Stage, Stat};
use gix::index::{Entry, State};
use rustix::fs::{AtFlags, FileType, Mode as Permissions, OFlags};

use crate::git::path_handle::{IfMissing, Top, WalkResult};
use crate::git::paths::parent_dirs;
use crate::git::stat::{NameKind, as_in_index, each_name};
use crate::host::file::{Mounts, open_beneath};
use crate::host::threads::{cores, parallel_map};

/// Upper bound on threads. More of them would wait for each other.
const MAX_THREADS: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Scan {
    /// For each entry of the index, whether the file on disk is certainly unchanged.
    pub(super) same: Vec<bool>,
    /// Names that are not in the index. A directory represents everything in it.
    pub(super) others: Vec<Other>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Other {
    pub(super) path: Vec<u8>,
    pub(super) dir: bool,
}

/// A directory to list, and its entries in the index.
#[derive(Debug)]
struct ScannedDir {
    /// Path with a final `/`; empty for the top.
    path: Vec<u8>,
    entries: Range<usize>,
}

#[derive(Debug, Default)]
struct ScanResult {
    same: Vec<usize>,
    others: Vec<Other>,
    /// Subdirectories to list next.
    subdirs: Vec<ScannedDir>,
}

enum Child {
    Leaf(usize),
    Dir(Range<usize>),
}

pub(super) fn scan_worktree(top: &Path, index: &State, options: Options) -> anyhow::Result<Scan> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let scanner = Scanner {
        top: crate::host::file::openat(rustix::fs::CWD, top, flags, Permissions::empty())?,
        facts: IndexFacts { index, options },
    };
    let mut scan = Scan {
        same: vec![false; index.entries().len()],
        others: Vec::new(),
    };

    let mut level = vec![ScannedDir {
        path: Vec::new(),
        entries: 0..index.entries().len(),
    }];
    while !level.is_empty() {
        let mut subdirs = Vec::new();
        for result in scanner.at_all(&level)? {
            result
                .same
                .into_iter()
                .for_each(|entry| scan.same[entry] = true);
            scan.others.extend(result.others);
            subdirs.extend(result.subdirs);
        }

        level = subdirs;
    }

    Ok(scan)
}

struct Scanner<'a> {
    top: OwnedFd,
    facts: IndexFacts<'a>,
}

pub(super) struct IndexFacts<'a> {
    pub(super) index: &'a State,
    /// Which fields of the stat are compared.
    pub(super) options: Options,
}

impl Scanner<'_> {
    fn at_all(&self, dirs: &[ScannedDir]) -> anyhow::Result<Vec<ScanResult>> {
        let threads = cores().min(MAX_THREADS);
        let share = dirs.len().div_ceil(threads).max(16);
        if dirs.len() <= share {
            return Ok(vec![self.at_some(dirs)?]);
        }

        let results = parallel_map(dirs.chunks(share), |dirs| self.at_some(dirs));
        results.into_iter().collect()
    }

    fn at_some(&self, dirs: &[ScannedDir]) -> anyhow::Result<ScanResult> {
        let mut result = ScanResult::default();
        for dir in dirs {
            self.at(dir, &mut result)?;
        }
        Ok(result)
    }

    fn at(&self, dir: &ScannedDir, result: &mut ScanResult) -> anyhow::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let path = dir.path.strip_suffix(b"/").unwrap_or_default();
        // Resolved without following symlinks: a command that is still running could replace the
        // directory.
        let path = Path::new(OsStr::from_bytes(path));
        let open = open_beneath(&self.top, path, flags, Mounts::Entered)?;
        let children = self.children(dir);
        each_name(&open, |name, kind| {
            if dir.path.is_empty() && name == b".git" {
                return;
            }

            let is_dir = kind == NameKind::Dir;
            let child = children.binary_search_by(|(child, _)| (*child).cmp(name));
            match child.map(|at| &children[at].1) {
                Ok(Child::Leaf(at)) if self.is_same(&open, name, *at) => result.same.push(*at),
                Ok(Child::Leaf(_)) if !is_dir => {}
                Ok(Child::Dir(entries)) if is_dir => {
                    let path = [dir.path.as_slice(), name, b"/"].concat();
                    result.subdirs.push(ScannedDir {
                        path,
                        entries: entries.clone(),
                    });
                }

                _ => result.others.push(Other {
                    path: [dir.path.as_slice(), name].concat(),
                    dir: is_dir,
                }),
            }
        })?;
        Ok(())
    }

    /// Returns the index's names in a directory, sorted.
    fn children(&self, dir: &ScannedDir) -> Vec<(&[u8], Child)> {
        let entries = self.facts.index.entries();
        let mut children = Vec::new();
        let mut at = dir.entries.start;
        while at < dir.entries.end {
            let path: &[u8] = entries[at].path(self.facts.index);
            let name = &path[dir.path.len()..];
            let Some(length) = name.find_byte(b'/') else {
                children.push((name, Child::Leaf(at)));
                at += 1;
                continue;
            };

            let prefix = &path[..=dir.path.len() + length];
            let tail = &entries[at..dir.entries.end];
            let end =
                at + tail.partition_point(|entry| entry.path(self.facts.index).starts_with(prefix));
            children.push((&name[..length], Child::Dir(at..end)));
            at = end;
        }

        children.sort_unstable_by_key(|(name, _)| *name);
        children
    }

    fn is_same(&self, dir: impl AsFd, name: &[u8], at: usize) -> bool {
        rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| self.facts.is_same(at, &stat))
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

// Checks a few paths of a worktree, with the same result type as a scan of all of it.
//
// The `.gitignore` and `.gitattributes` files that apply to the paths are checked too. For all
// other files the index is trusted. Commands see every file, so they get a full scan; the index
// keeps the old stats, so that scan still finds the changes.

/// Files whose rules apply to other files in their directory.
const RULE_FILES: [&[u8]; 2] = [b".gitattributes", b".gitignore"];

pub(super) fn check_paths<'a>(
    top: &Top,
    index: &State,
    options: Options,
    paths: impl Iterator<Item = &'a Vec<u8>>,
) -> anyhow::Result<Scan> {
    let facts = IndexFacts { index, options };
    let believed = index
        .entries()
        .iter()
        .map(|entry| facts.is_plain(entry) && entry.stat != Stat::default());
    let mut scan = Scan {
        same: believed.collect(),
        others: Vec::new(),
    };

    for path in with_blocking_files(index, with_rule_files(paths)) {
        check_path(top, &facts, &path, &mut scan)?;
    }

    scan.others.sort_by(|a, b| a.path.cmp(&b.path));
    scan.others.dedup();
    Ok(scan)
}

/// Adds the rule files that apply to the paths.
pub(super) fn with_rule_files<'a>(paths: impl Iterator<Item = &'a Vec<u8>>) -> BTreeSet<Vec<u8>> {
    let (mut all, mut dirs) = (BTreeSet::new(), BTreeSet::new());
    for path in paths {
        all.insert(path.clone());
        for dir in parent_dirs(path) {
            // A known directory's parents are known too.
            if !dirs.insert(dir.to_vec()) {
                break;
            }
        }
    }

    let rules_in = |dir: &Vec<u8>| RULE_FILES.map(|name| [dir.as_slice(), b"/", name].concat());
    all.extend(dirs.iter().flat_map(rules_in));
    all.extend(RULE_FILES.map(<[u8]>::to_vec));
    all
}

/// Adds the files and symlinks that the index has in place of a parent directory.
fn with_blocking_files(index: &State, mut paths: BTreeSet<Vec<u8>>) -> BTreeSet<Vec<u8>> {
    let above = paths.iter().flat_map(|path| parent_dirs(path));
    let blocking = above.filter(|dir| index.entry_by_path(dir.as_bstr()).is_some());
    let blocking: Vec<_> = blocking.map(<[u8]>::to_vec).collect();
    paths.extend(blocking);
    paths
}

fn check_path(
    top: &Top,
    facts: &IndexFacts<'_>,
    path: &[u8],
    scan: &mut Scan,
) -> anyhow::Result<()> {
    let entry = facts
        .index
        .entry_index_by_path_and_stage(path.as_bstr(), Stage::Unconflicted);
    let on_disk = match top.walk(path, IfMissing::Stop)? {
        WalkResult::Handle(handle) => handle.stat()?,
        // A file or symlink is in place of a parent directory.
        WalkResult::Blocked(end) => {
            if facts.index.entry_by_path(path[..end].as_bstr()).is_none() {
                scan.others.push(Other {
                    path: path[..end].to_vec(),
                    dir: false,
                });
            }
            None
        }
        WalkResult::Missing | WalkResult::Boundary | WalkResult::Denied | WalkResult::Refused => {
            None
        }
    };

    let same = entry
        .zip(on_disk.as_ref())
        .is_some_and(|(at, stat)| facts.is_same(at, stat));
    if let Some(at) = entry {
        scan.same[at] = same;
    }

    let is_dir = |stat: &rustix::fs::Stat| FileType::from_raw_mode(stat.st_mode).is_dir();
    let children = facts
        .index
        .prefixed_entries_range([path, b"/"].concat().as_bstr());
    if let Some(children) = children.filter(|_| !on_disk.as_ref().is_some_and(is_dir)) {
        // Everything in the directory is gone.
        scan.same[children].fill(false);
    }

    let Some(stat) = on_disk.filter(|_| !same) else {
        return Ok(());
    };
    let dir = is_dir(&stat);
    let is_known = if dir {
        facts.index.path_is_directory(path.as_bstr())
    } else {
        entry.is_some()
    };

    if !is_known {
        scan.others.push(Other {
            path: path.to_vec(),
            dir,
        });
    }

    Ok(())
}

/// Returns whether a name is a pipe, socket or device.
pub(super) fn is_special_file(kind: rustix::fs::FileType) -> bool {
    !(kind.is_file() || kind.is_symlink() || kind.is_dir())
}
