//! Packs that this process protects, at most for as long as it has their repository open.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// `.keep` files of this process by name.
static OWN: Mutex<BTreeMap<OsString, KeptPack>> = Mutex::new(BTreeMap::new());
/// Number of open handles by git directory.
static HANDLES: Mutex<BTreeMap<PathBuf, usize>> = Mutex::new(BTreeMap::new());

struct KeptPack {
    common: PathBuf,
    /// The open, locked `.keep` file. A process id alone is not enough: it is reused, and means
    /// nothing in another container. The lock ends with the process.
    _lock: File,
    /// The `.keep` file of the pack with its private blobs. Both are released together.
    private: Option<PathBuf>,
}

/// A handle of a repository. When the last one is dropped, all packs that this process protects
/// there are released: not every new tree gets a ref, and a process of many turns would keep them
/// all.
pub(in crate::git) struct Keeping {
    common: PathBuf,
}

impl Keeping {
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
        let remaining = handles.get(&self.common).map_or(0, |count| count - 1);
        if remaining > 0 {
            handles.insert(self.common.clone(), remaining);
            return;
        }
        handles.remove(&self.common);
        lock_own().retain(|_, pack| pack.common != self.common);
    }
}

pub(super) fn add(common: &Path, keep: &Path, lock: File) {
    let pack = KeptPack {
        common: common.to_owned(),
        _lock: lock,
        private: None,
    };
    lock_own().extend(keep.file_name().map(|name| (name.to_owned(), pack)));
}

/// Forgets a `.keep` file, which releases its lock, and returns that of its private blobs.
pub(super) fn remove(keep: &Path) -> Option<PathBuf> {
    lock_own().remove(keep.file_name()?)?.private
}

/// Ties the pack with private blobs to the other one.
pub(super) fn tie(keep: &Path, private: PathBuf) {
    let mut own = lock_own();
    let pack = keep.file_name().and_then(|name| own.get_mut(name));
    if let Some(pack) = pack {
        pack.private = Some(private);
    }
}

pub(in crate::git) fn is_own(keep: &Path) -> bool {
    keep.file_name()
        .is_some_and(|name| lock_own().contains_key(name))
}

fn lock_own() -> MutexGuard<'static, BTreeMap<OsString, KeptPack>> {
    OWN.lock().expect("nothing panics with the lock")
}

fn handles() -> MutexGuard<'static, BTreeMap<PathBuf, usize>> {
    HANDLES.lock().expect("nothing panics with the lock")
}
