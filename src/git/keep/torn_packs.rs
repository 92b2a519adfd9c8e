//! Finds and moves away packs that power loss has torn, because git would fail on them forever.
//!
//! A pack is renamed into place before its content is on disk. A session's ref waits for the
//! content, but the name stays: `git gc` fails, and TeDDy would treat its objects as written. A
//! pack that is still being written is not affected, because it gets its name when it is complete.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::git::keep::pack::keep;
use crate::git::repository::Repository;
use crate::host::file::{failure, is_out_of_reach, make_folders, open_regular};

/// Moves empty packs, and torn packs of ours, to `undo/packs`. Returns their names. The caller
/// holds the repository lock.
pub fn set_torn_packs_aside(repository: &Repository) -> anyhow::Result<Vec<String>> {
    let files = keep::pack_files(repository)?;
    // Most of those that were made here were joined to others since.
    let there: BTreeSet<PathBuf> = files.iter().map(|path| path.with_extension("")).collect();
    let mut torn: BTreeSet<PathBuf> = files
        .iter()
        .filter(|path| is_empty(path))
        .map(|path| path.with_extension(""))
        .collect();
    for pack in keep::listed_packs(repository) {
        if there.contains(&pack) && !ends_rightly(&pack)? {
            torn.insert(pack);
        }
    }
    torn.iter()
        .try_for_each(|pack| set_pack_aside(repository, pack))?;

    Ok(torn
        .iter()
        .filter_map(|pack| Some(pack.file_name()?.to_str()?.to_owned()))
        .collect())
}

/// Moves the files of a pack away, the index first.
fn set_pack_aside(repository: &Repository, pack: &Path) -> anyhow::Result<()> {
    let aside = repository.teddy_dir().join("undo").join("packs");
    make_folders(&aside).with_context(|| format!("cannot make `{}`", aside.display()))?;
    for path in ["idx", "pack", "keep"].map(|ending| pack.with_extension(ending)) {
        match std::fs::rename(&path, aside.join(path.file_name().unwrap_or_default())) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error)
                    .with_context(|| format!("cannot move the damaged pack `{}`", path.display()));
            }
            _ => {}
        }
    }

    Ok(())
}

fn is_empty(path: &Path) -> bool {
    let is_pack = path
        .extension()
        .is_some_and(|ending| ending == "pack" || ending == "idx");
    is_pack
        && path
            .file_stem()
            .is_some_and(|name| name.to_string_lossy().starts_with("pack-"))
        && path
            .symlink_metadata()
            .is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0)
}

/// Returns whether a pack made here ends with the checksum that its index names, as far as they are
/// there. What power took reads as zeros, or is cut off. A file that cannot be read is an error: its
/// bytes may be all right.
fn ends_rightly(pack: &Path) -> std::io::Result<bool> {
    let Some(length) = pack
        .file_name()
        .and_then(|name| from_hex(name.to_str()?.strip_prefix("pack-")?))
        .map(|id| id.len())
    else {
        return Ok(true);
    };
    let end = |ending: &str, count: usize| match end_of(&pack.with_extension(ending), count) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if is_out_of_reach(&error) => Err(error),
        read => Ok(Some(read.unwrap_or_default())),
    };

    // An index ends with the pack's checksum and its own.
    let (pack, index) = (end("pack", length)?, end("idx", 2 * length)?);
    let named = index
        .as_ref()
        .map(|sums| sums.split_at(length.min(sums.len())));
    let ends = [
        pack.as_deref(),
        named.map(|(pack, _)| pack),
        named.map(|(_, own)| own),
    ];
    let is_lost = |sum: &[u8]| sum.iter().all(|byte| *byte == 0);
    if ends.iter().flatten().any(|sum| is_lost(sum)) {
        return Ok(false);
    }

    Ok(match ends {
        [Some(pack), Some(named), _] => pack == named,
        _ => true,
    })
}

fn end_of(path: &Path, count: usize) -> std::io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let during = |error| failure("read", path, error);
    let length = file.metadata().map_err(during)?.len();
    let start = length
        .checked_sub(count as u64)
        .ok_or(ErrorKind::UnexpectedEof)?;
    let mut bytes = vec![0; count];
    file.read_exact_at(&mut bytes, start).map_err(during)?;
    Ok(bytes)
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    gix::ObjectId::from_hex(text.as_bytes())
        .ok()
        .map(|id| id.as_slice().to_vec())
}
