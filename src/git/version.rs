//! Compares files on disk with the entries of a tree, and computes what a checkout would write.

use crate::git::filter;
use crate::git::object::large;
use rustix::fs::RawMode;

use super::filter::Filter;
use super::path_handle::{ByteSource, FileBody, FileContents, NameState, OnDisk, PathHandle};
use super::repository::Repository;
use crate::git::object::large::Stored;
use crate::git::object::{BlobId, EntryMode, TreeEntry, TreeId};

/// The files of a tree, as a checkout would write them.
pub struct TreeVersion<'repo> {
    repository: &'repo Repository,
    pub(in crate::git) filter: Filter<'repo>,
    abilities: Abilities,
}

/// Identity of a file on disk, for comparison with a tree entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::git) enum Mark {
    /// The path does not exist or is a directory.
    Absent,
    /// Blob id of the bytes, and whether the file is executable.
    File(gix::ObjectId, bool),
    /// Blob id of the target of a symbolic link.
    Link(gix::ObjectId),
    /// A file type that git cannot store.
    Other,
}

#[derive(Debug)]
pub(in crate::git) struct DiskVersion {
    pub(in crate::git) on_disk: OnDisk,
    pub(in crate::git) mark: Mark,
}

/// Capabilities of the file system according to git's configuration.
#[derive(Debug, Clone, Copy)]
pub(in crate::git) struct Abilities {
    /// `core.fileMode`
    pub(in crate::git) executable: bool,
    /// `core.symlinks`
    pub(in crate::git) links: bool,
    /// `core.ignoreCase`
    pub(in crate::git) ignores_case: bool,
}

/// Loads the filters that a checkout of these paths needs.
pub fn tree_version<'a>(
    repository: &Repository,
    tree: TreeId,
    paths: impl Iterator<Item = &'a [u8]>,
) -> anyhow::Result<TreeVersion<'_>> {
    Ok(TreeVersion {
        repository,
        filter: filter::open_filter(repository, tree, paths)?,
        abilities: abilities(repository),
    })
}

pub(in crate::git) fn read_disk(
    repository: &Repository,
    handle: &PathHandle,
) -> anyhow::Result<DiskVersion> {
    read_state(repository, &handle.find()?)
}

pub(in crate::git) fn read_state(
    repository: &Repository,
    state: &NameState,
) -> anyhow::Result<DiskVersion> {
    let on_disk = state.read()?;
    let mark = match &on_disk {
        OnDisk::Absent | OnDisk::Dir => Mark::Absent,
        OnDisk::File { body, permissions } => match body_id(repository, body)? {
            Some(id) => Mark::File(id, is_executable(*permissions)),
            None => Mark::Other,
        },
        OnDisk::Link(target) => Mark::Link(repository.blob_id(target)?.0),
        OnDisk::Other => Mark::Other,
    };
    Ok(DiskVersion { on_disk, mark })
}

/// Returns the blob id of a file; `None` if it changes while it is read.
pub(in crate::git) fn body_id(
    repository: &Repository,
    body: &FileBody,
) -> anyhow::Result<Option<gix::ObjectId>> {
    match body {
        FileBody::Bytes(bytes) => Ok(Some(repository.blob_id(bytes)?.0)),
        FileBody::Large { file, size } => Ok(large::id_of(repository, file, *size)?),
    }
}

/// Returns the mark that a file has once these contents are written.
pub(in crate::git) fn mark(
    repository: &Repository,
    contents: &FileContents,
    executable: bool,
) -> anyhow::Result<Mark> {
    Ok(match contents {
        FileContents::File { source, .. } => match source {
            ByteSource::Bytes(bytes) => Mark::File(repository.blob_id(bytes)?.0, executable),
            // Hashed when the bytes were written to the store.
            ByteSource::Stored(stored) => Mark::File(stored.id, executable),
        },
        FileContents::Link(target) => Mark::Link(repository.blob_id(target)?.0),
    })
}

pub(in crate::git) fn abilities(repository: &Repository) -> Abilities {
    let settings = repository.gix.config_snapshot();
    let setting = |key: &str, default| settings.boolean(key).unwrap_or(default);
    Abilities {
        executable: setting("core.fileMode", true),
        links: setting("core.symlinks", true),
        ignores_case: setting("core.ignoreCase", false),
    }
}

impl TreeVersion<'_> {
    /// Returns `true` if git would record the file on disk as this entry. Its bytes can differ from
    /// a checkout's, for example after a filter that strips content.
    pub(in crate::git) fn is(
        &mut self,
        path: &[u8],
        entry: Option<&TreeEntry>,
        current: &DiskVersion,
    ) -> anyhow::Result<bool> {
        let Some(entry) = entry else {
            // A directory is not an entry, so it does not conflict with a missing one.
            return Ok(current.mark == Mark::Absent);
        };
        match (&current.mark, &current.on_disk) {
            (Mark::Link(id), _) => Ok(entry.mode == EntryMode::Link && *id == entry.id),
            (Mark::File(id, _), _) if entry.mode == EntryMode::Link => {
                // Without symlinks, git checks out a file with the target as its content.
                Ok(!self.abilities.links && *id == entry.id)
            }
            (Mark::File(_, executable), _) if !self.is_mode(entry.mode, *executable) => Ok(false),
            (Mark::File(id, _), _) if *id == entry.id => Ok(true),
            (Mark::File(id, _), OnDisk::File { body, .. }) => {
                let cleaned = match body {
                    FileBody::Bytes(bytes) => self.filter.clean(path, bytes.as_slice()),
                    FileBody::Large { file, size } => {
                        self.filter.clean_large(path, file, *id, *size)
                    }
                };
                match cleaned {
                    Ok(Some(cleaned)) => Ok(self.repository.blob_id(&cleaned)?.0 == entry.id),
                    // A file that the filter refuses cannot equal an entry.
                    Ok(None) | Err(_) => Ok(false),
                }
            }
            _ => Ok(false),
        }
    }

    /// Returns the content of an entry; for a symlink, its target.
    pub fn bytes(&mut self, path: &[u8], entry: &TreeEntry) -> anyhow::Result<Vec<u8>> {
        match entry.is_file() {
            true => self.checked_out(path, entry),
            false => self.repository.blob(BlobId(entry.id)),
        }
    }

    /// Returns what git would store for a file with this content on disk.
    pub fn stored(&mut self, path: &[u8], bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
        self.filter.stored(path, bytes)
    }

    pub(in crate::git) fn checked_out(
        &mut self,
        path: &[u8],
        entry: &TreeEntry,
    ) -> anyhow::Result<Vec<u8>> {
        let blob = self.repository.blob(BlobId(entry.id))?;
        self.filter.smudge(path, blob)
    }

    /// Returns the hash of the bytes that a checkout writes, without the clean filter.
    pub(in crate::git) fn checked_out_id(
        &mut self,
        path: &[u8],
        entry: &TreeEntry,
    ) -> anyhow::Result<gix::ObjectId> {
        if self.filter.keeps(path)? {
            return Ok(entry.id);
        }
        let bytes = self.checked_out(path, entry)?;
        Ok(self.repository.blob_id(&bytes)?.0)
    }

    /// Cleans and smudges bytes: what a checkout would write after these bytes were committed. Reads
    /// no blob, so it works in a partial clone.
    pub(in crate::git) fn stored_and_checked_out(
        &mut self,
        path: &[u8],
        bytes: &[u8],
    ) -> anyhow::Result<Vec<u8>> {
        let stored = self.filter.stored(path, bytes)?;
        self.filter.smudge(path, stored)
    }

    pub(in crate::git) fn stores(
        &mut self,
        path: &[u8],
        bytes: &[u8],
        entry: &TreeEntry,
    ) -> anyhow::Result<bool> {
        let Ok(stored) = self.filter.stored(path, bytes) else {
            return Ok(false);
        };
        Ok(self.repository.blob_id(&stored)?.0 == entry.id)
    }

    pub(in crate::git) fn contents_of(
        &self,
        bytes: Vec<u8>,
        entry: &TreeEntry,
        old: Option<RawMode>,
    ) -> FileContents {
        let executable = entry.mode == EntryMode::BlobExecutable;
        FileContents::File {
            source: ByteSource::Bytes(bytes),
            permissions: self.permissions(old, executable),
            executable,
        }
    }

    /// Returns what a checkout writes for a file or link. `old` has the permissions of the file that
    /// it replaces.
    pub(in crate::git) fn contents(
        &mut self,
        path: &[u8],
        entry: &TreeEntry,
        old: Option<RawMode>,
    ) -> anyhow::Result<FileContents> {
        let during = || format!("reading `{}`", String::from_utf8_lossy(path));
        anyhow::ensure!(
            !matches!(entry.mode, EntryMode::Tree | EntryMode::Commit),
            "{}: it is not a file",
            during()
        );
        let source = match self.find_large(path, entry)? {
            Some(stored) => ByteSource::Stored(stored),
            None => {
                let blob = self.repository.blob(BlobId(entry.id))?;
                if entry.mode == EntryMode::Link && self.abilities.links {
                    return Ok(FileContents::Link(blob));
                }

                ByteSource::Bytes(if entry.mode == EntryMode::Link {
                    blob
                } else {
                    self.filter.smudge(path, blob)?
                })
            }
        };

        let executable = entry.mode == EntryMode::BlobExecutable;
        Ok(FileContents::File {
            source,
            permissions: self.permissions(old, executable),
            executable,
        })
    }

    fn permissions(&self, old: Option<RawMode>, executable: bool) -> Option<RawMode> {
        match old {
            Some(old) if self.abilities.executable => Some(with_executable(old, executable)),
            old => old,
        }
    }

    /// Returns the blob if it is large and a checkout writes it without conversion.
    fn find_large(&mut self, path: &[u8], entry: &TreeEntry) -> anyhow::Result<Option<Stored>> {
        if entry.mode == EntryMode::Link {
            return Ok(None);
        }
        match large::find_large(self.repository, entry.id) {
            Some(stored) if self.filter.keeps(path)? => Ok(Some(stored)),
            _ => Ok(None),
        }
    }

    fn is_mode(&self, mode: EntryMode, executable: bool) -> bool {
        match mode {
            EntryMode::Blob => !self.abilities.executable || !executable,
            EntryMode::BlobExecutable => !self.abilities.executable || executable,
            EntryMode::Link | EntryMode::Tree | EntryMode::Commit => false,
        }
    }
}

// As git, which reads only the bit of the owner.
fn is_executable(permissions: RawMode) -> bool {
    permissions & 0o100 != 0
}

/// Sets the executable bit for everyone who can read, or clears it.
fn with_executable(permissions: RawMode, executable: bool) -> RawMode {
    if is_executable(permissions) == executable {
        return permissions & 0o777;
    }

    let plain = permissions & 0o666;
    if executable {
        plain | (plain & 0o444) >> 2
    } else {
        plain
    }
}
