//! Scans one directory: keeps its names from the last snapshot if they are unchanged, or lists it
//! again.

use std::hash::{BuildHasher as _, RandomState};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use gix::ObjectId;
use gix::objs::tree::EntryKind;
use rustix::fd::{AsFd as _, OwnedFd};

use super::cache::{Cache, CacheOrigin, CachedFolder, FreshName, Times, mark};
use super::context::ScanContext;
use super::embedded;
use super::entry::{is_link_name, judge};
use super::folder::{FolderTask, HeldFolder, Listing, Scanned, join};
use super::limits::{LeftOut, Reason, shown};
use super::list::FolderListing;
use super::rules::IgnoreRules;
use super::share::{NAMES, in_parts};
use crate::git::stat::{
    NameKind, NameStat, each_name, is_absent, is_exhausted, look, look_at, open_folder,
    open_to_list,
};
use crate::host::threads::beside;

pub(super) fn scan_folder(
    scan: &ScanContext<'_>,
    rules: &mut IgnoreRules<'_>,
    mut task: FolderTask,
) -> anyhow::Result<(Scanned, Vec<FolderTask>)> {
    if task.absent {
        return scan_absent(scan, rules, task);
    }

    let opened = open(scan, &task).and_then(|folder| Ok((look_at(folder.as_fd())?, folder)));
    let (seen, folder) = match opened {
        Ok(opened) => opened,
        Err(error) => return scan_closed(scan, rules, task, error),
    };

    task.known = task
        .known
        .or_else(|| scan.cache.as_ref()?.find_folder(&task.path));
    let times = Times::from(&seen.stat);
    if let (Some(cache), Some(known), false) =
        (&scan.cache, task.known, task.relist || task.distrust)
        && scan.names_stand_in(cache, &cache.folder(known))
        && let Some(kept) = keep(&Keep {
            scan,
            cache,
            folder: &folder,
            number: known,
            times,
        })?
    {
        return Ok(holding(folder, kept));
    }

    let names = match open_to_list(&folder) {
        Ok(opened) => opened,
        Err(error) => return scan_closed(scan, rules, task, error),
    };
    let mut list = FolderListing::new(scan, rules, task)?;
    list.scanned.times = times;
    let read = list.read(&names)?;
    Ok(holding(folder, read))
}

/// Result for a directory that cannot be opened: its tracked files are taken from the index.
fn scan_closed(
    scan: &ScanContext<'_>,
    rules: &mut IgnoreRules<'_>,
    mut task: FolderTask,
    error: std::io::Error,
) -> anyhow::Result<(Scanned, Vec<FolderTask>)> {
    // Running out of descriptors or memory proves nothing about the files.
    if is_exhausted(&error) {
        let what = || format!("cannot open the directory `{}`", shown(&task.path));
        return Err(error).with_context(what);
    }

    task.absent = true;
    task.unreadable = !is_absent(&error);
    let left = task.unreadable.then(|| LeftOut {
        path: shown(&task.path),
        reason: Reason::Unreadable(error.kind().to_string()),
    });
    let mut scanned = scan_absent(scan, rules, task)?;

    scanned.0.marks |= mark::RELIST;
    scanned.0.left.extend(left);
    Ok(scanned)
}

/// Opens a directory, relative to its parent if that is open.
fn open(scan: &ScanContext<'_>, task: &FolderTask) -> std::io::Result<OwnedFd> {
    match &task.above {
        Some(above) => {
            let start = task.path.iter().rposition(|&byte| byte == b'/');
            open_folder(&above.0, &task.path[start.map_or(0, |at| at + 1)..])
        }
        None => open_folder(&scan.top, &task.path),
    }
}

/// Keeps a directory open for the tasks of its subdirectories.
fn holding(
    folder: OwnedFd,
    (scanned, mut tasks): (Scanned, Vec<FolderTask>),
) -> (Scanned, Vec<FolderTask>) {
    if !tasks.is_empty() {
        let above = HeldFolder::hold(folder);
        for task in &mut tasks {
            task.above.clone_from(&above);
        }
    }
    (scanned, tasks)
}

/// Result for a missing directory: only the frozen entries of the index.
fn scan_absent(
    scan: &ScanContext<'_>,
    rules: &mut IgnoreRules<'_>,
    task: FolderTask,
) -> anyhow::Result<(Scanned, Vec<FolderTask>)> {
    if let (Some(cache), Some(known), false) = (&scan.cache, task.known, task.unreadable)
        && scan.names_stand_in(cache, &cache.folder(known))
        && cache.folder(known).marks & (mark::VIRTUAL | mark::RELIST) == mark::VIRTUAL
    {
        return Ok(as_cached(cache, known, None));
    }
    let mut list = FolderListing::new(scan, rules, task)?;
    list.scanned.marks |= mark::VIRTUAL;

    list.finish()
}

/// A directory whose names are possibly unchanged.
struct Keep<'a> {
    scan: &'a ScanContext<'a>,
    cache: &'a Cache,
    folder: &'a OwnedFd,
    number: usize,
    times: Times,
}

/// Returns the directory with the names of the last snapshot, and changed files marked as to be
/// read. `None` if it must be listed.
fn keep(at: &Keep<'_>) -> anyhow::Result<Option<(Scanned, Vec<FolderTask>)>> {
    let was = at.cache.folder(at.number);
    if was.marks & (mark::RELIST | mark::VIRTUAL) != 0 {
        return Ok(None);
    }

    // A second change within the clock tick of the last snapshot leaves the times as they are.
    let is_racy = (at.cache.basis.stamp).is_racy_at(at.times.mtime, at.times.ctime);
    let stands = was.times == at.times && !is_racy;
    if was.marks & mark::EMBEDDED != 0 {
        let link = if stands {
            embedded::commit(at.scan, was.path)
        } else {
            None
        };
        return Ok(link.map(|link| as_before(at, Some(link))));
    }

    let Some(changed) = compare(at, &was, stands) else {
        return Ok(None);
    };
    let (mut scanned, tasks) = as_before(at, None);
    if !changed.is_empty() {
        scanned.listing = Listing::Mended(at.number, reread(at, &was, &changed)?);
    }

    Ok(Some((scanned, tasks)))
}

/// Returns the entries that changed, by position; `None` if the directory must be listed.
///
/// If its times changed, its names can still be the same, because a turn replaces files by rename.
/// Then the names are compared too, in parallel with the stats.
fn compare(at: &Keep<'_>, was: &CachedFolder<'_>, stands: bool) -> Option<Vec<(usize, NameStat)>> {
    let is_other = AtomicBool::new(false);
    let look_at_all = || {
        let parts = in_parts(was.entries.clone(), NAMES, |part| {
            changed(at, was, part, &is_other)
        });
        parts.into_iter().collect::<Option<Vec<_>>>()
    };

    let parts = if stands {
        look_at_all()
    } else if was.entries.len() < NAMES {
        has_names(at, was).then(look_at_all).flatten()
    } else {
        let look_at_names = || is_other.store(!has_names(at, was), Ordering::Relaxed);
        beside(look_at_names, look_at_all).1
    };
    let is_same = !is_other.into_inner();
    parts.filter(|_| is_same).map(|parts| parts.concat())
}

/// Returns whether the directory has exactly the cached names, with directories in the same places.
fn has_names(at: &Keep<'_>, was: &CachedFolder<'_>) -> bool {
    let mut expected = NameSum::default();
    for n in was.entries.clone() {
        let entry = at.cache.entry(n);
        if entry.standing == CacheOrigin::Inherited {
            return false;
        }
        expected.add(entry.name, entry.kind == EntryKind::Commit);
    }

    let skip = was.path.len() + usize::from(!was.path.is_empty());
    for &child in at.cache.children(at.number) {
        let child = at.cache.folder(child as usize);
        if child.marks & mark::VIRTUAL != 0 {
            return false;
        }
        expected.add(&child.path[skip..], true);
    }

    let (mut found, is_top) = (expected.without_names(), was.path.is_empty());
    let listed = open_to_list(at.folder).and_then(|folder| {
        each_name(&folder, |name, kind| {
            if !(is_top && name == b".git") {
                found.add(name, kind == NameKind::Folder);
            }
        })
    });
    listed.is_ok() && found == expected
}

/// Order-independent hash of a set of names.
///
/// The key is random, so names with equal sums cannot be chosen on purpose. Sorting tens of
/// thousands of names would take as long as reading all their stats.
#[derive(Default)]
struct NameSum {
    key: RandomState,
    count: usize,
    sum: u64,
}

impl NameSum {
    /// Returns an empty sum with the same key.
    fn without_names(&self) -> NameSum {
        NameSum {
            key: self.key.clone(),
            ..NameSum::default()
        }
    }

    fn add(&mut self, name: &[u8], is_folder: bool) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(self.key.hash_one((name, is_folder)));
    }
}

impl PartialEq for NameSum {
    fn eq(&self, other: &NameSum) -> bool {
        (self.count, self.sum) == (other.count, other.sum)
    }
}

/// Like [`compare`], for one part of the entries. `None` also if `is_other` is set in the meantime.
fn changed(
    at: &Keep<'_>,
    was: &CachedFolder<'_>,
    part: Range<usize>,
    is_other: &AtomicBool,
) -> Option<Vec<(usize, NameStat)>> {
    let mut changed = Vec::new();
    for n in part {
        if is_other.load(Ordering::Relaxed) {
            return None;
        }

        let entry = at.cache.entry(n);
        match (entry.standing, entry.kind) {
            (CacheOrigin::Inherited, _) => {}
            (_, EntryKind::Commit) => {
                let path = join(was.path, entry.name);
                embedded::commit(at.scan, &path).filter(|id| *id == entry.id)?;
            }
            _ => {
                let seen = look(at.folder, entry.name).ok()?;
                if at.scan.unchanged(&entry, &seen) {
                    continue;
                }

                let rule = matches!(entry.name, b".gitignore" | b".gitattributes");
                let other = matches!(seen.kind, NameKind::Folder | NameKind::Special)
                    || seen.kind == NameKind::Link && !is_link_name(entry.name)
                    || seen.size > at.scan.limits.max_file_size;
                // Changed rules, and files that are now left out, need a new listing.
                if rule || other || entry.standing == CacheOrigin::Watched {
                    return None;
                }

                changed.push((n - was.entries.start, seen));
            }
        }
    }

    Some(changed)
}

/// Returns the changed entries, without ids, so they are read.
fn reread(
    at: &Keep<'_>,
    was: &CachedFolder<'_>,
    changed: &[(usize, NameStat)],
) -> anyhow::Result<Vec<FreshName>> {
    let index = at.scan.index()?;
    let judged = changed.iter().map(|(place, seen)| {
        let name = at.cache.entry(was.entries.start + place).name;
        let tracked = index.file(&join(was.path, name));
        let name = judge(at.scan, name.to_vec(), seen, (tracked.as_ref(), None))?;
        Ok((*place, name))
    });
    judged.collect()
}

/// Returns a directory as in the last snapshot with its current times, and tasks for its
/// subdirectories.
fn as_before(at: &Keep<'_>, link: Option<ObjectId>) -> (Scanned, Vec<FolderTask>) {
    let (scanned, tasks) = as_cached(at.cache, at.number, link);
    (
        Scanned {
            times: at.times,
            ..scanned
        },
        tasks,
    )
}

/// Returns a directory as in the cache, and tasks for its subdirectories.
fn as_cached(cache: &Cache, number: usize, link: Option<ObjectId>) -> (Scanned, Vec<FolderTask>) {
    let was = cache.folder(number);
    let scanned = Scanned {
        path: was.path.to_vec(),
        marks: was.marks,
        times: was.times,
        listing: Listing::Kept(number),
        link,
        left: Vec::new(),
    };

    let task = |&child: &u32| {
        let folder = cache.folder(child as usize);
        // A directory that was unreadable can exist or be readable now, so it is tried again.
        let absent = folder.marks & (mark::VIRTUAL | mark::RELIST) == mark::VIRTUAL;
        FolderTask {
            path: folder.path.to_vec(),
            known: Some(child as usize),
            absent,
            ..FolderTask::default()
        }
    };
    (scanned, cache.children(number).iter().map(task).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_names_is_of_these_in_any_order() {
        type Names<'n> = &'n [(&'n str, bool)];
        let check = |ours: Names<'_>, theirs: Names<'_>, expected: bool| {
            let mut one = NameSum::default();
            let mut other = one.without_names();
            ours.iter()
                .for_each(|(name, f)| one.add(name.as_bytes(), *f));
            theirs
                .iter()
                .for_each(|(name, f)| other.add(name.as_bytes(), *f));
            assert_eq!(one == other, expected, "{ours:?} {theirs:?}");
        };
        check(&[], &[], true);
        check(
            &[("a", false), ("b", true)],
            &[("b", true), ("a", false)],
            true,
        );
        check(&[("a", false)], &[("a", true)], false);
        check(&[("a", false)], &[("b", false)], false);
        check(&[("a", false), ("b", false)], &[("ab", false)], false);
        check(&[("a", false), ("a", false)], &[], false);
        check(
            &[("ab", false), ("c", false)],
            &[("a", false), ("bc", false)],
            false,
        );
    }
}
