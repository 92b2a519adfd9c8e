//! Moves loose objects away whose content does not match their name.
//!
//! An unconfined command can write objects. It can predict the id of a file that TeDDy will write,
//! and store other bytes under that name first; TeDDy would then treat the object as already
//! written. Neither git nor gix verifies the hash of a loose object when it reads it. So objects
//! that appeared or changed while such commands ran are verified right afterwards, before anything
//! depends on them.

use std::fs::{DirEntry, File, Metadata};
use std::io::{BufReader, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::Context as _;
use gix::zlib::Decompress;
use gix::zlib::stream::inflate;

use super::damaged::quarantine_object;
use crate::git::repository::Repository;
use crate::host::file::make_dirs;

/// Inflation limit in bytes; a larger object is treated as false.
const MAX_INFLATED: u64 = 4 << 30;

/// A time of the file system's clock: seconds and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FsTime(i64, i64);

impl FsTime {
    /// Returns the ctime, which changes with content, name and location.
    pub(in crate::git) fn of(metadata: &Metadata) -> FsTime {
        FsTime(metadata.ctime(), metadata.ctime_nsec())
    }
}

/// Returns the current time of the file system that contains TeDDy's directory.
pub fn fs_now(repository: &Repository) -> anyhow::Result<FsTime> {
    let dir = repository.teddy_dir();
    make_dirs(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
    let file = tempfile::Builder::new().prefix("moment-").tempfile_in(&dir);
    let metadata = file
        .and_then(|file| file.as_file().metadata())
        .with_context(|| format!("cannot write in `{}`", dir.display()))?;

    Ok(FsTime(metadata.ctime(), metadata.ctime_nsec()))
}

/// Moves loose objects to `undo/objects` that changed since a moment and do not match their name.
/// Returns their names.
pub fn quarantine_false_objects(
    repository: &Repository,
    since: FsTime,
) -> anyhow::Result<Vec<String>> {
    let objects = repository.common_dir().join("objects");
    let mut quarantined = Vec::new();
    for first in 0..=0xff_u8 {
        let start = format!("{first:02x}");
        for entry in std::fs::read_dir(objects.join(&start))
            .into_iter()
            .flatten()
            .flatten()
        {
            let Some(name) = changed_object_name(repository, &start, &entry, since) else {
                continue;
            };
            let path = entry.path();
            let is_right = matches_object_id(&path, &name, repository.gix.object_hash());
            if !is_right.with_context(|| format!("cannot read `{}`", path.display()))?
                && quarantine_object(repository, &entry.path(), &name)?
            {
                quarantined.push(name);
            }
        }
    }

    Ok(quarantined)
}

fn changed_object_name(
    repository: &Repository,
    start: &str,
    entry: &DirEntry,
    since: FsTime,
) -> Option<String> {
    let name = format!("{start}{}", entry.file_name().to_str()?);
    let is_id = name.len() == repository.gix.object_hash().len_in_hex()
        && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let metadata = entry.metadata().ok().filter(|_| is_id)?;
    (FsTime(metadata.ctime(), metadata.ctime_nsec()) >= since).then_some(name)
}

/// Returns whether a loose object's bytes have the hash that its name says: what is compressed is
/// the very text that is hashed. A file that cannot be read is an error.
pub(super) fn matches_object_id(
    path: &Path,
    name: &str,
    kind: gix::hash::Kind,
) -> std::io::Result<bool> {
    // A pipe would never answer, and git writes no links.
    if !path
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.is_file())
    {
        return Ok(false);
    }
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        file => file?,
    };

    let (mut reader, mut state, mut hasher) = (
        BufReader::new(file),
        Decompress::new(),
        gix::hash::hasher(kind),
    );
    let (mut buffer, mut total) = (vec![0; 64 * 1024], 0_u64);
    loop {
        match inflate::read(&mut reader, &mut state, &mut buffer) {
            Ok(0) => break,
            Ok(length) => {
                hasher.update(&buffer[..length]);
                total += length as u64;
            }
            // The system's error, not that of the decompression.
            Err(error) if error.raw_os_error().is_some() => return Err(error),
            Err(_) => return Ok(false),
        }

        if total > MAX_INFLATED {
            return Ok(false);
        }
    }

    Ok(hasher
        .try_finalize()
        .is_ok_and(|id| id.to_hex().to_string().as_str() == name))
}
