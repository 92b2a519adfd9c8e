//! Child processes: the one place where they begin, and programs looked up by name.
//!
//! A name is looked up in absolute folders only, so that a program that lies in a clone is never
//! taken for the user's own.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use rustix::fs::Access;

use super::env;

/// The variables with keys, which no child gets.
static WITHHELD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Keeps variables from every child that begins from now on, unless it is given one of them by
/// name.
pub fn withhold(names: impl IntoIterator<Item = String>) {
    WITHHELD
        .lock()
        .expect("nothing panics with the lock")
        .extend(names);
}

/// Gives a child the withheld variables that it may have after all.
pub fn give_back(command: &mut Command, may_have: impl Fn(&str) -> bool) {
    let withheld = WITHHELD.lock().expect("nothing panics with the lock");
    for name in withheld.iter().filter(|name| may_have(name)) {
        env::var_os(name).into_iter().for_each(|value| {
            command.env(name, value);
        });
    }
}

/// Returns a command for a program: a path, or a name that is looked up as [`find`] does. It gets
/// the environment without the variables that are withheld.
///
/// Starting a name that is not found fails with `NotFound`.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = with_environment(program.as_ref());
    WITHHELD
        .lock()
        .expect("nothing panics with the lock")
        .iter()
        .for_each(|name| {
            command.env_remove(name);
        });
    command
}

/// Returns a command with the whole environment.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one home of child processes"
)]
fn with_environment(program: &OsStr) -> Command {
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
        .filter(|folder| {
            folder.is_absolute() && !excluded.iter().any(|out| folder.starts_with(out))
        })
        .map(|folder| folder.join(program))
        .find(|file| is_executable(file))
}

/// Returns `PATH` without the folders that depend on where one is: for a program that looks
/// others up itself.
pub fn absolute_path() -> OsString {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    std::env::join_paths(folders).unwrap_or_default()
}

/// Starts a program that lives on after us, in a group of its own, with no stream of ours: whoever
/// waits for the end of our output does not wait for it.
///
/// # Errors
/// It cannot be started.
pub fn start_apart(command: &mut Command) -> std::io::Result<()> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    command.spawn().map(drop)
}

/// Returns whether a process is there, whoever's it is.
pub fn is_alive(id: u32) -> bool {
    let id = i32::try_from(id)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
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
        let error = command("teddy-no-such-program")
            .spawn()
            .expect_err("there is no such program");
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    }
}
