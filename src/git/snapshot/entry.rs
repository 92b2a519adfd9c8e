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
pub(super) fn classify_entry(
    scan: &ScanContext<'_>,
    name: Vec<u8>,
    name_stat: &NameStat,
    (tracked, cached): (Option<&Tracked>, Option<&CachedName<&[u8]>>),
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

pub(super) fn is_valid_name(name: &[u8]) -> bool {
    gix::validate::path::component(name.into(), None, PROTECTED_NAMES).is_ok()
}

/// Returns whether git takes a symbolic link of this name into a tree: none that is called `.gitmodules`.
pub(super) fn is_valid_link_name(name: &[u8]) -> bool {
    let mode = Some(component::Mode::Symlink);
    gix::validate::path::component(name.into(), mode, PROTECTED_NAMES).is_ok()
}

/// Names are refused that any file system takes for one of git's.
const PROTECTED_NAMES: component::Options = component::Options {
    protect_windows: false,
    protect_hfs: true,
    protect_ntfs: true,
};
