//! One folder: which of its names are in the snapshot, and which of those must be read.

use gix::ObjectId;
use gix::index::entry::Mode;
use gix::index::entry::stat::Options;
use gix::objs::tree::EntryKind;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::OFlags;

use super::cache::{Cache, Entry, Folder, Standing, Times, mark};
use super::embedded;
use super::ground::Ground;
use super::limits::{LeftOut, Reason, shown};
use super::list::List;
use super::rules::Rules;
use super::stat::{Kind, Seen, is_absent, look, look_at};
use super::tracked::Tracked;

/// A folder to look at.
#[derive(Debug, Clone, Default)]
pub(super) struct Task {
    /// Its path; empty for the top.
    pub(super) path: Vec<u8>,
    /// Its number in the cache, where that is known already.
    pub(super) known: Option<usize>,
    /// Ignore rules above it changed: what is in it must be judged anew.
    pub(super) relist: bool,
    /// Attributes above it changed: ids in the cache prove nothing.
    pub(super) distrust: bool,
    /// It is not on disk; what the index holds still is taken from there.
    pub(super) absent: bool,
    /// It cannot be read: everything tracked in it is taken from the index.
    pub(super) unreadable: bool,
}

/// What came out of a folder.
pub(super) struct Scanned {
    /// Its path.
    pub(super) path: Vec<u8>,
    /// Bits of [`mark`].
    pub(super) marks: u32,
    /// Its times.
    pub(super) times: Times,
    /// Its names.
    pub(super) listing: Listing,
    /// The commit, if it is a repository of its own.
    pub(super) link: Option<ObjectId>,
    /// What is not in the snapshot.
    pub(super) left: Vec<LeftOut>,
}

/// The names of a folder.
pub(super) enum Listing {
    /// All as the folder of this number in the cache.
    Kept(usize),
    /// These, in order; a file whose id is null must be read.
    Read(Vec<Entry>),
}

/// Looks at a folder; returns what is in it and the folders to look at next.
pub(super) fn scan(
    ground: &Ground<'_>,
    rules: &mut Rules<'_>,
    mut task: Task,
) -> anyhow::Result<(Scanned, Vec<Task>)> {
    if task.absent {
        return scan_absent(ground, rules, task);
    }
    let opened = ground.open(&task.path, OFlags::RDONLY | OFlags::DIRECTORY);
    let opened = opened.and_then(|folder| Ok((look_at(folder.as_fd())?, folder)));
    let (seen, folder) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            task.absent = true;
            task.unreadable = !is_absent(&error);
            let left = task.unreadable.then(|| LeftOut {
                path: shown(&task.path),
                reason: Reason::Unreadable(error.kind().to_string()),
            });
            let mut scanned = scan_absent(ground, rules, task)?;
            scanned.0.marks |= mark::RELIST;
            scanned.0.left.extend(left);
            return Ok(scanned);
        }
    };
    task.known = task
        .known
        .or_else(|| ground.cache.as_ref()?.find_folder(&task.path));
    let times = Times::from(&seen.stat);
    if let (Some(cache), Some(known), false) =
        (&ground.cache, task.known, task.relist || task.distrust)
        && ground.names_stand()
        && let Some(kept) = keep(&Keep {
            ground,
            cache,
            folder: &folder,
            number: known,
            times,
        })?
    {
        return Ok(kept);
    }
    let mut list = List::new(ground, rules, task)?;
    list.scanned.times = times;
    list.read(&folder)
}

/// Takes from the index what it holds still of a folder that is not there.
fn scan_absent(
    ground: &Ground<'_>,
    rules: &mut Rules<'_>,
    task: Task,
) -> anyhow::Result<(Scanned, Vec<Task>)> {
    if let (Some(cache), Some(known), false) = (&ground.cache, task.known, task.unreadable)
        && ground.names_stand()
        && cache.folder(known).marks & (mark::VIRTUAL | mark::RELIST) == mark::VIRTUAL
    {
        return Ok(as_before(cache, known, None));
    }
    let mut list = List::new(ground, rules, task)?;
    list.scanned.marks |= mark::VIRTUAL;
    list.finish()
}

/// A folder whose names may be what they were.
struct Keep<'a> {
    /// The snapshot.
    ground: &'a Ground<'a>,
    /// What was.
    cache: &'a Cache,
    /// The folder.
    folder: &'a OwnedFd,
    /// Its number in the cache.
    number: usize,
    /// Its times now.
    times: Times,
}

/// Returns the folder's names as they were, if they are; files that changed are to be read.
fn keep(at: &Keep<'_>) -> anyhow::Result<Option<(Scanned, Vec<Task>)>> {
    let was = at.cache.folder(at.number);
    let racy = at.times.mtime >= at.cache.basis.stamp.0;
    if racy || was.times != at.times || was.marks & (mark::RELIST | mark::VIRTUAL) != 0 {
        return Ok(None);
    }
    if was.marks & mark::EMBEDDED != 0 {
        let link = embedded::commit(at.ground, was.path);
        return Ok(link.map(|link| as_before(at.cache, at.number, Some(link))));
    }
    let mut changed = Vec::new();
    for n in was.entries.clone() {
        let entry = at.cache.entry(n);
        match (entry.standing, entry.kind) {
            (Standing::Inherited, _) => {}
            (_, EntryKind::Commit) => {
                let path = join(was.path, entry.name);
                match embedded::commit(at.ground, &path) {
                    Some(id) if id == entry.id => {}
                    _ => return Ok(None),
                }
            }
            _ => {
                let Ok(seen) = look(at.folder, entry.name) else {
                    return Ok(None);
                };
                if at.ground.unchanged(&entry, &seen) {
                    continue;
                }
                let rule = matches!(entry.name, b".gitignore" | b".gitattributes");
                let other = matches!(seen.kind, Kind::Folder | Kind::Special)
                    || seen.size > at.ground.limits.max_file_size;
                if rule || other || entry.standing == Standing::Watched {
                    return Ok(None);
                }
                changed.push((n - was.entries.start, seen));
            }
        }
    }
    let (mut scanned, tasks) = as_before(at.cache, at.number, None);
    if !changed.is_empty() {
        scanned.listing = Listing::Read(reread(at, &was, &changed)?);
    }
    Ok(Some((scanned, tasks)))
}

/// Returns a folder's names with those that changed to be read.
fn reread(
    at: &Keep<'_>,
    was: &Folder<'_>,
    changed: &[(usize, Seen)],
) -> anyhow::Result<Vec<Entry>> {
    let index = at.ground.index()?;
    let tracked = index.names(was.path, index.below(was.path));
    let mut entries: Vec<Entry> = was
        .entries
        .clone()
        .map(|n| owned(&at.cache.entry(n)))
        .collect();
    for (n, seen) in changed {
        let entry = &mut entries[*n];
        let name = tracked.get(entry.name.as_slice());
        *entry = judge(
            at.ground,
            std::mem::take(&mut entry.name),
            seen,
            (name.and_then(|name| name.file.as_ref()), None),
        )?;
    }
    Ok(entries)
}

/// Returns a folder as it was, and its sub-folders to look at.
fn as_before(cache: &Cache, number: usize, link: Option<ObjectId>) -> (Scanned, Vec<Task>) {
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
        // One that could not be read may be there again, or still not be readable: it is tried
        // anew.
        let absent = folder.marks & (mark::VIRTUAL | mark::RELIST) == mark::VIRTUAL;
        Task {
            path: folder.path.to_vec(),
            known: Some(child as usize),
            absent,
            ..Task::default()
        }
    };
    (scanned, cache.children(number).iter().map(task).collect())
}

/// Returns what a file or link is in the tree; its id is null if it must be read.
pub(super) fn judge(
    ground: &Ground<'_>,
    name: Vec<u8>,
    seen: &Seen,
    (tracked, cached): (Option<&Tracked>, Option<&Entry<&[u8]>>),
) -> anyhow::Result<Entry> {
    let kind = kind_of(ground, seen, tracked.map(|tracked| tracked.mode));
    let basis = tracked.map_or(0, |tracked| basis(&tracked.id));
    let mut entry = Entry {
        name,
        kind,
        id: ground.basis.root.kind().null(),
        stat: seen.stat,
        basis,
        standing: Standing::Seen,
    };
    // Git itself, as most build it, counts an index entry of the index's own second as racy.
    if let Some(tracked) = tracked
        && tracked.settled
        && (tracked.mode == Mode::SYMLINK) == (kind == EntryKind::Link)
        && tracked.stat.matches(&seen.stat, ground.options)
        && !tracked.stat.is_racy(
            ground.index()?.state.timestamp(),
            Options {
                use_nsec: false,
                ..ground.options
            },
        )
    {
        entry.id = tracked.id;
    } else if let Some(cached) = cached
        && cached.basis == basis
        && cached.standing == Standing::Seen
        && (cached.kind == EntryKind::Link) == (kind == EntryKind::Link)
        && cached.stat.matches(&seen.stat, ground.options)
        && ground
            .cache
            .as_ref()
            .is_some_and(|cache| !cache.basis.stamp.is_racy(&seen.stat))
    {
        entry.id = cached.id;
    }
    Ok(entry)
}

/// Returns what git would record a file or link as.
pub(super) fn kind_of(ground: &Ground<'_>, seen: &Seen, before: Option<Mode>) -> EntryKind {
    match (seen.kind, before) {
        (Kind::Link, _) => EntryKind::Link,
        (_, Some(Mode::SYMLINK)) if !ground.links => EntryKind::Link,
        (_, Some(Mode::FILE_EXECUTABLE)) if !ground.file_mode => EntryKind::BlobExecutable,
        _ if ground.file_mode && seen.executable => EntryKind::BlobExecutable,
        _ => EntryKind::Blob,
    }
}

/// Returns the start of an id.
pub(super) fn basis(id: &ObjectId) -> u32 {
    u32::from_le_bytes(id.as_slice()[..4].try_into().expect("an id has four bytes"))
}

/// Returns an entry of the cache with a name of its own.
fn owned(entry: &Entry<&[u8]>) -> Entry {
    Entry {
        name: entry.name.to_vec(),
        kind: entry.kind,
        id: entry.id,
        stat: entry.stat,
        basis: entry.basis,
        standing: entry.standing,
    }
}

/// Returns the path of a name in a folder.
pub(super) fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(folder.len() + 1 + name.len());
    if !folder.is_empty() {
        path.extend_from_slice(folder);
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}
