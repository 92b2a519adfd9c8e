//! Detects names that are the same on a file system that ignores case.

use std::collections::{BTreeSet, HashMap};
use std::io;

use crate::git::place::Place;

/// Names of directories, each directory read once.
#[derive(Debug, Default)]
pub(super) struct CaseTwins {
    /// Directory -> lower-case name -> names.
    folders: HashMap<Vec<u8>, HashMap<String, Vec<Vec<u8>>>>,
}

impl CaseTwins {
    /// Returns whether the path's directory has another name that differs only in case and is not
    /// to be deleted.
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

fn by_case(names: Vec<Vec<u8>>) -> HashMap<String, Vec<Vec<u8>>> {
    let mut found: HashMap<String, Vec<Vec<u8>>> = HashMap::new();
    for name in names {
        found.entry(without_case(&name)).or_default().push(name);
    }
    found
}

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
        // The directory is not read again.
        std::fs::write(outer.path().join("d/Late"), "").unwrap();
        assert!(!has("d/late", &[]));
    }
}
