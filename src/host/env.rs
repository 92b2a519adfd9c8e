//! The environment: variables, arguments and XDG directories. No other module reads it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Variables that replace the environment of this process, see `pin`.
static PINNED: OnceLock<BTreeMap<OsString, OsString>> = OnceLock::new();

/// Replaces the environment of this process for all of TeDDy and the programs that it starts. Only
/// the first call has an effect.
///
/// For tests that call workflows in their own process: changing the real environment is unsafe while
/// other threads read it. A pinned process cannot run commands, because it cannot be a supervisor.
#[cfg(all(feature = "failpoints", debug_assertions))]
pub fn pin(variables: BTreeMap<OsString, OsString>) {
    let _ = PINNED.set(variables);
}

/// Returns the variables given to `pin`.
pub fn pinned() -> Option<&'static BTreeMap<OsString, OsString>> {
    PINNED.get()
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one home of the environment"
)]
fn read(name: &str) -> Option<OsString> {
    match pinned() {
        Some(variables) => variables.get(std::ffi::OsStr::new(name)).cloned(),
        None => std::env::var_os(name),
    }
}

/// Returns a variable as text. `None` if it is unset, empty or not UTF-8.
pub fn var(name: &str) -> Option<String> {
    var_os(name)?.into_string().ok()
}

/// Returns a variable. `None` if it is unset or empty.
pub fn var_os(name: &str) -> Option<OsString> {
    read(name).filter(|value| !value.is_empty())
}

/// Returns whether a variable is set, even if it is empty (`NO_COLOR`, `TEDDY_...` switches).
pub fn is_set(name: &str) -> bool {
    read(name).is_some()
}

pub fn all() -> impl Iterator<Item = (OsString, OsString)> {
    let all: Vec<_> = match pinned() {
        Some(variables) => variables.clone().into_iter().collect(),
        None => std::env::vars_os().collect(),
    };
    all.into_iter()
}

/// Returns the arguments, starting with the program name.
pub fn args() -> Vec<OsString> {
    std::env::args_os().collect()
}

/// Returns the current directory. Fails if it was removed.
pub fn current_dir() -> std::io::Result<PathBuf> {
    std::env::current_dir()
}

/// Returns a path that starts this program again.
pub fn current_exe() -> std::io::Result<PathBuf> {
    // Such a process is not `teddy`: whatever it started would be the tests once more.
    if pinned().is_some() {
        return Ok(PathBuf::from("/nonexistent/teddy"));
    }

    // The link works even if an update has replaced the file.
    let link = PathBuf::from("/proc/self/exe");
    if cfg!(target_os = "linux") && link.exists() {
        Ok(link)
    } else {
        std::env::current_exe()
    }
}

/// Returns the home directory: `$HOME`, else that of the user database, if it is absolute.
pub fn home() -> Option<PathBuf> {
    dir_var("HOME").or_else(|| std::env::home_dir().filter(|home| home.is_absolute()))
}

/// Directory of the user's configuration: `$XDG_CONFIG_HOME`, else `~/.config`.
pub fn config_home() -> Option<PathBuf> {
    dir_var("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")))
}

/// Directory of the user's caches: `$XDG_CACHE_HOME`, else `~/.cache`.
pub fn cache_home() -> Option<PathBuf> {
    dir_var("XDG_CACHE_HOME").or_else(|| Some(home()?.join(".cache")))
}

/// Directory of the user's data: `$XDG_DATA_HOME`, else `~/.local/share`.
pub fn data_home() -> Option<PathBuf> {
    dir_var("XDG_DATA_HOME").or_else(|| Some(home()?.join(".local/share")))
}

/// Directory of state kept between runs: `$XDG_STATE_HOME`, else `~/.local/state`.
pub fn state_home() -> Option<PathBuf> {
    dir_var("XDG_STATE_HOME").or_else(|| Some(home()?.join(".local/state")))
}

/// Returns the directory in a variable. XDG requires relative paths to be ignored.
pub fn dir_var(name: &str) -> Option<PathBuf> {
    var_os(name)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unset_variable_is_nothing() {
        assert_eq!(var("TEDDY_THIS_IS_NOT_SET"), None);
        assert!(!is_set("TEDDY_THIS_IS_NOT_SET"));
    }

    #[test]
    fn the_program_can_be_found_again() {
        let path = current_exe().expect("a program has a file");
        assert!(path.exists());
    }
}
