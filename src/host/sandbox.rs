//! The sandbox for the commands of a plan: which files they may write, which they may not even
//! read, and whether they reach the network.
//!
//! A thread restricts itself and then starts the command; nothing between fork
//! and exec needs unsafe code. What a kernel cannot enforce is said, never
//! passed over: [`availability`] and [`describe`] are for the line that a person approves.
//! docs/decisions/0024-sandbox.md says what works inside and what does not.

#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod files;
mod kernel;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod namespaces;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod privileges;
mod probe;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod system_calls;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::raw;

pub use kernel::Kernel;

/// What a script may do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Trees and files in which everything may be done. What does not exist is left out.
    #[serde(with = "raw::paths")]
    pub write: Vec<PathBuf>,
    /// Trees in which files may be created and written, but none removed or renamed. Made where
    /// they are missing.
    #[serde(with = "raw::paths")]
    pub add: Vec<PathBuf>,
    /// Trees and files that may be read although `hidden` covers them.
    #[serde(with = "raw::paths")]
    pub read: Vec<PathBuf>,
    /// Trees and files that may not be opened. Everything else on the machine may be read.
    #[serde(with = "raw::paths")]
    pub hidden: Vec<PathBuf>,
    /// Folders that are given empty, and in which everything may be done, where the kernel lets a
    /// process have a view of its own; elsewhere they may not be opened.
    #[serde(with = "raw::paths")]
    pub private: Vec<PathBuf>,
    /// Whether the network may be used.
    pub network: Network,
}

/// Whether a script reaches the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// No: no socket but for pairs between its own processes.
    #[default]
    Off,
    /// As the user does.
    On,
}

/// The folders of an overlay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverlayFolders {
    /// What is seen where nothing was changed; never written.
    pub lower: PathBuf,
    /// What takes the changes.
    pub upper: PathBuf,
    /// An empty folder for the kernel, on the file system of the upper one.
    pub work: PathBuf,
    /// Where the whole is seen.
    pub at: PathBuf,
}

/// What of a policy can be enforced on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Availability {
    /// All of it.
    Full,
    /// Not all; what is missing.
    Partly(String),
    /// Nothing; why.
    None(String),
}

/// Returns what can be enforced on this machine.
pub fn availability() -> Availability {
    let kernel = Kernel::running();
    let gaps = [
        kernel.unfiltered.clone(),
        (kernel.landlock < kernel::TRUNCATE).then(|| {
            let (version, least) = (kernel.landlock, kernel::TRUNCATE);
            format!("Landlock has version {version} in this kernel, and {least} is the least")
        }),
    ];
    let gaps: Vec<String> = gaps.into_iter().flatten().collect();

    match () {
        () if kernel.landlock == 0 => Availability::None(nothing().to_owned()),
        () if gaps.is_empty() => Availability::Full,
        () => Availability::Partly(gaps.join("; ")),
    }
}

/// Returns why nothing can be enforced.
fn nothing() -> &'static str {
    match () {
        () if !cfg!(target_os = "linux") => "this system has no Landlock",
        () if !cfg!(feature = "sandbox") => "this build has no sandbox",
        () => "kernel without Landlock",
    }
}

/// Returns a few words for the line that a person approves: `sandboxed, no network`.
pub fn describe(policy: Option<&Policy>) -> String {
    let Some(policy) = policy else {
        return "not sandboxed".to_owned();
    };
    let kernel = Kernel::running();
    let network = match policy.network {
        Network::On => "network open",
        Network::Off if kernel.unfiltered.is_some() => "network open nevertheless",
        Network::Off => "no network",
    };

    let signals = if kernel.landlock < kernel::SCOPE {
        ", but signals reach your other processes"
    } else {
        ""
    };
    match availability() {
        Availability::Full => format!("sandboxed, {network}{signals}"),
        Availability::Partly(gaps) => format!("partly sandboxed, {network}: {gaps}"),
        Availability::None(why) => format!("not sandboxed: {why}"),
    }
}

/// Cleans up what a script had to leave behind because of its policy.
pub fn sweep(policy: &Policy) {
    #[cfg(all(target_os = "linux", feature = "sandbox"))]
    policy.add.iter().for_each(|folder| files::sweep(folder));
    let _ = policy;
}

/// Gives this process its private view of the folders that a policy names, and takes it into the
/// policy; closes them where the kernel gives none. This process must have one thread.
///
/// # Errors
/// The process is left halfway, and must not go on.
#[cfg(all(target_os = "linux", feature = "sandbox"))]
pub fn hide(policy: &mut Policy, kernel: &Kernel) -> Result<(), String> {
    let (needed, private): (Vec<_>, Vec<_>) = std::mem::take(&mut policy.private)
        .into_iter()
        .partition(|folder| holds_what_is_opened(policy, folder));
    // What lies in such a folder would be gone with it; the rest of it is closed instead.
    policy.hidden.extend(needed);
    if kernel.namespaces && namespaces::hide(&private)? {
        policy.write.extend(private);
    } else {
        policy.hidden.extend(private);
    }

    Ok(())
}

/// Returns whether something that a policy opens lies in a folder: a project in `/dev/shm`, say.
#[cfg(all(target_os = "linux", feature = "sandbox"))]
fn holds_what_is_opened(policy: &Policy, folder: &Path) -> bool {
    let Ok(folder) = folder.canonicalize() else {
        return false;
    };
    let is_in = |path: &PathBuf| {
        path.canonicalize()
            .is_ok_and(|path| path.starts_with(&folder))
    };
    policy.write.iter().chain(&policy.read).any(is_in)
}

/// Makes signals of this thread, and of all that it starts from now on, stay among them. Returns
/// whether the kernel does that.
///
/// # Errors
/// The kernel says that it does, and does not.
#[cfg(all(target_os = "linux", feature = "sandbox"))]
pub fn scope(kernel: &Kernel) -> Result<bool, String> {
    use rustix::io::Errno;

    if kernel.landlock < kernel::SCOPE {
        return Ok(false);
    }

    files::scope()?;
    // Much depends on it, so it is tried: our parent is of the same user.
    match rustix::process::getppid().map(rustix::process::test_kill_process) {
        Some(Err(Errno::PERM)) => Ok(true),
        _ => Err("signals do not stay inside".to_owned()),
    }
}

/// Restricts this thread, and with it what it executes, to a policy. `watching` are processes that
/// it must not end.
///
/// # Errors
/// The kernel does not enforce it.
#[cfg(all(target_os = "linux", feature = "sandbox"))]
pub fn enforce(policy: &Policy, kernel: &Kernel, watching: &[u32]) -> Result<(), String> {
    if kernel.landlock == 0 {
        return Err(nothing().to_owned());
    }

    privileges::reduce();
    files::enforce(policy, kernel.landlock)?;
    match kernel.unfiltered {
        None => system_calls::enforce(policy, kernel, watching),
        Some(_) => Ok(()),
    }
}

/// Mounts an overlay that only this process sees, and who joins it. It must have one thread.
///
/// # Errors
/// It cannot be mounted here.
#[cfg(all(target_os = "linux", feature = "sandbox"))]
pub fn mount_overlay(folders: &OverlayFolders) -> Result<(), String> {
    namespaces::mount_overlay(folders)
}

/// Joins another process: sees what only that one sees. This process must have one thread.
///
/// # Errors
/// The process is gone, or lets nobody in.
#[cfg(all(target_os = "linux", feature = "sandbox"))]
pub fn join(process: u32) -> Result<(), String> {
    namespaces::join(process)
}

/// There are no overlays here.
///
/// # Errors
/// Always.
#[cfg(not(all(target_os = "linux", feature = "sandbox")))]
pub fn mount_overlay(_folders: &OverlayFolders) -> Result<(), String> {
    Err("this system has no overlays, or this build has no sandbox".to_owned())
}

/// There is nothing to join here.
///
/// # Errors
/// Always.
#[cfg(not(all(target_os = "linux", feature = "sandbox")))]
pub fn join(_process: u32) -> Result<(), String> {
    Err("this system has no overlays, or this build has no sandbox".to_owned())
}

/// There are no private views here.
///
/// # Errors
/// Never.
#[cfg(not(all(target_os = "linux", feature = "sandbox")))]
pub fn hide(_policy: &mut Policy, _kernel: &Kernel) -> Result<(), String> {
    Ok(())
}

/// Nothing keeps signals inside here.
///
/// # Errors
/// Never.
#[cfg(not(all(target_os = "linux", feature = "sandbox")))]
pub fn scope(_kernel: &Kernel) -> Result<bool, String> {
    Ok(false)
}

/// Says that there is nothing to restrict with.
///
/// # Errors
/// Always.
#[cfg(not(all(target_os = "linux", feature = "sandbox")))]
pub fn enforce(_policy: &Policy, _kernel: &Kernel, _watching: &[u32]) -> Result<(), String> {
    Err(nothing().to_owned())
}
