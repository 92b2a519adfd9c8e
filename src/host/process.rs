//! Child processes: the one place where they begin, and programs looked up by name.
//!
//! A name is looked up in absolute folders only, so that a program that lies in a clone is never
//! taken for the user's own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::Access;

use super::env;

/// Returns a command for a program: a path, or a name that is looked up as [`find`] does.
///
/// Starting a name that is not found fails with `NotFound`.
#[expect(clippy::disallowed_methods, reason = "this is the one home of child processes")]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let program = program.as_ref();
    if let Some(path) = find(program) {
        return Command::new(path);
    }
    let mut missing = Command::new(program);
    // Else the system would look in the relative folders of `PATH` as well.
    missing.env("PATH", "/nonexistent");
    missing
}

/// Returns the file that a program's name stands for: a path with a `/` if it can be executed,
/// else the first match in the absolute folders of `PATH`.
pub fn find(program: impl AsRef<OsStr>) -> Option<PathBuf> {
    find_outside(program, &[])
}

/// As [`find`], leaving out every folder of `PATH` that lies in one of the given folders.
pub fn find_outside(program: impl AsRef<OsStr>, excluded: &[&Path]) -> Option<PathBuf> {
    let program = Path::new(program.as_ref());
    if program.components().count() > 1 || program.is_absolute() {
        return is_executable(program).then(|| program.to_owned());
    }
    let path = env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute() && !excluded.iter().any(|out| folder.starts_with(out)))
        .map(|folder| folder.join(program))
        .find(|file| is_executable(file))
}

/// Returns whether a process is there, whoever's it is.
pub fn is_alive(id: u32) -> bool {
    let id = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw);
    id.is_some_and(|id| rustix::process::test_kill_process(id) != Err(rustix::io::Errno::SRCH))
}

/// Returns whether the path is a file that this user may execute.
fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_name() {
        let sh = find("sh").expect("every system has a shell");
        assert!(sh.is_absolute());
        assert_eq!(find_outside("sh", &[Path::new("/")]), None);
    }

    #[test]
    fn a_path_is_not_looked_up() {
        assert_eq!(find("/bin/sh"), Some(PathBuf::from("/bin/sh")));
        assert_eq!(find("./sh"), None);
    }

    #[test]
    fn a_missing_program_fails_when_it_starts() {
        let error = command("teddy-no-such-program").spawn().expect_err("there is no such program");
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    }
}
