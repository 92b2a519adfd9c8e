//! Copies or links ignored files from the workspace that a plan's commands need.
//!
//! Only ignored files are transferred, and never as hard links, because writing to one would write
//! to the user's file. An ignored directory is searched only if a pattern can match in it. Unlike
//! git, a pattern also matches in a directory that other rules exclude.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{ErrorKind, Read as _};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use anyhow::Context;
use gix::bstr::ByteSlice;
use gix::index::entry::Mode;
use rustix::fs::{FileType, Stat};

use super::editable::editable_modules;
use super::switch::{remove_empty_dirs, remove_file};
use super::{SessionWorktree, index};
use crate::git::ignore::{IgnoreStack, TextRules, user_index};
use crate::git::path_handle::{FileContents, IfMissing, OnDisk, PathHandle, Top, WalkResult};
use crate::git::paths::{self, parent_dirs};
use crate::git::repository::Repository;
use crate::git::snapshot::limits::SnapshotLimits;
use crate::host::env;
use crate::host::file::{Root, open_regular};
use crate::text::hint::error_with_hint;
use crate::text::path::is_foreign_control_dir;

/// Ignored directories with dependencies, which a copy links to unless a setting names them.
///
/// Build output, such as `target`, is not among them: a build in the copy has to write to it.
const DEPENDENCIES: [&str; 7] = [
    "node_modules",
    ".venv",
    "venv",
    "vendor",
    "bower_components",
    "Pods",
    "deps",
];

/// Levels of a directory of dependencies that can have links to packages of the project: an
/// organization and a name.
const PACKAGE_DEPTH: usize = 2;

/// File that marks a Python environment, which can have any name.
const ENVIRONMENT: &str = "pyvenv.cfg";

/// Ignored directories that their tools make again in no time, so no command misses them.
const TRANSIENT: [&str; 6] = [
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".idea",
    ".vscode",
];

/// Ending of a small directory that describes a Python package of the project to its tools. Copied,
/// because each build writes to it.
const PACKAGE_INFO: &[u8] = b".egg-info";

/// Variable with the path of the Python environment that the user has activated.
const ACTIVE_ENVIRONMENT: &str = "VIRTUAL_ENV";

/// File in the workspace that lists what to copy, in the syntax of `.gitignore`.
pub const INCLUDE_FILE: &str = ".worktreeinclude";
const MAX_INCLUDE: u64 = 1 << 20;
/// Number of first bytes of a copied file in which keys are searched.
const MAX_SEARCHED: u64 = 256 << 10;

/// Patterns of ignored files to transfer, in the syntax of `.gitignore`.
#[derive(Debug, Clone, Default)]
pub struct ProvisionRules {
    /// Files to copy, in addition to [`INCLUDE_FILE`]. Files with names of secrets are copied only
    /// if listed here.
    pub copy: Vec<String>,
    pub link: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProvisionedFiles {
    /// Copied files and symlinks, except those that were up to date.
    pub copied: Vec<Vec<u8>>,
    /// Symlinks to the workspace. A snapshot must leave them out even if no rule ignores a symlink.
    pub linked: Vec<Vec<u8>>,
    /// Ignored directories that the worktree lacks.
    pub missing: Vec<Vec<u8>>,
    /// Directories of the workspace whose modules a Python environment uses (`pip install -e`).
    pub module_dirs: Vec<PathBuf>,
    /// Python environments with modules of the workspace that a copy cannot replace.
    pub editable: Vec<Vec<u8>>,
}

struct Walker<'a> {
    from: &'a Path,
    /// The same without symlinks.
    real_from: PathBuf,
    worktree: &'a SessionWorktree,
    /// `None` to only search for modules.
    to: Option<Top>,
    copy: Patterns,
    /// Patterns of secrets that can be copied.
    explicit: TextRules,
    limits: &'a SnapshotLimits,
    link: Patterns,
    /// Ignored files to copy.
    selected: BTreeSet<Vec<u8>>,
    provisioned: ProvisionedFiles,
}

struct Patterns {
    rules: TextRules,
    /// Components of each pattern. `**` stands for any number of directories.
    components: Vec<Vec<Vec<u8>>>,
}

#[derive(Clone)]
struct WorkspaceName {
    path: Vec<u8>,
    is_dir: bool,
    /// Whether git ignores the path or a directory above it.
    ignored: bool,
}

/// Transfers the ignored files of `workspace` that match. Files that are up to date stay.
pub fn provision_files(
    worktree: &SessionWorktree,
    workspace: &Repository,
    rules: &ProvisionRules,
    limits: &SnapshotLimits,
) -> anyhow::Result<ProvisionedFiles> {
    let included = included(workspace)?;
    let walker = Walker {
        to: Some(Top::open_own(&worktree.path)?),
        copy: Patterns::parse(&[included, rules.copy.join("\n").into_bytes()].join(&b'\n')),
        explicit: TextRules::parse(rules.copy.join("\n").as_bytes()),
        link: Patterns::parse(rules.link.join("\n").as_bytes()),
        ..Walker::new(worktree, workspace, limits)
    };
    walker.provision(workspace)
}

/// Finds the modules of the workspace that Python environments use: `module_dirs` and `editable`.
/// Transfers nothing.
pub fn find_modules(
    worktree: &SessionWorktree,
    workspace: &Repository,
    limits: &SnapshotLimits,
) -> anyhow::Result<ProvisionedFiles> {
    Walker::new(worktree, workspace, limits).provision(workspace)
}

/// Returns the content of [`INCLUDE_FILE`]. A turn can have written it, so it does not make secrets
/// readable.
fn included(workspace: &Repository) -> anyhow::Result<Vec<u8>> {
    // Opened without following symlinks: the file could lead out of the project or be a pipe.
    match Root::open(workspace.workdir())?.read(Path::new(INCLUDE_FILE), MAX_INCLUDE) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error_with_hint(
            error.to_string(),
            "correct or remove the file; if a turn wrote it, `teddy undo` takes it back",
        )),
    }
}

impl<'a> Walker<'a> {
    /// Transfers nothing.
    fn new(
        worktree: &'a SessionWorktree,
        workspace: &'a Repository,
        limits: &'a SnapshotLimits,
    ) -> Walker<'a> {
        let from = workspace.workdir();
        Walker {
            from,
            real_from: from.canonicalize().unwrap_or_else(|_| from.to_owned()),
            worktree,
            to: None,
            copy: Patterns::parse(b""),
            explicit: TextRules::parse(b""),
            limits,
            link: Patterns::parse(b""),
            selected: BTreeSet::new(),
            provisioned: ProvisionedFiles::default(),
        }
    }

    fn provision(mut self, workspace: &Repository) -> anyhow::Result<ProvisionedFiles> {
        self.walk(workspace)?;
        // The walk finds an environment in the project.
        let active = env::var_os(ACTIVE_ENVIRONMENT).map(PathBuf::from);
        if let Some(active) = active.filter(|dir| !dir.starts_with(workspace.workdir())) {
            self.note_modules(&active, active.as_os_str().as_bytes());
        }
        Ok(self.provisioned)
    }

    fn walk(&mut self, workspace: &Repository) -> anyhow::Result<()> {
        let index = &user_index(workspace)?.state;
        let mut rules = IgnoreStack::of(&workspace.gix, index)?;
        let mut dirs = vec![WorkspaceName {
            path: Vec::new(),
            is_dir: true,
            ignored: false,
        }];

        // The worktree has what git tracks in a directory, even if it ignores the directory.
        let is_tracked = |dir: &[u8]| {
            let inside = [dir, b"/"].concat();
            index.prefixed_entries(inside.as_bstr()).is_some()
        };

        // Ignored directories that no pattern names as a whole.
        let mut outermost = Vec::new();
        while let Some(dir) = dirs.pop() {
            for mut entry in self.inside(&dir)? {
                let mode = if entry.is_dir { Mode::DIR } else { Mode::FILE };
                if !entry.is_dir && index.entry_by_path(entry.path.as_bstr()).is_some() {
                    continue;
                }
                // A repository of its own, of which git itself lists nothing.
                if dir.ignored && entry.name() == b".git" {
                    continue;
                }

                entry.ignored = entry.ignored || rules.ignores(&entry.path, mode)?;
                if entry.ignored && self.link.fits(&entry) {
                    self.link_to(&entry.path)?;
                } else if entry.ignored
                    && (self.copy.fits(&entry)
                        || !dir.ignored && entry.is_package_info() && !is_tracked(&entry.path))
                {
                    self.select(entry)?;
                } else if entry.ignored && !dir.ignored && self.is_linked_dependency(&entry) {
                    outermost.push(entry);
                } else if entry.is_dir {
                    if entry.ignored && !dir.ignored {
                        outermost.push(entry.clone());
                    }
                    if self.leads_on(&entry) {
                        dirs.push(entry);
                    }
                }
            }
        }

        self.copy_selected()?;
        for dir in outermost {
            let is_there = self.to.is_none() && is_tracked(&dir.path);
            if !is_there && !self.has_below(&dir) {
                self.link_or_miss(&dir)?;
            }
        }
        Ok(())
    }

    fn has_below(&self, dir: &WorkspaceName) -> bool {
        let prefix = [&dir.path, b"/".as_slice()].concat();
        let mut paths = self.selected.iter().chain(&self.provisioned.linked);
        paths.any(|path| path.starts_with(&prefix))
    }

    /// Links to an ignored directory with dependencies. Notes others as missing.
    fn link_or_miss(&mut self, dir: &WorkspaceName) -> anyhow::Result<()> {
        let is_environment =
            self.source(&dir.path).join(ENVIRONMENT).is_file() && !self.limits.is_secret(&dir.path);
        if dir.has_name_of(&DEPENDENCIES) || is_environment {
            let is_real = dir.is_dir && self.to.is_some();
            if is_real {
                self.remove_package_links(&dir.path, PACKAGE_DEPTH)?;
            }
            if is_real && self.has_own_packages(dir, PACKAGE_DEPTH)? {
                return self.link_packages_of(dir);
            }
            self.link_to(&dir.path)?;
            let is_linked = self.provisioned.linked.last() == Some(&dir.path);
            if is_linked {
                self.note_modules(&self.source(&dir.path), &dir.path);
            }
            return Ok(());
        }
        if !dir.has_name_of(&TRANSIENT) {
            self.provisioned.missing.push(dir.path.clone());
        }
        Ok(())
    }

    /// Makes a directory of links in the place of one link.
    fn link_packages_of(&mut self, dir: &WorkspaceName) -> anyhow::Result<()> {
        // Of an earlier run, or a command's.
        if let Some(handle) = self.walk_to(&dir.path)?
            && let OnDisk::Link(_) = handle.read()?
        {
            handle.remove()?;
        }
        self.link_packages(dir, PACKAGE_DEPTH)?;
        self.provisioned.linked.push(dir.path.clone());
        Ok(())
    }

    /// Removes a directory that [`Walker::link_packages`] made. The dependencies can have changed
    /// since. What a command has put into it stays.
    fn remove_package_links(&self, dir: &[u8], depth: usize) -> anyhow::Result<()> {
        let Some(handle) = self.walk_to(dir)? else {
            return Ok(());
        };
        if handle.file_type()? != Some(FileType::Directory) {
            return Ok(());
        }
        let Some(inside) = self.walk_to(&[dir, b"/x"].concat())? else {
            return Ok(());
        };
        let is_ours = |target: Vec<u8>| {
            let target = PathBuf::from(OsString::from_vec(target));
            target.starts_with(self.from) || target.starts_with(&self.worktree.path)
        };
        for name in inside.siblings()? {
            let entry = inside.sibling(&name);
            match entry.file_type()? {
                Some(FileType::Symlink) => {
                    if let OnDisk::Link(target) = entry.read()?
                        && is_ours(target)
                    {
                        entry.remove()?;
                    }
                }
                Some(FileType::Directory) if depth > 1 => {
                    self.remove_package_links(&[dir, b"/", &name].concat(), depth - 1)?;
                }
                _ => {}
            }
        }
        handle.remove_empty_dir()?;
        Ok(())
    }

    /// Links to each of the dependencies, and to the packages of the project in the worktree.
    fn link_packages(&mut self, dir: &WorkspaceName, depth: usize) -> anyhow::Result<()> {
        for entry in self.inside(dir)? {
            let target = match self.own_package(&entry) {
                Some(package) => self.worktree.path.join(package),
                None if self.has_own_packages(&entry, depth - 1)? => {
                    self.link_packages(&entry, depth - 1)?;
                    continue;
                }
                None => self.source(&entry.path),
            };
            let target = target.into_os_string().into_vec();
            let Some(handle) = self.walk_to(&entry.path)? else {
                continue;
            };
            match handle.read()? {
                OnDisk::Absent => {}
                OnDisk::Link(existing) if existing != target => handle.remove()?,
                _ => continue,
            }
            handle.create(&FileContents::Link(target), false)?;
        }
        Ok(())
    }

    fn walk_to(&self, path: &[u8]) -> anyhow::Result<Option<PathHandle>> {
        let Some(to) = &self.to else {
            return Ok(None);
        };
        match to.walk(path, IfMissing::Make)? {
            WalkResult::Handle(handle) => Ok(Some(handle)),
            _ => Ok(None),
        }
    }

    /// Returns whether a directory of dependencies has a link to a package of the project, so many
    /// levels down (npm and pnpm workspaces, path repositories of Composer).
    fn has_own_packages(&self, dir: &WorkspaceName, depth: usize) -> anyhow::Result<bool> {
        if depth == 0 || !self.source(&dir.path).is_dir() {
            return Ok(false);
        }
        for entry in self.inside(dir)? {
            let is_above = entry.is_dir && self.has_own_packages(&entry, depth - 1)?;
            if is_above || self.own_package(&entry).is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the path in the workspace to which a link leads. `None` if it leads to dependencies.
    fn own_package(&self, link: &WorkspaceName) -> Option<PathBuf> {
        let path = self.source(&link.path);
        if link.is_dir || !path.is_symlink() {
            return None;
        }
        let real = path.canonicalize().ok()?;
        let inside = real.strip_prefix(&self.real_from).ok()?;
        let is_dependency = |part: Component<'_>| {
            let name = part.as_os_str();
            name == ".git" || DEPENDENCIES.iter().any(|dir| name == *dir)
        };
        (!inside.components().any(is_dependency)).then(|| inside.to_owned())
    }

    fn note_modules(&mut self, environment: &Path, shown: &[u8]) {
        let mut modules = editable_modules(environment, self.from);
        let count = modules.dirs.len();
        // Only such a path can be in `PYTHONPATH`, and is in the worktree.
        let is_usable = |dir: &PathBuf| {
            let path = self.worktree.path.join(dir);
            let is_inside = dir
                .components()
                .all(|it| matches!(it, Component::Normal(_)));
            let path = path.to_str().filter(|path| !path.contains([':', '\0']));
            is_inside && path.is_some()
        };
        modules.dirs.retain(is_usable);
        if modules.has_others || modules.dirs.len() < count {
            self.provisioned.editable.push(shown.to_vec());
        }
        self.provisioned.module_dirs.extend(modules.dirs);
    }

    /// Returns whether an entry is a symlink to a directory with dependencies, which other checkouts
    /// can share.
    fn is_linked_dependency(&self, entry: &WorkspaceName) -> bool {
        !entry.is_dir && entry.has_name_of(&DEPENDENCIES) && self.source(&entry.path).is_dir()
    }

    fn leads_on(&self, dir: &WorkspaceName) -> bool {
        if dir.ignored {
            return self.copy.leads_into(&dir.path) || self.link.leads_into(&dir.path);
        }
        !self.source(&dir.path).join(".git").exists()
    }

    /// Lists a directory of the workspace. An unreadable directory counts as empty.
    fn inside(&self, dir: &WorkspaceName) -> anyhow::Result<Vec<WorkspaceName>> {
        let entries = match std::fs::read_dir(self.source(&dir.path)) {
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
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().into_vec();
            let is_git = name == b".git" && dir.path.is_empty();
            if is_git || is_foreign_control_dir(&name) {
                continue;
            }

            names.push(WorkspaceName {
                path: paths::join(&dir.path, &name),
                is_dir: entry.file_type()?.is_dir(),
                ignored: dir.ignored,
            });
        }

        Ok(names)
    }

    fn select(&mut self, entry: WorkspaceName) -> anyhow::Result<()> {
        let mut all = vec![entry];
        while let Some(entry) = all.pop() {
            if entry.is_dir {
                all.extend(self.inside(&entry)?);
            } else if self.explicit.excludes(&entry.path) || !self.is_secret(&entry.path) {
                self.selected.insert(entry.path);
            }
        }

        Ok(())
    }

    /// Also removes earlier copies that are not selected any more, such as that of a secret which
    /// the settings no longer name or the user has deleted.
    fn copy_selected(&mut self) -> anyhow::Result<()> {
        let Some(to) = &self.to else {
            return Ok(());
        };
        let record = &self.worktree.record;
        let earlier = record.copied();
        let mut stale = &earlier - &self.selected;
        if !stale.is_empty() {
            // A turn can have recorded the path since.
            let index = index::read(&self.worktree.repository)?;
            stale.retain(|path| index.entry_by_path(path.as_bstr()).is_none());
        }
        for path in &stale {
            remove_file(to, path)?;
        }
        let dirs = stale.iter().filter_map(|path| parent_dirs(path).next());
        remove_empty_dirs(to, &dirs.map(<[u8]>::to_vec).collect())?;

        // Before the first copy, so that a killed run leaves none that is not noted.
        record.keep_copied(&self.selected)?;
        for path in std::mem::take(&mut self.selected) {
            self.copy_file(&path)
                .with_context(|| format!("copying `{}`", path.to_str_lossy()))?;
            self.selected.insert(path);
        }
        Ok(())
    }

    fn is_secret(&self, path: &[u8]) -> bool {
        if self.limits.is_secret(path) {
            return true;
        }
        let Ok(file) = open_regular(&self.source(path)) else {
            return false;
        };
        let mut bytes = Vec::new();
        let is_read = file.take(MAX_SEARCHED).read_to_end(&mut bytes).is_ok();
        is_read && self.limits.key_in(path, &bytes).is_some()
    }

    /// Copies one file or symlink with its mtime. Skips a file with the same type, size and mtime.
    fn copy_file(&mut self, path: &[u8]) -> anyhow::Result<()> {
        let source = self.source(path);
        let metadata = std::fs::symlink_metadata(&source)?;
        let Some(handle) = self.walk_to(path)? else {
            return Ok(());
        };

        let existing = handle.stat()?;
        let kind = |existing: &Stat| FileType::from_raw_mode(existing.st_mode);
        if existing
            .as_ref()
            .is_some_and(|existing| kind(existing).is_dir())
        {
            return Ok(());
        }

        let same = existing.as_ref().is_some_and(|existing| {
            kind(existing) == FileType::from_raw_mode(metadata.mode())
                && u64::try_from(existing.st_size) == Ok(metadata.len())
                && (existing.st_mtime, i64::try_from(existing.st_mtime_nsec))
                    == (metadata.mtime(), Ok(metadata.mtime_nsec()))
        });
        if same || !(metadata.is_file() || metadata.is_symlink()) {
            return Ok(());
        }

        if existing.is_some() {
            handle.remove()?;
        }

        if metadata.is_symlink() {
            let target = std::fs::read_link(&source)?.into_os_string().into_vec();
            handle.create(&FileContents::Link(target), false)?;
        } else {
            handle.copy_from(&mut std::fs::File::open(&source)?)?;
        }

        self.provisioned.copied.push(path.to_vec());
        Ok(())
    }

    fn link_to(&mut self, path: &[u8]) -> anyhow::Result<()> {
        let target = self.source(path).into_os_string().into_vec();
        if self.to.is_none() {
            self.provisioned.linked.push(path.to_vec());
            return Ok(());
        }
        let Some(handle) = self.walk_to(path)? else {
            return Ok(());
        };

        match handle.read()? {
            OnDisk::Absent => {
                handle.create(&FileContents::Link(target), false)?;
            }
            OnDisk::Link(existing) if existing == target => {}
            // A command made it: its own dependencies, for example.
            _ => return Ok(()),
        }

        self.provisioned.linked.push(path.to_vec());
        Ok(())
    }

    fn source(&self, path: &[u8]) -> PathBuf {
        self.from.join(std::ffi::OsStr::from_bytes(path))
    }
}

impl WorkspaceName {
    fn name(&self) -> &[u8] {
        paths::split(&self.path).1
    }

    fn is_package_info(&self) -> bool {
        self.is_dir && self.name().ends_with(PACKAGE_INFO)
    }

    fn has_name_of(&self, names: &[&str]) -> bool {
        names.iter().any(|name| name.as_bytes() == self.name())
    }
}

impl Patterns {
    fn parse(text: &[u8]) -> Patterns {
        let lines = text.lines().map(|line| line.trim_end());
        let positive = lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"));
        let positive = positive.filter(|line| !line.starts_with(b"!"));
        Patterns {
            rules: TextRules::parse(text),
            components: positive.map(split_pattern).collect(),
        }
    }

    fn fits(&self, entry: &WorkspaceName) -> bool {
        // A directory matches if everything in it does.
        if entry.is_dir {
            self.rules
                .excludes(&[&entry.path, b"/\0".as_slice()].concat())
        } else {
            self.rules.excludes(&entry.path)
        }
    }

    /// Returns whether a pattern can match in an ignored directory.
    fn leads_into(&self, dir: &[u8]) -> bool {
        self.components
            .iter()
            .any(|components| can_match_below(components, dir))
    }
}

/// Splits a pattern of `.gitignore`. One without a slash, except at its end, matches at any depth.
fn split_pattern(pattern: &[u8]) -> Vec<Vec<u8>> {
    let pattern = pattern.strip_suffix(b"/").unwrap_or(pattern);
    let anchored = pattern.strip_prefix(b"/").unwrap_or(pattern);
    let is_anywhere = !pattern.contains(&b'/');
    let first = is_anywhere.then(|| b"**".to_vec());
    let components = anchored.split(|&byte| byte == b'/').map(<[u8]>::to_vec);
    first.into_iter().chain(components).collect()
}

fn can_match_below(components: &[Vec<u8>], dir: &[u8]) -> bool {
    let names = dir.split(|&byte| byte == b'/');
    let depth = names.clone().count();
    let any_depth = components.iter().position(|component| component == b"**");
    let fits = |(component, name): (&Vec<u8>, &[u8])| {
        let mode = gix::glob::wildmatch::Mode::NO_MATCH_SLASH_LITERAL;
        gix::glob::wildmatch(component.as_bstr(), name.as_bstr(), mode)
    };
    match any_depth {
        Some(at) => components[..at].iter().zip(names).all(fits),
        None => components.len() > depth && components.iter().zip(names).all(fits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_directory_is_searched_if_a_pattern_can_match_in_it() {
        let check = |pattern: &str, dir: &str, expected: bool| {
            let patterns = Patterns::parse(pattern.as_bytes());
            let actual = patterns.leads_into(dir.as_bytes());
            assert_eq!(actual, expected, "{pattern} in {dir}");
        };
        for pattern in [
            "cfg.json",
            "**/cfg.json",
            "*.json",
            "build/**",
            "bu*/x/cfg",
            "x/",
        ] {
            check(pattern, "build", true);
        }
        for pattern in [
            "/cfg.json",
            "other/cfg.json",
            "# x",
            "!cfg.json",
            "",
            "/build",
        ] {
            check(pattern, "build", false);
        }
        check("build/*/cfg.json", "build/y", true);
        check("build/*/cfg.json", "build/y/z", false);
        check("build/y/**/cfg.json", "build/y/z/z", true);
        check("build/y/**/cfg.json", "build/x", false);
    }
}
