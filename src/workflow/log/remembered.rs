//! Rows of `log` that were worked out before. A turn never changes, and what a row says of it
//! needs a dozen objects: over thousands of turns that takes longer than anything else.
//!
//! Only a cache: what cannot be read, or was written by another version, counts as nothing.

use std::collections::HashMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::LogRow;
use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::host::file::{read_regular, write_cache};
use crate::session::name::SessionName;

/// The version of the format. A row that says something else needs another one.
const SCHEMA: u32 = 1;
/// The folder, below `.git/teddy`.
const FOLDER: &str = "log";
/// More than a hundred thousand turns take.
const MAX_BYTES: u64 = 256 << 20;

/// The rows of a session up to some turn, the oldest first.
pub struct Remembered {
    /// The file.
    path: PathBuf,
    /// The rows.
    rows: Vec<LogRow>,
    /// Where each turn stands among them.
    places: HashMap<CommitId, usize>,
}

/// The first line of the file.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct CacheHeader {
    /// The version of the format.
    schema: u32,
    /// The checksum of the lines behind it: the file is not made durable.
    crc: u32,
}

impl Remembered {
    /// Reads the rows of a session.
    pub fn read(repository: &Repository, session: &SessionName) -> Remembered {
        let path = path(repository, session);
        let bytes = read_regular(&path, MAX_BYTES).unwrap_or_default();
        let rows = rows_of(&bytes).unwrap_or_default();
        let places = rows.iter().enumerate();
        let places = places.map(|(at, row)| (row.commit, at)).collect();
        Remembered { path, rows, places }
    }

    /// Returns whether a turn is among them.
    pub fn has(&self, turn: CommitId) -> bool {
        self.places.contains_key(&turn)
    }

    /// Takes the rows up to a turn, the oldest first; what is before a turn is the same wherever
    /// the turn is.
    pub fn take_up_to(&mut self, turn: Option<CommitId>) -> Vec<LogRow> {
        let at = turn.and_then(|turn| self.places.get(&turn));
        let mut rows = std::mem::take(&mut self.rows);
        rows.truncate(at.map_or(0, |at| at + 1));
        rows
    }

    /// Keeps rows, the oldest first, for the next time. Where nothing can be written they are
    /// worked out again.
    pub fn keep(&self, rows: &[LogRow]) {
        let lines: Result<Vec<String>, _> = rows.iter().map(serde_json::to_string).collect();
        let Ok(lines) = lines else {
            return;
        };
        let body = lines.join("\n");
        let head = CacheHeader {
            schema: SCHEMA,
            crc: crc32fast::hash(body.as_bytes()),
        };
        if let Ok(head) = serde_json::to_string(&head) {
            let _ = write_cache(&self.path, format!("{head}\n{body}").as_bytes());
        }
    }
}

/// Returns the file of a session.
pub fn path(repository: &Repository, session: &SessionName) -> PathBuf {
    repository.teddy_dir().join(FOLDER).join(session.folder())
}

/// Reads the rows of a file, if it is whole and of this version.
fn rows_of(bytes: &[u8]) -> Option<Vec<LogRow>> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    let (head, body) = (&bytes[..end], &bytes[end + 1..]);
    let expected = CacheHeader {
        schema: SCHEMA,
        crc: crc32fast::hash(body),
    };
    if serde_json::from_slice::<CacheHeader>(head).ok()? != expected {
        return None;
    }

    let rows = serde_json::Deserializer::from_slice(body).into_iter();
    rows.collect::<Result<_, _>>().ok()
}
