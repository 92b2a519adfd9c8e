//! Finds keys in the content of text files.

use std::io::{self, Read};

use super::SnapshotLimits;
use crate::text::secret;

/// A NUL in this many first bytes makes a file binary, as in git.
const BINARY_CHECK: usize = 8000;

const KEY_BLOCK: usize = 4 << 20;

/// Overlap of the blocks. No key is longer.
const KEY_OVERLAP: usize = 64 << 10;

impl SnapshotLimits {
    /// Returns the kind of a key in a file, if there is one.
    pub fn key_in(&self, path: &[u8], bytes: &[u8]) -> Option<&'static str> {
        if !self.looks_for_keys(path, bytes) {
            return None;
        }
        secret::find_secret(&String::from_utf8_lossy(bytes))
    }

    /// Like [`SnapshotLimits::key_in`], for a large file.
    pub(in crate::git::snapshot) fn key_in_parts(
        &self,
        path: &[u8],
        source: &mut dyn Read,
    ) -> io::Result<Option<&'static str>> {
        let (mut part, mut is_first) = (Vec::new(), true);
        loop {
            let filled = part.len();
            let space = (KEY_BLOCK - filled) as u64;
            let read = Read::take(&mut *source, space).read_to_end(&mut part)?;
            if is_first && !self.looks_for_keys(path, &part) {
                return Ok(None);
            }

            is_first = false;
            if let Some(kind) = secret::find_secret(&String::from_utf8_lossy(&part)) {
                return Ok(Some(kind));
            }

            if (read as u64) < space {
                return Ok(None);
            }

            // A key can continue in the next block.
            part.drain(..part.len() - KEY_OVERLAP);
        }
    }

    fn looks_for_keys(&self, path: &[u8], start: &[u8]) -> bool {
        let is_binary = || memchr::memchr(0, &start[..start.len().min(BINARY_CHECK)]).is_some();
        self.leave_secrets && !is_binary() && !self.is_included(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_behind(length: usize) -> Option<&'static str> {
        let mut text = b"plain words\n".repeat(length / 12 + 1);
        text.truncate(length);
        let key = format!("\nkey = \"ghp_{}\"\n", "a9Zk3Qx7Lm2Vt8Rb5Nw4".repeat(2));
        text.extend(key.as_bytes());
        text.extend(b"more words\n".repeat(KEY_BLOCK / 11));
        let mut source = text.as_slice();
        SnapshotLimits::default()
            .key_in_parts(b"a.txt", &mut source)
            .unwrap()
    }

    #[test]
    fn promise_d5_a_key_is_found_wherever_it_is_in_a_large_file() {
        let key = Some("github token");
        for length in [
            0,
            KEY_BLOCK - KEY_OVERLAP,
            KEY_BLOCK - 20,
            KEY_BLOCK,
            2 * KEY_BLOCK - KEY_OVERLAP - 20,
        ] {
            assert_eq!(found_behind(length), key, "behind {length} bytes");
        }
    }

    #[test]
    fn no_key_is_looked_for_in_a_large_file_that_is_not_text() {
        let text = format!("\0key = \"ghp_{}\"\n", "a9Zk3Qx7Lm2Vt8Rb5Nw4".repeat(2));
        let actual = SnapshotLimits::default().key_in_parts(b"a.txt", &mut text.as_bytes());
        assert_eq!(actual.unwrap(), None);
    }
}
