//! Files of the user's that commands are not to see although they see the others: secrets by name.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::OFlags;

use super::{LowerFiles, below as path_below};
use crate::git::ignore::TextRules;
use crate::git::repository::Repository;
use crate::git::snapshot::limits::SnapshotLimits;
use crate::git::spread;
use crate::git::stat::{NameKind, is_absent, names, open_below};
use crate::git::worktree::bring::included;
use crate::git::worktree::root::GIT;
use crate::host::file::{Root, remove_below};

/// How a folder is opened to be listed.
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

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

/// What some folders have in them.
#[derive(Default)]
struct Listed {
    /// Folders.
    folders: Vec<Vec<u8>>,
    /// Files and links that are called as secrets are.
    secrets: Vec<Vec<u8>>,
}

/// Returns the files and links of a folder that are called as secrets are, wherever they lie in it.
fn named(top: &Path, limits: &SnapshotLimits) -> anyhow::Result<Vec<Vec<u8>>> {
    let top = rustix::fs::open(top, FOLDER, rustix::fs::Mode::empty())?;
    let (mut level, mut found) = (vec![Vec::new()], Vec::new());
    while !level.is_empty() {
        let mut below = Vec::new();
        for listed in list_all(&top, &level, limits)? {
            below.extend(listed.folders);
            found.extend(listed.secrets);
        }
        level = below;
    }

    Ok(found)
}

/// Lists folders, some in each thread.
fn list_all(
    top: &OwnedFd,
    folders: &[Vec<u8>],
    limits: &SnapshotLimits,
) -> io::Result<Vec<Listed>> {
    let threads = spread::threads(folders.len());
    if threads == 1 {
        return Ok(vec![list_some(top, folders, limits)?]);
    }

    std::thread::scope(|scope| {
        let started: Vec<_> = folders
            .chunks(folders.len().div_ceil(threads))
            .map(|part| scope.spawn(move || list_some(top, part, limits)))
            .collect();
        started
            .into_iter()
            .map(|thread| thread.join().expect("listing a folder does not panic"))
            .collect()
    })
}

/// Lists some folders. What cannot be listed, and commands could list, is an error: nothing in it
/// would be hidden.
fn list_some(top: &OwnedFd, folders: &[Vec<u8>], limits: &SnapshotLimits) -> io::Result<Listed> {
    let mut listed = Listed::default();
    for path in folders {
        let folder = match open_below(top, path, FOLDER) {
            Ok(folder) => folder,
            Err(error) if is_closed(&error) || is_absent(&error) => continue,
            Err(error) => return Err(error),
        };
        for (name, kind) in names(&folder)? {
            if name == GIT.as_bytes() {
                continue;
            }
            let at = path_below(path, OsStr::from_bytes(&name));
            match kind {
                NameKind::Folder => listed.folders.push(at),
                _ if limits.is_secret(&at) => listed.secrets.push(at),
                _ => {}
            }
        }
    }

    Ok(listed)
}

/// Returns whether a folder may not be read: commands cannot either.
fn is_closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_in_every_folder_that_can_be_read_and_too_deep_ones_are_an_error() {
        let outer = tempfile::tempdir().unwrap();
        let put = |path: &str| {
            let path = outer.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        };
        ["a/.env", ".git/.env", "b/id_rsa", "b/c.txt"]
            .into_iter()
            .for_each(put);
        (0..700).for_each(|number| put(&format!("many/{number}/.env")));
        let limits = SnapshotLimits::default();
        let mut found = named(outer.path(), &limits).unwrap();
        found.sort();
        assert_eq!(found.len(), 702);
        assert_eq!(found[..2], [b"a/.env".to_vec(), b"b/id_rsa".to_vec()]);

        let mut deep = Root::open(outer.path()).unwrap();
        for _ in 0..20 {
            let name = Path::new("x").join("y".repeat(250));
            deep = deep.make_folder(&name).unwrap();
        }
        named(outer.path(), &limits).unwrap_err();
    }
}
