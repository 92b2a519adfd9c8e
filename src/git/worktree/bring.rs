//! Copies or links ignored files from the workspace that a plan's commands need.
//!
//! Only ignored files are transferred, and never as hard links, because writing to one would write
//! to the user's file. An ignored directory is searched only if a pattern names a path in it.

use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use gix::bstr::ByteSlice;
use gix::index::entry::Mode;
use gix::worktree::stack::state::ignore::Source;
use rustix::fs::{FileType, Stat};

use super::SessionWorktree;
use crate::git::During;
use crate::git::ignore::TextRules;
use crate::git::ignore::user_index;
use crate::git::place::{Content, IfMissing, OnDisk, Top, WalkResult};
use crate::git::repository::Repository;
use crate::git::snapshot::limits::SnapshotLimits;
use crate::host::file::Root;

/// File in the workspace that lists what to copy, in the syntax of `.gitignore`.
pub const INCLUDE_FILE: &str = ".worktreeinclude";
const MAX_INCLUDE: u64 = 1 << 20;

/// Patterns of ignored files to transfer, in the syntax of `.gitignore`.
#[derive(Debug, Clone, Default)]
pub struct Bring {
    /// Files to copy, in addition to [`INCLUDE_FILE`]. Files with names of secrets are copied only
    /// if listed here.
    pub copy: Vec<String>,
    /// Files and directories to link to.
    pub link: Vec<String>,
}

/// Result of the transfer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BroughtFiles {
    /// Copied files and symlinks, except those that were up to date.
    pub copied: Vec<Vec<u8>>,
    /// Symlinks to the workspace. A snapshot must leave them out even if no rule ignores a symlink.
    pub linked: Vec<Vec<u8>>,
    /// Paths that were not transferred because something else exists there.
    pub in_the_way: Vec<Vec<u8>>,
}

struct Walker<'a> {
    from: &'a Path,
    to: Top,
    copy: Patterns,
    /// Patterns of secrets that can be copied.
    shown: TextRules,
    limits: &'a SnapshotLimits,
    link: Patterns,
    done: BroughtFiles,
}

struct Patterns {
    rules: TextRules,
    /// Patterns that contain a path, without `/` at either end.
    paths: Vec<Vec<u8>>,
}

struct WorkspaceName {
    path: Vec<u8>,
    folder: bool,
    /// Whether git ignores the path or a directory above it.
    ignored: bool,
}

/// Transfers the ignored files of `workspace` that match. Files that are up to date stay.
pub fn bring(
    worktree: &SessionWorktree,
    workspace: &Repository,
    (what, limits): (&Bring, &SnapshotLimits),
) -> anyhow::Result<BroughtFiles> {
    let included = included(workspace)?;
    if included.is_empty() && what.copy.is_empty() && what.link.is_empty() {
        return Ok(BroughtFiles::default());
    }

    let mut walker = Walker {
        from: workspace.workdir(),
        to: Top::open_own(&worktree.path)?,
        copy: Patterns::parse(&[included, what.copy.join("\n").into_bytes()].join(&b'\n')),
        shown: TextRules::parse(what.copy.join("\n").as_bytes()),
        limits,
        link: Patterns::parse(what.link.join("\n").as_bytes()),
        done: BroughtFiles::default(),
    };
    walker.walk(workspace)?;
    Ok(walker.done)
}

/// Returns the content of [`INCLUDE_FILE`]. A turn can have written it, so it does not make secrets
/// readable.
fn included(workspace: &Repository) -> anyhow::Result<Vec<u8>> {
    // Opened without following symlinks: the file could lead out of the project or be a pipe.
    match Root::open(workspace.workdir())?.read(Path::new(INCLUDE_FILE), MAX_INCLUDE) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

impl Walker<'_> {
    fn walk(&mut self, workspace: &Repository) -> anyhow::Result<()> {
        let index = &user_index(workspace)?.state;
        let mut rules = workspace
            .gix
            .excludes(index, None, Source::WorktreeThenIdMappingIfNotSkipped)
            .during("reading ignore rules")?;
        let mut folders = vec![WorkspaceName {
            path: Vec::new(),
            folder: true,
            ignored: false,
        }];

        while let Some(folder) = folders.pop() {
            for mut found in self.inside(&folder)? {
                let (path, mode) = (
                    found.path.as_bstr(),
                    if found.folder { Mode::DIR } else { Mode::FILE },
                );
                if !found.folder && index.entry_by_path(path).is_some() {
                    continue;
                }

                found.ignored = found.ignored
                    || rules
                        .at_entry(path, Some(mode))
                        .during("reading ignore rules")?
                        .is_excluded();
                if found.ignored && self.link.fits(&found) {
                    self.link_to(&found.path)?;
                } else if found.ignored && self.copy.fits(&found) {
                    self.copy(found)?;
                } else if found.folder && self.leads_on(&found) {
                    folders.push(found);
                }
            }
        }

        Ok(())
    }

    fn leads_on(&self, folder: &WorkspaceName) -> bool {
        if folder.ignored {
            return self.copy.leads_into(&folder.path) || self.link.leads_into(&folder.path);
        }
        !self.source(&folder.path).join(".git").exists()
    }

    /// Lists a directory of the workspace. An unreadable directory counts as empty.
    fn inside(&self, folder: &WorkspaceName) -> anyhow::Result<Vec<WorkspaceName>> {
        let entries = match std::fs::read_dir(self.source(&folder.path)) {
            Ok(entries) => entries,
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::PermissionDenied | ErrorKind::NotFound
                ) =>
            {
                return Ok(Vec::new());
            }
            Err(error) => return Err(error.into()),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().into_vec();
            if name == b".git" && folder.path.is_empty() {
                continue;
            }

            let path = if folder.path.is_empty() {
                name
            } else {
                [&folder.path, b"/".as_slice(), &name].concat()
            };
            found.push(WorkspaceName {
                path,
                folder: entry.file_type()?.is_dir(),
                ignored: folder.ignored,
            });
        }

        Ok(found)
    }

    fn copy(&mut self, found: WorkspaceName) -> anyhow::Result<()> {
        let mut all = vec![found];
        while let Some(found) = all.pop() {
            if found.folder {
                all.extend(self.inside(&found)?);
            } else if !self.limits.is_secret(&found.path) || self.shown.excludes(&found.path) {
                self.copy_file(&found.path)
                    .with_context(|| format!("copying `{}`", found.path.to_str_lossy()))?;
            }
        }

        Ok(())
    }

    /// Copies one file or symlink with its mtime. Skips a file with the same type, size and mtime.
    fn copy_file(&mut self, path: &[u8]) -> anyhow::Result<()> {
        let source = self.source(path);
        let metadata = std::fs::symlink_metadata(&source)?;
        let WalkResult::Place(place) = self.to.walk(path, IfMissing::Make)? else {
            self.done.in_the_way.push(path.to_vec());
            return Ok(());
        };

        let there = place.stat()?;
        let kind = |there: &Stat| FileType::from_raw_mode(there.st_mode);
        if there.as_ref().is_some_and(|there| kind(there).is_dir()) {
            self.done.in_the_way.push(path.to_vec());
            return Ok(());
        }

        let same = there.as_ref().is_some_and(|there| {
            kind(there) == FileType::from_raw_mode(metadata.mode())
                && u64::try_from(there.st_size) == Ok(metadata.len())
                && (there.st_mtime, i64::try_from(there.st_mtime_nsec))
                    == (metadata.mtime(), Ok(metadata.mtime_nsec()))
        });
        if same || !(metadata.is_file() || metadata.is_symlink()) {
            return Ok(());
        }

        if there.is_some() {
            place.remove()?;
        }

        if metadata.is_symlink() {
            let target = std::fs::read_link(&source)?.into_os_string().into_vec();
            place.create(&Content::Link(target), false)?;
        } else {
            place.copy_from(&mut std::fs::File::open(&source)?)?;
        }

        self.done.copied.push(path.to_vec());
        Ok(())
    }

    fn link_to(&mut self, path: &[u8]) -> anyhow::Result<()> {
        let target = self.source(path).into_os_string().into_vec();
        let WalkResult::Place(place) = self.to.walk(path, IfMissing::Make)? else {
            self.done.in_the_way.push(path.to_vec());
            return Ok(());
        };

        match place.look()? {
            OnDisk::Absent => {
                place.create(&Content::Link(target), false)?;
            }
            OnDisk::Link(there) if there == target => {}
            _ => {
                self.done.in_the_way.push(path.to_vec());
                return Ok(());
            }
        }

        self.done.linked.push(path.to_vec());
        Ok(())
    }

    fn source(&self, path: &[u8]) -> PathBuf {
        self.from.join(std::ffi::OsStr::from_bytes(path))
    }
}

impl Patterns {
    fn parse(text: &[u8]) -> Patterns {
        let paths = text
            .lines()
            .map(|line| line.trim().trim_with(|c| c == '/'))
            .filter(|line| line.contains(&b'/'));
        Patterns {
            rules: TextRules::parse(text),
            paths: paths.map(<[u8]>::to_vec).collect(),
        }
    }

    fn fits(&self, found: &WorkspaceName) -> bool {
        // A directory matches if everything in it does.
        if found.folder {
            self.rules
                .excludes(&[&found.path, b"/\0".as_slice()].concat())
        } else {
            self.rules.excludes(&found.path)
        }
    }

    /// Returns whether a pattern names a path in an ignored directory.
    fn leads_into(&self, folder: &[u8]) -> bool {
        self.paths.iter().any(|path| {
            path.strip_prefix(folder)
                .is_some_and(|rest| rest.first() == Some(&b'/'))
        })
    }
}
