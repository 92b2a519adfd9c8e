//! Lists a directory and classifies each name as tracked, forced, untracked or left out.

mod untracked;

use gix::index::entry::Mode;
use gix::objs::tree::EntryKind;
use rustix::fd::OwnedFd;

use super::cache::{CacheOrigin, CachedDir, CachedName, Times, mark};
use super::context::ScanContext;
use super::dir_scan::{DirTask, Listing, Scanned, join_path};
use super::embedded::{self, Embedded};
use super::entry::{basis_of, classify_entry, inherited_entry, is_valid_link_name, is_valid_name};
use super::limits::{LeftOut, Reason, display_path};
use super::rules::{self, IgnoreRules};
use super::share::stat_all;
use super::tracked::{Frozen, Name, Names, Tracked};
use crate::git::stat::{NameKind, NameStat, names, stat_name};
use crate::text::path::must_be_file;

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
    /// The directory in the last snapshot.
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
            match embedded::detect_embedded(self.scan, &self.task.path) {
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
            } else if name != b".git" {
                self.leave_out(&join_path(&self.task.path, name), Reason::Name);
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
                rules::check_rule_file(dir, &join_path(&self.task.path, rule), kind)?;
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

    /// Classifies one name. `seen` is `None` for a directory.
    fn visit(
        &mut self,
        name: &[u8],
        name_stat: Option<std::io::Result<NameStat>>,
    ) -> anyhow::Result<()> {
        let tracked = self.tracked.take(name);
        let path = join_path(&self.task.path, name);
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
                let id = embedded::embedded_commit(self.scan, &path).unwrap_or(file.id);
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

        let is_tracked = !tracked.children.is_empty() || collapsed.is_some();
        let is_included = is_tracked || self.is_forced(self.scan.forces_below(&path));
        if is_included || !self.rules.is_ignored(self.scan, &path, true)? {
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
        let is_recorded = match listed.tracked.file {
            // A file has taken the place of a directory of the sparse index.
            Some(dir) if dir.mode == Mode::DIR => {
                let is_recorded = self.visit_untracked(&listed)?;
                self.inherit(listed.name, (!is_recorded).then_some(&dir));
                true
            }
            Some(file) => self.visit_tracked(&listed, &file)?,
            None => self.visit_untracked(&listed)?,
        };
        // A file hides the entries that the index has below its name.
        if !is_recorded {
            self.descend_absent(listed.path, &listed.tracked)?;
        }
        Ok(())
    }

    fn visit_tracked(&mut self, listed: &ListedName<'_>, file: &Tracked) -> anyhow::Result<bool> {
        if file
            .frozen
            .is_some_and(|frozen| self.is_passed_over(frozen, &listed.path))
        {
            self.inherit(listed.name, Some(file));
            return Ok(true);
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
            return Ok(true);
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

    /// Takes a file into the snapshot.
    fn record(&mut self, listed: &ListedName<'_>) -> anyhow::Result<bool> {
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
            (listed.tracked.file.as_ref(), cached.as_ref()),
        )?;

        self.entries.push(entry);
        Ok(true)
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
            self.descend_absent(join_path(&self.task.path, &name), &tracked)?;
        }

        Ok(self.end())
    }

    fn end(mut self) -> (Scanned, Vec<DirTask>) {
        self.entries.sort_by(|a, b| a.name.cmp(&b.name));
        self.scanned.listing = Listing::Read(self.entries);
        (self.scanned, self.tasks)
    }
}
