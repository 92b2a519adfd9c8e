//! Which packs this process keeps, and for how long: no longer than it has their repository open.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// The `.keep` files that this process has written and not removed, by name.
static OWN: Mutex<BTreeMap<OsString, KeptPack>> = Mutex::new(BTreeMap::new());
/// How many handles this process has of a repository, by its git directory.
static HANDLES: Mutex<BTreeMap<PathBuf, usize>> = Mutex::new(BTreeMap::new());

/// A pack that nobody may touch while this lives.
struct KeptPack {
    /// The git directory of the repository that has it.
    common: PathBuf,
    /// The `.keep` file, open and locked: the number of a crashed process can be that of another one
    /// now, and means nothing in another container; a lock ends with its process.
    _lock: File,
}

/// A handle of a repository. With the last one everything ends that this process keeps there:
/// not every tree that was made comes to a ref, and a process of many turns would keep them all.
pub(in crate::git) struct Keeping {
    /// Its git directory.
    common: PathBuf,
}

impl Keeping {
    /// Counts one more.
    pub(in crate::git) fn of(common: &Path) -> Keeping {
        *handles().entry(common.to_owned()).or_default() += 1;
        Keeping {
            common: common.to_owned(),
        }
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        let mut handles = handles();
        let left = handles.get(&self.common).map_or(0, |count| count - 1);
        if left > 0 {
            handles.insert(self.common.clone(), left);
            return;
        }
        handles.remove(&self.common);
        own().retain(|_, kept| kept.common != self.common);
    }
}

/// Notes a `.keep` file of a repository, which is open and locked.
pub(super) fn add(common: &Path, keep: &Path, lock: File) {
    let kept = KeptPack {
        common: common.to_owned(),
        _lock: lock,
    };
    own().extend(keep.file_name().map(|name| (name.to_owned(), kept)));
}

/// Forgets one, which is not locked any more.
pub(super) fn remove(keep: &Path) {
    keep.file_name().map(|name| own().remove(name));
}

/// Returns whether this process keeps a pack by this `.keep` file.
pub(in crate::git) fn is_own(keep: &Path) -> bool {
    keep.file_name()
        .is_some_and(|name| own().contains_key(name))
}

/// Returns what this process keeps.
fn own() -> MutexGuard<'static, BTreeMap<OsString, KeptPack>> {
    OWN.lock().expect("nothing panics with the lock")
}

/// Returns how many handles there are.
fn handles() -> MutexGuard<'static, BTreeMap<PathBuf, usize>> {
    HANDLES.lock().expect("nothing panics with the lock")
}
