//! Creates directories, but never a `.git` directory.

use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

/// Permissions of a directory that only this user can enter.
pub const PRIVATE: u32 = 0o700;
/// The same for a file.
pub const PRIVATE_FILE: u32 = 0o600;
/// Reduced by the umask.
const SHARED_DIR: u32 = 0o777;

/// Creates a directory and its parents for this user alone. Fails if the path is below a `.git` that
/// does not exist.
pub fn make_dirs(path: &Path) -> io::Result<()> {
    make_with_mode(path, PRIVATE)
}

/// Like [`make_dirs`], with the permissions of the umask: for directories of git's and of the
/// user's.
pub fn make_shared_dirs(path: &Path) -> io::Result<()> {
    make_with_mode(path, SHARED_DIR)
}

fn make_with_mode(path: &Path, mode: u32) -> io::Result<()> {
    let git = path
        .ancestors()
        .find(|dir| dir.file_name() == Some(OsStr::new(".git")));
    match git {
        // The user might have moved the git directory away. A new one with only our files would be
        // in the way when they move it back.
        Some(git) if !git.exists() => {
            let why = format!("the git directory `{}` is gone", git.display());
            Err(io::Error::new(io::ErrorKind::NotFound, why))
        }
        _ => DirBuilder::new().recursive(true).mode(mode).create(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Result<(), &str>) {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(top.path().join("there/.git")).unwrap();
        let result = make_dirs(&top.path().join(path)).map_err(|error| {
            let message = error.to_string();
            message.replace(&format!("{}/", top.path().display()), "")
        });
        assert_eq!(
            result.as_ref().map_err(String::as_str),
            expected.as_ref().map_err(|message| *message),
            "{path}"
        );
        assert_eq!(top.path().join(path).is_dir(), expected.is_ok(), "{path}");
    }

    #[test]
    fn directories_of_ours_are_private() {
        let top = tempfile::tempdir().unwrap();
        let mode = |path: &str| {
            let metadata = std::fs::metadata(top.path().join(path)).unwrap();
            std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777
        };
        make_dirs(&top.path().join("a/b")).unwrap();
        assert_eq!([mode("a"), mode("a/b")], [PRIVATE; 2]);
        std::fs::create_dir(top.path().join("c")).unwrap();
        make_shared_dirs(&top.path().join("d")).unwrap();
        assert_eq!(mode("c"), mode("d"));
    }

    #[test]
    fn a_git_directory_is_never_made() {
        check("a/b/c", Ok(()));
        check("there/.git/teddy/index", Ok(()));
        check(
            "gone/.git/teddy",
            Err("the git directory `gone/.git` is gone"),
        );
        check("gone/.git", Err("the git directory `gone/.git` is gone"));
    }
}
