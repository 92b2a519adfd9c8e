//! Trust: which contents of a repository's `.teddy/` the user has seen and allowed.
//!
//! A record is bound to the bytes of each file. Any other byte, from a pull, a plan or an
//! editor, makes the repository untrusted again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// What is trusted of one repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Record {
    /// The contents that were seen, by their path below `.teddy/`.
    pub files: BTreeMap<String, String>,
}

/// Where the records of all repositories are.
pub struct Trust {
    /// The record of this repository.
    path: PathBuf,
}

impl Trust {
    /// Finds the record of a repository by its common git directory.
    pub fn of(config_home: &Path, common_dir: &Path) -> Trust {
        let name = hex(&Sha256::digest(common_dir.as_os_str().as_encoded_bytes()));
        Trust { path: config_home.join("trust").join(format!("{}.json", &name[..32])) }
    }

    /// Returns what was trusted; nothing where there is no readable record.
    pub fn record(&self) -> Record {
        std::fs::read(&self.path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Remembers what is trusted from now on.
    ///
    /// # Errors
    /// Where the record cannot be written.
    pub fn remember(&self, record: &Record) -> std::io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let temporary = tempfile::NamedTempFile::new_in(folder)?;
        std::fs::write(temporary.path(), serde_json::to_vec_pretty(record)?)?;
        temporary.persist(&self.path)?;
        Ok(())
    }
}

impl Record {
    /// Returns whether exactly these contents were seen.
    pub fn covers(&self, files: &BTreeMap<String, String>) -> bool {
        self.files == *files
    }
}

/// Reads what of `.teddy/` takes trust: the configuration, prompts and pipelines. Links and
/// folders below are left out, as are files over 1 MiB.
pub fn files(teddy: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut take = |name: String, path: &Path| {
        let plain = path.symlink_metadata().is_ok_and(|m| m.is_file() && m.len() <= 1 << 20);
        if let Some(text) = plain.then(|| std::fs::read(path).ok()).flatten() {
            found.insert(name, String::from_utf8_lossy(&text).into_owned());
        }
    };
    if !teddy.symlink_metadata().is_ok_and(|m| m.is_dir()) {
        return found;
    }
    take("config.yaml".to_owned(), &teddy.join("config.yaml"));
    for (folder, ending) in [("prompts", "xml"), ("pipelines", "yaml")] {
        let inner = teddy.join(folder);
        let real = inner.symlink_metadata().is_ok_and(|m| m.is_dir());
        for entry in real.then(|| std::fs::read_dir(&inner).ok()).flatten().into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|e| e == ending) {
                take(format!("{folder}/{}", entry.file_name().to_string_lossy()), &path);
            }
        }
    }
    found
}

/// Returns bytes in hexadecimal.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_ends_with_the_first_changed_byte() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let teddy = folder.path().join(".teddy");
        std::fs::create_dir_all(teddy.join("prompts")).expect("a folder");
        std::fs::write(teddy.join("config.yaml"), "agent: x\n").expect("a file");
        let trust = Trust::of(folder.path(), Path::new("/some/repository"));
        assert!(!trust.record().covers(&files(&teddy)), "nothing is trusted at first");
        trust.remember(&Record { files: files(&teddy) }).expect("a writable folder");
        assert!(trust.record().covers(&files(&teddy)));
        std::fs::write(teddy.join("prompts/new.xml"), "<x/>").expect("a file");
        assert!(!trust.record().covers(&files(&teddy)), "a new prompt was not seen");
    }
}
