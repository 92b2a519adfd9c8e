//! Files of the user's that commands are not to see although they see the others: secrets by name.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{Dir, FileType, OFlags};

use super::{LowerFiles, below as path_below};
use crate::git::ignore::TextRules;
use crate::git::repository::Repository;
use crate::git::snapshot::limits::SnapshotLimits;
use crate::git::stat::open_below;
use crate::git::worktree::bring::included;
use crate::git::worktree::root::GIT;
use crate::host::file::{Root, remove_below};

/// Hides the user's secrets in a view of their files, open at its top: all that are called so and
/// are not in the tree, wherever they lie, but for those that `copy` names in the syntax of
/// `.gitignore`.
///
/// # Errors
/// Where the user's folder cannot be read, or a file cannot be hidden.
pub fn hide_secrets(
    user: &Repository,
    below: &LowerFiles<'_>,
    view: &Root,
    copy: &[String],
) -> anyhow::Result<()> {
    let text = [included(user)?, copy.join("\n").into_bytes()].join(&b'\n');
    let shown = TextRules::parse(&text);
    let mut found = named(user.workdir(), below.limits)?;
    found.retain(|path| !shown.excludes(path));

    let asked: BTreeSet<&[u8]> = found.iter().map(Vec::as_slice).collect();
    let known = user.entries_at(below.tree, &asked)?;
    for path in found
        .iter()
        .filter(|path| !known.contains_key(path.as_slice()))
    {
        let at = Path::new(OsStr::from_bytes(path));
        // What is hidden already, or lies on another file system, is not seen.
        if let (Some(folder), Some(name)) = (at.parent(), at.file_name())
            && view.kind(at).is_ok_and(|kind| kind.is_some())
        {
            remove_below(&view.folder(folder)?, name)?;
        }
    }

    Ok(())
}

/// Returns the files and links of a folder that are called as secrets are.
fn named(top: &Path, limits: &SnapshotLimits) -> anyhow::Result<Vec<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let top = rustix::fs::open(top, flags, rustix::fs::Mode::empty())?;
    let (mut folders, mut found) = (vec![Vec::new()], Vec::new());
    while let Some(path) = folders.pop() {
        // What may not be read, commands cannot read either.
        let Ok(folder) = open_below(&top, &path, flags) else {
            continue;
        };
        let Ok(entries) = Dir::new(folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." || name == GIT.as_bytes() {
                continue;
            }
            let at = path_below(&path, OsStr::from_bytes(name));
            match entry.file_type() {
                FileType::Directory => folders.push(at),
                _ if limits.is_secret(&at) => found.push(at),
                _ => {}
            }
        }
    }

    Ok(found)
}
