//! Finds and removes files that are no longer needed: old undo data and leftovers of killed
//! processes.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;

use super::DAY;
use crate::git::repository::Repository;
use crate::host::clock;
use crate::host::file::Root;
use crate::host::file::remove_below;

/// Prefixes of temporary files: state files, indexes, clock probes, and loose objects by gix.
const TEMPORARY: [&str; 4] = [
    crate::host::file::TEMPORARY,
    "tmp-index-",
    "moment-",
    ".tmp",
];
/// Directories whose file names are session names.
const SESSION_DIRS: [&str; 7] = [
    "tips",
    "own-drafts",
    "log",
    "spent",
    "locks",
    "current",
    "archive",
];

/// Old files below `teddy/undo`, old damaged state, and abandoned temporary files.
pub(super) fn old_files(repository: &Repository, days: u32) -> Vec<PathBuf> {
    let teddy = repository.teddy_dir();
    let mut files = files_below(&teddy.join("undo"));
    let is_set_aside = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("pending.json.bad"))
    };
    files.extend(
        std::fs::read_dir(&teddy)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(is_set_aside),
    );

    let old = files
        .into_iter()
        .filter(|path| age(path).is_some_and(|age| age >= DAY * days));
    old.chain(abandoned(repository)).collect()
}

pub(super) fn remove_files(files: &[PathBuf]) -> anyhow::Result<()> {
    files.iter().try_for_each(|path| {
        std::fs::remove_file(path).with_context(|| format!("removing `{}`", path.display()))
    })
}

/// Leftovers of killed processes in a directory: unchecked quarantines and unfinished signatures.
pub(super) fn find_leftovers(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let Ok(root) = Root::open_strictly(dir) else {
        return Ok(Vec::new());
    };
    let paths = root.names()?.into_iter().map(|name| dir.join(name));
    Ok(paths
        .filter(|path| age(path).is_some_and(|age| age >= DAY))
        .collect())
}

/// Removes untrusted files and directories. Follows no symlink.
pub(super) fn remove_foreign(paths: &[PathBuf]) -> anyhow::Result<()> {
    for path in paths {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
            continue;
        };
        remove_below(&Root::open_strictly(dir)?, name)?;
    }
    Ok(())
}

/// Temporary files of killed processes, at least a day old.
fn abandoned(repository: &Repository) -> impl Iterator<Item = PathBuf> {
    let objects = std::fs::read_dir(repository.common_dir().join("objects"))
        .into_iter()
        .flatten()
        .flatten();
    let files = files_below(&repository.teddy_dir())
        .into_iter()
        .chain(objects.map(|entry| entry.path()));
    let of_sessions = SESSION_DIRS.map(|folder| repository.teddy_dir().join(folder));
    let is_temporary = move |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Session names can start like our temporary files, except for the first prefix.
        let prefixes = if of_sessions.iter().any(|dir| path.starts_with(dir)) {
            &TEMPORARY[..1]
        } else {
            &TEMPORARY
        };
        prefixes.iter().any(|start| name.starts_with(start)) && path.is_file()
    };

    files.filter(move |path| is_temporary(path) && age(path).is_some_and(|age| age >= DAY))
}

/// Time since the last modification or move of a file.
pub(super) fn age(path: &Path) -> Option<Duration> {
    use std::os::unix::fs::MetadataExt as _;

    let metadata = std::fs::symlink_metadata(path).ok()?;
    let moved = SystemTime::UNIX_EPOCH
        + Duration::from_secs(u64::try_from(metadata.ctime()).unwrap_or_default());
    let modified = metadata.modified().ok()?.max(moved);
    let now = SystemTime::UNIX_EPOCH
        + Duration::from_secs(u64::try_from(clock::now().timestamp().as_second()).ok()?);

    Some(now.duration_since(modified).unwrap_or_default())
}

/// All files below a directory. Follows no symlink, not even the directory itself.
pub(in crate::workflow) fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut dirs = vec![dir.to_owned()];
    dirs.retain(|dir| !dir.is_symlink());
    let mut files = Vec::new();
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                dirs.push(entry.path())
            } else {
                files.push(entry.path())
            }
        }
    }

    files
}

pub(in crate::workflow) fn dir_size(dir: &Path) -> u64 {
    total_size(&files_below(dir))
}

pub(super) fn total_size(files: &[PathBuf]) -> u64 {
    files
        .iter()
        .filter_map(|path| Some(std::fs::symlink_metadata(path).ok()?.len()))
        .sum()
}
