//! Detects irregular files in place of git's own.
//!
//! gix and git open these files by name: a pipe would block forever, and a device or a sparse file
//! of gigabytes would exhaust memory. So they are checked first, once per command. Only a program
//! outside of the sandbox can have created them.

use std::fs::{self, FileType};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use crate::host::env;
use crate::host::file::{is_null_device, read_regular_text};

/// Limit in bytes for settings and rules.
const TEXT: u64 = 64 << 20;
/// Limit for files of one line.
const LINE: u64 = 64 << 10;
/// Limit for files that have hundreds of megabytes in a repository with millions of refs or files.
const LARGE: u64 = 2 << 30;

const OWN: [(&str, u64); 7] = [
    ("HEAD", LINE),
    ("commondir", LINE),
    ("gitdir", LINE),
    ("index", LARGE),
    ("config.worktree", TEXT),
    ("info/sparse-checkout", TEXT),
    ("logs/HEAD", LARGE),
];
const COMMON: [(&str, u64); 8] = [
    ("config", TEXT),
    ("packed-refs", LARGE),
    ("shallow", TEXT),
    ("info/exclude", TEXT),
    ("info/attributes", TEXT),
    ("info/grafts", TEXT),
    ("objects/info/alternates", TEXT),
    ("objects/info/commit-graph", LARGE),
];

/// A file that must not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read `{path}`: {why}")]
pub struct Irregular {
    pub path: PathBuf,
    pub why: &'static str,
}

/// Checks the files that git and gix open when they discover and open the repository of a
/// directory.
pub(super) fn before_opening(start: &Path) -> Result<(), Irregular> {
    user_settings()
        .iter()
        .try_for_each(|path| file(path, TEXT))?;
    let Some(git_dir) = git_dir(start)? else {
        return Ok(());
    };

    let check_entry = |dir: &Path, (name, most): (&str, u64)| file(&dir.join(name), most);
    OWN.into_iter()
        .try_for_each(|entry| check_entry(&git_dir, entry))?;
    let common = read_regular_text(&git_dir.join("commondir"), LINE)
        .map_or_else(|_| git_dir.clone(), |text| git_dir.join(text.trim_end()));
    COMMON
        .into_iter()
        .try_for_each(|entry| check_entry(&common, entry))?;

    refs(common.join("refs"))?;
    own_dirs(&common.join("teddy"))
}

/// Checks TeDDy's own directories. Their files are written by name, so a link, as in a copied
/// repository, would lead out of it.
fn own_dirs(top: &Path) -> Result<(), Irregular> {
    let entries = fs::read_dir(top).into_iter().flatten().flatten();
    let dirs = entries.map(|entry| entry.path());
    // Sessions of changes are in a directory of their own.
    let dirs = dirs.flat_map(|dir| [dir.join("change"), dir]);
    match [top.to_owned()]
        .into_iter()
        .chain(dirs)
        .find(|it| it.is_symlink() && it.is_dir())
    {
        Some(path) => Err(Irregular {
            path,
            why: "it is a link, and TeDDy writes only below its own directory",
        }),
        None => Ok(()),
    }
}

/// Checks one file, which need not exist. Follows symlinks; the null device counts as an empty
/// file.
pub(super) fn file(path: &Path, most: u64) -> Result<(), Irregular> {
    let Ok(metadata) = path.metadata() else {
        return Ok(());
    };
    let why = if !metadata.is_file() && !is_null_device(path) {
        "it is not a regular file"
    } else if metadata.len() > most {
        "it is too large to be one of git's files"
    } else {
        return Ok(());
    };
    Err(Irregular {
        path: path.to_owned(),
        why,
    })
}

pub(super) fn rules(path: &Path) -> Result<(), Irregular> {
    file(path, TEXT)
}

fn user_settings() -> Vec<PathBuf> {
    let path_from_env = |name: &str| env::var_os(name).map(PathBuf::from);
    let mut files = match path_from_env("GIT_CONFIG_GLOBAL") {
        Some(path) => vec![path],
        None => {
            let home = env::home().map(|home| home.join(".gitconfig"));
            let dir = env::config_home().map(|dir| dir.join("git/config"));
            home.into_iter().chain(dir).collect()
        }
    };

    files.push(path_from_env("GIT_CONFIG_SYSTEM").unwrap_or_else(|| "/etc/gitconfig".into()));
    files
}

/// Returns the git directory that discovery would find.
fn git_dir(start: &Path) -> Result<Option<PathBuf>, Irregular> {
    if let Some(value) = env::var_os("GIT_DIR") {
        return Ok(Some(start.join(value)));
    }

    let is_there = |path: &Path| path.symlink_metadata().is_ok();
    let git_dir_in = |dir: &Path| {
        let inside = dir.join(".git");
        if is_there(&inside) {
            return Some(inside);
        }

        let is_bare = ["HEAD", "objects", "refs"]
            .iter()
            .all(|name| is_there(&dir.join(name)));
        is_bare.then(|| dir.to_owned())
    };

    let Some(candidate) = start.ancestors().find_map(git_dir_in) else {
        return Ok(None);
    };
    if candidate.is_dir() {
        return Ok(Some(candidate));
    }

    file(&candidate, LINE)?;
    Ok(link_target(&candidate))
}

/// Returns the git directory to which a `.git` leads, if it is a file.
pub(super) fn link_target(git_file: &Path) -> Option<PathBuf> {
    let text = read_regular_text(git_file, LINE).ok()?;
    let target = text.trim_end().strip_prefix("gitdir: ")?;
    Some(git_file.with_file_name(target))
}

/// Checks the loose refs by their type in the directory listing, without a stat of each.
fn refs(top: PathBuf) -> Result<(), Irregular> {
    let is_odd = |kind: FileType| {
        kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device()
    };
    let mut dirs = vec![top];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let is_link_to_odd = || {
                entry
                    .path()
                    .metadata()
                    .is_ok_and(|to| is_odd(to.file_type()))
            };
            if kind.is_dir() {
                dirs.push(entry.path());
            } else if is_odd(kind) || (kind.is_symlink() && is_link_to_odd()) {
                return Err(Irregular {
                    path: entry.path(),
                    why: "it is not a regular file",
                });
            }
        }
    }

    Ok(())
}
