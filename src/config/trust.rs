//! Trust in a repository's `.teddy/`, granted by the user after reviewing its files.
//!
//! A record contains the files themselves. Any change, whether by a pull, a plan or an editor,
//! makes the repository untrusted again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::host::file::{read_regular, write_cache};
use crate::text::hex;

#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TrustRecord {
    /// By path below `.teddy/`.
    pub files: BTreeMap<String, String>,
}

pub struct Trust {
    path: PathBuf,
}

impl Trust {
    /// One record for all worktrees of a repository.
    pub fn of(config_home: &Path, common_dir: &Path) -> Trust {
        let name = hex(&Sha256::digest(common_dir.as_os_str().as_encoded_bytes()));
        Trust {
            path: config_home
                .join("trust")
                .join(format!("{}.json", &name[..32])),
        }
    }

    /// Empty if the record is missing or invalid: the repository is untrusted then.
    pub fn record(&self) -> TrustRecord {
        read(&self.path, MAX_RECORD)
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }

    pub fn remember(&self, record: &TrustRecord) -> std::io::Result<()> {
        // Renamed into place, so that a crash leaves the old record or the new one.
        write_cache(&self.path, &serde_json::to_vec_pretty(record)?)
    }
}

impl TrustRecord {
    pub fn covers(&self, files: &BTreeMap<String, String>) -> bool {
        self.files == *files
    }
}

const MAX_BYTES: u64 = 1 << 20;
/// Large enough for all of the files.
const MAX_RECORD: u64 = 512 << 20;
/// Per directory.
const MAX_FILES: usize = 200;
/// Directories that need trust, with the extensions of their files.
const DIRS: [(&str, &[&str]); 2] = [
    ("prompts", &["xml"]),
    ("pipelines", &["yaml", "md", "txt", "xml"]),
];

/// Reads everything in `.teddy/` that needs trust: configuration, prompts, pipelines. Skips
/// symlinks, subdirectories and files over 1 MiB.
pub fn files(teddy: &Path) -> BTreeMap<String, String> {
    if !is_dir(teddy) {
        return BTreeMap::new();
    }

    let config =
        read(&teddy.join("config.yaml"), MAX_BYTES).map(|text| ("config.yaml".to_owned(), text));
    let inside = DIRS.iter().flat_map(|(name, _)| {
        read_dir_files(teddy, name)
            .into_iter()
            .map(move |(file, text)| (format!("{name}/{file}"), text))
    });
    config.into_iter().chain(inside).collect()
}

/// `name` is one of `DIRS`.
pub fn read_dir_files(base: &Path, name: &str) -> BTreeMap<String, String> {
    let endings = DIRS
        .iter()
        .find(|(dir, _)| *dir == name)
        .map_or(&[][..], |(_, endings)| endings);
    let inner = base.join(name);
    let entries = is_dir(&inner)
        .then(|| std::fs::read_dir(&inner).ok())
        .flatten()
        .into_iter()
        .flatten()
        .flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let matching = names.filter(|name| {
        Path::new(name)
            .extension()
            .is_some_and(|end| endings.iter().any(|ending| end == *ending))
    });

    // Sorted, so that the limit always selects the same files.
    let sorted: BTreeSet<String> = matching.collect();
    sorted
        .into_iter()
        .take(MAX_FILES)
        .filter_map(|name| Some((name.clone(), read(&inner.join(name), MAX_BYTES)?)))
        .collect()
}

/// `None` for symlinks and files over `most` bytes.
fn read(path: &Path, most: u64) -> Option<String> {
    let plain = path.symlink_metadata().is_ok_and(|m| m.is_file());
    let bytes = plain.then(|| read_regular(path, most).ok()).flatten()?;
    Some(exactly(bytes))
}

/// `false` for symlinks to directories.
fn is_dir(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|m| m.is_dir())
}

fn exactly(bytes: Vec<u8>) -> String {
    // Other contents are represented by their digest: replaced characters would make different
    // files look the same.
    String::from_utf8(bytes)
        .unwrap_or_else(|error| format!("not UTF-8, {}\n", hex(&Sha256::digest(error.as_bytes()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_ends_with_the_first_changed_byte() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let teddy = dir.path().join(".teddy");
        std::fs::create_dir_all(teddy.join("prompts")).expect("a folder");
        std::fs::write(teddy.join("config.yaml"), "agent: x\n").expect("a file");
        let trust = Trust::of(dir.path(), Path::new("/some/repository"));
        assert!(
            !trust.record().covers(&files(&teddy)),
            "nothing is trusted at first"
        );
        trust
            .remember(&TrustRecord {
                files: files(&teddy),
            })
            .expect("a writable folder");
        assert!(trust.record().covers(&files(&teddy)));
        std::fs::write(teddy.join("prompts/new.xml"), "<x/>").expect("a file");
        assert!(
            !trust.record().covers(&files(&teddy)),
            "a new prompt was not seen"
        );
        std::fs::write(teddy.join("prompts/new.xml"), b"\xff").expect("a file");
        let one = files(&teddy);
        std::fs::write(teddy.join("prompts/new.xml"), b"\xfe").expect("a file");
        assert_ne!(one, files(&teddy), "bytes that are not text count too");
    }
}
