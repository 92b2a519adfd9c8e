//! A pack that was made here before, as a newer one takes it in.

use std::cell::OnceCell;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use gix::ObjectId;
use gix::hash::oid;
use gix_pack::index::File as Index;

use super::{DELTA, HEADER};
use crate::host::file::open_regular;

/// A pack and its index.
pub(in crate::git) struct OldPack {
    /// The pack.
    file: File,
    /// Its index.
    index: Index,
    /// Where its objects end.
    end: u64,
    /// Its objects, in the order of their places, once somebody asked; nothing where its index is
    /// damaged.
    entries: OnceCell<Option<Vec<OldEntry>>>,
}

/// An object of a pack.
#[derive(Clone, Copy)]
struct OldEntry {
    /// The object.
    id: ObjectId,
    /// Where it begins.
    start: u64,
    /// Where it ends.
    end: u64,
    /// The checksum of its bytes.
    crc: u32,
}

/// An object as a pack stores it.
pub(in crate::git) type PackedBytes = (ObjectId, Vec<u8>);

impl OldPack {
    /// Opens a pack, given without its ending; nothing where that cannot be done, or its index is
    /// that of another one.
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

    /// Returns whether the pack has an object. This alone costs the same in a pack of any size.
    pub(in crate::git) fn has(&self, id: &oid) -> bool {
        self.index.lookup(id).is_some()
    }

    /// Returns how many bytes an object takes, if the pack has it.
    pub(in crate::git) fn length_of(&self, id: &oid) -> Option<u64> {
        let entry = self.entries()?.iter().find(|entry| *entry.id == *id)?;
        Some(entry.end - entry.start)
    }

    /// Returns the objects, in the order of their places.
    fn entries(&self) -> Option<&[OldEntry]> {
        let entries = self.entries.get_or_init(|| self.read_entries());
        entries.as_deref()
    }

    /// Reads the objects from the index.
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

        let inside = HEADER.len() as u64..self.end;
        let is_sound = entries.iter().all(|entry| inside.contains(&entry.start));
        is_sound.then_some(entries)
    }

    /// Returns the objects but for some; nothing where one cannot be read, is damaged or is not as we
    /// write them, or they have more than so many bytes. Damage that came in here would stop
    /// every turn, or be given a new name and outlive the old one.
    pub(in crate::git) fn entries_without(
        &self,
        left_out: &[ObjectId],
        most: u64,
    ) -> Option<Vec<PackedBytes>> {
        let wanted = self.entries()?.iter();
        let wanted: Vec<&OldEntry> = wanted
            .filter(|entry| !left_out.contains(&entry.id))
            .collect();
        let length = wanted
            .iter()
            .map(|entry| entry.end - entry.start)
            .sum::<u64>();
        if length > most {
            return None;
        }

        // What lies side by side is read at once.
        let runs = wanted.chunk_by(|before, after| before.end == after.start);
        let mut found = Vec::with_capacity(wanted.len());
        for run in runs {
            let (start, end) = (run.first()?.start, run.last()?.end);
            let mut data = vec![0; usize::try_from(end - start).ok()?];
            self.file.read_exact_at(&mut data, start).ok()?;
            for entry in run {
                let place = (entry.start - start) as usize..(entry.end - start) as usize;
                let bytes = &data[place];
                if crc32fast::hash(bytes) != entry.crc || !self.stands_alone(bytes) {
                    return None;
                }
                found.push((entry.id, bytes.to_vec()));
            }
        }
        Some(found)
    }

    /// Returns whether an entry needs nothing that is not in this pack.
    fn stands_alone(&self, entry: &[u8]) -> bool {
        match kind_of(entry) {
            Some(1..=4) => true,
            Some(DELTA) => {
                base_of(entry, self.index.object_hash()).is_some_and(|base| self.has(base))
            }
            _ => false,
        }
    }
}

/// Returns whether an entry is a delta.
pub(in crate::git) fn is_delta(entry: &[u8]) -> bool {
    kind_of(entry) == Some(DELTA)
}

/// Returns the kind of an entry.
fn kind_of(entry: &[u8]) -> Option<u8> {
    Some(entry.first()? >> 4 & 7)
}

/// Returns what a delta is to be applied to; it comes after the size.
fn base_of(entry: &[u8], hash: gix::hash::Kind) -> Option<&oid> {
    let start = entry.iter().position(|byte| byte & 0x80 == 0)? + 1;
    let end = start + hash.len_in_bytes();
    oid::try_from_bytes(entry.get(start..end)?).ok()
}
