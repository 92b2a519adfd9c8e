//! What git ignores and a plan's commands need all the same: copied from the user's workspace, or
//! linked to it.
//!
//! Only ignored files are brought, and never by a hard link: writing to one would write to the
//! user's file. An ignored folder is looked into only where a pattern names something in it.

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

/// The file of the workspace that lists what to copy, in the syntax of `.gitignore`.
pub const INCLUDE_FILE: &str = ".worktreeinclude";
/// The largest one that is read, in bytes.
const MAX_INCLUDE: u64 = 1 << 20;

/// What to bring, in the syntax of `.gitignore`.
#[derive(Debug, Clone, Default)]
pub struct Bring {
    /// To copy, beside what [`INCLUDE_FILE`] says; secrets by name are copied only if this names them.
    pub copy: Vec<String>,
    /// To link to.
    pub link: Vec<String>,
}

/// What was brought.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BroughtFiles {
    /// Copied files and links; those that were there already are left out.
    pub copied: Vec<Vec<u8>>,
    /// Links to the workspace: a snapshot must leave them out where no rule ignores a link.
    pub linked: Vec<Vec<u8>>,
    /// Not brought, because something else is there.
    pub in_the_way: Vec<Vec<u8>>,
}

/// A walk through the workspace.
struct Walker<'a> {
    /// The top of the workspace.
    from: &'a Path,
    /// The worktree's top.
    to: Top,
    /// What to copy.
    copy: Patterns,
    /// The secrets that may be copied.
    shown: TextRules,
    /// What says which files are secrets.
    limits: &'a SnapshotLimits,
    /// What to link to.
    link: Patterns,
    /// What was done.
    done: BroughtFiles,
}

/// Patterns, and where they lead.
struct Patterns {
    /// gix's form.
    rules: TextRules,
    /// The patterns that name a path and not only a name, without `/` at either end.
    paths: Vec<Vec<u8>>,
}

/// A name in the workspace.
struct WorkspaceName {
    /// Its path from the top.
    path: Vec<u8>,
    /// Whether it is a folder.
    folder: bool,
    /// Whether git ignores it, or a folder above it.
    ignored: bool,
}

/// Brings what is ignored in `workspace` and fits; what is there already and the same stays.
///
/// # Errors
/// Where a file cannot be read or written.
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

/// Returns what the project's list of files to copy says. A turn may have written it: it shows no
/// secrets.
fn included(workspace: &Repository) -> anyhow::Result<Vec<u8>> {
    // A link or a pipe of this name is no list: it can lead out of the project, or never end.
    match Root::open(workspace.workdir())?.read(Path::new(INCLUDE_FILE), MAX_INCLUDE) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

impl Walker<'_> {
    /// Walks through the workspace and brings what fits.
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

    /// Returns whether something in a folder can fit.
    fn leads_on(&self, folder: &WorkspaceName) -> bool {
        if folder.ignored {
            return self.copy.leads_into(&folder.path) || self.link.leads_into(&folder.path);
        }
        !self.source(&folder.path).join(".git").exists()
    }

    /// Returns what is in a folder of the workspace; a folder that may not be read is empty.
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

    /// Copies a file, a link, or a folder with all that is in it.
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

    /// Copies one file or link, its time included; what is the same already stays.
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

    /// Makes a link to a file or folder of the workspace.
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

    /// Returns the path of something in the workspace.
    fn source(&self, path: &[u8]) -> PathBuf {
        self.from.join(std::ffi::OsStr::from_bytes(path))
    }
}

impl Patterns {
    /// Reads patterns, one each line.
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

    /// Returns whether a name fits.
    fn fits(&self, found: &WorkspaceName) -> bool {
        // A folder fits where everything in it does.
        if found.folder {
            self.rules
                .excludes(&[&found.path, b"/\0".as_slice()].concat())
        } else {
            self.rules.excludes(&found.path)
        }
    }

    /// Returns whether a pattern names something in an ignored folder.
    fn leads_into(&self, folder: &[u8]) -> bool {
        self.paths.iter().any(|path| {
            path.strip_prefix(folder)
                .is_some_and(|rest| rest.first() == Some(&b'/'))
        })
    }
}
