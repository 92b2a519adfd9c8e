//! The sandbox for the commands of a plan: which files they may write, which they may not even
//! read, and whether they reach the network.
//!
//! The program starts itself again as a launcher, which restricts itself and becomes the shell;
//! nothing between fork and exec needs unsafe code. What a kernel cannot enforce is said, never
//! passed over: [`availability`] and [`describe`] are for the line that a person approves.
//! docs/decisions/0021-sandbox.md says what works inside and what does not.

mod blame;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod files;
mod launcher;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod network;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod privileges;
mod standard;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::env;

pub use launcher::launch_if_asked;
pub use standard::Places;

/// What a script may do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Trees and files in which everything may be done. What does not exist is left out.
    pub write: Vec<PathBuf>,
    /// Trees in which files may be created and written, but none removed or renamed. Made where
    /// they are missing.
    pub add: Vec<PathBuf>,
    /// Trees and files that may be read although `hidden` covers them.
    pub read: Vec<PathBuf>,
    /// Trees and files that may not be opened. Everything else on the machine may be read.
    pub hidden: Vec<PathBuf>,
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

/// How a script is started: through a program that calls [`launch_if_asked`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// The program and its first arguments.
    pub command: Vec<OsString>,
    /// The sandbox; none leaves the script unrestricted, in a session of its own.
    pub policy: Option<Policy>,
}

impl Launcher {
    /// Returns a launcher that is this program. A machine that can enforce nothing starts the
    /// script unrestricted, as [`describe`] says of it.
    ///
    /// # Errors
    /// The system does not tell where this program is.
    pub fn new(policy: Option<Policy>) -> io::Result<Launcher> {
        let enforceable = !matches!(availability(), Availability::None(_));
        Ok(Launcher {
            command: vec![env::current_exe()?.into()],
            policy: policy.filter(|_| enforceable),
        })
    }
}

/// What of a policy can be enforced on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Availability {
    /// All of it.
    Full,
    /// The files; why not the network.
    FilesOnly(String),
    /// Nothing; why.
    None(String),
}

/// Returns what can be enforced on this machine.
#[cfg(all(target_os = "linux", feature = "sandbox"))]
pub fn availability() -> Availability {
    match (files::check(), network::check()) {
        (Ok(()), Ok(())) => Availability::Full,
        (Ok(()), Err(why)) => Availability::FilesOnly(why),
        (Err(why), _) => Availability::None(why),
    }
}

/// Returns what can be enforced on this machine.
#[cfg(not(all(target_os = "linux", feature = "sandbox")))]
pub fn availability() -> Availability {
    let why = if cfg!(target_os = "linux") {
        "this build has no sandbox"
    } else {
        "this system has no Landlock"
    };
    Availability::None(why.to_owned())
}

/// Returns a few words for the line that a person approves: `sandboxed, no network`.
pub fn describe(policy: Option<&Policy>) -> String {
    let Some(policy) = policy else {
        return "not sandboxed".to_owned();
    };
    match (availability(), policy.network) {
        (Availability::None(why), _) => format!("not sandboxed: {why}"),
        (Availability::Full, Network::Off) => "sandboxed, no network".to_owned(),
        (Availability::FilesOnly(why), Network::Off) => {
            format!("sandboxed, but the network is open: {why}")
        }
        (_, Network::On) => "sandboxed, network open".to_owned(),
    }
}

/// Cleans up what a script had to leave behind because of its policy.
pub fn sweep(policy: &Policy) {
    #[cfg(all(target_os = "linux", feature = "sandbox"))]
    policy.add.iter().for_each(|folder| files::sweep(folder));
    let _ = policy;
}

/// Restricts this thread, and with it what it executes, to a policy.
#[cfg(all(target_os = "linux", feature = "sandbox"))]
fn enforce(policy: &Policy) -> Result<(), String> {
    if let Availability::None(why) = availability() {
        return Err(why);
    }
    privileges::reduce();
    files::enforce(policy)?;
    match policy.network {
        Network::Off if network::check().is_ok() => network::enforce(),
        _ => Ok(()),
    }
}

/// Says that there is nothing to restrict with.
#[cfg(not(all(target_os = "linux", feature = "sandbox")))]
fn enforce(_policy: &Policy) -> Result<(), String> {
    match availability() {
        Availability::None(why) => Err(why),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod tests;
