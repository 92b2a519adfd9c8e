//! Three-way merge of trees: takes changes of one side, merges changes of both sides by line, and
//! leaves conflicts to the caller.
//!
//! Renames are not detected, so the result can be explained path by path. Merge drivers and `union`
//! are not used.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use gix::bstr::BStr;
use gix::diff::blob::InternedInput;
use gix::index::{File, State};
use gix::merge::blob::builtin_driver::text::Labels;
use gix::merge::blob::{BuiltinDriver, Platform, Resolution, ResourceKind};
use gix::objs::Kind;
use gix::objs::tree::EntryKind;

use super::During;
use super::diff::TreeChange;
use super::refs;
use super::repository::Repository;
use crate::git::diff;
use crate::git::object::writer::Sink;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::paths::parent_dirs;
use crate::host::file::temporary_parent;

/// Maximum size of a file that is merged by line. Three versions of it are in memory.
const MAX_MERGED: u64 = 32 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// Conflicting paths, sorted: both sides changed the same lines, or one deleted what the other
    /// changed. The trees differ only there.
    pub paths: Vec<Vec<u8>>,
    /// The merge, with our side of each conflict.
    pub ours: TreeId,
    /// The merge, with their side of each conflict.
    pub theirs: TreeId,
    /// The merge, with git's conflict markers. Our side if the file has no lines to mark.
    pub markers: TreeId,
    /// Paths with a file on one side and a directory on the other, so without lines to mark.
    pub unmarked: BTreeSet<Vec<u8>>,
}

impl Merged {
    fn clean(tree: TreeId) -> Merged {
        Merged {
            paths: Vec::new(),
            ours: tree,
            theirs: tree,
            markers: tree,
            unmarked: BTreeSet::new(),
        }
    }

    pub fn is_clean(&self) -> bool {
        self.paths.is_empty()
    }
}

type SideChanges = BTreeMap<Vec<u8>, TreeChange>;

struct MergedPath {
    /// Merged entry, possibly with conflict markers.
    entry: Option<TreeEntry>,
    clean: bool,
}

/// Merges two trees with the common ancestor `base`.
pub fn merge_trees(
    repository: &Repository,
    base: TreeId,
    ours: TreeId,
    theirs: TreeId,
) -> anyhow::Result<Merged> {
    merge_into(repository, Sink::new(repository), base, ours, theirs)
}

/// Like [`merge_trees`], but writes nothing: only this process can read the trees.
pub fn merge_in_memory(
    repository: &Repository,
    base: TreeId,
    ours: TreeId,
    theirs: TreeId,
) -> anyhow::Result<Merged> {
    merge_into(repository, Sink::in_memory(repository), base, ours, theirs)
}

/// Returns whether a merge of the change from `base` to `theirs` leaves our version of a file as it is.
/// Writes nothing.
pub fn keeps_ours(
    repository: &Repository,
    path: &[u8],
    base: &TreeEntry,
    ours: &TreeEntry,
    theirs: &TreeEntry,
) -> anyhow::Result<bool> {
    let versions = [base, ours, theirs];
    if !versions.iter().all(|version| version.is_file()) {
        return Ok(ours == theirs);
    }
    let (sink, mut platform) = (Sink::in_memory(repository), merge_platform(repository)?);
    let merged = merge_files(repository, &sink, &mut platform, path, versions.map(Some))?;
    Ok(merged.clean && merged.entry.as_ref() == Some(ours))
}

fn merge_into(
    repository: &Repository,
    sink: Sink,
    base: TreeId,
    ours: TreeId,
    theirs: TreeId,
) -> anyhow::Result<Merged> {
    if ours == base || ours == theirs {
        return Ok(Merged::clean(theirs));
    }

    if theirs == base {
        return Ok(Merged::clean(ours));
    }

    let (ours_did, theirs_did) = (
        by_path(diff::changes(repository, base, ours)?),
        by_path(diff::changes(repository, base, theirs)?),
    );
    let unmarked = dir_file_conflicts(&ours_did, &theirs_did);
    let mut overlap = unmarked.clone();
    let mut edits: BTreeMap<_, _> = theirs_did
        .iter()
        .map(|(path, change)| (path.clone(), change.new.clone()))
        .collect();

    for (path, met) in merge_common(repository, &sink, &ours_did, &theirs_did)? {
        if !met.clean {
            overlap.insert(path.clone());
        }
        edits.insert(path, met.entry);
    }

    let tree = |edits: &_| diff::tree_into(repository, &sink, ours, edits);
    let merged = if overlap.is_empty() {
        Merged::clean(tree(&edits)?)
    } else {
        let mut clean = edits.clone();
        clean.retain(|path, _| !overlap.contains(path));
        let their_side = overlap.iter().map(|path| {
            let entry = their_entry(path, &ours_did, &theirs_did);
            (path.clone(), entry)
        });
        let theirs = clean.clone().into_iter().chain(their_side);
        // Ours stays if the other side has a directory: writing the file would delete its contents.
        edits.retain(|path, _| !unmarked.contains(path));
        Merged {
            ours: tree(&clean)?,
            theirs: tree(&theirs.collect())?,
            markers: tree(&edits)?,
            paths: overlap.iter().cloned().collect(),
            unmarked,
        }
    };

    sink.finish(repository)?;
    Ok(merged)
}

fn their_entry(path: &[u8], ours_did: &SideChanges, theirs_did: &SideChanges) -> Option<TreeEntry> {
    match theirs_did.get(path) {
        Some(their) => their.new.clone(),
        None => ours_did.get(path)?.old.clone(),
    }
}

fn merge_common(
    repository: &Repository,
    sink: &Sink,
    ours: &SideChanges,
    theirs: &SideChanges,
) -> anyhow::Result<Vec<(Vec<u8>, MergedPath)>> {
    let mut platform = None;
    let mut met = Vec::new();
    for (path, their) in theirs {
        let Some(our) = ours.get(path).filter(|our| our.new != their.new) else {
            continue;
        };
        let result = match (&our.new, &their.new) {
            (Some(o), Some(t)) if o.is_file() && t.is_file() => {
                let platform = match &mut platform {
                    Some(platform) => platform,
                    none => none.insert(merge_platform(repository)?),
                };
                merge_files(
                    repository,
                    sink,
                    platform,
                    path,
                    [
                        our.old.as_ref().filter(|old| old.is_file()),
                        Some(o),
                        Some(t),
                    ],
                )?
            }
            // Cannot be merged by line: a deletion, symlink or submodule.
            (our, their) => MergedPath {
                entry: our.clone().or(their.clone()),
                clean: false,
            },
        };
        met.push((path.clone(), result));
    }

    Ok(met)
}

/// Prepares merges by line. Files above `MAX_MERGED` count as binary.
fn merge_platform(repository: &Repository) -> anyhow::Result<Platform> {
    let during = "preparing a merge";
    let index = repository.gix.index_path();
    // Without an index, gix reads attributes from HEAD, which it cannot find in a reftable.
    let needs_head = !index.exists() && repository.gix.head().is_err();
    let temporary = needs_head
        .then(|| with_index_of_head(repository).context(during))
        .transpose()?;
    let gix = temporary
        .as_ref()
        .map_or(&repository.gix, |(_, temporary)| &temporary.gix);
    let mut platform = gix
        .merge_resource_cache(Default::default())
        .during(during)?;
    let limit = &mut platform.filter.options.large_file_threshold_bytes;

    // Zero means no limit.
    *limit = if *limit == 0 {
        MAX_MERGED
    } else {
        MAX_MERGED.min(*limit)
    };
    Ok(platform)
}

/// Opens this repository with a temporary index of HEAD's files; also returns the index file.
fn with_index_of_head(repository: &Repository) -> anyhow::Result<(tempfile::TempPath, Repository)> {
    let tree = refs::head_tree(repository)?;
    let state = if tree == repository.empty_tree() {
        State::new(repository.gix.object_hash())
    } else {
        let index = repository.gix.index_from_tree(&tree.0);
        index
            .during(format_args!("reading tree {tree}"))?
            .into_parts()
            .0
    };

    let mut file = tempfile::NamedTempFile::new_in(temporary_parent())?;
    File::from_state(state, file.path().to_owned())
        .write_to(&mut file, Default::default())
        .during("writing an index")?;
    let file = file.into_temp_path();
    let opened = repository.with_worktree(&repository.workdir, &file)?;

    Ok((file, opened))
}

/// Merges content and mode of one file. The versions are base, ours, theirs.
fn merge_files(
    repository: &Repository,
    sink: &Sink,
    platform: &mut Platform,
    path: &[u8],
    versions: [Option<&TreeEntry>; 3],
) -> anyhow::Result<MergedPath> {
    let mode = merge_value(versions.map(|version| version.map(|entry| entry.mode)));
    let (id, clean) = match merge_value(versions.map(|version| version.map(|entry| entry.id))) {
        Some(id) => (id, true),
        None => merge_lines(repository, sink, platform, path, versions)?,
    };
    let our_mode = versions[1].map_or(EntryMode::Blob, |ours| ours.mode);

    Ok(MergedPath {
        entry: Some(TreeEntry {
            mode: mode.unwrap_or(our_mode),
            id,
        }),
        clean: clean && mode.is_some(),
    })
}

const VERSIONS: [ResourceKind; 3] = [
    ResourceKind::CommonAncestorOrBase,
    ResourceKind::CurrentOrOurs,
    ResourceKind::OtherOrTheirs,
];

/// Merges one file by line and writes the result. Returns whether there is no conflict.
fn merge_lines(
    repository: &Repository,
    sink: &Sink,
    platform: &mut Platform,
    path: &[u8],
    versions: [Option<&TreeEntry>; 3],
) -> anyhow::Result<(gix::ObjectId, bool)> {
    let null = repository.gix.object_hash().null();
    let during = || format!("merging `{}`", String::from_utf8_lossy(path));

    for (version, kind) in versions.into_iter().zip(VERSIONS) {
        let id = version.map_or(null, |entry| entry.id);
        let (path, objects) = (BStr::new(path), &repository.gix.objects);
        platform
            .set_resource(id, EntryKind::Blob, path, kind, objects)
            .during(during())?;
    }

    let options = repository.gix.blob_merge_options().during(during())?;
    let merge = platform
        .prepare_merge(&repository.gix.objects, options)
        .during(during())?;
    let labels = Labels {
        ancestor: Some("before".into()),
        current: Some("yours".into()),
        other: Some("turn".into()),
    };

    // A driver or `union` would mix edits of the user's into turns, and could not undo a turn.
    let driver = match merge.configured_driver() {
        Err(BuiltinDriver::Binary) => BuiltinDriver::Binary,
        _ => BuiltinDriver::Text,
    };
    let (mut bytes, mut input) = (Vec::new(), InternedInput::new(&[][..], &[]));
    let (pick, resolution) = merge.builtin_merge(driver, &mut bytes, &mut input, labels);
    let written = merge.id_by_pick(pick, &bytes, |bytes| sink.add(Kind::Blob, bytes.to_vec()));
    let id = written?.with_context(|| format!("{}: no result", during()))?;
    Ok((id, resolution != Resolution::Conflict))
}

fn by_path(changes: Vec<TreeChange>) -> SideChanges {
    changes
        .into_iter()
        .map(|change| (change.path.clone(), change))
        .collect()
}

/// Returns the paths at which one side has a file and the other side a directory.
fn dir_file_conflicts(ours: &SideChanges, theirs: &SideChanges) -> BTreeSet<Vec<u8>> {
    let mut paths = BTreeSet::new();
    for (one, other) in [(ours, theirs), (theirs, ours)] {
        for (path, _) in one.iter().filter(|(_, change)| change.new.is_some()) {
            for parent in parent_dirs(path) {
                if other.get(parent).is_some_and(|change| change.new.is_some()) {
                    paths.extend([path.clone(), parent.to_owned()]);
                }
            }
        }
    }

    paths
}

/// Merges one value of base, ours and theirs. `None` if both sides changed it.
fn merge_value<T: PartialEq + Copy>(versions: [Option<T>; 3]) -> Option<T> {
    match versions.into() {
        (_, ours, theirs) if ours == theirs => ours,
        (base, ours, theirs) if base == ours => theirs,
        (base, ours, theirs) if base == theirs => ours,
        _ => None,
    }
}
