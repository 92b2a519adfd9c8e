//! Starts child processes, and looks programs up by name.
//!
//! All child processes begin here. A name is looked up only in the absolute directories of `PATH`,
//! so a program in a cloned repository is never run by accident. What follows differs by purpose:
//!
//! - [`helper`](super::helper): text in, text out, a time limit, its own process group.
//! - `git::command`: git without the user's settings, without a limit;
//!   `git::user_git` with them. Ctrl-c at the terminal reaches git too.
//! - `git::intake`: git over untrusted objects, with limits of memory and, for commands, of time.
//! - `git::remote`: git whose messages the user sees while it runs.
//! - [`foreground`](super::foreground): has the terminal; an interrupt is passed on. Editors and
//!   pagers, which handle ctrl-c themselves, wait in `interrupt::without_handling`.
//! - `model::job`: a model command or agent; its output is watched, and it can be canceled.
//! - [`supervisor`](super::supervisor): commands of a plan, in the sandbox, with all descendants.
//! - Our own program: lanes of a race and commands of an editor, which report while they run.
//! - [`spawn_detached`]: outlives us.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use rustix::fs::Access;

use super::{env, inherited};

/// Names of variables that contain API keys. Children do not inherit them.
static WITHHELD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Withholds variables from all future children, unless [`restore_env`] passes them on.
pub fn withhold_env(names: impl IntoIterator<Item = String>) {
    WITHHELD
        .lock()
        .expect("nothing panics with the lock")
        .extend(names);
}

/// Passes on the withheld variables for which `may_have` returns `true`.
pub fn restore_env(command: &mut Command, may_have: impl Fn(&str) -> bool) {
    let withheld = WITHHELD.lock().expect("nothing panics with the lock");
    for name in withheld.iter().filter(|name| may_have(name)) {
        env::var_os(name).into_iter().for_each(|value| {
            command.env(name, value);
        });
    }
}

/// Returns a command for a path, or for a name as in [`find`], without the withheld variables. If
/// the program is not found, starting it fails with `NotFound`.
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

/// Returns a command for a program that the user opens by hand, such as an editor: with the whole
/// environment except secrets.
pub fn command_by_hand(program: impl AsRef<OsStr>) -> Command {
    let mut command = command(program);
    inherited::take_secrets(&mut command);
    command
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one home of child processes"
)]
fn with_environment(program: &OsStr) -> Command {
    if let Some(path) = find(program) {
        let mut command = Command::new(path);
        if let Some(variables) = env::pinned() {
            command.env_clear().envs(variables);
        }
        return command;
    }
    let mut missing = Command::new(program);
    // Otherwise the system would search the relative directories of `PATH`, too.
    missing.env("PATH", "/nonexistent");
    missing
}

/// Returns the path of a program: `program` itself if it contains a `/` and is executable, else the
/// first match in the absolute directories of `PATH`.
pub fn find(program: impl AsRef<OsStr>) -> Option<PathBuf> {
    find_outside(program, &[])
}

/// Like [`find`], but skips directories of `PATH` inside the `excluded` ones.
pub fn find_outside(program: impl AsRef<OsStr>, excluded: &[&Path]) -> Option<PathBuf> {
    let program = Path::new(program.as_ref());
    if program.components().count() > 1 || program.is_absolute() {
        return is_executable(program).then(|| program.to_owned());
    }

    let path = env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|dir| dir.is_absolute() && !excluded.iter().any(|out| dir.starts_with(out)))
        .map(|dir| dir.join(program))
        .find(|file| is_executable(file))
}

/// Returns `PATH` without relative directories, for programs that look up others.
pub fn absolute_path() -> OsString {
    let path = env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).filter(|dir| dir.is_absolute());
    std::env::join_paths(dirs).unwrap_or_default()
}

/// Starts a program that outlives this process. It has its own process group and no streams, so a
/// reader of our output does not wait for it.
pub fn spawn_detached(command: &mut Command) -> std::io::Result<Child> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}

/// Returns whether a process with this id exists, even if it belongs to another user.
pub fn is_alive(id: u32) -> bool {
    let id = i32::try_from(id)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    id.is_some_and(|id| rustix::process::test_kill_process(id) != Err(rustix::io::Errno::SRCH))
}

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
