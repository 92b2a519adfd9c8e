//! Detects names that are the same on a file system that ignores case.

use std::collections::{BTreeSet, HashMap};
use std::io;

use crate::git::path_handle::PathHandle;

/// Names of directories, each directory read once.
#[derive(Debug, Default)]
pub(super) struct CaseCollisions {
    /// Directory -> lower-case name -> names.
    dirs: HashMap<Vec<u8>, HashMap<String, Vec<Vec<u8>>>>,
}

impl CaseCollisions {
    /// Returns whether the path's directory has another name that differs only in case and is not
    /// to be deleted.
    pub(super) fn has(
        &mut self,
        handle: &PathHandle,
        path: &[u8],
        leaving: &BTreeSet<Vec<u8>>,
    ) -> io::Result<bool> {
        let name = handle.name();
        let dir = &path[..path.len() - name.len()];
        if !self.dirs.contains_key(dir) {
            self.dirs
                .insert(dir.to_vec(), group_by_lowercase(handle.siblings()?));
        }

        let same = self.dirs[dir].get(&lowercase(name));
        Ok(same
            .into_iter()
            .flatten()
            .any(|other| other != name && !leaving.contains(&[dir, other.as_slice()].concat())))
    }
}

fn group_by_lowercase(names: Vec<Vec<u8>>) -> HashMap<String, Vec<Vec<u8>>> {
    let mut groups: HashMap<String, Vec<Vec<u8>>> = HashMap::new();
    for name in names {
        groups.entry(lowercase(&name)).or_default().push(name);
    }
    groups
}

fn lowercase(name: &[u8]) -> String {
    String::from_utf8_lossy(name).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::path_handle::{IfMissing, Top, WalkResult};

    #[test]
    fn a_folder_is_read_once_for_all_its_names() {
        let outer = tempfile::tempdir().unwrap();
        std::fs::create_dir(outer.path().join("d")).unwrap();
        for name in ["d/Read", "d/other", "top"] {
            std::fs::write(outer.path().join(name), "").unwrap();
        }
        let top = Top::open(outer.path()).unwrap();
        let mut collisions = CaseCollisions::default();
        let mut has = |path: &str, leaving: &[&str]| {
            let leaving = leaving
                .iter()
                .map(|path| path.as_bytes().to_vec())
                .collect();
            let WalkResult::Handle(handle) = top.walk(path.as_bytes(), IfMissing::Stop).unwrap()
            else {
                panic!("`{path}` has a folder")
            };
            collisions.has(&handle, path.as_bytes(), &leaving).unwrap()
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
