//! What is in a layer, as the kernel writes it there: files, what is gone from below, folders that
//! hide the one below.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType};

use super::{below, place};
use crate::git::worktree::root::GIT;
use crate::host::file::Root;
use crate::host::overlay::hides_below;

/// A longer path cannot be opened by its name, and git has none of it.
const MAX_PATH: usize = 4000;

/// What a name of a layer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LayerEntry {
    /// A folder; whether it hides the one below.
    Folder {
        /// Whether nothing of the folder below is seen in it.
        opaque: bool,
    },
    /// A file, a link, or what else has a name.
    Leaf,
    /// Nothing: what is below is gone.
    Gone,
}

/// One folder of a layer, listed.
pub(super) struct LayerFolder {
    /// Its path; the top's is empty.
    pub(super) path: Vec<u8>,
    /// What is in it.
    pub(super) names: Vec<(OsString, LayerEntry)>,
}

/// Lists a folder of a layer, open at its top; nothing where it cannot be read or lies too deep.
pub(super) fn list(top: &Root, files: &Path, path: &[u8]) -> Option<LayerFolder> {
    if path.len() + files.as_os_str().len() > MAX_PATH {
        return None;
    }

    let folder = top.folder(Path::new(OsStr::from_bytes(path))).ok()?;
    let names = folder.names().ok()?.into_iter();
    let names = names.filter(|name| !path.is_empty() || name != GIT);
    let known = names.filter_map(|name| {
        let entry = look(files, &below(path, &name))?;
        Some((name, entry))
    });

    Some(LayerFolder {
        names: known.collect(),
        path: path.to_vec(),
    })
}

/// Returns whether a path of a layer says that what is below is gone.
pub(super) fn is_whiteout(files: &Path, path: &[u8]) -> bool {
    look(files, path) == Some(LayerEntry::Gone)
}

/// Returns what a path of a layer is.
fn look(files: &Path, path: &[u8]) -> Option<LayerEntry> {
    let at = place(files, path);
    let stat = rustix::fs::statat(CWD, &at, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => LayerEntry::Folder {
            opaque: hides_below(&at),
        },
        FileType::CharacterDevice if stat.st_rdev == 0 => LayerEntry::Gone,
        _ => LayerEntry::Leaf,
    })
}
