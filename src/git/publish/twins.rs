//! Names that a file system which ignores case takes for one.

use std::collections::{BTreeSet, HashMap};
use std::io;

use crate::git::place::Place;

/// The names of folders, each read once however many of its files are asked about.
#[derive(Debug, Default)]
pub(super) struct CaseTwins {
    /// By folder and by name without case, the names.
    folders: HashMap<Vec<u8>, HashMap<String, Vec<Vec<u8>>>>,
}

impl CaseTwins {
    /// Returns whether another name in the folder of a path, which does not leave it, is the same
    /// to a file system that ignores case.
    pub(super) fn has(
        &mut self,
        place: &Place,
        path: &[u8],
        leaving: &BTreeSet<Vec<u8>>,
    ) -> io::Result<bool> {
        let name = place.name();
        let folder = &path[..path.len() - name.len()];
        if !self.folders.contains_key(folder) {
            self.folders
                .insert(folder.to_vec(), by_case(place.siblings()?));
        }

        let same = self.folders[folder].get(&without_case(name));
        Ok(same
            .into_iter()
            .flatten()
            .any(|other| other != name && !leaving.contains(&[folder, other.as_slice()].concat())))
    }
}

/// Gathers names that differ in case alone.
fn by_case(names: Vec<Vec<u8>>) -> HashMap<String, Vec<Vec<u8>>> {
    let mut found: HashMap<String, Vec<Vec<u8>>> = HashMap::new();
    for name in names {
        found.entry(without_case(&name)).or_default().push(name);
    }
    found
}

/// Returns a name as a file system that ignores case compares it.
fn without_case(name: &[u8]) -> String {
    String::from_utf8_lossy(name).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::place::{IfMissing, Top, WalkResult};

    #[test]
    fn a_folder_is_read_once_for_all_its_names() {
        let outer = tempfile::tempdir().unwrap();
        std::fs::create_dir(outer.path().join("d")).unwrap();
        for name in ["d/Read", "d/other", "top"] {
            std::fs::write(outer.path().join(name), "").unwrap();
        }
        let top = Top::open(outer.path()).unwrap();
        let mut twins = CaseTwins::default();
        let mut has = |path: &str, leaving: &[&str]| {
            let leaving = leaving
                .iter()
                .map(|path| path.as_bytes().to_vec())
                .collect();
            let WalkResult::Place(place) = top.walk(path.as_bytes(), IfMissing::Stop).unwrap()
            else {
                panic!("`{path}` has a folder")
            };
            twins.has(&place, path.as_bytes(), &leaving).unwrap()
        };

        assert!(has("d/READ", &[]));
        assert!(!has("d/READ", &["d/Read"]));
        assert!(!has("d/Read", &[]));
        assert!(has("Top", &[]));
        assert!(!has("Other", &[]));
        // What was read is not read again.
        std::fs::write(outer.path().join("d/Late"), "").unwrap();
        assert!(!has("d/late", &[]));
    }
}
