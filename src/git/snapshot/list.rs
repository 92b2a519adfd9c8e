//! Lists a directory and classifies each name as tracked, forced, untracked or left out.

mod untracked;

use gix::index::entry::Mode;
use gix::objs::tree::EntryKind;
use rustix::fd::OwnedFd;

use super::cache::{CacheOrigin, CachedFolder, CachedName, Times, mark};
use super::context::ScanContext;
use super::embedded::{self, Embedded};
use super::entry::{basis, inherited, is_link_name, is_name, judge};
use super::folder::{FolderTask, Listing, Scanned, join};
use super::limits::{LeftOut, Reason, shown};
use super::rules::{self, IgnoreRules};
use super::share::look_at_all;
use super::tracked::{Frozen, Name, Names, Tracked};
use crate::git::stat::{NameKind, NameStat, look, names};
use crate::text::path::must_be_file;

/// `PATH_MAX` of Linux, with the final NUL.
const MAX_PATH: usize = 4096;
/// Rule file that gix opens by path in each directory.
const RULES: &[u8] = b"/.gitignore";

pub(super) struct FolderListing<'a, 'r> {
    scan: &'a ScanContext<'a>,
    rules: &'a mut IgnoreRules<'r>,
    task: FolderTask,
    /// Names in the user's index that were not met on disk yet.
    tracked: Names<'a>,
    /// The directory in the last snapshot.
    was: Option<CachedFolder<'a>>,
    /// Cursor for [`super::cache::Cache::find_next`].
    passed: usize,
    entries: Vec<CachedName>,
    tasks: Vec<FolderTask>,
    pub(super) scanned: Scanned,
}

struct ListedName<'n> {
    name: &'n [u8],
    path: Vec<u8>,
    seen: NameStat,
    tracked: Name,
}

impl<'a, 'r> FolderListing<'a, 'r> {
    pub(super) fn new(
        scan: &'a ScanContext<'a>,
        rules: &'a mut IgnoreRules<'r>,
        task: FolderTask,
    ) -> anyhow::Result<FolderListing<'a, 'r>> {
        let index = scan.index()?;
        let tracked = match index.collapsed(&task.path) {
            Some((tree, path)) => scan.names_of(tree, path)?,
            None => index.names(&task.path, index.below(&task.path)),
        };
        let scanned = Scanned {
            path: task.path.clone(),
            marks: 0,
            times: Times::default(),
            listing: Listing::Read(Vec::new()),
            link: None,
            left: Vec::new(),
        };

        let cache = scan.cache.as_ref();
        let was = cache.and_then(|cache| {
            Some(cache.folder(task.known.or_else(|| cache.find_folder(&task.path))?))
        });
        Ok(FolderListing {
            scan,
            rules,
            task,
            tracked,
            was,
            passed: 0,
            entries: Vec::new(),
            tasks: Vec::new(),
            scanned,
        })
    }

    pub(super) fn read(mut self, folder: &OwnedFd) -> anyhow::Result<(Scanned, Vec<FolderTask>)> {
        let mut names = match names(folder) {
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
            match embedded::look(self.scan, &self.task.path) {
                Embedded::At(id) => return Ok(self.embedded(id)),
                Embedded::Unborn => {
                    self.leave(&self.task.path.clone(), Reason::EmbeddedWithoutCommit);
                    return Ok(self.end());
                }
                Embedded::OtherHash => {
                    self.leave(&self.task.path.clone(), Reason::EmbeddedOtherHash);
                    return Ok(self.end());
                }
                Embedded::None => {}
            }
        }

        // First, because changed attributes invalidate the cached ids of this directory.
        self.compare_rules(folder, &names)?;
        let mut seen = look_at_all(folder, &names).into_iter();
        for (name, _) in &names {
            let seen = seen.next().flatten();
            if !is_git(name) {
                self.meet(name, seen)?;
            } else if name != b".git" {
                self.leave(&join(&self.task.path, name), Reason::Name);
            }
        }

        self.finish()
    }

    /// Result for a directory that can be opened but not listed.
    fn unreadable(mut self, error: &std::io::Error) -> anyhow::Result<(Scanned, Vec<FolderTask>)> {
        self.task.unreadable = true;
        self.leave(
            &self.task.path.clone(),
            Reason::Unreadable(error.kind().to_string()),
        );
        self.finish()
    }

    fn embedded(mut self, id: gix::ObjectId) -> (Scanned, Vec<FolderTask>) {
        self.scanned.link = Some(id);
        self.scanned.marks |= mark::EMBEDDED;
        self.end()
    }

    /// Sets `relist` or `distrust` if the directory's rule files changed, so its subdirectories are
    /// scanned again too.
    fn compare_rules(
        &mut self,
        folder: &OwnedFd,
        names: &[(Vec<u8>, NameKind)],
    ) -> anyhow::Result<()> {
        for rule in [b".gitignore".as_slice(), b".gitattributes"] {
            let kind = names
                .iter()
                .find(|(name, _)| name == rule)
                .map(|(_, kind)| *kind);
            let there = kind.is_some();
            if let Some(kind) = kind {
                rules::check(folder, &join(&self.task.path, rule), kind)?;
            }

            let was = self
                .was
                .as_ref()
                .and_then(|was| self.scan.cache.as_ref()?.find_entry(was, rule));
            let same = match (&was, there) {
                (Some(was), true) => {
                    look(folder, rule).is_ok_and(|seen| self.scan.unchanged(was, &seen))
                }
                (None, false) => true,
                _ => false,
            };

            self.scanned.marks |= if there { mark::RULES } else { 0 };
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
    fn meet(&mut self, name: &[u8], seen: Option<std::io::Result<NameStat>>) -> anyhow::Result<()> {
        let tracked = self.tracked.take(name);
        let path = join(&self.task.path, name);
        match seen {
            None => self.meet_folder(name, path, &tracked),
            Some(Ok(seen)) if seen.kind == NameKind::Folder => {
                self.meet_folder(name, path, &tracked)
            }
            Some(Ok(seen)) => self.meet_file(ListedName {
                name,
                path,
                seen,
                tracked,
            }),
            Some(Err(error)) => {
                if !crate::git::stat::is_absent(&error) {
                    self.leave(&path, Reason::Unreadable(error.kind().to_string()));
                    self.inherit(name, tracked.file.as_ref());
                }
                self.descend_absent(path, &tracked)
            }
        }
    }

    fn meet_folder(&mut self, name: &[u8], path: Vec<u8>, tracked: &Name) -> anyhow::Result<()> {
        if let Some(file) = &tracked.file {
            if file.mode == Mode::COMMIT {
                let id = embedded::commit(self.scan, &path).unwrap_or(file.id);
                let entry = CachedName {
                    standing: CacheOrigin::Seen,
                    ..inherited(name, EntryKind::Commit, id)
                };
                self.entries.push(entry);
                return Ok(());
            }

            if file.frozen.is_some() && file.mode != Mode::DIR {
                self.inherit(name, Some(file));
            }
        }

        let collapsed = tracked.file.filter(|file| file.mode == Mode::DIR);
        let is_committed = collapsed.is_some() || !tracked.below.is_empty();
        if !is_committed && must_be_file(&shown(name)) {
            // Git's fsck and every import would refuse the tree.
            self.leave(&path, Reason::MustBeFile);
            self.inherit(name, tracked.file.as_ref());
            return Ok(());
        }

        if self.is_too_deep(&path) {
            self.inherit(name, collapsed.as_ref());
            self.leave(&path, Reason::TooDeep);
            return Ok(());
        }

        let is_tracked = !tracked.below.is_empty() || collapsed.is_some();
        let wanted = is_tracked || self.is_forced(self.scan.forces_below(&path));
        if wanted || !self.rules.is_ignored(self.scan, &path, true)? {
            if is_name(name) {
                self.descend(path, false);
            } else {
                self.leave(&path, Reason::Name);
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

    fn meet_file(&mut self, met: ListedName<'_>) -> anyhow::Result<()> {
        let taken = match met.tracked.file {
            // A file has taken the place of a directory of the sparse index.
            Some(folder) if folder.mode == Mode::DIR => {
                let taken = self.meet_untracked(&met)?;
                self.inherit(met.name, (!taken).then_some(&folder));
                true
            }
            Some(file) => self.meet_tracked(&met, &file)?,
            None => self.meet_untracked(&met)?,
        };
        // A file hides the entries that the index has below its name.
        if !taken {
            self.descend_absent(met.path, &met.tracked)?;
        }
        Ok(())
    }

    fn meet_tracked(&mut self, met: &ListedName<'_>, file: &Tracked) -> anyhow::Result<bool> {
        if file
            .frozen
            .is_some_and(|frozen| self.is_passed_over(frozen, &met.path))
        {
            self.inherit(met.name, Some(file));
            return Ok(true);
        }

        let is_link = met.seen.kind == NameKind::Link;
        let reason = match met.seen.kind {
            NameKind::Special => Some(Reason::Special),
            _ if is_link && file.mode != Mode::SYMLINK && !is_link_name(met.name) => {
                Some(Reason::MustNotBeLink)
            }
            _ => None,
        };
        if let Some(reason) = reason {
            self.leave(&met.path, reason);
            self.inherit(met.name, Some(file));
            return Ok(true);
        }

        self.take(met)
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
    fn take(&mut self, met: &ListedName<'_>) -> anyhow::Result<bool> {
        let trusted = self.scan.ids_stand() && !self.task.distrust;
        let cached = self.was.as_ref().filter(|_| trusted);
        let cached = cached.and_then(|was| {
            let cache = self.scan.cache.as_ref()?;
            cache.find_next(was, met.name, &mut self.passed)
        });
        let entry = judge(
            self.scan,
            met.name.to_vec(),
            &met.seen,
            (met.tracked.file.as_ref(), cached.as_ref()),
        )?;

        self.entries.push(entry);
        Ok(true)
    }

    fn inherit(&mut self, name: &[u8], tracked: Option<&Tracked>) {
        let Some(tracked) = tracked else { return };
        if let Some(mode) = tracked.mode.to_tree_entry_mode() {
            let entry = inherited(name, mode.kind(), tracked.id);
            self.entries.push(CachedName {
                basis: basis(&tracked.id),
                ..entry
            });
        }
    }

    fn descend(&mut self, path: Vec<u8>, absent: bool) {
        let FolderTask {
            relist,
            distrust,
            unreadable,
            ..
        } = self.task;
        self.tasks.push(FolderTask {
            path,
            relist,
            distrust,
            absent,
            unreadable,
            ..FolderTask::default()
        });
    }

    /// Queues a missing subdirectory if the index has entries in it that stay in the snapshot.
    fn descend_absent(&mut self, path: Vec<u8>, tracked: &Name) -> anyhow::Result<()> {
        let below = tracked.below.clone();
        if !below.is_empty() && (self.task.unreadable || self.scan.index()?.any_frozen(below)) {
            self.descend(path, true);
        }
        Ok(())
    }

    /// Leaves a path out. The directory must then be listed each time, to report the path again.
    fn leave(&mut self, path: &[u8], reason: Reason) {
        self.scanned.marks |= mark::RELIST;
        self.scanned.left.push(LeftOut {
            path: shown(path),
            reason,
        });
    }

    /// Adds the index's entries that were not met on disk: frozen ones, or all if the directory is
    /// unreadable.
    pub(super) fn finish(mut self) -> anyhow::Result<(Scanned, Vec<FolderTask>)> {
        for (name, tracked) in std::mem::take(&mut self.tracked).into_rest() {
            if let Some(file) = tracked
                .file
                .filter(|file| file.frozen.is_some() || self.task.unreadable)
            {
                self.inherit(&name, Some(&file));
            }
            self.descend_absent(join(&self.task.path, &name), &tracked)?;
        }

        Ok(self.end())
    }

    fn end(mut self) -> (Scanned, Vec<FolderTask>) {
        self.entries.sort_by(|a, b| a.name.cmp(&b.name));
        self.scanned.listing = Listing::Read(self.entries);
        (self.scanned, self.tasks)
    }
}
