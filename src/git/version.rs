//! How the files of one tree look on disk: whether what is there is what the tree says, and what
//! to write so that it is.

use rustix::fs::RawMode;

use super::filter::Filter;
use super::object::{BlobId, Entry, Mode, TreeId};
use super::place::{Content, Seen};
use super::repository::Repository;

/// The files of a tree, as a checkout would write them.
pub(in crate::git) struct Version<'repo> {
    /// The repository.
    repository: &'repo Repository,
    /// The tree's filters.
    filter: Filter<'repo>,
    /// What the file system can hold.
    abilities: Abilities,
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

impl Repository {
    /// Returns how the given paths of a tree look on disk.
    ///
    /// # Errors
    /// Where the tree or the configuration cannot be read.
    pub(in crate::git) fn version<'a>(&self, tree: TreeId, paths: impl Iterator<Item = &'a [u8]>) -> anyhow::Result<Version<'_>> {
        Ok(Version { repository: self, filter: self.filter(tree, paths)?, abilities: self.abilities() })
    }

    /// Returns what the file system of the worktree can hold.
    pub(in crate::git) fn abilities(&self) -> Abilities {
        let settings = self.gix.config_snapshot();
        let setting = |key: &str, default| settings.boolean(key).unwrap_or(default);
        Abilities {
            executable: setting("core.fileMode", true),
            links: setting("core.symlinks", true),
            ignores_case: setting("core.ignoreCase", false),
        }
    }
}

impl Version<'_> {
    /// Returns whether what is on disk at a path is what the tree says: its very bytes, or bytes
    /// that git would store as it.
    ///
    /// # Errors
    /// Where a filter fails.
    pub(in crate::git) fn is(&mut self, path: &[u8], entry: Option<&Entry>, seen: &Seen) -> anyhow::Result<bool> {
        let Some(entry) = entry else {
            // A folder is no leaf: where a tree says nothing, it may stand.
            return Ok(matches!(seen, Seen::Absent | Seen::Folder));
        };
        match seen {
            Seen::Link(target) => Ok(entry.mode == Mode::Link && self.is_blob(target, entry)?),
            Seen::File { bytes, .. } if entry.mode == Mode::Link => Ok(!self.abilities.links && self.is_blob(bytes, entry)?),
            Seen::File { bytes, permissions } => {
                if !self.is_mode(entry.mode, *permissions) {
                    return Ok(false);
                }
                if self.is_blob(bytes, entry)? {
                    return Ok(true);
                }
                let cleaned = self.filter.clean(path, bytes)?;
                self.is_blob(&cleaned, entry)
            }
            Seen::Absent | Seen::Folder | Seen::Other => Ok(false),
        }
    }

    /// Returns what a checkout writes for a file or link, with the permissions of what it replaces.
    ///
    /// # Errors
    /// Where the blob cannot be read or a filter fails.
    pub(in crate::git) fn content(&mut self, path: &[u8], entry: &Entry, old: Option<RawMode>) -> anyhow::Result<Content> {
        let during = || format!("reading `{}`", String::from_utf8_lossy(path));
        anyhow::ensure!(!matches!(entry.mode, Mode::Tree | Mode::Gitlink), "{}: it is no file", during());
        let blob = self.repository.blob(BlobId(entry.id))?;
        if entry.mode == Mode::Link && self.abilities.links {
            return Ok(Content::Link(blob));
        }
        let bytes = if entry.mode == Mode::Link { blob } else { self.filter.smudge(path, blob)? };
        let executable = entry.mode == Mode::Executable;
        let permissions = match old {
            Some(old) if self.abilities.executable => Some(with_executable(old, executable)),
            old => old,
        };
        Ok(Content::File { bytes, permissions, executable })
    }

    /// Returns whether a file has the executable bit of a mode, as far as the file system keeps it.
    fn is_mode(&self, mode: Mode, permissions: RawMode) -> bool {
        match mode {
            Mode::File => !self.abilities.executable || !is_executable(permissions),
            Mode::Executable => !self.abilities.executable || is_executable(permissions),
            Mode::Link | Mode::Tree | Mode::Gitlink => false,
        }
    }

    /// Returns whether bytes are an entry's blob.
    fn is_blob(&self, bytes: &[u8], entry: &Entry) -> anyhow::Result<bool> {
        Ok(self.repository.blob_id(bytes)?.0 == entry.id)
    }
}

/// Returns whether git takes a file for executable.
pub(in crate::git) fn is_executable(permissions: RawMode) -> bool {
    permissions & 0o100 != 0
}

/// Returns permissions with the executable bit set for whoever may read, or for nobody.
fn with_executable(permissions: RawMode, executable: bool) -> RawMode {
    let plain = permissions & 0o666;
    if executable { plain | (plain & 0o444) >> 2 } else { plain }
}
