//! Reads the contents of an overlay layer as the kernel writes it: files, whiteouts and opaque
//! directories.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType};

use super::{child_path, path_in};
use crate::git::worktree::root::GIT;
use crate::host::file::{Root, make_writable};
use crate::host::overlay::is_opaque;

/// A longer path cannot be opened by name.
const MAX_PATH: usize = 4000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LayerEntry {
    Dir {
        /// Whether it hides the directory below.
        opaque: bool,
    },
    /// A file, symlink or special file.
    Leaf,
    /// A whiteout: the file below is deleted.
    Whiteout,
}

pub(super) struct LayerDir {
    /// Empty for the top.
    pub(super) path: Vec<u8>,
    pub(super) names: Vec<(OsString, LayerEntry)>,
}

/// Lists a directory of a layer; `None` if it is unreadable or too deep. What a command made
/// unreadable or read-only becomes readable and removable, if the parent directory was listed
/// before: git records no such permissions, and they must not block the next turn.
pub(super) fn list_layer_dir(top: &Root, files: &Path, path: &[u8]) -> Option<LayerDir> {
    if path.len() + files.as_os_str().len() > MAX_PATH {
        return None;
    }

    let dir = top.open_dir(Path::new(OsStr::from_bytes(path))).ok()?;
    let names = dir.names().ok()?.into_iter();
    let names = names.filter(|name| !path.is_empty() || name != GIT);
    let entries = names.filter_map(|name| {
        make_writable(&dir, &name);
        let entry = read_layer_entry(files, &child_path(path, &name))?;
        Some((name, entry))
    });

    Some(LayerDir {
        names: entries.collect(),
        path: path.to_vec(),
    })
}

pub(super) fn is_whiteout(files: &Path, path: &[u8]) -> bool {
    read_layer_entry(files, path) == Some(LayerEntry::Whiteout)
}

fn read_layer_entry(files: &Path, path: &[u8]) -> Option<LayerEntry> {
    let at = path_in(files, path);
    let stat = rustix::fs::statat(CWD, &at, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => LayerEntry::Dir {
            opaque: is_opaque(&at),
        },
        FileType::CharacterDevice if stat.st_rdev == 0 => LayerEntry::Whiteout,
        _ => LayerEntry::Leaf,
    })
}
