//! Checks a few paths of a worktree, with the same result type as a scan of all of it.
//!
//! The `.gitignore` and `.gitattributes` files that apply to the paths are checked too. For all
//! other files the index is trusted. Commands see every file, so they get a full scan; the index
//! keeps the old stats, so that scan still finds the changes.

use std::collections::BTreeSet;

use gix::bstr::ByteSlice;
use gix::index::State;
use gix::index::entry::{Stage, Stat, stat::Options};
use rustix::fs::FileType;

use super::path::{parent_dir, parent_dirs};
use super::scan::{IndexFacts, Other, Scan};
use crate::git::path_handle::{IfMissing, Top, WalkResult};

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
        let mut above = parent_dir(path);
        while let Some(dir) = above.filter(|dir| dirs.insert(dir.to_vec())) {
            above = parent_dir(dir);
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
