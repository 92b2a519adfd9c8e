//! Persistent cache of token counts by blob id.
//!
//! Deleting it is harmless. A damaged file counts as empty.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use super::count;
use crate::host::file::{read_regular_text, write_cache};

/// The least recently used ones are dropped first.
pub const MAX_ENTRIES: usize = 20_000;
/// In bytes.
const MAX_FILE: u64 = 4 << 20;
/// Must change whenever the vocabulary or the format does.
const HEADER: &str = "teddy token counts 1 o200k_base";

#[derive(Debug)]
pub struct TokenCache {
    path: PathBuf,
    /// Count and time of last use.
    counts: HashMap<String, (u32, u64)>,
    /// The number of uses.
    clock: u64,
    changed: bool,
}

impl TokenCache {
    /// A missing, damaged or too large file is empty.
    pub fn open(path: &Path) -> TokenCache {
        let text = read_regular_text(path, MAX_FILE).ok();
        let counts = text.as_deref().and_then(parse).unwrap_or_default();
        TokenCache {
            path: path.to_owned(),
            clock: counts.len() as u64,
            counts,
            changed: false,
        }
    }

    pub fn get(&mut self, blob_id: &str) -> Option<usize> {
        let (count, used) = self.counts.get_mut(blob_id)?;
        self.clock += 1;
        // Doesn't set `changed`: a new time of use alone isn't worth writing the file.
        *used = self.clock;
        Some(*count as usize)
    }

    /// Ignores invalid ids.
    pub fn put(&mut self, blob_id: &str, count: usize) {
        let Ok(count) = u32::try_from(count) else {
            return;
        };
        if !is_id(blob_id) {
            return;
        }

        self.clock += 1;
        self.changed |= self
            .counts
            .insert(blob_id.to_owned(), (count, self.clock))
            .is_none_or(|(old, _)| old != count);
    }

    /// Counts `text` only if the blob is unknown.
    pub fn count(&mut self, blob_id: &str, text: &str) -> usize {
        self.get(blob_id).unwrap_or_else(|| {
            let tokens = count(text);
            self.put(blob_id, tokens);
            tokens
        })
    }

    /// Only if there are new counts.
    pub fn save(&mut self) -> io::Result<()> {
        if !self.changed {
            return Ok(());
        }

        write_cache(&self.path, self.render().as_bytes())?;
        self.changed = false;

        Ok(())
    }

    /// Least recently used entries first.
    fn render(&self) -> String {
        let mut entries: Vec<_> = self.counts.iter().collect();
        entries.sort_unstable_by_key(|(_, (_, used))| *used);
        let mut text = format!("{HEADER}\n");
        for (id, (count, _)) in &entries[entries.len().saturating_sub(MAX_ENTRIES)..] {
            writeln!(text, "{id} {count}").expect("writing to a String cannot fail");
        }
        text
    }
}

/// `None` if any line is damaged.
fn parse(text: &str) -> Option<HashMap<String, (u32, u64)>> {
    let lines = text.strip_prefix(HEADER)?.strip_prefix('\n')?.lines();
    lines
        .enumerate()
        .map(|(n, line)| {
            // The order in the file is the order of last use.
            let (id, count) = line.split_once(' ').filter(|(id, _)| is_id(id))?;
            Some((id.to_owned(), (count.parse().ok()?, n as u64)))
        })
        .collect()
}

/// SHA-1 or SHA-256.
fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn id(n: usize) -> String {
        format!("{n:040x}")
    }

    #[test]
    fn counts_survive_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/tokens");
        let mut cache = TokenCache::open(&path);
        assert_eq!(cache.count(&id(1), "hello world"), 2);
        cache.save().unwrap();
        assert_eq!(
            TokenCache::open(&path).count(&id(1), "another text is not counted again"),
            2
        );
    }

    #[test]
    fn a_cache_that_learned_nothing_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        TokenCache::open(&path).save().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_damaged_file_is_an_empty_cache() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        let good = format!("{HEADER}\n{} 7\n", id(1));
        let cases = [
            good.replace(" 7", " x"),
            good.replace("o200k", "cl100k"),
            "\u{0}\u{0}".into(),
            format!("{good}../etc 3\n"),
        ];
        for bad in cases {
            fs::write(&path, &bad).unwrap();
            assert_eq!(TokenCache::open(&path).get(&id(1)), None, "{bad:?}");
        }
        fs::write(&path, good).unwrap();
        assert_eq!(TokenCache::open(&path).get(&id(1)), Some(7));
    }

    #[test]
    fn the_counts_used_longest_ago_go_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        let mut cache = TokenCache::open(&path);
        (0..=MAX_ENTRIES).for_each(|n| cache.put(&id(n), n));
        assert_eq!(cache.get(&id(0)), Some(0));
        cache.save().unwrap();
        let mut read = TokenCache::open(&path);
        assert_eq!(
            (read.get(&id(0)), read.get(&id(1)), read.counts.len()),
            (Some(0), None, MAX_ENTRIES)
        );
    }
}
