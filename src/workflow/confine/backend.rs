//! How commands come to the user's files on this machine: over them, or in a copy.

use std::path::PathBuf;

use crate::config::settings::{Backend, Sandbox};
use crate::host::boot;
use crate::host::file::{read_regular_text, write_cache};
use crate::host::overlay;
use crate::text::visible::visible;
use crate::workflow::project::Project;

use super::private::private_places;

/// What is remembered is no longer than this.
const MAX_NOTE: u64 = 4 << 10;
/// What is remembered of a machine that can.
const CAN: &str = "yes";

/// How commands come to the user's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandFiles {
    /// They see them, below a layer that takes what they change.
    Overlay,
    /// They see a copy; why.
    Checkout(String),
}

/// Returns how the commands of this project will come to the user's files. What the machine can is
/// tried once in a start of the system.
pub fn command_files(project: &Project) -> CommandFiles {
    // Who insists may have mended the machine meanwhile.
    let insists = project.settings.worktree.backend == Backend::Overlay;
    match remembered(project).filter(|known| known.is_ok() || !insists) {
        Some(can) => judged(project, || can),
        None => tried(project),
    }
}

/// Returns the same, tried anew.
pub fn tried(project: &Project) -> CommandFiles {
    judged(project, || attempt(project))
}

/// Judges what the settings allow, and what the machine can where that matters.
fn judged(project: &Project, can: impl FnOnce() -> Result<(), String>) -> CommandFiles {
    let settings = &project.settings;
    let why = match settings.worktree.backend {
        Backend::Checkout => Some("`worktree.backend` is `checkout`".to_owned()),
        Backend::Auto if settings.execute.sandbox == Sandbox::Off => {
            Some("`execute.sandbox` is `off`".to_owned())
        }
        // Neither may lie in the other.
        _ if project
            .worktrees()
            .starts_with(project.repository.workdir()) =>
        {
            Some("`worktree.root` lies in the project".to_owned())
        }
        Backend::Auto | Backend::Overlay => private_inside(project),
    };
    match why.map_or_else(can, Err) {
        Ok(()) => CommandFiles::Overlay,
        Err(why) => CommandFiles::Checkout(why),
    }
}

/// Says what of the user's lies in the project that no command may read: an overlay would show it.
/// The project may be the folder of all settings, and the git directory have another name.
fn private_inside(project: &Project) -> Option<String> {
    let top = project.repository.workdir();
    let git = top.join(".git");
    let dirs = [
        project.repository.git_dir().to_owned(),
        project.repository.common_dir(),
    ];
    let dirs = dirs.into_iter().flat_map(|dir| dir.canonicalize());
    let mut all = dirs
        .filter(|dir| !dir.starts_with(&git))
        .chain(private_places());
    let inside = all.find(|place| place.starts_with(top) && place.symlink_metadata().is_ok())?;
    let path = inside.strip_prefix(top).unwrap_or(&inside);
    Some(format!(
        "`{}` is private, and inside the project",
        visible(&path.to_string_lossy())
    ))
}

/// Tries what the machine can, and remembers what came of it.
fn attempt(project: &Project) -> Result<(), String> {
    let can = overlay::probe(&project.worktrees());
    if let Some(boot) = boot::id() {
        let said = can.as_ref().map_or_else(String::as_str, |()| CAN);
        // It only saves time.
        let _ = write_cache(&note(project), format!("{boot}\n{said}\n").as_bytes());
    }
    can
}

/// Returns what was found out since the system was started, if anything was.
fn remembered(project: &Project) -> Option<Result<(), String>> {
    if let Err(why) = overlay::allowed() {
        return Some(Err(why));
    }
    let text = read_regular_text(&note(project), MAX_NOTE).ok()?;
    let (boot, said) = text.trim_end().split_once('\n')?;
    if boot != boot::id()? {
        return None;
    }
    Some(match said {
        CAN => Ok(()),
        why => Err(why.to_owned()),
    })
}

/// Returns where that is kept, for the file system with the worktrees.
fn note(project: &Project) -> PathBuf {
    let name = match &project.settings.worktree.root {
        Some(_) => format!("overlay-{}", project.repository.identity()),
        None => "overlay".to_owned(),
    };
    project.places.cache.join(name)
}
