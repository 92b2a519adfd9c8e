//! Converts a file or symlink on disk to a tree entry, as far as possible without reading it.

use gix::ObjectId;
use gix::index::entry::stat::Options;
use gix::index::entry::{Mode, Stat};
use gix::objs::tree::EntryKind;
use gix::validate::path::component;

use super::cache::{CacheOrigin, CachedName};
use super::context::ScanContext;
use super::tracked::Tracked;
use crate::git::stat::{NameKind, NameStat};

/// Returns the entry. Its id is null if the file must be read.
pub(super) fn judge(
    scan: &ScanContext<'_>,
    name: Vec<u8>,
    seen: &NameStat,
    (tracked, cached): (Option<&Tracked>, Option<&CachedName<&[u8]>>),
) -> anyhow::Result<CachedName> {
    let kind = kind_of(scan, seen, tracked.map(|tracked| tracked.mode));
    let basis = tracked.map_or(0, |tracked| basis(&tracked.id));
    let mut entry = CachedName {
        name,
        kind,
        id: scan.basis.root.kind().null(),
        stat: seen.stat,
        basis,
        standing: CacheOrigin::Seen,
    };

    // Compare seconds: git without `USE_NSEC`, the usual build, treats an entry of the index's own
    // second as racy.
    if let Some(tracked) = tracked
        && tracked.settled
        && (tracked.mode == Mode::SYMLINK) == (kind == EntryKind::Link)
        && tracked.stat.matches(&seen.stat, scan.options)
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
        && cached.standing == CacheOrigin::Seen
        && (cached.kind == EntryKind::Link) == (kind == EntryKind::Link)
        && cached.stat.matches(&seen.stat, scan.options)
        && scan
            .cache
            .as_ref()
            .is_some_and(|cache| !cache.basis.stamp.is_racy(&seen.stat))
    {
        entry.id = cached.id;
    }

    Ok(entry)
}

pub(super) fn kind_of(scan: &ScanContext<'_>, seen: &NameStat, before: Option<Mode>) -> EntryKind {
    match (seen.kind, before) {
        (NameKind::Link, _) => EntryKind::Link,
        (_, Some(Mode::SYMLINK)) if !scan.links => EntryKind::Link,
        (_, Some(Mode::FILE_EXECUTABLE)) if !scan.file_mode => EntryKind::BlobExecutable,
        _ if scan.file_mode && seen.executable => EntryKind::BlobExecutable,
        _ => EntryKind::Blob,
    }
}

pub(super) fn basis(id: &ObjectId) -> u32 {
    u32::from_le_bytes(id.as_slice()[..4].try_into().expect("an id has four bytes"))
}

/// Returns an entry that is not compared with the disk.
pub(super) fn inherited(name: &[u8], kind: EntryKind, id: ObjectId) -> CachedName {
    CachedName {
        name: name.to_vec(),
        kind,
        id,
        stat: Stat::default(),
        basis: 0,
        standing: CacheOrigin::Inherited,
    }
}

pub(super) fn is_name(name: &[u8]) -> bool {
    gix::validate::path::component(name.into(), None, PROTECTED).is_ok()
}

/// Returns whether git takes a symbolic link of this name into a tree: none that is called `.gitmodules`.
pub(super) fn is_link_name(name: &[u8]) -> bool {
    let mode = Some(component::Mode::Symlink);
    gix::validate::path::component(name.into(), mode, PROTECTED).is_ok()
}

/// Names are refused that any file system takes for one of git's.
const PROTECTED: component::Options = component::Options {
    protect_windows: false,
    protect_hfs: true,
    protect_ntfs: true,
};
