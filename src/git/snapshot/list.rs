//! Lists a directory and classifies each name as tracked, forced, untracked or left out.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gix::ObjectId;
use gix::index::entry::stat::Options;
use gix::index::entry::{Mode, Stat};
use gix::objs::tree::EntryKind;
use rustix::fd::OwnedFd;

use super::cache::{CacheOrigin, CachedDir, CachedName, Times, mark};
use super::context::ScanContext;
use super::dir_scan::{DirTask, Listing, Scanned};
use super::limits::{LeftOut, Reason, display_path};
use super::tracked::{Frozen, Name, Names, Tracked};
use crate::git::open::plain;
use crate::git::paths::{self, is_valid_link_name, is_valid_name};
use crate::git::refs::choose;
use crate::git::snapshot::context::{self, IgnoreRules};
use crate::git::snapshot::dir_scan::stat_all;
use crate::git::stat::{NameKind, NameStat, names, stat_name};
use crate::text::path::{is_foreign_control_dir, must_be_file};

/// `PATH_MAX` of Linux, with the final NUL.
const MAX_PATH: usize = 4096;

/// Rule file that gix opens by path in each directory.
const RULES: &[u8] = b"/.gitignore";

pub(super) struct DirListing<'a, 'r> {
    scan: &'a ScanContext<'a>,
    rules: &'a mut IgnoreRules<'r>,
    task: DirTask,
    /// Names in the user's index that were not met on disk yet.
    tracked: Names<'a>,
    cached_dir: Option<CachedDir<'a>>,
    /// Cursor for [`super::cache::Cache::find_next`].
    passed: usize,
    entries: Vec<CachedName>,
    tasks: Vec<DirTask>,
    pub(super) scanned: Scanned,
}

struct ListedName<'n> {
    name: &'n [u8],
    path: Vec<u8>,
    name_stat: NameStat,
    tracked: Name,
}

impl<'a, 'r> DirListing<'a, 'r> {
    pub(super) fn new(
        scan: &'a ScanContext<'a>,
        rules: &'a mut IgnoreRules<'r>,
        task: DirTask,
    ) -> anyhow::Result<DirListing<'a, 'r>> {
        let index = scan.index()?;
        let tracked = match index.collapsed(&task.path) {
            Some((tree, path)) => scan.names_of(tree, path)?,
            None => index.names(&task.path, index.entries_in(&task.path)),
        };
        let scanned = Scanned {
            path: task.path.clone(),
            marks: 0,
            times: Times::default(),
            listing: Listing::Read(Vec::new()),
            link: None,
            left_out: Vec::new(),
        };

        let cache = scan.cache.as_ref();
        let cached_dir = cache.and_then(|cache| {
            Some(cache.dir(task.cache_number.or_else(|| cache.find_dir(&task.path))?))
        });
        Ok(DirListing {
            scan,
            rules,
            task,
            tracked,
            cached_dir,
            passed: 0,
            entries: Vec::new(),
            tasks: Vec::new(),
            scanned,
        })
    }

    pub(super) fn read(mut self, dir: &OwnedFd) -> anyhow::Result<(Scanned, Vec<DirTask>)> {
        let mut names = match names(dir) {
            Ok(read) => read,
            Err(error) => return self.unreadable(&error),
        };
        // Sorted like the index and the cache, so each lookup continues from the last one.
        names.sort_unstable();
        let is_git = |name: &[u8]| name.eq_ignore_ascii_case(b".git");
        if !self.task.path.is_empty()
            && self.tracked.is_empty()
            && names.iter().any(|(name, _)| is_git(name))
        {
            match detect_embedded(self.scan, &self.task.path) {
                Embedded::At(id) => return Ok(self.embedded(id)),
                Embedded::Unborn => {
                    self.leave_out(&self.task.path.clone(), Reason::EmbeddedWithoutCommit);
                    return Ok(self.end());
                }
                Embedded::OtherHash => {
                    self.leave_out(&self.task.path.clone(), Reason::EmbeddedOtherHash);
                    return Ok(self.end());
                }
                Embedded::None => {}
            }
        }

        // First, because changed attributes invalidate the cached ids of this directory.
        self.compare_rules(dir, &names)?;
        let mut stats = stat_all(dir, &names).into_iter();
        for (name, _) in &names {
            let name_stat = stats.next().flatten();
            if !is_git(name) {
                self.visit(name, name_stat)?;
            // git refuses a tree with another spelling of `.git`.
            } else if name != b".git" {
                self.leave_out(&paths::join(&self.task.path, name), Reason::Name);
            }
        }

        self.finish()
    }

    /// Result for a directory that can be opened but not listed.
    fn unreadable(mut self, error: &std::io::Error) -> anyhow::Result<(Scanned, Vec<DirTask>)> {
        self.task.unreadable = true;
        self.leave_out(
            &self.task.path.clone(),
            Reason::Unreadable(error.kind().to_string()),
        );
        self.finish()
    }

    fn embedded(mut self, id: gix::ObjectId) -> (Scanned, Vec<DirTask>) {
        self.scanned.link = Some(id);
        self.scanned.marks |= mark::EMBEDDED;
        self.end()
    }

    /// Sets `relist` or `distrust` if the directory's rule files changed, so its subdirectories are
    /// scanned again too.
    fn compare_rules(
        &mut self,
        dir: &OwnedFd,
        names: &[(Vec<u8>, NameKind)],
    ) -> anyhow::Result<()> {
        for rule in [b".gitignore".as_slice(), b".gitattributes"] {
            let kind = names
                .iter()
                .find(|(name, _)| name == rule)
                .map(|(_, kind)| *kind);
            let exists = kind.is_some();
            if let Some(kind) = kind {
                context::check_rule_file(dir, &paths::join(&self.task.path, rule), kind)?;
            }

            let cached = self
                .cached_dir
                .as_ref()
                .and_then(|cached_dir| self.scan.cache.as_ref()?.find_entry(cached_dir, rule));
            let same = match (&cached, exists) {
                (Some(cached), true) => {
                    stat_name(dir, rule).is_ok_and(|current| self.scan.unchanged(cached, &current))
                }
                (None, false) => true,
                _ => false,
            };

            self.scanned.marks |= if exists { mark::RULES } else { 0 };
            let kind = if rule == b".gitignore" {
                &mut self.task.relist
            } else {
                &mut self.task.distrust
            };
            *kind |= !same;
        }

        Ok(())
    }

    /// Classifies one name. `name_stat` is `None` for a directory.
    fn visit(
        &mut self,
        name: &[u8],
        name_stat: Option<std::io::Result<NameStat>>,
    ) -> anyhow::Result<()> {
        let tracked = self.tracked.take(name);
        let path = paths::join(&self.task.path, name);
        match name_stat {
            None => self.visit_dir(name, path, &tracked),
            Some(Ok(name_stat)) if name_stat.kind == NameKind::Dir => {
                self.visit_dir(name, path, &tracked)
            }
            Some(Ok(name_stat)) => self.visit_file(ListedName {
                name,
                path,
                name_stat,
                tracked,
            }),
            Some(Err(error)) => {
                if !crate::git::stat::is_absent(&error) {
                    self.leave_out(&path, Reason::Unreadable(error.kind().to_string()));
                    self.inherit(name, tracked.file.as_ref());
                }
                self.descend_absent(path, &tracked)
            }
        }
    }

    fn visit_dir(&mut self, name: &[u8], path: Vec<u8>, tracked: &Name) -> anyhow::Result<()> {
        if let Some(file) = &tracked.file {
            if file.mode == Mode::COMMIT {
                // An unreadable submodule stays as in the index.
                let id = embedded_commit(self.scan, &path).unwrap_or(file.id);
                let entry = CachedName {
                    origin: CacheOrigin::Scanned,
                    ..inherited_entry(name, EntryKind::Commit, id)
                };
                self.entries.push(entry);
                return Ok(());
            }

            if file.frozen.is_some() && file.mode != Mode::DIR {
                self.inherit(name, Some(file));
            }
        }

        let collapsed = tracked.file.filter(|file| file.mode == Mode::DIR);
        let is_committed = collapsed.is_some() || !tracked.children.is_empty();
        if !is_committed && must_be_file(&display_path(name)) {
            // Git's fsck and every import would refuse the tree.
            self.leave_out(&path, Reason::MustBeFile);
            self.inherit(name, tracked.file.as_ref());
            return Ok(());
        }

        if self.is_too_deep(&path) {
            self.inherit(name, collapsed.as_ref());
            self.leave_out(&path, Reason::TooDeep);
            return Ok(());
        }

        let is_included =
            is_committed || self.is_forced(self.scan.forced_below(&path).next().is_some());
        // Like `.git`, unless it is tracked.
        let is_foreign = self.task.path.is_empty() && is_foreign_control_dir(name);
        if is_included || (!is_foreign && !self.rules.is_ignored(self.scan, &path, true)?) {
            if is_valid_name(name) {
                self.descend(path, false);
            } else {
                self.leave_out(&path, Reason::Name);
            }
        }

        Ok(())
    }

    /// Returns whether gix cannot open the directory's rule files by path, because it is too long.
    /// git cannot name any file in it either.
    fn is_too_deep(&self, path: &[u8]) -> bool {
        let top = self.scan.workdir.as_os_str().len();
        top + path.len() + RULES.len() >= MAX_PATH
    }

    fn visit_file(&mut self, listed: ListedName<'_>) -> anyhow::Result<()> {
        match listed.tracked.file {
            // A file has taken the place of a directory of the sparse index.
            Some(dir) if dir.mode == Mode::DIR => {
                let is_recorded = self.visit_untracked(&listed)?;
                self.inherit(listed.name, (!is_recorded).then_some(&dir));
                Ok(())
            }
            Some(file) => self.visit_tracked(&listed, &file),
            // A file hides the entries that the index has below its name.
            None if self.visit_untracked(&listed)? => Ok(()),
            None => self.descend_absent(listed.path, &listed.tracked),
        }
    }

    fn visit_tracked(&mut self, listed: &ListedName<'_>, file: &Tracked) -> anyhow::Result<()> {
        if file
            .frozen
            .is_some_and(|frozen| self.is_passed_over(frozen, &listed.path))
        {
            self.inherit(listed.name, Some(file));
            return Ok(());
        }

        let is_link = listed.name_stat.kind == NameKind::Link;
        let reason = match listed.name_stat.kind {
            NameKind::Special => Some(Reason::Special),
            _ if is_link && file.mode != Mode::SYMLINK && !is_valid_link_name(listed.name) => {
                Some(Reason::MustNotBeLink)
            }
            _ => None,
        };
        if let Some(reason) = reason {
            self.leave_out(&listed.path, reason);
            self.inherit(listed.name, Some(file));
            return Ok(());
        }

        self.record(listed)
    }

    /// Returns whether git ignores changes of this file, and it is not forced. A sparse checkout's
    /// file counts if it exists on disk, as in git.
    fn is_passed_over(&mut self, frozen: Frozen, path: &[u8]) -> bool {
        let is_left_out = frozen == Frozen::LeftOut && self.scan.sparse;
        !is_left_out && !self.is_forced(self.scan.forced(path).is_some())
    }

    /// Sets the flag that the directory possibly contains a name only because it is forced.
    fn is_forced(&mut self, is_forced: bool) -> bool {
        self.scanned.marks |= if is_forced { mark::FORCED } else { 0 };
        is_forced
    }

    fn record(&mut self, listed: &ListedName<'_>) -> anyhow::Result<()> {
        let trusted = self.scan.ids_are_valid() && !self.task.distrust;
        let cached = self.cached_dir.as_ref().filter(|_| trusted);
        let cached = cached.and_then(|cached_dir| {
            let cache = self.scan.cache.as_ref()?;
            cache.find_next(cached_dir, listed.name, &mut self.passed)
        });
        let entry = classify_entry(
            self.scan,
            listed.name.to_vec(),
            &listed.name_stat,
            listed.tracked.file.as_ref(),
            cached.as_ref(),
        )?;

        self.entries.push(entry);
        Ok(())
    }

    fn inherit(&mut self, name: &[u8], tracked: Option<&Tracked>) {
        let Some(tracked) = tracked else { return };
        if let Some(mode) = tracked.mode.to_tree_entry_mode() {
            let entry = inherited_entry(name, mode.kind(), tracked.id);
            self.entries.push(CachedName {
                basis: basis_of(&tracked.id),
                ..entry
            });
        }
    }

    fn descend(&mut self, path: Vec<u8>, absent: bool) {
        let DirTask {
            relist,
            distrust,
            unreadable,
            ..
        } = self.task;
        self.tasks.push(DirTask {
            path,
            relist,
            distrust,
            absent,
            unreadable,
            ..DirTask::default()
        });
    }

    /// Queues a missing subdirectory if the index has entries in it that stay in the snapshot.
    fn descend_absent(&mut self, path: Vec<u8>, tracked: &Name) -> anyhow::Result<()> {
        let children = tracked.children.clone();
        if !children.is_empty() && (self.task.unreadable || self.scan.index()?.any_frozen(children))
        {
            self.descend(path, true);
        }
        Ok(())
    }

    /// Leaves a path out. The directory must then be listed each time, to report the path again.
    fn leave_out(&mut self, path: &[u8], reason: Reason) {
        self.scanned.marks |= mark::RELIST;
        self.scanned.left_out.push(LeftOut {
            path: display_path(path),
            reason,
        });
    }

    /// Adds the index's entries that were not met on disk: frozen ones, or all if the directory is
    /// unreadable.
    pub(super) fn finish(mut self) -> anyhow::Result<(Scanned, Vec<DirTask>)> {
        for (name, tracked) in std::mem::take(&mut self.tracked).into_remaining() {
            if let Some(file) = tracked
                .file
                .filter(|file| file.frozen.is_some() || self.task.unreadable)
            {
                self.inherit(&name, Some(&file));
            }
            self.descend_absent(paths::join(&self.task.path, &name), &tracked)?;
        }

        Ok(self.end())
    }

    fn end(mut self) -> (Scanned, Vec<DirTask>) {
        self.entries.sort_by(|a, b| a.name.cmp(&b.name));
        self.scanned.listing = Listing::Read(self.entries);
        (self.scanned, self.tasks)
    }
}

impl DirListing<'_, '_> {
    /// Takes an untracked file, if it is not ignored and within the limits.
    fn visit_untracked(&mut self, listed: &ListedName<'_>) -> anyhow::Result<bool> {
        let forced = self.scan.forced(&listed.path);
        if !self.is_forced(forced.is_some())
            && self.rules.is_ignored(self.scan, &listed.path, false)?
        {
            if matches!(listed.name, b".gitignore" | b".gitattributes") {
                let kind = if listed.name_stat.kind == NameKind::Link {
                    EntryKind::Link
                } else {
                    EntryKind::Blob
                };

                let null = self.scan.basis.root.kind().null();
                let entry = inherited_entry(listed.name, kind, null);
                self.entries.push(CachedName {
                    stat: listed.name_stat.stat,
                    origin: CacheOrigin::Watched,
                    ..entry
                });
            }

            return Ok(false);
        }

        let limits = self.scan.limits;
        let created = forced.and_then(|forced| forced.created);
        let is_large = listed.name_stat.kind == NameKind::File
            && listed.name_stat.size > limits.max_file_size
            && forced.is_none_or(|_| {
                created.is_some_and(|created| created.size != listed.name_stat.size)
            });
        let large = || is_large.then_some(Reason::TooLarge(listed.name_stat.size));
        let reason = match listed.name_stat.kind {
            NameKind::Special => Some(Reason::Special),
            _ if !is_valid_name(listed.name) => Some(Reason::Name),
            NameKind::Link if !is_valid_link_name(listed.name) => Some(Reason::MustNotBeLink),
            // A created file is compared with its version when it is read.
            _ if created.is_some() => large(),
            _ => limits.name_reason(&listed.path).or_else(large),
        };

        match reason {
            None => {
                self.record(listed)?;
                Ok(true)
            }
            Some(reason) => {
                self.leave_out(&listed.path, reason);
                Ok(false)
            }
        }
    }
}

/// Returns the entry. Its id is null if the file must be read.
pub(super) fn classify_entry(
    scan: &ScanContext<'_>,
    name: Vec<u8>,
    name_stat: &NameStat,
    tracked: Option<&Tracked>,
    cached: Option<&CachedName<&[u8]>>,
) -> anyhow::Result<CachedName> {
    let kind = entry_kind(scan, name_stat, tracked.map(|tracked| tracked.mode));
    let basis = tracked.map_or(0, |tracked| basis_of(&tracked.id));
    let mut entry = CachedName {
        name,
        kind,
        id: scan.basis.root.kind().null(),
        stat: name_stat.stat,
        basis,
        origin: CacheOrigin::Scanned,
    };

    // Compare seconds: git without `USE_NSEC`, the usual build, treats an entry of the index's own
    // second as racy.
    if let Some(tracked) = tracked
        && tracked.is_settled
        && (tracked.mode == Mode::SYMLINK) == (kind == EntryKind::Link)
        && tracked.stat.matches(&name_stat.stat, scan.options)
        && !tracked.stat.is_racy(
            scan.index()?.state.timestamp(),
            Options {
                use_nsec: false,
                ..scan.options
            },
        )
    {
        entry.id = tracked.id;
    } else if let Some(cached) = cached
        && cached.basis == basis
        && cached.origin == CacheOrigin::Scanned
        && (cached.kind == EntryKind::Link) == (kind == EntryKind::Link)
        && cached.stat.matches(&name_stat.stat, scan.options)
        && scan
            .cache
            .as_ref()
            .is_some_and(|cache| !cache.basis.stamp.is_racy(&name_stat.stat))
    {
        entry.id = cached.id;
    }

    Ok(entry)
}

pub(super) fn entry_kind(
    scan: &ScanContext<'_>,
    name_stat: &NameStat,
    before: Option<Mode>,
) -> EntryKind {
    match (name_stat.kind, before) {
        (NameKind::Link, _) => EntryKind::Link,
        (_, Some(Mode::SYMLINK)) if !scan.links => EntryKind::Link,
        (_, Some(Mode::FILE_EXECUTABLE)) if !scan.file_mode => EntryKind::BlobExecutable,
        _ if scan.file_mode && name_stat.executable => EntryKind::BlobExecutable,
        _ => EntryKind::Blob,
    }
}

pub(super) fn basis_of(id: &ObjectId) -> u32 {
    u32::from_le_bytes(id.as_slice()[..4].try_into().expect("an id has four bytes"))
}

/// Returns an entry that is not compared with the disk.
pub(super) fn inherited_entry(name: &[u8], kind: EntryKind, id: ObjectId) -> CachedName {
    CachedName {
        name: name.to_vec(),
        kind,
        id,
        stat: Stat::default(),
        basis: 0,
        origin: CacheOrigin::Inherited,
    }
}

pub(super) enum Embedded {
    At(ObjectId),
    /// A repository without a commit, or an unreadable one.
    Unborn,
    /// A repository with another hash function, whose ids no tree of this repository can contain.
    OtherHash,
    /// Not a repository: `.git` is something else.
    None,
}

pub(super) fn detect_embedded(scan: &ScanContext<'_>, path: &[u8]) -> Embedded {
    let top = scan
        .workdir
        .join(Path::new(std::ffi::OsStr::from_bytes(path)));
    let git = top.join(".git");
    if git.symlink_metadata().is_err() {
        return Embedded::None;
    }

    match gix::open_opts(&top, plain()) {
        Ok(repo) if repo.object_hash() != scan.basis.root.kind() => Embedded::OtherHash,
        Ok(repo) => embedded_head(&repo).map_or(Embedded::Unborn, Embedded::At),
        // A repository in an unknown format is still a repository.
        Err(_) if git.join("HEAD").exists() && git.join("objects").is_dir() => Embedded::Unborn,
        Err(_) => Embedded::None,
    }
}

fn embedded_head(repo: &gix::Repository) -> Option<ObjectId> {
    let refs = choose::of(repo, repo.common_dir()).ok()?;
    Some(refs.head().ok()?.commit?.into())
}

pub(super) fn embedded_commit(scan: &ScanContext<'_>, path: &[u8]) -> Option<ObjectId> {
    match detect_embedded(scan, path) {
        Embedded::At(id) => Some(id),
        Embedded::Unborn | Embedded::OtherHash | Embedded::None => None,
    }
}
