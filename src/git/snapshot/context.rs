//! State shared by all parts of one snapshot: repository, user's index, cache, settings.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use gix::ObjectId;
use gix::bstr::ByteSlice as _;
use gix::index::entry::Mode;
use gix::index::entry::stat::Options;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::OFlags;

use super::cache::{Basis, Cache, CacheOrigin, CachedDir, CachedName, mark};
use super::limits::{Forced, SnapshotLimits, display_path};
use super::loaded::stat_of;
use super::tracked::{Index, Names};
use crate::git::During as _;
use crate::git::ignore::IgnoreStack;
use crate::git::paths;
use crate::git::repository::Repository;
use crate::git::sparse::is_on;
use crate::git::stat::{self, NameKind, NameStat, Stamp, stat_name};
use crate::host::file::read_regular;

const MAX_SETTINGS_FILE: u64 = 64 << 20;

pub(super) struct ScanContext<'a> {
    /// Each thread makes its own handle of it.
    pub(super) shared: gix::ThreadSafeRepository,
    pub(super) top: OwnedFd,
    pub(super) workdir: &'a Path,
    pub(super) limits: &'a SnapshotLimits,
    /// Paths to include even if they are ignored, sorted.
    pub(super) force: Vec<&'a Forced>,
    pub(super) cache: Option<Arc<Cache>>,
    /// Basis of the new cache. The root is set at the end.
    pub(super) basis: Basis,
    pub(super) options: Options,
    /// `core.fileMode`: the executable bit on disk is meaningful.
    pub(super) file_mode: bool,
    /// `core.symlinks`: symlinks are not checked out as files.
    pub(super) links: bool,
    pub(super) sparse: bool,
    index: OnceLock<Result<Arc<Index>, String>>,
    names: OnceLock<bool>,
}

impl<'a> ScanContext<'a> {
    /// Opens the worktree. [`ScanContext::with_cache`] adds the cache.
    pub(super) fn new(
        repository: &'a Repository,
        limits: &'a SnapshotLimits,
        force: &'a [Forced],
    ) -> anyhow::Result<ScanContext<'a>> {
        let gix = &repository.gix;
        let workdir = repository.workdir();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top =
            crate::host::file::openat(rustix::fs::CWD, workdir, flags, rustix::fs::Mode::empty())
                .with_context(|| format!("cannot open `{}`", workdir.display()))?;
        let mut force: Vec<&Forced> = force.iter().collect();

        force.sort_unstable();
        let config = gix.config_snapshot();
        let basis = Basis {
            settings: settings(repository, limits),
            choice: choice(repository, limits),
            force: hash_of(&force),
            index: stat_of(&gix.index_path()).unwrap_or_default(),
            tracking: 0,
            stamp: Stamp::default(),
            root: gix.object_hash().null(),
        };

        let user_index = repository.loaded.user_index(&basis.index);
        Ok(ScanContext {
            shared: gix.clone().into_sync(),
            top,
            workdir,
            limits,
            force,
            cache: None,
            basis,
            options: stat::options(gix),
            file_mode: config.boolean("core.fileMode").unwrap_or(true),
            links: config.boolean("core.symlinks").unwrap_or(true),
            sparse: is_on(repository),
            index: user_index
                .map_or_else(OnceLock::new, |user_index| OnceLock::from(Ok(user_index))),
            names: OnceLock::new(),
        })
    }

    pub(super) fn with_cache(mut self, cache: Option<Arc<Cache>>, stamp: Stamp) -> ScanContext<'a> {
        self.cache = cache;
        self.basis.stamp = stamp;
        self
    }

    pub(super) fn index(&self) -> anyhow::Result<&Index> {
        let loaded = self.index.get_or_init(|| {
            let gix = self.shared.to_thread_local();
            let loaded = Index::load(&gix).map_err(|error| format!("{error:#}"));
            loaded.map(Arc::new)
        });
        let loaded = loaded.as_ref().map(AsRef::as_ref);
        loaded.map_err(|error| anyhow::anyhow!("{error}"))
    }

    /// Returns the names of a directory at or below one that the sparse index has as a tree. Empty
    /// if the tree has no such directory.
    pub(super) fn names_of(&self, tree: ObjectId, path: &[u8]) -> anyhow::Result<Names<'static>> {
        let gix = self.shared.to_thread_local();
        let reading = "reading a folder of a sparse index";
        let top = gix.find_tree(tree).during(reading)?;
        if path.is_empty() {
            return Names::of_tree(&top);
        }

        let parts = path.split(|&byte| byte == b'/');
        let entry = top.lookup_entry(parts).during(reading)?;
        match entry.filter(|entry| entry.mode().is_tree()) {
            Some(entry) => Names::of_tree(&gix.find_tree(entry.oid()).during(reading)?),
            None => Ok(Names::default()),
        }
    }

    /// Keeps the decoded user's index for the next snapshot of this process.
    pub(super) fn keep_index(&self, repository: &Repository) {
        if let Some(Ok(index)) = self.index.get() {
            let (then, stamp) = (&self.basis.index, self.basis.stamp);
            repository.loaded.keep_user_index(then, stamp, index);
        }
    }

    /// Returns whether ids in the cache are still valid: the settings that produced them are the
    /// same.
    pub(super) fn ids_are_valid(&self) -> bool {
        self.cache
            .as_ref()
            .is_some_and(|cache| cache.basis.settings == self.basis.settings)
    }

    /// Returns whether an unchanged directory still includes the same names.
    pub(super) fn names_are_valid(&self) -> bool {
        *self.names.get_or_init(|| {
            let then = self
                .cache
                .as_ref()
                .map(|cache| &cache.basis)
                .filter(|then| then.choice == self.basis.choice);
            self.ids_are_valid()
                && then.is_some_and(|then| self.tracking().is_ok_and(|now| now == then.tracking))
        })
    }

    /// Like [`ScanContext::names_are_valid`], and forced paths make no difference in this directory
    /// either: none was included before, none is to be included now.
    pub(super) fn names_are_valid_in(&self, cache: &Cache, dir: &CachedDir<'_>) -> bool {
        let is_same = cache.basis.force == self.basis.force;
        let was_forced = dir.marks & mark::FORCED != 0;
        self.names_are_valid() && (is_same || !(was_forced || self.forces_more(cache, dir)))
    }

    /// Returns whether a forced path can add names to a directory. Tracked files and known
    /// subdirectories are included anyway.
    fn forces_more(&self, cache: &Cache, dir: &CachedDir<'_>) -> bool {
        self.forced_below(dir.path).any(|tail| {
            let (name, is_dir) = match tail.find_byte(b'/') {
                Some(end) => (&tail[..end], true),
                None => (tail, false),
            };
            if is_dir {
                let child = cache.find_dir(&paths::join(dir.path, name));
                child.is_none_or(|child| cache.dir(child).marks & mark::VIRTUAL != 0)
            } else {
                let cached = cache.find_entry(dir, name);
                !cached.is_some_and(|cached| {
                    cached.origin == CacheOrigin::Scanned && cached.basis != 0
                })
            }
        })
    }

    /// Returns whether the user's index is the same file as before.
    pub(super) fn index_is_valid(&self) -> bool {
        let then = self.cache.as_ref().map(|cache| &cache.basis);
        then.is_some_and(|then| then.index == self.basis.index && !then.stamp.is_racy(&then.index))
    }

    pub(super) fn tracking(&self) -> anyhow::Result<u64> {
        match self.cache.as_ref().filter(|_| self.index_is_valid()) {
            Some(cache) => Ok(cache.basis.tracking),
            None => Ok(self.index()?.tracking()),
        }
    }

    pub(super) fn unchanged(&self, entry: &CachedName<&[u8]>, current: &NameStat) -> bool {
        use gix::objs::tree::EntryKind;

        let Some(cache) = &self.cache else {
            return false;
        };
        let kind = match entry.kind {
            EntryKind::Blob => {
                current.kind == NameKind::File && !(self.file_mode && current.executable)
            }
            EntryKind::BlobExecutable => {
                current.kind == NameKind::File && (!self.file_mode || current.executable)
            }
            EntryKind::Link => {
                current.kind == NameKind::Link || (!self.links && current.kind == NameKind::File)
            }
            EntryKind::Commit | EntryKind::Tree => false,
        };
        kind && entry.stat.matches(&current.stat, self.options)
            && !cache.basis.stamp.is_racy(&current.stat)
    }

    /// Returns the forced path, if it is one. Of several equal ones, that with `created` sorts last
    /// and wins.
    pub(super) fn forced(&self, path: &[u8]) -> Option<&'a Forced> {
        let end = self
            .force
            .partition_point(|forced| forced.path.as_slice() <= path);
        let last = self.force[..end].last().copied();
        last.filter(|forced| forced.path == path)
    }

    /// Returns the forced paths below a directory, relative to it.
    pub(super) fn forced_below(&self, dir: &[u8]) -> impl Iterator<Item = &'a [u8]> {
        let mut prefix = dir.to_vec();
        if !prefix.is_empty() {
            prefix.push(b'/');
        }
        let at = self
            .force
            .partition_point(|forced| forced.path.as_slice() < prefix.as_slice());
        self.force[at..]
            .iter()
            .map_while(move |forced| forced.path.strip_prefix(prefix.as_slice()))
    }

    /// Opens a path below the top without following symlinks.
    pub(super) fn open(&self, path: &[u8], flags: OFlags) -> std::io::Result<OwnedFd> {
        stat::open_below(self.top.as_fd(), path, flags)
    }
}

/// Hashes the settings and files that decide which object a file becomes, or whether it can be
/// included.
fn settings(repository: &Repository, limits: &SnapshotLimits) -> u64 {
    let mut hash = DefaultHasher::new();
    (limits.leave_secrets, &limits.include).hash(&mut hash);
    for section in ["core", "filter"] {
        repository.config_section(section).hash(&mut hash);
    }

    repository.workdir().hash(&mut hash);
    add_file(&mut hash, &repository.common_dir().join("info/attributes"));
    add_file(
        &mut hash,
        &repository.global_file("core.attributesFile", "attributes"),
    );

    hash.finish()
}

fn hash_of(value: impl Hash) -> u64 {
    let mut hash = DefaultHasher::new();
    value.hash(&mut hash);
    hash.finish()
}

/// Hashes the settings and files, other than the index, `.gitignore` files and forced paths, that
/// decide which names are included.
fn choice(repository: &Repository, limits: &SnapshotLimits) -> u64 {
    let mut hash = DefaultHasher::new();
    (limits.max_file_size, limits.leave_secrets, &limits.exclude).hash(&mut hash);
    is_on(repository).hash(&mut hash);
    add_file(&mut hash, &repository.common_dir().join("info/exclude"));
    add_file(
        &mut hash,
        &repository.global_file("core.excludesFile", "ignore"),
    );

    hash.finish()
}

/// Hashes the content of a small file. Its mtime would miss two changes within one clock tick.
fn add_file(hash: &mut DefaultHasher, path: &Path) {
    read_regular(path, MAX_SETTINGS_FILE).ok().hash(hash);
}

/// git refuses attribute files above 100 MiB. Real rule files are far smaller, and gix needs many
/// times their size to read them.
const MAX_RULE_FILE: u64 = 8 << 20;

/// Ignore rules with the index of the scan, read on first use.
pub(super) struct IgnoreRules<'r> {
    repo: &'r gix::Repository,
    stack: Option<IgnoreStack<'r>>,
}

impl<'r> IgnoreRules<'r> {
    pub(super) fn new(repo: &'r gix::Repository) -> IgnoreRules<'r> {
        IgnoreRules { repo, stack: None }
    }

    /// Returns whether git ignores an untracked path or a directory above it.
    pub(super) fn is_ignored(
        &mut self,
        scan: &ScanContext<'_>,
        path: &[u8],
        dir: bool,
    ) -> anyhow::Result<bool> {
        let stack = match &mut self.stack {
            Some(stack) => stack,
            empty => empty.insert(IgnoreStack::of(self.repo, &scan.index()?.state)?),
        };
        stack.ignores(path, if dir { Mode::DIR } else { Mode::FILE })
    }
}

/// Refuses a rule file that gix must not open: reading a pipe would block forever, and a huge file
/// would exhaust memory.
pub(super) fn check_rule_file(dir: &OwnedFd, path: &[u8], kind: NameKind) -> anyhow::Result<()> {
    let (_, name) = paths::split(path);
    let why = match kind {
        NameKind::Special => "is a pipe or a device".to_owned(),
        NameKind::File
            if stat_name(dir, name).is_ok_and(|name_stat| name_stat.size > MAX_RULE_FILE) =>
        {
            format!("is larger than {} MiB", MAX_RULE_FILE >> 20)
        }
        _ => return Ok(()),
    };
    anyhow::bail!(
        "`{}` {why}, and git's rules cannot be read; remove it",
        display_path(path)
    )
}
