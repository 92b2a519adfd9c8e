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
use crate::host::file::{failure, is_out_of_reach, make_dirs, open_regular};

/// Moves empty packs, and torn packs of ours, to `undo/packs`. Returns their names. The caller
/// holds the repository lock.
pub fn quarantine_truncated_packs(repository: &Repository) -> anyhow::Result<Vec<String>> {
    let files = keep::pack_files(repository)?;
    // Most of those that were made here were joined to others since.
    let existing: BTreeSet<PathBuf> = files.iter().map(|path| path.with_extension("")).collect();
    let mut truncated: BTreeSet<PathBuf> = files
        .iter()
        .filter(|path| is_empty_pack(path))
        .map(|path| path.with_extension(""))
        .collect();
    for pack in keep::listed_packs(repository) {
        if existing.contains(&pack) && !has_valid_trailer(&pack)? {
            truncated.insert(pack);
        }
    }
    truncated
        .iter()
        .try_for_each(|pack| quarantine_pack(repository, pack))?;

    Ok(truncated
        .iter()
        .filter_map(|pack| Some(pack.file_name()?.to_str()?.to_owned()))
        .collect())
}

/// Moves the files of a pack away, the index first.
fn quarantine_pack(repository: &Repository, pack: &Path) -> anyhow::Result<()> {
    let quarantine_dir = repository.teddy_dir().join("undo").join("packs");
    make_dirs(&quarantine_dir)
        .with_context(|| format!("cannot make `{}`", quarantine_dir.display()))?;
    for path in ["idx", "pack", "keep"].map(|ending| pack.with_extension(ending)) {
        match std::fs::rename(
            &path,
            quarantine_dir.join(path.file_name().unwrap_or_default()),
        ) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error)
                    .with_context(|| format!("cannot move the damaged pack `{}`", path.display()));
            }
            _ => {}
        }
    }

    Ok(())
}

fn is_empty_pack(path: &Path) -> bool {
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
fn has_valid_trailer(pack: &Path) -> std::io::Result<bool> {
    let Some(length) = pack
        .file_name()
        .and_then(|name| parse_hex_id(name.to_str()?.strip_prefix("pack-")?))
        .map(|id| id.len())
    else {
        return Ok(true);
    };
    let end = |ending: &str, count: usize| match read_trailer(&pack.with_extension(ending), count) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if is_out_of_reach(&error) => Err(error),
        read => Ok(Some(read.unwrap_or_default())),
    };

    // An index ends with the pack's checksum and its own.
    let (pack, index) = (end("pack", length)?, end("idx", 2 * length)?);
    let recorded = index
        .as_ref()
        .map(|sums| sums.split_at(length.min(sums.len())));
    let ends = [
        pack.as_deref(),
        recorded.map(|(pack, _)| pack),
        recorded.map(|(_, own)| own),
    ];
    let is_lost = |sum: &[u8]| sum.iter().all(|byte| *byte == 0);
    if ends.iter().flatten().any(|sum| is_lost(sum)) {
        return Ok(false);
    }

    Ok(match ends {
        [Some(pack), Some(recorded), _] => pack == recorded,
        _ => true,
    })
}

fn read_trailer(path: &Path, count: usize) -> std::io::Result<Vec<u8>> {
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

fn parse_hex_id(text: &str) -> Option<Vec<u8>> {
    gix::ObjectId::from_hex(text.as_bytes())
        .ok()
        .map(|id| id.as_slice().to_vec())
}
