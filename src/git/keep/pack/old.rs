//! Reads packs of earlier turns, to absorb them into newer ones.

use std::cell::OnceCell;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use gix::ObjectId;
use gix::hash::oid;
use gix_pack::data::Entry;
use gix_pack::data::entry::Header;
use gix_pack::index::File as Index;

use super::PACK_HEADER;
use crate::host::file::open_regular;

/// Entry kind `OBJ_REF_DELTA`.
const DELTA: u8 = 7;

pub(in crate::git) struct OldPack {
    file: File,
    index: Index,
    end: u64,
    /// Entries sorted by offset, read on first use. `None` if the index is damaged.
    entries: OnceCell<Option<Vec<OldEntry>>>,
}

#[derive(Clone, Copy)]
struct OldEntry {
    id: ObjectId,
    start: u64,
    end: u64,
    crc: u32,
}

pub(in crate::git) type PackedBytes = (ObjectId, Vec<u8>);

impl OldPack {
    /// Opens a pack, given its path without extension. `None` if it is unreadable or its index
    /// belongs to another pack.
    pub(in crate::git) fn open(pack: &Path, hash: gix::hash::Kind) -> Option<OldPack> {
        let index = Index::at(pack.with_extension("idx"), hash).ok()?;
        let file = open_regular(&pack.with_extension("pack")).ok()?;
        let end = file.metadata().ok()?.len();
        let end = end.checked_sub(hash.len_in_bytes() as u64)?;
        let mut sum = vec![0; hash.len_in_bytes()];
        file.read_exact_at(&mut sum, end).ok()?;
        if index.pack_checksum().as_slice() != sum {
            return None;
        }

        Some(OldPack {
            file,
            index,
            end,
            entries: OnceCell::new(),
        })
    }

    /// Returns whether the pack has an object. Takes the same time for a pack of any size.
    pub(in crate::git) fn has(&self, id: &oid) -> bool {
        self.index.lookup(id).is_some()
    }

    pub(in crate::git) fn length_of(&self, id: &oid) -> Option<u64> {
        let entry = self.entries()?.iter().find(|entry| *entry.id == *id)?;
        Some(entry.end - entry.start)
    }

    fn entries(&self) -> Option<&[OldEntry]> {
        let entries = self.entries.get_or_init(|| self.read_entries());
        entries.as_deref()
    }

    fn read_entries(&self) -> Option<Vec<OldEntry>> {
        let mut entries = Vec::with_capacity(self.index.num_objects() as usize);
        for entry in self.index.iter() {
            entries.push(OldEntry {
                id: entry.oid,
                start: entry.pack_offset,
                end: self.end,
                crc: entry.crc32?,
            });
        }
        entries.sort_unstable_by_key(|entry| entry.start);
        let starts: Vec<u64> = entries.iter().skip(1).map(|entry| entry.start).collect();
        for (entry, end) in entries.iter_mut().zip(starts) {
            entry.end = end;
        }

        let inside = PACK_HEADER.len() as u64..self.end;
        let is_sound = entries.iter().all(|entry| inside.contains(&entry.start));
        is_sound.then_some(entries)
    }

    /// Returns the encoded objects except some. `None` if one is damaged, unreadable or depends on
    /// another pack, or if they have more than `most` bytes.
    ///
    /// Absorbing damage would fail every turn, or copy the damage into a new pack.
    pub(in crate::git) fn entries_without(
        &self,
        left_out: &[ObjectId],
        most: u64,
    ) -> Option<Vec<PackedBytes>> {
        let selected = self.entries()?.iter();
        let selected: Vec<&OldEntry> = selected
            .filter(|entry| !left_out.contains(&entry.id))
            .collect();
        let length = selected
            .iter()
            .map(|entry| entry.end - entry.start)
            .sum::<u64>();
        if length > most {
            return None;
        }

        // Adjacent entries are read with one call.
        let runs = selected.chunk_by(|before, after| before.end == after.start);
        let mut objects = Vec::with_capacity(selected.len());
        for run in runs {
            let (start, end) = (run.first()?.start, run.last()?.end);
            let mut data = vec![0; usize::try_from(end - start).ok()?];
            self.file.read_exact_at(&mut data, start).ok()?;
            for entry in run {
                let range = (entry.start - start) as usize..(entry.end - start) as usize;
                let bytes = &data[range];
                if crc32fast::hash(bytes) != entry.crc || !self.stands_alone(bytes) {
                    return None;
                }
                objects.push((entry.id, bytes.to_vec()));
            }
        }
        Some(objects)
    }

    /// Returns whether an entry does not depend on objects outside this pack.
    fn stands_alone(&self, entry: &[u8]) -> bool {
        let start = PACK_HEADER.len() as u64;
        let entry = Entry::from_bytes(entry, start, self.index.object_hash());
        entry.is_ok_and(|entry| match entry.header {
            Header::RefDelta { base_id } => self.has(&base_id),
            header => header.is_base(),
        })
    }
}

pub(in crate::git) fn is_delta(entry: &[u8]) -> bool {
    entry.first().is_some_and(|byte| byte >> 4 & 7 == DELTA)
}
