//! Which paths an index has that a command wrote.
//!
//! What a command adds is part of the plan's result although a rule ignores it. Only names are
//! read, and they are names to look for: nothing else of such an index is used.

use std::collections::BTreeSet;

use crate::git::worktree::index_form::{
    ALIGNMENT, COUNT, EXTENDED, FLAGS, HEADER, MAGIC, STAT, VERSION,
};

/// No path of git's is longer.
const MAX_PATH: usize = 4096;
/// More bytes than this are in no names of an index that is believed. Version 4 repeats what a path
/// begins with: a small file may be made to stand for more than any memory has.
const MAX_NAMES: usize = 128 << 20;

/// Returns the paths in an index; nothing where it is not one.
pub(super) fn paths(bytes: &[u8], hash: gix::hash::Kind) -> Option<BTreeSet<Vec<u8>>> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if !bytes.starts_with(MAGIC) {
        return None;
    }

    let version = number(VERSION).filter(|version| (2..=4).contains(version))?;
    let (mut at, mut paths, mut path) = (HEADER, BTreeSet::new(), Vec::new());
    let mut names = 0;
    for _ in 0..number(COUNT)? {
        let fixed = STAT + hash.len_in_bytes();
        let flags = bytes.get(at + fixed..at + fixed + FLAGS)?;
        let flags = u16::from_be_bytes(flags.try_into().ok()?);
        let extended = flags & EXTENDED != 0 && version > 2;
        let mut name = at + fixed + FLAGS + if extended { FLAGS } else { 0 };
        if version == 4 {
            let (strip, length) = varint(bytes.get(name..)?)?;
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
            at + (name + length - at + ALIGNMENT) / ALIGNMENT * ALIGNMENT
        };
        names += path.len();
        if path.len() > MAX_PATH || names > MAX_NAMES {
            return None;
        }

        paths.insert(path.clone());
    }

    Some(paths)
}

/// Reads a number as packs have it in front of what a delta stands on; returns its length, too.
fn varint(bytes: &[u8]) -> Option<(usize, usize)> {
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

    /// Returns an index with entries of these names.
    fn index(version: u32, names: &[&str]) -> Vec<u8> {
        let mut bytes = [MAGIC, &version.to_be_bytes()].concat();
        bytes.extend(u32::try_from(names.len()).unwrap().to_be_bytes());
        let mut last = 0;
        for name in names {
            let start = bytes.len();
            bytes.extend([0; STAT + 20]);
            let flags = if version == 3 { EXTENDED } else { 0 };
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
            while version < 4 && (bytes.len() - start) % ALIGNMENT != 0 {
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
            let found = paths(&index(version, &names), gix::hash::Kind::Sha1);
            assert_eq!(found.as_ref(), Some(&expected), "version {version}");
        }
    }

    #[test]
    fn what_is_no_index_has_no_paths() {
        let whole = index(2, &["a", "b"]);
        for length in 0..whole.len() - 7 {
            assert_eq!(
                paths(&whole[..length], gix::hash::Kind::Sha1),
                None,
                "{length}"
            );
        }
        assert_eq!(paths(&index(5, &["a"]), gix::hash::Kind::Sha1), None);
        let mut many = index(4, &["a"]);
        many[8..12].fill(0xff);
        assert_eq!(paths(&many, gix::hash::Kind::Sha1), None);
        // Each path is the one before it and a letter.
        let grown = |count: usize| {
            let mut bytes = index(4, &vec!["a"; count]);
            let entry = STAT + 20 + FLAGS + 3;
            (0..count).for_each(|at| bytes[HEADER + at * entry + entry - 3] = 0);
            paths(&bytes, gix::hash::Kind::Sha1).map(|paths| paths.len())
        };
        assert_eq!(grown(MAX_PATH), Some(MAX_PATH));
        assert_eq!(grown(MAX_PATH + 1), None);
        // More is cut off from a path than it has.
        let mut cut = index(4, &["a"]);
        cut[HEADER + STAT + 20 + FLAGS] = 0x7f;
        assert_eq!(paths(&cut, gix::hash::Kind::Sha1), None);
    }
}
