//! How the files of one tree look on disk: whether what is there is what the tree says, and what
//! to write so that it is.

use crate::git::filter;
use crate::git::object::large;
use rustix::fs::RawMode;

use super::filter::Filter;
use super::place::{ByteSource, Content, FileBody, NameState, OnDisk, Place};
use super::repository::Repository;
use crate::git::object::large::Stored;
use crate::git::object::{BlobId, EntryMode, TreeEntry, TreeId};

/// The files of a tree, as a checkout would write them.
pub(in crate::git) struct TreeVersion<'repo> {
    /// The repository.
    repository: &'repo Repository,
    /// The tree's filters.
    filter: Filter<'repo>,
    /// What the file system can hold.
    abilities: Abilities,
}

/// What something on disk is recognised by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::git) enum Mark {
    /// Nothing is there, or a folder.
    Absent,
    /// A file with these bytes, executable or not.
    File(gix::ObjectId, bool),
    /// A link with this target.
    Link(gix::ObjectId),
    /// Something that git does not hold.
    Other,
}

/// What is on disk, and what it is recognised by.
#[derive(Debug)]
pub(in crate::git) struct Marked {
    /// What is on disk.
    pub(in crate::git) seen: OnDisk,
    /// What it is recognised by.
    pub(in crate::git) mark: Mark,
}

/// What the file system can hold, as git's configuration says.
#[derive(Debug, Clone, Copy)]
pub(in crate::git) struct Abilities {
    /// It keeps the executable bit.
    pub(in crate::git) executable: bool,
    /// It has symbolic links.
    pub(in crate::git) links: bool,
    /// It takes names that differ in case for one.
    pub(in crate::git) ignores_case: bool,
}

/// Returns how the given paths of a tree look on disk.
///
/// # Errors
/// Where the tree or the configuration cannot be read.
pub(in crate::git) fn version<'a>(
    repository: &Repository,
    tree: TreeId,
    paths: impl Iterator<Item = &'a [u8]>,
) -> anyhow::Result<TreeVersion<'_>> {
    Ok(TreeVersion {
        repository,
        filter: filter::filter(repository, tree, paths)?,
        abilities: abilities(repository),
    })
}

/// Looks at a place, and hashes what is there.
///
/// # Errors
/// Where it cannot be read.
pub(in crate::git) fn look(repository: &Repository, place: &Place) -> anyhow::Result<Marked> {
    look_at(repository, &place.find()?)
}

/// Looks at what was found at a place, as [`look`] does.
///
/// # Errors
/// It cannot be read.
pub(in crate::git) fn look_at(
    repository: &Repository,
    found: &NameState,
) -> anyhow::Result<Marked> {
    let seen = found.read()?;
    let mark = match &seen {
        OnDisk::Absent | OnDisk::Folder => Mark::Absent,
        OnDisk::File { body, permissions } => match body_id(repository, body)? {
            Some(id) => Mark::File(id, is_executable(*permissions)),
            None => Mark::Other,
        },
        OnDisk::Link(target) => Mark::Link(repository.blob_id(target)?.0),
        OnDisk::Other => Mark::Other,
    };
    Ok(Marked { seen, mark })
}

/// Returns the id of what is in a file; nothing if that changes while it is read.
pub(in crate::git) fn body_id(
    repository: &Repository,
    body: &FileBody,
) -> anyhow::Result<Option<gix::ObjectId>> {
    match body {
        FileBody::Bytes(bytes) => Ok(Some(repository.blob_id(bytes)?.0)),
        FileBody::Large { file, size } => Ok(large::id_of(repository, file, *size)?),
    }
}

/// Returns what something is recognised by that was just made.
///
/// # Errors
/// Where the hash function refuses its bytes.
pub(in crate::git) fn mark(
    repository: &Repository,
    content: &Content,
    executable: bool,
) -> anyhow::Result<Mark> {
    Ok(match content {
        Content::File { source, .. } => match source {
            ByteSource::Bytes(bytes) => Mark::File(repository.blob_id(bytes)?.0, executable),
            // Its bytes were hashed when they were written.
            ByteSource::Stored(stored) => Mark::File(stored.id, executable),
        },
        Content::Link(target) => Mark::Link(repository.blob_id(target)?.0),
    })
}

/// Returns what the file system of the worktree can hold.
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
    /// Returns whether what is on disk at a path is what the tree says: its very bytes, or bytes
    /// that git would store as it.
    ///
    /// # Errors
    /// Where the repository cannot hash.
    pub(in crate::git) fn is(
        &mut self,
        path: &[u8],
        entry: Option<&TreeEntry>,
        seen: &Marked,
    ) -> anyhow::Result<bool> {
        let Some(entry) = entry else {
            // A folder is no leaf: where a tree says nothing, it may stand.
            return Ok(seen.mark == Mark::Absent);
        };
        match (&seen.mark, &seen.seen) {
            (Mark::Link(id), _) => Ok(entry.mode == EntryMode::Link && *id == entry.id),
            (Mark::File(id, _), _) if entry.mode == EntryMode::Link => {
                Ok(!self.abilities.links && *id == entry.id)
            }
            (Mark::File(_, executable), _) if !self.is_mode(entry.mode, *executable) => Ok(false),
            (Mark::File(id, _), _) if *id == entry.id => Ok(true),
            (Mark::File(id, _), OnDisk::File { body, .. }) => {
                let cleaned = match body {
                    FileBody::Bytes(bytes) => self.filter.clean(path, bytes.as_slice()),
                    FileBody::Large { file, size } => {
                        self.filter.clean_large(path, file, (*id, *size))
                    }
                };
                match cleaned {
                    Ok(Some(cleaned)) => Ok(self.repository.blob_id(&cleaned)?.0 == entry.id),
                    // What git could not store is not what it has.
                    Ok(None) | Err(_) => Ok(false),
                }
            }
            _ => Ok(false),
        }
    }

    /// Returns whether a checkout writes any blob for a path as it is.
    pub(in crate::git) fn is_as_stored(&mut self, path: &[u8]) -> anyhow::Result<bool> {
        self.filter.keeps(path)
    }

    /// Returns the bytes that a checkout writes for a file.
    pub(in crate::git) fn checked_out(
        &mut self,
        path: &[u8],
        entry: &TreeEntry,
    ) -> anyhow::Result<Vec<u8>> {
        let blob = self.repository.blob(BlobId(entry.id))?;
        self.filter.smudge(path, blob)
    }

    /// Returns the id that the bytes of a checkout would have, were they stored as they are.
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

    /// Returns the bytes that a checkout writes for what git stores of these. In a partial clone, it
    /// needs no blob.
    pub(in crate::git) fn stored_and_checked_out(
        &mut self,
        path: &[u8],
        bytes: &[u8],
    ) -> anyhow::Result<Vec<u8>> {
        let stored = self.filter.clean(path, bytes)?;
        self.filter
            .smudge(path, stored.unwrap_or_else(|| bytes.to_vec()))
    }

    /// Returns whether git stores bytes as an entry.
    pub(in crate::git) fn stores(
        &mut self,
        path: &[u8],
        bytes: &[u8],
        entry: &TreeEntry,
    ) -> anyhow::Result<bool> {
        let Ok(stored) = self.filter.clean(path, bytes) else {
            return Ok(false);
        };
        let stored = stored.as_deref().unwrap_or(bytes);
        Ok(self.repository.blob_id(stored)?.0 == entry.id)
    }

    /// Applies a change to bytes on disk; see [`Filter::apply_to_disk`].
    pub(in crate::git) fn apply_to_disk(
        &mut self,
        path: &[u8],
        versions: [&[u8]; 2],
        disk: &[u8],
        new: &TreeEntry,
    ) -> anyhow::Result<Option<Vec<u8>>> {
        self.filter.apply_to_disk(path, versions, disk, new.id)
    }

    /// Returns the content of a file that is to have these bytes.
    pub(in crate::git) fn content_of(
        &self,
        bytes: Vec<u8>,
        entry: &TreeEntry,
        old: Option<RawMode>,
    ) -> Content {
        let executable = entry.mode == EntryMode::Executable;
        Content::File {
            source: ByteSource::Bytes(bytes),
            permissions: self.permissions(old, executable),
            executable,
        }
    }

    /// Returns what a checkout writes for a file or link, with the permissions of what it replaces.
    ///
    /// # Errors
    /// Where the blob cannot be read or a filter fails.
    pub(in crate::git) fn content(
        &mut self,
        path: &[u8],
        entry: &TreeEntry,
        old: Option<RawMode>,
    ) -> anyhow::Result<Content> {
        let during = || format!("reading `{}`", String::from_utf8_lossy(path));
        anyhow::ensure!(
            !matches!(entry.mode, EntryMode::Tree | EntryMode::Gitlink),
            "{}: it is not a file",
            during()
        );
        let source = match self.stored(path, entry)? {
            Some(stored) => ByteSource::Stored(stored),
            None => {
                let blob = self.repository.blob(BlobId(entry.id))?;
                if entry.mode == EntryMode::Link && self.abilities.links {
                    return Ok(Content::Link(blob));
                }

                ByteSource::Bytes(if entry.mode == EntryMode::Link {
                    blob
                } else {
                    self.filter.smudge(path, blob)?
                })
            }
        };

        let executable = entry.mode == EntryMode::Executable;
        Ok(Content::File {
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

    /// Finds a large blob that a checkout writes as it is.
    fn stored(&mut self, path: &[u8], entry: &TreeEntry) -> anyhow::Result<Option<Stored>> {
        if entry.mode == EntryMode::Link {
            return Ok(None);
        }
        match large::large(self.repository, entry.id) {
            Some(stored) if self.filter.keeps(path)? => Ok(Some(stored)),
            _ => Ok(None),
        }
    }

    /// Returns whether a file has the executable bit of a mode, as far as the file system keeps it.
    fn is_mode(&self, mode: EntryMode, executable: bool) -> bool {
        match mode {
            EntryMode::File => !self.abilities.executable || !executable,
            EntryMode::Executable => !self.abilities.executable || executable,
            EntryMode::Link | EntryMode::Tree | EntryMode::Gitlink => false,
        }
    }
}

/// Returns whether git takes a file for executable.
fn is_executable(permissions: RawMode) -> bool {
    permissions & 0o100 != 0
}

/// Returns permissions with the executable bit set for whoever may read, or for nobody; as they are
/// where it is so already.
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
