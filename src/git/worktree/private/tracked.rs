//! Reads the paths from an index that commands wrote.
//!
//! A path that a command adds is part of the plan's result even if it is ignored. The index is
//! untrusted, so only its names are used, as paths to look at.

use std::collections::BTreeSet;

use crate::git::worktree::index_form::{
    COUNT_OFFSET, ENTRY_ALIGNMENT, EXTENDED_FLAG, FLAGS_LEN, HEADER_LEN, INDEX_MAGIC, STAT_LEN,
    VERSION_OFFSET,
};

const MAX_INDEX_PATH: usize = 4096;
/// Upper bound for the sum of all paths. Version 4 compresses common prefixes, so a small file
/// could expand to more than the memory.
const MAX_INDEX_NAMES: usize = 128 << 20;

/// Returns the paths in an index; `None` if it is invalid.
pub(super) fn read_index_paths(bytes: &[u8], hash: gix::hash::Kind) -> Option<BTreeSet<Vec<u8>>> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if !bytes.starts_with(INDEX_MAGIC) {
        return None;
    }

    let version = number(VERSION_OFFSET).filter(|version| (2..=4).contains(version))?;
    let (mut at, mut paths, mut path) = (HEADER_LEN, BTreeSet::new(), Vec::new());
    let mut names = 0;
    for _ in 0..number(COUNT_OFFSET)? {
        let fixed = STAT_LEN + hash.len_in_bytes();
        let flags = bytes.get(at + fixed..at + fixed + FLAGS_LEN)?;
        let flags = u16::from_be_bytes(flags.try_into().ok()?);
        let extended = flags & EXTENDED_FLAG != 0 && version > 2;
        let mut name = at + fixed + FLAGS_LEN + if extended { FLAGS_LEN } else { 0 };
        if version == 4 {
            let (strip, length) = read_varint(bytes.get(name..)?)?;
            path.truncate(path.len().checked_sub(strip)?);
            name += length;
        } else {
            path.clear();
        }

        let length = bytes.get(name..)?.iter().position(|&byte| byte == 0)?;
        path.extend(&bytes[name..name + length]);
        at = if version == 4 {
            name + length + 1
        } else {
            at + (name + length - at + ENTRY_ALIGNMENT) / ENTRY_ALIGNMENT * ENTRY_ALIGNMENT
        };
        names += path.len();
        if path.len() > MAX_INDEX_PATH || names > MAX_INDEX_NAMES {
            return None;
        }

        paths.insert(path.clone());
    }

    Some(paths)
}

/// Decodes a number as in the offsets of pack deltas; also returns its length.
fn read_varint(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    for (at, &byte) in bytes.iter().take(8).enumerate() {
        value = (value << 7) | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
        value += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(version: u32, names: &[&str]) -> Vec<u8> {
        let mut bytes = [INDEX_MAGIC, &version.to_be_bytes()].concat();
        bytes.extend(u32::try_from(names.len()).unwrap().to_be_bytes());
        let mut last = 0;
        for name in names {
            let start = bytes.len();
            bytes.extend([0; STAT_LEN + 20]);
            let flags = if version == 3 { EXTENDED_FLAG } else { 0 };
            bytes.extend(flags.to_be_bytes());
            if version == 3 {
                bytes.extend([0, 0]);
            }
            if version == 4 {
                bytes.push(last);
                last = u8::try_from(name.len()).unwrap();
            }
            bytes.extend(name.bytes());
            bytes.push(0);
            while version < 4 && (bytes.len() - start) % ENTRY_ALIGNMENT != 0 {
                bytes.push(0);
            }
        }
        bytes
    }

    #[test]
    fn the_paths_of_every_version_are_read() {
        let names = ["a", "d/e/f", "d/e/long-name-of-a-file", "z"];
        let expected: BTreeSet<Vec<u8>> =
            names.iter().map(|name| name.as_bytes().to_vec()).collect();
        for version in 2..=4 {
            let actual = read_index_paths(&index(version, &names), gix::hash::Kind::Sha1);
            assert_eq!(actual.as_ref(), Some(&expected), "version {version}");
        }
    }

    #[test]
    fn what_is_no_index_has_no_paths() {
        let full = index(2, &["a", "b"]);
        for length in 0..full.len() - 7 {
            assert_eq!(
                read_index_paths(&full[..length], gix::hash::Kind::Sha1),
                None,
                "{length}"
            );
        }
        assert_eq!(
            read_index_paths(&index(5, &["a"]), gix::hash::Kind::Sha1),
            None
        );
        let mut many = index(4, &["a"]);
        many[8..12].fill(0xff);
        assert_eq!(read_index_paths(&many, gix::hash::Kind::Sha1), None);
        // Each path extends the previous one by a letter.
        let path_count = |count: usize| {
            let mut bytes = index(4, &vec!["a"; count]);
            let entry = STAT_LEN + 20 + FLAGS_LEN + 3;
            (0..count).for_each(|at| bytes[HEADER_LEN + at * entry + entry - 3] = 0);
            read_index_paths(&bytes, gix::hash::Kind::Sha1).map(|paths| paths.len())
        };
        assert_eq!(path_count(MAX_INDEX_PATH), Some(MAX_INDEX_PATH));
        assert_eq!(path_count(MAX_INDEX_PATH + 1), None);
        // An entry removes more bytes than the previous path has.
        let mut cut = index(4, &["a"]);
        cut[HEADER_LEN + STAT_LEN + 20 + FLAGS_LEN] = 0x7f;
        assert_eq!(read_index_paths(&cut, gix::hash::Kind::Sha1), None);
    }
}
