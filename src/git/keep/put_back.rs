//! Returns quarantined packs and loose objects to the object store if they are valid.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::corrupt::is_named_rightly;
use super::pack::keep;
use crate::git::repository::Repository;
use crate::host::file::make_folders;

/// Result of an attempt to return an object or pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutBack {
    /// It is.
    Done,
    /// It stays where it is, and why.
    Refused(String),
}

/// Quarantine of packs.
pub fn packs_dir(repository: &Repository) -> PathBuf {
    repository.teddy_dir().join("undo").join("packs")
}

/// Quarantine of loose objects.
pub fn objects_dir(repository: &Repository) -> PathBuf {
    repository.teddy_dir().join("undo").join("objects")
}

/// Puts a pack back, given by its name without an ending, once git has read all of it. Its index is
/// made anew.
pub fn put_pack_back(repository: &Repository, name: &str) -> anyhow::Result<PutBack> {
    let aside = packs_dir(repository);
    let from = aside.join(format!("{name}.pack"));
    let to = keep::pack_folder(repository).join(format!("{name}.pack"));
    if from.symlink_metadata().is_err() {
        return Ok(PutBack::Refused(
            "only its index was quarantined".to_owned(),
        ));
    }
    if to.symlink_metadata().is_ok() {
        return Ok(PutBack::Refused("there is a pack of this name".to_owned()));
    }

    let index = aside.join(format!("{name}.new.idx"));
    remove_if_there(&index)?;
    let output = repository
        .git()?
        .args(["-c", "pack.writeReverseIndex=false", "index-pack", "-o"])
        .args([&index, &from])
        .output()
        .context("starting git index-pack")?;
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        return Ok(PutBack::Refused(format!("it is damaged: {}", told.trim())));
    }

    // The pack first: git finds one by its index.
    move_file(&from, &to)?;
    move_file(&index, &to.with_extension("idx"))?;
    for ending in ["idx", "keep"] {
        remove_if_there(&from.with_extension(ending))?;
    }
    Ok(PutBack::Done)
}

/// Puts a loose object back if its bytes have the hash that its name says.
pub fn put_object_back(repository: &Repository, name: &str) -> anyhow::Result<PutBack> {
    let from = objects_dir(repository).join(name);
    let objects = repository.gix.objects.store_ref().path();
    let Some((dir, rest)) = name.split_at_checked(2) else {
        return Ok(PutBack::Refused("it is not a valid object".to_owned()));
    };
    let to = objects.join(dir).join(rest);
    if to.symlink_metadata().is_ok() {
        return Ok(PutBack::Refused("the object is there".to_owned()));
    }
    if !is_named_rightly(&from, name, repository.gix.object_hash())? {
        return Ok(PutBack::Refused("it is damaged".to_owned()));
    }

    make_folders(&objects.join(dir)).context("making a directory for the object")?;
    move_file(&from, &to)?;
    Ok(PutBack::Done)
}

fn move_file(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::rename(from, to)
        .with_context(|| format!("cannot move `{}` to `{}`", from.display(), to.display()))
}

fn remove_if_there(path: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing `{}`", path.display()))
        }
        _ => Ok(()),
    }
}
