//! Caches rows of `log`. A turn never changes, and computing its row reads a dozen objects.
//!
//! An unreadable cache, or one of another version, counts as empty.

use std::collections::HashMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::LogRow;
use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::host::file::{read_regular, write_cache};
use crate::session::name::SessionName;

/// Version of the format. Bump it whenever the content of a row changes.
const CACHE_SCHEMA: u32 = 1;
const CACHE_DIR: &str = "log";
/// Enough for over a hundred thousand turns.
const MAX_CACHE: u64 = 256 << 20;

/// Cached rows of a session, oldest first.
pub struct LogCache {
    path: PathBuf,
    rows: Vec<LogRow>,
    /// Index of each turn in `rows`.
    positions: HashMap<CommitId, usize>,
}

#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct CacheHeader {
    schema: u32,
    /// The file is not flushed, so a power cut can truncate it.
    crc: u32,
}

impl LogCache {
    pub fn read(repository: &Repository, session: &SessionName) -> LogCache {
        let path = cache_path(repository, session);
        let bytes = read_regular(&path, MAX_CACHE).unwrap_or_default();
        let rows = parse_rows(&bytes).unwrap_or_default();
        let positions = rows.iter().enumerate();
        let positions = positions.map(|(at, row)| (row.commit, at)).collect();
        LogCache {
            path,
            rows,
            positions,
        }
    }

    pub fn has(&self, turn: CommitId) -> bool {
        self.positions.contains_key(&turn)
    }

    /// Takes the rows up to a turn, oldest first.
    pub fn take_up_to(&mut self, turn: Option<CommitId>) -> Vec<LogRow> {
        let at = turn.and_then(|turn| self.positions.get(&turn));
        // Rows up to a turn are the same in every session that contains it.
        let mut rows = std::mem::take(&mut self.rows);
        rows.truncate(at.map_or(0, |at| at + 1));
        rows
    }

    /// Writes rows to the cache, oldest first. Errors are ignored.
    pub fn keep(&self, rows: &[LogRow]) {
        let lines: Result<Vec<String>, _> = rows.iter().map(serde_json::to_string).collect();
        let Ok(lines) = lines else {
            return;
        };
        let body = lines.join("\n");
        let head = CacheHeader {
            schema: CACHE_SCHEMA,
            crc: crc32fast::hash(body.as_bytes()),
        };
        if let Ok(head) = serde_json::to_string(&head) {
            let _ = write_cache(&self.path, format!("{head}\n{body}").as_bytes());
        }
    }
}

pub fn cache_path(repository: &Repository, session: &SessionName) -> PathBuf {
    repository
        .teddy_dir()
        .join(CACHE_DIR)
        .join(session.dir_name())
}

fn parse_rows(bytes: &[u8]) -> Option<Vec<LogRow>> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    let (head, body) = (&bytes[..end], &bytes[end + 1..]);
    let expected = CacheHeader {
        schema: CACHE_SCHEMA,
        crc: crc32fast::hash(body),
    };
    if serde_json::from_slice::<CacheHeader>(head).ok()? != expected {
        return None;
    }

    let rows = serde_json::Deserializer::from_slice(body).into_iter();
    rows.collect::<Result<_, _>>().ok()
}
