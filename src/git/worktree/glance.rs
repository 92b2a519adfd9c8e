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

use super::path::{folders_above, parent};
use super::survey::{IndexFacts, Other, Survey};
use crate::git::place::{IfMissing, Top, WalkResult};

/// Files whose rules apply to other files in their directory.
const RULES: [&[u8]; 2] = [b".gitattributes", b".gitignore"];

pub(super) fn glance<'a>(
    top: &Top,
    index: &State,
    options: Options,
    paths: impl Iterator<Item = &'a Vec<u8>>,
) -> anyhow::Result<Survey> {
    let known = IndexFacts { index, options };
    let believed = index
        .entries()
        .iter()
        .map(|entry| known.is_plain(entry) && entry.stat != Stat::default());
    let mut survey = Survey {
        same: believed.collect(),
        others: Vec::new(),
    };

    for path in with_blocking(index, with_rules(paths)) {
        look(top, &known, &path, &mut survey)?;
    }

    survey.others.sort_by(|a, b| a.path.cmp(&b.path));
    survey.others.dedup();
    Ok(survey)
}

/// Adds the rule files that apply to the paths.
pub(super) fn with_rules<'a>(paths: impl Iterator<Item = &'a Vec<u8>>) -> BTreeSet<Vec<u8>> {
    let (mut all, mut folders) = (BTreeSet::new(), BTreeSet::new());
    for path in paths {
        all.insert(path.clone());
        let mut above = parent(path);
        while let Some(folder) = above.filter(|folder| folders.insert(folder.to_vec())) {
            above = parent(folder);
        }
    }

    let below = |folder: &Vec<u8>| RULES.map(|name| [folder.as_slice(), b"/", name].concat());
    all.extend(folders.iter().flat_map(below));
    all.extend(RULES.map(<[u8]>::to_vec));
    all
}

/// Adds the files and symlinks that the index has in place of a parent directory.
fn with_blocking(index: &State, mut paths: BTreeSet<Vec<u8>>) -> BTreeSet<Vec<u8>> {
    let above = paths.iter().flat_map(|path| folders_above(path));
    let blocking = above.filter(|folder| index.entry_by_path(folder.as_bstr()).is_some());
    let blocking: Vec<_> = blocking.map(<[u8]>::to_vec).collect();
    paths.extend(blocking);
    paths
}

fn look(top: &Top, known: &IndexFacts<'_>, path: &[u8], survey: &mut Survey) -> anyhow::Result<()> {
    let entry = known
        .index
        .entry_index_by_path_and_stage(path.as_bstr(), Stage::Unconflicted);
    let found = match top.walk(path, IfMissing::Stop)? {
        WalkResult::Place(place) => place.stat()?,
        // A file or symlink is in place of a parent directory.
        WalkResult::Blocked(end) => {
            if known.index.entry_by_path(path[..end].as_bstr()).is_none() {
                survey.others.push(Other {
                    path: path[..end].to_vec(),
                    folder: false,
                });
            }
            None
        }
        WalkResult::Missing | WalkResult::Boundary | WalkResult::Closed | WalkResult::Refused => {
            None
        }
    };

    let same = entry
        .zip(found.as_ref())
        .is_some_and(|(at, stat)| known.is_same(at, stat));
    if let Some(at) = entry {
        survey.same[at] = same;
    }

    let is_folder = |stat: &rustix::fs::Stat| FileType::from_raw_mode(stat.st_mode).is_dir();
    let below = known
        .index
        .prefixed_entries_range([path, b"/"].concat().as_bstr());
    if let Some(below) = below.filter(|_| !found.as_ref().is_some_and(is_folder)) {
        // Everything in the directory is gone.
        survey.same[below].fill(false);
    }

    let Some(stat) = found.filter(|_| !same) else {
        return Ok(());
    };
    let folder = is_folder(&stat);
    let is_known = if folder {
        known.index.path_is_directory(path.as_bstr())
    } else {
        entry.is_some()
    };

    if !is_known {
        survey.others.push(Other {
            path: path.to_vec(),
            folder,
        });
    }

    Ok(())
}
