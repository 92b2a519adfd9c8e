//! The sandbox for a plan's commands: restricts which files they can read and write, and whether
//! they reach the network.
//!
//! A thread restricts itself and then starts the command, so no unsafe code is needed between fork
//! and exec. There is no silent fallback: [`availability`] and [`describe`] tell the user what the
//! kernel cannot enforce. See docs/decisions/0024-sandbox.md for what works inside.

#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod connections;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod files;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod namespaces;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod system_calls;

use std::path::PathBuf;
use std::sync::OnceLock;

#[cfg(all(target_os = "linux", feature = "sandbox"))]
pub use namespaces::{enter_namespaces, mount_overlay};

use serde::{Deserialize, Serialize};

use super::raw;
use crate::host::fault;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Files and directory trees with full access. Paths that do not exist are ignored.
    #[serde(with = "raw::paths")]
    pub write: Vec<PathBuf>,
    /// Trees in which files can be created and written, but not removed or renamed. Created if
    /// missing.
    #[serde(with = "raw::paths")]
    pub add: Vec<PathBuf>,
    /// Files and trees that are readable although `hidden` covers them.
    #[serde(with = "raw::paths")]
    pub read: Vec<PathBuf>,
    /// Files and trees that cannot be opened. Everything else on the machine is readable.
    #[serde(with = "raw::paths")]
    pub hidden: Vec<PathBuf>,
    /// Directories replaced by an empty, writable one in a private mount namespace. Hidden if the
    /// kernel offers no namespaces.
    #[serde(with = "raw::paths")]
    pub private: Vec<PathBuf>,
    /// Trees with local sockets to which a command without network access can connect.
    #[serde(with = "raw::paths")]
    pub sockets: Vec<PathBuf>,
    pub network: Network,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// Only loopback, in a network of its own. If the kernel offers no namespaces: no sockets except
    /// pairs between its own processes.
    #[default]
    Off,
    On,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverlayDirs {
    /// The original files. Never written.
    pub lower: PathBuf,
    /// Receives all changes.
    pub upper: PathBuf,
    /// An empty directory for the kernel, on the file system of `upper`.
    pub work: PathBuf,
    pub at: PathBuf,
    /// Directories that the merged view covers, with where to mount them as well.
    pub shared: Vec<(PathBuf, PathBuf)>,
}

/// How much of a policy this machine can enforce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Availability {
    Full,
    /// Some of it. Names what is missing.
    Partly(String),
    /// Nothing, with the reason.
    None(String),
}

pub fn availability() -> Availability {
    let kernel = Kernel::running();
    let gaps = [
        kernel.unfiltered.clone(),
        (kernel.landlock < TRUNCATE_ABI).then(|| {
            let (version, least) = (kernel.landlock, TRUNCATE_ABI);
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

fn nothing() -> &'static str {
    match () {
        () if !cfg!(target_os = "linux") => "this system has no Landlock",
        () if !cfg!(feature = "sandbox") => "this build has no sandbox",
        () => "kernel without Landlock",
    }
}

/// Describes the sandbox for the approval prompt, as in `sandboxed, no network`.
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

    let signals = if kernel.landlock < SCOPE_ABI {
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

/// Removes files that a command could not remove itself because of its policy.
pub fn clean_up(policy: &Policy) {
    #[cfg(all(target_os = "linux", feature = "sandbox"))]
    policy
        .add
        .iter()
        .for_each(|dir| files::remove_temp_objects(dir));
    let _ = policy;
}

/// What a run has for itself. All `false` if the kernel offers no namespaces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// Private mounts, for shared memory.
    pub mounts: bool,
    /// A network with nothing but loopback. `false` if the policy opens the network.
    pub network: bool,
    /// Pseudo-terminals that no other program sees.
    pub terminals: bool,
}

/// Enters namespaces in which only the policy's writable paths can be changed, its private
/// directories are empty, and there are a network and terminals of their own. If the kernel does not
/// allow it, hides those directories, and notes in `kernel` that there are no namespaces. The process
/// must have a single thread.
///
/// After an error the process is in an undefined state and must exit.
#[cfg(all(target_os = "linux", feature = "sandbox"))]
pub fn isolate(policy: &mut Policy, kernel: &mut Kernel) -> Result<Isolation, String> {
    let mut private = std::mem::take(&mut policy.private);
    // Skip directories that the policy makes writable.
    private.retain(|dir| !policy.write.contains(dir));
    let isolation = match kernel.namespaces {
        true => namespaces::isolate(policy, &private)?,
        false => Isolation::default(),
    };
    kernel.namespaces = isolation.mounts;
    if isolation.mounts {
        policy.write.extend(private);
    } else {
        policy.hidden.extend(private);
    }

    Ok(isolation)
}

/// Restricts signals of this thread and its children to one another. Returns `false` if the kernel
/// cannot, and fails if it claims to but does not.
#[cfg(all(target_os = "linux", feature = "sandbox"))]
pub fn scope(kernel: &Kernel) -> Result<bool, String> {
    use rustix::io::Errno;

    if kernel.landlock < SCOPE_ABI {
        return Ok(false);
    }

    files::scope()?;
    // `kill(-1)` in the supervisor depends on this, so test it: our parent has the same user, and
    // must be out of reach.
    match rustix::process::getppid().map(rustix::process::test_kill_process) {
        Some(Err(Errno::PERM)) => Ok(true),
        _ => Err("signals do not stay inside".to_owned()),
    }
}

/// Restricts this thread and the programs that it executes to a policy. They cannot signal the
/// processes in `watching`. The caller must run the returned server in another
/// thread.
#[cfg(all(target_os = "linux", feature = "sandbox"))]
pub fn enforce(
    policy: &Policy,
    kernel: &Kernel,
    isolation: Isolation,
    watching: &[u32],
) -> Result<Option<ConnectionServer>, String> {
    if kernel.landlock == 0 {
        return Err(nothing().to_owned());
    }

    // With `CAP_PERFMON` alone, root could read the environment of other processes past Landlock.
    system_calls::drop_capabilities();
    files::enforce(policy, kernel.landlock, isolation)?;
    match kernel.unfiltered {
        None => {
            let connections = system_calls::enforce(policy, kernel, isolation, watching)?;
            let server = |connections: connections::Connections| -> ConnectionServer {
                Box::new(move |sockets| connections.serve(sockets))
            };
            Ok(connections.map(server))
        }
        Some(_) => Ok(None),
    }
}

/// Makes the connections of a command, from its start to its end. Local sockets must be below one of
/// the directories.
pub type ConnectionServer = Box<dyn FnOnce(&[PathBuf]) + Send>;

/// Fails: not available on this system or in this build.
#[cfg(not(all(target_os = "linux", feature = "sandbox")))]
pub fn mount_overlay(_dirs: &OverlayDirs) -> Result<(), String> {
    Err("this system has no overlays, or this build has no sandbox".to_owned())
}

/// Fails: not available on this system or in this build.
#[cfg(not(all(target_os = "linux", feature = "sandbox")))]
pub fn enter_namespaces(_process: u32) -> Result<(), String> {
    Err("this system has no overlays, or this build has no sandbox".to_owned())
}

/// Does nothing: there are no namespaces.
#[cfg(not(all(target_os = "linux", feature = "sandbox")))]
pub fn isolate(_policy: &mut Policy, _kernel: &mut Kernel) -> Result<Isolation, String> {
    Ok(Isolation::default())
}

/// Returns `false`: signals cannot be restricted.
#[cfg(not(all(target_os = "linux", feature = "sandbox")))]
pub fn scope(_kernel: &Kernel) -> Result<bool, String> {
    Ok(false)
}

/// Fails: not available on this system or in this build.
#[cfg(not(all(target_os = "linux", feature = "sandbox")))]
pub fn enforce(
    _policy: &Policy,
    _kernel: &Kernel,
    _isolation: Isolation,
    _watching: &[u32],
) -> Result<Option<ConnectionServer>, String> {
    Err(nothing().to_owned())
}

/// First Landlock ABI that restricts truncation (Linux 6.2).
const TRUNCATE_ABI: u8 = 3;

/// First Landlock ABI that restricts signals (Linux 6.12).
const SCOPE_ABI: u8 = 6;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// Newest Landlock ABI that the kernel and we support, or 0 without Landlock.
    pub landlock: u8,
    /// Reason why system calls cannot be filtered. `None` if they can.
    pub unfiltered: Option<String>,
    /// Whether to try private namespaces of mounts and of System V IPC; after [`isolate`], whether there
    /// are.
    pub namespaces: bool,
}

impl Kernel {
    /// Returns the features of the running kernel, detected once.
    pub fn running() -> &'static Kernel {
        static RUNNING: OnceLock<Kernel> = OnceLock::new();

        RUNNING.get_or_init(|| {
            let kernel = Kernel::ask();
            // An emulated version can only be older: every reported feature must be enforceable.
            let older = |interface: String| interface.parse().ok();
            let emulated = fault::emulated("landlock").and_then(older);
            Kernel {
                landlock: emulated.map_or(kernel.landlock, |older: u8| older.min(kernel.landlock)),
                unfiltered: fault::emulated("no-seccomp")
                    .map(|_| "kernel without seccomp".to_owned())
                    .or(kernel.unfiltered),
                namespaces: fault::emulated("no-namespaces").is_none(),
            }
        })
    }

    #[cfg(all(target_os = "linux", feature = "sandbox"))]
    fn ask() -> Kernel {
        Kernel {
            landlock: files::interface(),
            unfiltered: system_calls::check().err(),
            namespaces: true,
        }
    }

    #[cfg(not(all(target_os = "linux", feature = "sandbox")))]
    fn ask() -> Kernel {
        Kernel {
            landlock: 0,
            unfiltered: Some("no filter of system calls".to_owned()),
            namespaces: false,
        }
    }
}
