//! `.keep` files: which packs no git may touch, and whose they are.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use anyhow::Context as _;

use super::{LIST, TEMPORARY};
use crate::git::repository::Repository;

/// How our `.keep` files begin; the process that needs the pack follows.
const KEEP: &str = "teddy ";

/// How often a look at whether a file is locked is waited for, and how long each time.
const MOST_LOOKS: u32 = 100;
/// As [`MOST_LOOKS`].
const LOOK: Duration = Duration::from_millis(1);

/// The `.keep` files that this process has written and not removed, by name, open and locked: the number of a crashed
/// process can be that of another one now, and means nothing in another container; a lock ends with its process.
static OWN: Mutex<BTreeMap<OsString, File>> = Mutex::new(BTreeMap::new());

/// Makes a `.keep` file ours.
pub(super) fn claim(keep: &Path) -> anyhow::Result<()> {
    let signed = sign(keep).inspect_err(|_| {
        // An empty one, as a full disk leaves it, would be nobody's and stay for ever.
        let _ = std::fs::remove_file(keep);
    });
    let file = signed.context("keeping a pack")?;
    own().extend(keep.file_name().map(|name| (name.to_owned(), file)));
    Ok(())
}

/// Locks a `.keep` file and writes into it whose it is; whoever needs the same pack shares the lock.
fn sign(keep: &Path) -> std::io::Result<File> {
    let mut file = loop {
        let file = File::options().write(true).create(true).truncate(false).open(keep)?;
        // Before the first byte: one that is ours and not locked is a crashed process's.
        lock(&file)?;
        // Another process may have removed it between the two calls.
        if file.metadata()?.nlink() > 0 {
            break file;
        }
    };
    file.set_len(0)?;
    file.write_all(format!("{KEEP}{}\n", std::process::id()).as_bytes())?;
    Ok(file)
}

/// Says that this process needs a file, as long as it has it open.
pub(super) fn lock(file: &File) -> std::io::Result<()> {
    for _ in 0..MOST_LOOKS {
        match file.try_lock_shared() {
            Err(TryLockError::Error(error)) if error.kind() != ErrorKind::Unsupported => return Err(error),
            // Somebody finds out just now whether it is locked.
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK),
            _ => return Ok(()),
        }
    }
    Ok(())
}

impl Repository {
    /// Lets `git gc` have a pack, now that a ref reaches what is in it.
    ///
    /// # Errors
    /// Where the `.keep` file cannot be removed.
    pub fn release(&self, keep: &Path) -> anyhow::Result<()> {
        keep.file_name().map(|name| own().remove(name));
        if is_kept(keep) {
            // Another process has written the same pack, and needs it still.
            return Ok(());
        }
        match std::fs::remove_file(keep) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error).context("releasing a pack"),
            _ => Ok(()),
        }
    }

    /// Lets `git gc` have the packs whose runs are over, and removes what these did not finish; returns how many
    /// packs. The caller holds the lock and has made its own objects reachable.
    ///
    /// # Errors
    /// Where a file of ours cannot be removed.
    pub fn release_all(&self) -> anyhow::Result<usize> {
        let over: Vec<_> = self.keep_files().into_iter().filter(|keep| owner_of(keep).is_some() && !is_kept(keep)).collect();
        over.iter().try_for_each(|keep| self.release(keep))?;
        self.remove_unfinished()?;
        Ok(over.len())
    }

    /// Removes the packs that were begun by processes that are no more.
    fn remove_unfinished(&self) -> anyhow::Result<()> {
        for file in std::fs::read_dir(self.pack_folder()).into_iter().flatten().flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            let owner = name.strip_prefix(TEMPORARY).and_then(|rest| rest.split_once('-')?.0.parse().ok());
            if owner.is_some_and(|owner| !crate::host::process::is_alive(owner) && !is_needed(&file.path(), owner)) {
                std::fs::remove_file(file.path()).with_context(|| format!("removing the unfinished pack `{name}`"))?;
            }
        }
        Ok(())
    }

    /// Returns the packs that were made here by their list, without their endings; some are gone.
    pub(in crate::git) fn listed_packs(&self) -> Vec<PathBuf> {
        let (folder, list) = (self.pack_folder(), std::fs::read_to_string(self.teddy_dir().join(LIST)).unwrap_or_default());
        let plain = |name: &&str| name.strip_prefix("pack-").is_some_and(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_hexdigit()));
        list.lines().filter(plain).map(|name| folder.join(name)).collect()
    }

    /// Notes that a pack was made here.
    pub(super) fn list_pack(&self, keep: &Path) -> std::io::Result<()> {
        let name = keep.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        std::fs::create_dir_all(self.teddy_dir())?;
        let mut list = std::fs::OpenOptions::new().append(true).create(true).open(self.teddy_dir().join(LIST))?;
        list.write_all(format!("{name}\n").as_bytes())
    }

    /// Returns the folder of packs.
    pub(in crate::git) fn pack_folder(&self) -> PathBuf {
        self.gix.objects.store_ref().path().join("pack")
    }

    /// Returns the `.keep` files that are there, ours or not.
    pub(in crate::git) fn keep_files(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.pack_folder()).into_iter().flatten().filter_map(|file| Some(file.ok()?.path()));
        files.filter(|path| path.extension().is_some_and(|ending| ending == "keep")).collect()
    }
}

/// Returns whether a `.keep` file is this process's own, and nobody has made it theirs since.
pub(in crate::git) fn is_own(keep: &Path) -> bool {
    owner_of(keep) == Some(std::process::id()) && keep.file_name().is_some_and(|name| own().contains_key(name))
}

/// Returns this process's own `.keep` files.
fn own() -> MutexGuard<'static, BTreeMap<OsString, File>> {
    OWN.lock().expect("nothing panics with the lock")
}

/// Returns whether a `.keep` file is ours, and of a run that may still need the pack.
fn is_kept(keep: &Path) -> bool {
    owner_of(keep).is_some_and(|owner| is_needed(keep, owner))
}

/// Returns whether somebody has locked a file; where there are no locks, whether the process is there that it names.
fn is_needed(path: &Path, owner: u32) -> bool {
    match File::open(path).map(|file| file.try_lock()) {
        Ok(Ok(())) => false,
        Ok(Err(TryLockError::WouldBlock)) => true,
        Ok(Err(TryLockError::Error(_))) | Err(_) => crate::host::process::is_alive(owner),
    }
}

/// Returns the process that a `.keep` file of ours names.
fn owner_of(keep: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(keep).ok()?;
    Some(text.strip_prefix(KEEP)?.trim().parse().unwrap_or(0))
}
