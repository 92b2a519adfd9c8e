//! Decides whether commands see the user's files through an overlay or in a copy.
//!
//! The answer depends on the machine. A success is cached until the next boot. A failure is not: the
//! user can change the machine, or can have run TeDDy in a container with the same home directory.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::settings::{Backend, Sandbox};
use crate::git::worktree::worktree_dirs;
use crate::host::file::{read_regular_text, write_cache};
use crate::host::machine;
use crate::host::overlay;
use crate::host::sandbox::Isolation;
use crate::host::shell::{self, Script, ScriptEnd};
use crate::host::supervisor::Launcher;
use crate::project::Project;
use crate::text::sanitize::sanitize_line;

use super::private::private_paths;

const MAX_NOTE: u64 = 4 << 10;
/// Limit for a command that only shows that one can be started.
const PROBE_LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandFiles {
    /// Read-only, below a writable layer.
    Overlay,
    /// The reason.
    Checkout(String),
}

pub fn command_files(project: &Project) -> CommandFiles {
    match read_cached_probe(project) {
        Some(can) => judged(project, || can),
        None => tried(project),
    }
}

/// With a fresh probe.
pub fn tried(project: &Project) -> CommandFiles {
    judged(project, || attempt(project))
}

fn judged(project: &Project, can: impl FnOnce() -> Result<(), String>) -> CommandFiles {
    match chosen_copy(project).map_or_else(can, Err) {
        Ok(()) => CommandFiles::Overlay,
        Err(why) => CommandFiles::Checkout(why),
    }
}

/// Why commands run in a copy on any machine: a setting, or what is in the project.
pub fn chosen_copy(project: &Project) -> Option<String> {
    let settings = &project.settings;
    match settings.worktree.backend {
        Backend::Checkout => Some("`worktree.backend` is `checkout`".to_owned()),
        Backend::Auto if settings.execute.sandbox == Sandbox::Off => {
            Some("`execute.sandbox` is `off`".to_owned())
        }
        // The layer would be inside the directory that it covers.
        _ if is_inside(project, &project.worktrees()) => {
            Some("`worktree.root` is in the project".to_owned())
        }
        Backend::Auto | Backend::Overlay => {
            worktrees_inside(project).or_else(|| private_inside(project))
        }
    }
}

/// A directory with worktrees of other sessions, which an overlay would expose: an earlier
/// `worktree.root` can have named it.
fn worktrees_inside(project: &Project) -> Option<String> {
    let dirs = worktree_dirs(&project.repository, &project.worktrees());
    let mut inside = dirs.iter().filter(|dir| is_inside(project, dir));
    let path = inside.find(|dir| dir.exists())?.display().to_string();
    Some(format!(
        "`{}` has worktrees of sessions, and is inside the project",
        sanitize_line(&path)
    ))
}

/// Follows symlinks. The last directories do not have to exist.
fn is_inside(project: &Project, path: &Path) -> bool {
    let mut existing = path.ancestors();
    let real = existing.find_map(|dir| dir.canonicalize().ok());
    let top = project.repository.workdir();
    let real_top = top.canonicalize();
    path.starts_with(top)
        || real.is_some_and(|real| real_top.is_ok_and(|top| real.starts_with(top)))
}

/// An overlay would expose it.
fn private_inside(project: &Project) -> Option<String> {
    let top = project.repository.workdir();
    // The git directory can have another name, and the project can be the directory of the user's
    // configuration.
    let git = top.join(".git");
    let dirs = [
        project.repository.git_dir().to_owned(),
        project.repository.common_dir(),
    ];
    let dirs = dirs.into_iter().flat_map(|dir| dir.canonicalize());
    let mut all = dirs
        .filter(|dir| !dir.starts_with(&git))
        .chain(private_paths());
    let inside = all.find(|place| place.starts_with(top) && place.symlink_metadata().is_ok())?;
    let path = inside.strip_prefix(top).unwrap_or(&inside);
    Some(format!(
        "`{}` is private, and inside the project",
        sanitize_line(&path.to_string_lossy())
    ))
}

/// Starts a command under the policy of this project's commands, and returns what it had for itself;
/// `None` if commands are not sandboxed. Fails with the reason if no command can be started.
pub fn try_isolation(project: &Project) -> Result<Option<Isolation>, String> {
    let Some(policy) = super::bare_policy(project) else {
        return Ok(None);
    };
    let to_text = |error: std::io::Error| error.to_string();
    let launcher = Launcher::new(Some(policy)).map_err(to_text)?;
    if launcher.policy.is_none() {
        return Ok(None);
    }
    let script = Script {
        launcher: Some(launcher),
        timeout: Some(PROBE_LIMIT),
        ..Script::new("exit 0", "/")
    };
    let finished = shell::run(&script, &mut |_| ()).map_err(to_text)?;
    match finished.end {
        ScriptEnd::Exited(0) => Ok(Some(finished.isolation)),
        other => Err(format!("a command ended with exit code {}", other.code())),
    }
}

fn attempt(project: &Project) -> Result<(), String> {
    let can = overlay::probe(&project.worktrees());
    if can.is_ok()
        && let Some(boot) = machine::boot_id()
    {
        // Only saves time, and only an overlay that works is noted.
        let _ = write_cache(&note(project), boot.as_bytes());
    }
    can
}

fn read_cached_probe(project: &Project) -> Option<Result<(), String>> {
    if let Err(why) = overlay::allowed() {
        return Some(Err(why));
    }
    let text = read_regular_text(&note(project), MAX_NOTE).ok()?;
    (text == machine::boot_id()?).then_some(Ok(()))
}

fn note(project: &Project) -> PathBuf {
    // A worktree root of its own can be on another file system, with another answer.
    let name = match &project.settings.worktree.root {
        Some(_) => format!("overlay-{}", project.repository.identity()),
        None => "overlay".to_owned(),
    };
    project.user_dirs.cache.join(name)
}
