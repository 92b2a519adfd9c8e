//! Files that were replaced or deleted and whose bytes git does not store, because a filter drops
//! some of them. They stay in `undo/replaced` until `teddy gc` removes undo data.
//!
//! The name says which entry of a tree the file was a version of, and for which path. If that entry
//! comes back to the path, the file comes back with the bytes that it had.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use gix::ObjectId;

use super::salvaged;
use crate::git::object::large::LARGE;
use crate::git::path_handle::PathHandle;
use crate::git::repository::Repository;
use crate::host::file::{make_dirs, read_regular};

/// Hexadecimal digits of a path's hash in a name.
const PATH_DIGITS: usize = 12;
/// Bytes of the file's own name in a name.
const MAX_REPLACED_NAME: usize = 120;
/// At most this many versions of an entry are kept.
const MAX_REPLACED_VERSIONS: usize = 100;

/// Of which entry and path a file was a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::git) struct KeptAs(String);

impl KeptAs {
    pub(in crate::git) fn of(
        repository: &Repository,
        entry: ObjectId,
        path: &[u8],
    ) -> anyhow::Result<KeptAs> {
        let hash = repository.blob_id(path)?.to_string();
        Ok(KeptAs(format!("{entry}-{}", &hash[..PATH_DIGITS])))
    }

    /// Reads what [`KeptAs::as_str`] returned.
    pub(super) fn parse(text: &str) -> KeptAs {
        KeptAs(text.to_owned())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Moves a file to where it is kept.
pub(super) fn keep_replaced(
    repository: &Repository,
    file: &PathHandle,
    kept_as: &KeptAs,
    name: &[u8],
) -> anyhow::Result<()> {
    let dir = replaced_dir(repository);
    make_dirs(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
    for number in 1.. {
        match salvaged::move_or_copy(file, &dir.join(replaced_file_name(kept_as, number, name))) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            moved => {
                return moved.with_context(|| format!("cannot keep bytes in `{}`", dir.display()));
            }
        }
    }
    anyhow::bail!("no free name in `{}`", dir.display())
}

/// Keeps bytes that a command made and that git does not store, until they are written to the
/// user's file.
pub(in crate::git) fn keep_replaced_bytes(
    repository: &Repository,
    entry: ObjectId,
    path: &[u8],
    bytes: &[u8],
) -> anyhow::Result<()> {
    let kept_as = KeptAs::of(repository, entry, path)?;
    if newest_replaced(repository, &kept_as, path).as_deref() == Some(bytes) {
        return Ok(());
    }
    let dir = replaced_dir(repository);
    make_dirs(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
    for number in 1..=MAX_REPLACED_VERSIONS {
        match salvaged::write_private(
            &dir.join(replaced_file_name(&kept_as, number, path)),
            &mut &*bytes,
        ) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            written => {
                return written.with_context(|| format!("cannot write in `{}`", dir.display()));
            }
        }
    }
    Ok(())
}

/// Returns the bytes of the newest version that was kept.
pub(super) fn newest_replaced(
    repository: &Repository,
    kept_as: &KeptAs,
    path: &[u8],
) -> Option<Vec<u8>> {
    let dir = replaced_dir(repository);
    let files = (1..=MAX_REPLACED_VERSIONS)
        .map(|number| dir.join(replaced_file_name(kept_as, number, path)));
    let last = files.take_while(|file| file.exists()).last()?;
    read_regular(&last, LARGE).ok()
}

fn replaced_dir(repository: &Repository) -> PathBuf {
    repository.teddy_dir().join("undo").join("replaced")
}

fn replaced_file_name(kept_as: &KeptAs, number: usize, path: &[u8]) -> OsString {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    let mut file = format!("{}.{number}.", kept_as.0).into_bytes();
    file.extend(&name[..name.len().min(MAX_REPLACED_NAME)]);
    OsString::from_vec(file)
}

/// Copies a file to where it is kept, for a file system on which it is replaced in place.
pub(super) fn copy_replaced(
    repository: &Repository,
    file: &PathHandle,
    kept_as: &KeptAs,
    path: &[u8],
) -> anyhow::Result<()> {
    let dir = replaced_dir(repository);
    make_dirs(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
    let free = (1..).map(|number| dir.join(replaced_file_name(kept_as, number, path)));
    let is_free = |file: &PathBuf| file.symlink_metadata().is_err();
    let target = { free }.find(is_free).context("no name is free")?;
    copy_replaced_to(file, &target)
}

fn copy_replaced_to(file: &PathHandle, target: &Path) -> anyhow::Result<()> {
    salvaged::copy_durably(file, target)
        .with_context(|| format!("cannot write `{}`", target.display()))
}
