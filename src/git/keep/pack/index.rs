//! Encodes the index of a pack, version 2.

use anyhow::Context as _;
use gix::ObjectId;

const INDEX_HEADER: &[u8; 8] = b"\xfftOc\0\0\0\x02";
/// Flag: the offset is in the table of 64-bit offsets.
const LARGE_OFFSET: u32 = 1 << 31;

pub(super) struct PackedObject {
    pub(super) id: ObjectId,
    /// CRC-32 of the encoded entry.
    pub(super) crc: u32,
    pub(super) offset: u64,
}

pub(super) fn encode_index(
    mut entries: Vec<PackedObject>,
    pack: ObjectId,
    hash: gix::hash::Kind,
) -> anyhow::Result<Vec<u8>> {
    entries.sort_unstable_by_key(|entry| entry.id);
    let mut index = Vec::with_capacity(
        INDEX_HEADER.len()
            + 256 * 4
            + entries.len() * (hash.len_in_bytes() + 8)
            + 2 * hash.len_in_bytes(),
    );
    index.extend_from_slice(INDEX_HEADER);
    let mut at = 0;

    for first in 0..=u8::MAX {
        at += entries[at..]
            .iter()
            .take_while(|entry| entry.id.first_byte() == first)
            .count();
        index.extend_from_slice(
            &u32::try_from(at)
                .context("too many objects for one pack")?
                .to_be_bytes(),
        );
    }

    entries
        .iter()
        .for_each(|entry| index.extend_from_slice(entry.id.as_slice()));
    entries
        .iter()
        .for_each(|entry| index.extend_from_slice(&entry.crc.to_be_bytes()));
    let mut large = Vec::new();

    for entry in &entries {
        let offset = match u32::try_from(entry.offset) {
            Ok(offset) if offset < LARGE_OFFSET => offset,
            _ => {
                large.push(entry.offset);
                LARGE_OFFSET
                    | u32::try_from(large.len() - 1).context("too many objects for one pack")?
            }
        };
        index.extend_from_slice(&offset.to_be_bytes());
    }

    large
        .iter()
        .for_each(|offset| index.extend_from_slice(&offset.to_be_bytes()));
    index.extend_from_slice(pack.as_slice());
    let mut hasher = gix::hash::hasher(hash);
    hasher.update(&index);
    index.extend_from_slice(
        hasher
            .try_finalize()
            .map_err(|e| anyhow::anyhow!("{e}"))?
            .as_slice(),
    );

    Ok(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(offsets: &[(u8, u64)]) {
        let hash = gix::hash::Kind::Sha1;
        let id = |n: u8| ObjectId::from_bytes_or_panic(&[n; 20]);
        let entries = offsets
            .iter()
            .map(|&(n, offset)| PackedObject {
                id: id(n),
                crc: u32::from(n),
                offset,
            })
            .collect();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pack-1.idx");
        std::fs::write(&path, encode_index(entries, id(7), hash).unwrap()).unwrap();
        let index = gix_pack::index::File::at(&path, hash).unwrap();
        assert_eq!(
            (index.num_objects() as usize, index.pack_checksum()),
            (offsets.len(), id(7))
        );
        assert!(
            index
                .verify_checksum(
                    &mut gix::progress::Discard,
                    &std::sync::atomic::AtomicBool::new(false)
                )
                .is_ok()
        );
        for &(n, offset) in offsets {
            let at = index.lookup(id(n)).unwrap();
            assert_eq!(
                (index.pack_offset_at_index(at), index.crc32_at_index(at)),
                (offset, Some(u32::from(n)))
            );
        }
        assert_eq!(index.lookup(id(6)), None);
    }

    #[test]
    fn objects_are_found_in_any_order_and_at_any_offset() {
        check(&[]);
        check(&[(5, 12)]);
        check(&[(255, 12), (0, 90), (128, 50)]);
        check(&[
            (1, 1 << 31),
            (9, (1 << 31) - 1),
            (2, 1 << 40),
            (3, u64::from(u32::MAX)),
        ]);
    }
}
