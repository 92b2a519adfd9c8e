//! Finds damaged loose objects and packs, and moves them to `.git/teddy/undo`.
//!
//! git renames a loose object into place before its content is on disk. After a power cut the file
//! can be empty or full of zeros. git then treats the object as existing: it does not write it
//! again, and fails on everything that refers to it.

use std::collections::BTreeSet;
use std::fs::{DirEntry, File, Metadata};
use std::io::{BufReader, ErrorKind, Read as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use gix::ObjectId;
use gix::zlib::Decompress;
use gix::zlib::stream::inflate;

use crate::git::keep::pack::keep;
use crate::git::keep::store_access::{self, ReadExtent};
use crate::git::object::{Commit, CommitId, absent};
use crate::git::remove_if_exists;
use crate::git::repository::Repository;
use crate::host::file::failure;
use crate::host::file::{
    is_out_of_reach, make_dirs, open_regular, read_regular_text, write_atomic,
};
use crate::host::machine;
use crate::host::threads::{cores, parallel_map};

/// File below `teddy/` with the boot id of the last check.
const BOOT: &str = "boot";

/// git's messages for errors of the machine, which prove nothing about the object.
const OUT_OF_REACH: [&str; 5] = [
    "Permission denied",
    "Input/output error",
    "Out of memory",
    "Too many open files",
    "Cannot allocate memory",
];

const MAX_BOOT: u64 = 1024;

/// Returns whether the system has restarted since [`note_start`]. The first command then looks for
/// damage by power loss.
pub fn has_rebooted(repository: &Repository) -> bool {
    let Some(now) = machine::boot_id() else {
        return false;
    };
    let recorded = read_regular_text(&repository.teddy_dir().join(BOOT), MAX_BOOT);

    recorded.map_or(true, |recorded| recorded.trim() != now)
}

/// Records that damage from before this boot was handled.
pub fn note_start(repository: &Repository) -> anyhow::Result<()> {
    let Some(now) = machine::boot_id() else {
        return Ok(());
    };
    let dir = repository.teddy_dir();
    make_dirs(&dir).with_context(|| format!("cannot create `{}`", dir.display()))?;
    Ok(write_atomic(&dir.join(BOOT), now.as_bytes())?)
}

/// Moves loose objects without valid content to `undo/objects`. Returns their names.
pub fn quarantine_damaged_objects(repository: &Repository) -> anyhow::Result<Vec<String>> {
    let mut damaged = Vec::new();
    for (name, path) in damaged_objects(repository) {
        if quarantine_object(repository, &path, &name)? {
            damaged.push(name);
        }
    }

    damaged.sort();
    Ok(damaged)
}

pub fn is_readable(repository: &Repository, id: CommitId) -> bool {
    repository
        .commit(id)
        .is_ok_and(|Commit { tree, .. }| absent::find(|| repository.gix.find_tree(tree.0)).is_ok())
}

/// Returns whether all objects that a commit reaches beyond the user's own refs exist. Their
/// history is excluded: it can be damaged or endless.
///
/// Asks git, which reads every tree: use it for repairs only. Fails if git failed for another
/// reason than a missing or damaged object.
pub fn is_complete(repository: &Repository, id: CommitId) -> anyhow::Result<bool> {
    let mut command = repository.git()?;
    // Otherwise `--all` includes the HEADs of linked worktrees, and a session's is this very
    // commit.
    command.args(["rev-list", "--objects", "--quiet", "--single-worktree"]);
    if repository.is_partial() {
        // Objects that only the server has are not lost.
        command.arg("--exclude-promisor-objects");
    }

    let output = command
        .args([&id.to_string(), "--not", "--exclude=refs/teddy/*", "--all"])
        .output()
        .context("starting git rev-list")?;
    if output.status.success() {
        return Ok(true);
    }

    let stderr = String::from_utf8_lossy(&output.stderr);
    let stderr = stderr.trim();
    anyhow::ensure!(
        output.status.code().is_some()
            && !OUT_OF_REACH.iter().any(|message| stderr.contains(message)),
        "git could not read what {id} reaches ({}): {stderr}",
        output.status
    );
    // An object in an unreadable file is not lost.
    store_access::ensure_readable(repository, ReadExtent::All)?;
    Ok(false)
}

/// Returns the names and paths of loose objects without valid content.
fn damaged_objects(repository: &Repository) -> Vec<(String, PathBuf)> {
    let objects = repository.gix.objects.store_ref().path();
    let length = repository.gix.object_hash().len_in_hex();
    // A repository that was never packed has one for each file of each commit.
    let parts = (0..cores()).map(|part| (part..=0xff).step_by(cores()));
    let found = parallel_map(parts, |firsts| {
        let objects = firsts.flat_map(|first| loose_objects(objects, length, first));
        let damaged = objects.filter(|(_, entry)| lacks_zlib_header(entry));
        damaged
            .map(|(name, entry)| (name, entry.path()))
            .collect::<Vec<_>>()
    });

    found.into_iter().flatten().collect()
}

/// Returns the names and files of the loose objects whose ids begin with a byte.
fn loose_objects(
    objects: &Path,
    length: usize,
    first: usize,
) -> impl Iterator<Item = (String, DirEntry)> {
    let start = format!("{first:02x}");
    let entries = std::fs::read_dir(objects.join(&start)).into_iter();
    entries.flatten().flatten().filter_map(move |entry| {
        let name = format!("{start}{}", entry.file_name().to_str()?);
        let is_id = name.len() == length && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then_some((name, entry))
    })
}

/// Moves a loose object to the quarantine. Returns `false` if it no longer exists.
pub(super) fn quarantine_object(
    repository: &Repository,
    path: &Path,
    name: &str,
) -> anyhow::Result<bool> {
    let quarantine_dir = quarantined_objects_dir(repository);
    make_dirs(&quarantine_dir)
        .with_context(|| format!("cannot create `{}`", quarantine_dir.display()))?;

    match std::fs::rename(path, quarantine_dir.join(name)) {
        // A concurrent `git gc` deleted it.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        moved => moved
            .map(|()| true)
            .with_context(|| format!("cannot move the damaged object `{}`", path.display())),
    }
}

fn lacks_zlib_header(entry: &DirEntry) -> bool {
    // Reading a pipe would block, and git writes no symlinks.
    let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
    let Some(Ok(mut file)) = is_file.then(|| open_regular(&entry.path())) else {
        return false;
    };
    let mut header = [0; 2];
    match file.read_exact(&mut header) {
        // Method deflate, and the check bits of RFC 1950.
        Ok(()) => header[0] & 0x0f != 8 || u16::from_be_bytes(header) % 31 != 0,
        Err(error) => error.kind() == ErrorKind::UnexpectedEof,
    }
}

// Moves loose objects away whose content does not match their name.
//
// An unconfined command can write objects. It can predict the id of a file that TeDDy will write,
// and store other bytes under that name first; TeDDy would then treat the object as already
// written. Neither git nor gix verifies the hash of a loose object when it reads it. So objects
// that appeared or changed while such commands ran are verified right afterwards, before anything
// depends on them.

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

/// Returns the current time of the clock that sets `FsTime::of`, which can differ from ours.
pub fn fs_now(repository: &Repository) -> anyhow::Result<FsTime> {
    let dir = repository.teddy_dir();
    make_dirs(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
    let file = tempfile::Builder::new().prefix("moment-").tempfile_in(&dir);
    let metadata = file
        .and_then(|file| file.as_file().metadata())
        .with_context(|| format!("cannot write in `{}`", dir.display()))?;

    Ok(FsTime::of(&metadata))
}

/// Moves loose objects to `undo/objects` that changed since a moment and do not match their name.
/// Returns their names.
pub fn quarantine_false_objects(
    repository: &Repository,
    since: FsTime,
) -> anyhow::Result<Vec<String>> {
    let objects = repository.common_dir().join("objects");
    let hash = repository.gix.object_hash();
    let length = hash.len_in_hex();
    let mut quarantined = Vec::new();
    for (name, entry) in (0..=0xff).flat_map(|first| loose_objects(&objects, length, first)) {
        let path = entry.path();
        if entry
            .metadata()
            .is_ok_and(|metadata| FsTime::of(&metadata) >= since)
            && !matches_object_id(&path, &name, hash)
                .with_context(|| format!("cannot read `{}`", path.display()))?
            && quarantine_object(repository, &path, &name)?
        {
            quarantined.push(name);
        }
    }

    Ok(quarantined)
}

/// Returns whether a loose object's inflated bytes hash to its name. Fails if the file is
/// unreadable.
pub(super) fn matches_object_id(
    path: &Path,
    name: &str,
    kind: gix::hash::Kind,
) -> std::io::Result<bool> {
    // Opening a pipe would block, and git writes no symlinks.
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
            // An I/O error proves nothing about the content.
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

// Finds and moves away packs that power loss has torn, because git would fail on them forever.
//
// A pack is renamed into place before its content is on disk. A session's ref waits for the
// content, but the name stays: `git gc` fails, and TeDDy would treat its objects as written. A
// pack that is still being written is not affected, because it gets its name when it is complete.

/// What was done about torn packs, by their names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TornPacks {
    /// The pack is whole and has another index.
    pub indexed: Vec<String>,
    pub moved: Vec<String>,
}

/// Makes the index of whole packs again, and moves empty packs, and torn packs of ours, to
/// `undo/packs`. The caller holds the repository lock.
pub fn repair_torn_packs(repository: &Repository) -> anyhow::Result<TornPacks> {
    let files = keep::pack_files(repository)?;
    let existing: BTreeSet<PathBuf> = files.iter().map(|path| path.with_extension("")).collect();
    let empty: BTreeSet<PathBuf> = files
        .iter()
        .filter(|path| is_empty_pack(path))
        .map(|path| path.with_extension(""))
        .collect();
    let listed = keep::listed_packs(repository);
    let mut torn = TornPacks::default();
    for pack in existing {
        let Some(name) = pack.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        let is_ours = empty.contains(&pack) || listed.contains(&pack);
        match has_valid_trailer(&pack) {
            Ok(true) if !empty.contains(&pack) => continue,
            Err(error) if is_ours => return Err(error.into()),
            Ok(_) if is_ours || ends_as_named(&pack, name) => {}
            _ => continue,
        }
        let index = index_again(repository, &pack.with_extension("pack"), name)?;
        if let Ok(index) = index {
            move_file(&index, &pack.with_extension("idx"))?;
            torn.indexed.push(name.to_owned());
        } else if is_ours {
            quarantine_pack(repository, &pack)?;
            torn.moved.push(name.to_owned());
        }
    }
    Ok(torn)
}

/// git names a pack by the checksum at its end.
fn ends_as_named(pack: &Path, name: &str) -> bool {
    let id = name.strip_prefix("pack-").map(str::as_bytes);
    let Some(Ok(id)) = id.map(ObjectId::from_hex) else {
        return false;
    };
    let end = read_trailer(&pack.with_extension("pack"), id.kind().len_in_bytes());
    end.is_ok_and(|end| end == id.as_slice())
}

/// Writes the index of a pack into quarantine. Returns its path, or why the pack has none.
fn index_again(
    repository: &Repository,
    pack: &Path,
    name: &str,
) -> anyhow::Result<Result<PathBuf, String>> {
    let quarantine = quarantined_packs_dir(repository);
    make_dirs(&quarantine).with_context(|| format!("cannot make `{}`", quarantine.display()))?;
    let index = quarantine.join(format!("{name}.new.idx"));
    remove_if_exists(&index)?;
    let output = repository
        .git()?
        // Only the pack and its index are moved.
        .args(["-c", "pack.writeReverseIndex=false", "index-pack", "-o"])
        .args([&index, pack])
        .output()
        .context("starting git index-pack")?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    Ok(match output.status.success() {
        true => Ok(index),
        false => Err(stderr.trim().to_owned()),
    })
}

fn quarantine_pack(repository: &Repository, pack: &Path) -> anyhow::Result<()> {
    let quarantine_dir = quarantined_packs_dir(repository);
    make_dirs(&quarantine_dir)
        .with_context(|| format!("cannot make `{}`", quarantine_dir.display()))?;
    // The index first: without it, git does not use the pack.
    for path in ["idx", "pack", "keep"].map(|ending| pack.with_extension(ending)) {
        let to = quarantine_dir.join(path.file_name().unwrap_or_default());
        match std::fs::rename(&path, to) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            moved => moved
                .with_context(|| format!("cannot move the damaged pack `{}`", path.display()))?,
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

/// Returns whether a pack of ours ends with the checksum that its index names. Lost data reads as
/// zeros or is cut off. Fails if a file is unreadable.
fn has_valid_trailer(pack: &Path) -> std::io::Result<bool> {
    let name = pack.file_name().and_then(|name| name.to_str());
    let id = name.and_then(|name| name.strip_prefix("pack-"));
    let Some(Ok(id)) = id.map(|id| ObjectId::from_hex(id.as_bytes())) else {
        return Ok(true);
    };
    let length = id.kind().len_in_bytes();
    let end = |ending: &str, count: usize| match read_trailer(&pack.with_extension(ending), count) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if is_out_of_reach(&error) => Err(error),
        read => Ok(Some(read.unwrap_or_default())),
    };

    // An index ends with the pack's checksum and its own.
    let (pack, index) = (end("pack", length)?, end("idx", 2 * length)?);
    let (pack, index) = (pack.as_deref(), index.as_deref());
    let sums = index.map(|sums| sums.split_at(length.min(sums.len())));
    let (recorded, own) = sums.unzip();
    let is_lost = |sum: &[u8]| sum.iter().all(|byte| *byte == 0);
    let is_whole = !([pack, recorded, own].into_iter().flatten()).any(is_lost);
    let mut sums = pack.into_iter().zip(recorded);
    Ok(is_whole && sums.all(|(pack, recorded)| pack == recorded))
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreOutcome {
    Restored,
    /// It stays in quarantine, for this reason.
    Refused(String),
}

/// Refuses to restore something, for a reason.
pub fn refused(why: &str) -> anyhow::Result<RestoreOutcome> {
    Ok(RestoreOutcome::Refused(why.to_owned()))
}

pub fn quarantined_packs_dir(repository: &Repository) -> PathBuf {
    repository.teddy_dir().join("undo").join("packs")
}

pub fn quarantined_objects_dir(repository: &Repository) -> PathBuf {
    repository.teddy_dir().join("undo").join("objects")
}

/// Restores a pack, given by its name without extension, if git can read all of it. Its index is
/// rebuilt.
pub fn restore_pack(repository: &Repository, name: &str) -> anyhow::Result<RestoreOutcome> {
    let quarantine = quarantined_packs_dir(repository);
    let from = quarantine.join(format!("{name}.pack"));
    let to = keep::pack_dir(repository).join(format!("{name}.pack"));
    if from.symlink_metadata().is_err() {
        return refused("only its index was quarantined");
    }
    if to.symlink_metadata().is_ok() {
        return refused("there is a pack of this name");
    }

    let index = match index_again(repository, &from, name)? {
        Ok(index) => index,
        Err(why) => return refused(&format!("it is damaged: {why}")),
    };

    // The pack first: git finds one by its index.
    move_file(&from, &to)?;
    move_file(&index, &to.with_extension("idx"))?;
    for ending in ["idx", "keep"] {
        remove_if_exists(&from.with_extension(ending))?;
    }
    Ok(RestoreOutcome::Restored)
}

/// Restores a loose object if its bytes hash to its name.
pub fn restore_object(repository: &Repository, name: &str) -> anyhow::Result<RestoreOutcome> {
    let from = quarantined_objects_dir(repository).join(name);
    let objects = repository.gix.objects.store_ref().path();
    let Some((dir, file_name)) = name.split_at_checked(2) else {
        return refused("it is not a valid object");
    };
    let to = objects.join(dir).join(file_name);
    if to.symlink_metadata().is_ok() {
        return refused("the object is there");
    }
    if !matches_object_id(&from, name, repository.gix.object_hash())? {
        return refused("it is damaged");
    }

    make_dirs(&objects.join(dir)).context("making a directory for the object")?;
    move_file(&from, &to)?;
    Ok(RestoreOutcome::Restored)
}

fn move_file(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::rename(from, to)
        .with_context(|| format!("cannot move `{}` to `{}`", from.display(), to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: bool) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("object"), bytes).unwrap();
        assert_eq!(
            damaged_count(dir.path()),
            usize::from(expected),
            "{bytes:?}"
        );
    }

    fn damaged_count(dir: &Path) -> usize {
        let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
        entries.filter(lacks_zlib_header).count()
    }

    #[test]
    fn an_object_without_the_header_of_its_compression_is_damaged() {
        check(b"", true);
        check(b"x", true);
        check(&[0; 40], true);
        check(b"plain text", true);
        check(&[0x78, 0x00, 0x4b], true);
        check(&[0x78, 0x01, 0x4b], false);
        check(&[0x78, 0x9c, 0x4b], false);
        check(&[0x78, 0xda, 0x4b], false);
    }

    #[test]
    fn only_regular_files_are_read_as_objects() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("dir")).unwrap();
        std::os::unix::fs::symlink("/dev/null", dir.path().join("link")).unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert_eq!(damaged_count(dir.path()), 0);
    }
}
