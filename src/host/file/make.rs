//! Creates directories, but never a `.git` directory.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

/// Creates a directory and its parents. Fails if the path is below a `.git` that does not exist.
pub fn make_folders(path: &Path) -> io::Result<()> {
    let git = path
        .ancestors()
        .find(|folder| folder.file_name() == Some(OsStr::new(".git")));
    match git {
        // The user might have moved the git directory away. A new one with only our files would be
        // in the way when they move it back.
        Some(git) if !git.exists() => {
            let why = format!("the git directory `{}` is gone", git.display());
            Err(io::Error::new(io::ErrorKind::NotFound, why))
        }
        _ => std::fs::create_dir_all(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Result<(), &str>) {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(top.path().join("there/.git")).unwrap();
        let said = make_folders(&top.path().join(path)).map_err(|error| {
            let said = error.to_string();
            said.replace(&format!("{}/", top.path().display()), "")
        });
        assert_eq!(
            said.as_ref().map_err(String::as_str),
            expected.as_ref().map_err(|said| *said),
            "{path}"
        );
        assert_eq!(top.path().join(path).is_dir(), expected.is_ok(), "{path}");
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
