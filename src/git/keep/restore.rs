//! Returns quarantined packs and loose objects to the object store if they are valid.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::corrupt::matches_object_id;
use super::pack::keep;
use crate::git::repository::Repository;
use crate::host::file::make_dirs;

/// Result of an attempt to return an object or pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreOutcome {
    /// It is.
    Restored,
    /// It stays where it is, and why.
    Refused(String),
}

/// Quarantine of packs.
pub fn quarantined_packs_dir(repository: &Repository) -> PathBuf {
    repository.teddy_dir().join("undo").join("packs")
}

/// Quarantine of loose objects.
pub fn quarantined_objects_dir(repository: &Repository) -> PathBuf {
    repository.teddy_dir().join("undo").join("objects")
}

/// Puts a pack back, given by its name without an ending, once git has read all of it. Its index is
/// made anew.
pub fn restore_pack(repository: &Repository, name: &str) -> anyhow::Result<RestoreOutcome> {
    let quarantine = quarantined_packs_dir(repository);
    let from = quarantine.join(format!("{name}.pack"));
    let to = keep::pack_dir(repository).join(format!("{name}.pack"));
    if from.symlink_metadata().is_err() {
        return Ok(RestoreOutcome::Refused(
            "only its index was quarantined".to_owned(),
        ));
    }
    if to.symlink_metadata().is_ok() {
        return Ok(RestoreOutcome::Refused(
            "there is a pack of this name".to_owned(),
        ));
    }

    let index = quarantine.join(format!("{name}.new.idx"));
    remove_if_exists(&index)?;
    let output = repository
        .git()?
        .args(["-c", "pack.writeReverseIndex=false", "index-pack", "-o"])
        .args([&index, &from])
        .output()
        .context("starting git index-pack")?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Ok(RestoreOutcome::Refused(format!(
            "it is damaged: {}",
            stderr.trim()
        )));
    }

    // The pack first: git finds one by its index.
    move_file(&from, &to)?;
    move_file(&index, &to.with_extension("idx"))?;
    for ending in ["idx", "keep"] {
        remove_if_exists(&from.with_extension(ending))?;
    }
    Ok(RestoreOutcome::Restored)
}

/// Puts a loose object back if its bytes have the hash that its name says.
pub fn restore_object(repository: &Repository, name: &str) -> anyhow::Result<RestoreOutcome> {
    let from = quarantined_objects_dir(repository).join(name);
    let objects = repository.gix.objects.store_ref().path();
    let Some((dir, file_name)) = name.split_at_checked(2) else {
        return Ok(RestoreOutcome::Refused(
            "it is not a valid object".to_owned(),
        ));
    };
    let to = objects.join(dir).join(file_name);
    if to.symlink_metadata().is_ok() {
        return Ok(RestoreOutcome::Refused("the object is there".to_owned()));
    }
    if !matches_object_id(&from, name, repository.gix.object_hash())? {
        return Ok(RestoreOutcome::Refused("it is damaged".to_owned()));
    }

    make_dirs(&objects.join(dir)).context("making a directory for the object")?;
    move_file(&from, &to)?;
    Ok(RestoreOutcome::Restored)
}

fn move_file(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::rename(from, to)
        .with_context(|| format!("cannot move `{}` to `{}`", from.display(), to.display()))
}

fn remove_if_exists(path: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing `{}`", path.display()))
        }
        _ => Ok(()),
    }
}
