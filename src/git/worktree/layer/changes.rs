//! Reads the contents of an overlay layer as the kernel writes it: files, whiteouts and opaque
//! directories.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType};

use super::{below, place};
use crate::git::worktree::root::GIT;
use crate::host::file::{Root, open_up};
use crate::host::overlay::hides_below;

/// A longer path cannot be opened by name.
const MAX_PATH: usize = 4000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LayerEntry {
    Folder {
        /// Whether it hides the directory below.
        opaque: bool,
    },
    /// A file, symlink or special file.
    Leaf,
    /// A whiteout: the file below is deleted.
    Gone,
}

pub(super) struct LayerFolder {
    /// Empty for the top.
    pub(super) path: Vec<u8>,
    pub(super) names: Vec<(OsString, LayerEntry)>,
}

/// Lists a directory of a layer; `None` if it is unreadable or too deep. What a command made
/// unreadable or read-only becomes readable and removable, if the parent directory was listed
/// before: git records no such permissions, and they must not block the next turn.
pub(super) fn list(top: &Root, files: &Path, path: &[u8]) -> Option<LayerFolder> {
    if path.len() + files.as_os_str().len() > MAX_PATH {
        return None;
    }

    let folder = top.folder(Path::new(OsStr::from_bytes(path))).ok()?;
    let names = folder.names().ok()?.into_iter();
    let names = names.filter(|name| !path.is_empty() || name != GIT);
    let known = names.filter_map(|name| {
        open_up(&folder, &name);
        let entry = look(files, &below(path, &name))?;
        Some((name, entry))
    });

    Some(LayerFolder {
        names: known.collect(),
        path: path.to_vec(),
    })
}

pub(super) fn is_whiteout(files: &Path, path: &[u8]) -> bool {
    look(files, path) == Some(LayerEntry::Gone)
}

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
