//! Finds and moves away loose objects that power loss has emptied.
//!
//! git renames a loose object into place before its content is on disk. After a power cut the file
//! can be empty or full of zeros. git then believes that the object exists, does not write it again
//! when the same content is added, and cannot read anything that refers to it. So such a file is
//! treated as missing.

use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::git::keep::store_access::{self, ReadExtent};
use crate::git::object::absent;
use crate::git::object::{Commit, CommitId};
use crate::git::repository::Repository;
use crate::host::file::{make_dirs, open_regular, read_regular_text, write_atomic};
use crate::host::machine;

/// File below `teddy/` with the boot id of the last check.
const BOOT: &str = "boot";

/// What git says if the machine kept it from reading, rather than the object's bytes.
const OUT_OF_REACH: [&str; 5] = [
    "Permission denied",
    "Input/output error",
    "Out of memory",
    "Too many open files",
    "Cannot allocate memory",
];
/// Sane boot ids are far shorter.
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

    for (name, path) in loose_objects(repository) {
        if lacks_zlib_header(&path) && quarantine_object(repository, &path, &name)? {
            damaged.push(name);
        }
    }

    damaged.sort();
    Ok(damaged)
}

/// Returns whether a commit and its tree are readable.
pub fn is_readable(repository: &Repository, id: CommitId) -> bool {
    repository
        .commit(id)
        .is_ok_and(|Commit { tree, .. }| absent::find(|| repository.gix.find_tree(tree.0)).is_ok())
}

/// Returns whether all objects that a commit reaches beyond the user's own refs exist.
///
/// Asks git, which reads every tree: for a repair, not for every command. The user's own history
/// can be damaged or endless; neither is ours to judge. If git fails for another reason than a
/// missing or damaged object, that is an error: nothing is known then.
pub fn is_complete(repository: &Repository, id: CommitId) -> anyhow::Result<bool> {
    let mut command = repository.git()?;
    // `--all` has the HEADs of linked worktrees otherwise, and that of a session's is the very commit.
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
    store_access::ensure_readable(repository, ReadExtent::All)?;
    Ok(false)
}

fn loose_objects(repository: &Repository) -> impl Iterator<Item = (String, PathBuf)> + use<> {
    let objects = repository.gix.objects.store_ref().path().to_owned();
    let length = repository.gix.object_hash().len_in_hex();

    (0..=0xff_u8).flat_map(move |first| {
        let start = format!("{first:02x}");
        let files = std::fs::read_dir(objects.join(&start));
        let entries = files
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(move |file| {
                let name = format!("{start}{}", file.file_name().to_str()?);
                let is_id = name.len() == length && name.bytes().all(|b| b.is_ascii_hexdigit());
                is_id.then(|| (name, file.path()))
            });

        entries.collect::<Vec<_>>()
    })
}

/// Moves a loose object to the quarantine. Returns `false` if it no longer exists.
pub(super) fn quarantine_object(
    repository: &Repository,
    path: &Path,
    name: &str,
) -> anyhow::Result<bool> {
    let quarantine_dir = repository.teddy_dir().join("undo").join("objects");
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

/// Returns whether a file lacks the zlib header of a loose object.
fn lacks_zlib_header(path: &Path) -> bool {
    // Reading a pipe would block, and git writes no symlinks.
    if !path
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.is_file())
    {
        return false;
    }

    let Ok(mut file) = open_regular(path) else {
        return false;
    };

    let mut header = [0; 2];
    match file.read_exact(&mut header) {
        Ok(()) => header[0] & 0x0f != 8 || u16::from_be_bytes(header) % 31 != 0,
        Err(error) => error.kind() == ErrorKind::UnexpectedEof,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: bool) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("object");
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(lacks_zlib_header(&path), expected, "{bytes:?}");
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
}
