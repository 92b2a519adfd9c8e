//! The program as a launcher: it takes a policy, restricts itself and becomes the shell.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use serde::{Deserialize, Serialize};

use super::{Launcher, Policy, enforce};
use crate::host::file::reason;
use crate::host::process;

/// The first argument of a launcher.
const WORD: &str = "__confine";
/// The exit code of a launcher that could not do its work.
pub const EXIT_LAUNCHER: u8 = 125;

/// What a launcher is told.
#[derive(Serialize, Deserialize)]
struct Order {
    /// The sandbox, if there is one.
    policy: Option<Policy>,
    /// Who waits for the script; without them it must not go on.
    parent: u32,
}

impl Launcher {
    /// Returns the command that runs a shell through this launcher. `scratch` holds the script and
    /// may be written in its part `temporary`.
    ///
    /// # Errors
    /// A path of the policy is not UTF-8.
    pub fn command(&self, shell: &str, temporary: &Path) -> std::io::Result<Command> {
        let policy = self.policy.clone().map(|mut policy| {
            policy.write.push(temporary.to_owned());
            policy
        });
        let order = serde_json::to_string(&Order {
            policy,
            parent: std::process::id(),
        })?;
        let (program, first) = self
            .command
            .split_first()
            .ok_or(std::io::ErrorKind::InvalidInput)?;
        let mut command = process::command(program);
        command.args(first).args([WORD, &order, "--"]);
        command.arg(
            process::find(shell).map_or_else(|| shell.into(), std::path::PathBuf::into_os_string),
        );
        Ok(command)
    }
}

/// Becomes the shell if the arguments (the program's name first) say that this is a launcher;
/// the main function calls this before anything else. Returns only if it is none, or failed.
pub fn launch_if_asked(arguments: &[OsString]) -> Option<ExitCode> {
    let (_, rest) = arguments.split_first()?;
    let (word, rest) = rest.split_first()?;
    if word != OsStr::new(WORD) {
        return None;
    }
    let why = launch(rest);
    let _ = writeln!(
        std::io::stderr(),
        "teddy: the command was not started: {why}"
    );
    Some(ExitCode::from(EXIT_LAUNCHER))
}

/// Restricts this process and executes the command; returns why that failed.
fn launch(arguments: &[OsString]) -> String {
    let [order, separator, program, rest @ ..] = arguments else {
        return "the launcher needs a command".to_owned();
    };
    let Some(order) = order
        .to_str()
        .and_then(|text| serde_json::from_str::<Order>(text).ok())
        .filter(|_| separator == OsStr::new("--"))
    else {
        return "the launcher's order cannot be read".to_owned();
    };
    if let Err(why) = detach(order.parent) {
        return why;
    }
    match order.policy.as_ref().map_or(Ok(()), enforce) {
        Ok(()) => reason(&process::command(program).args(rest).exec()),
        Err(why) => why,
    }
}

/// Gives the script a session of its own, without a terminal, that ends with its parent.
fn detach(parent: u32) -> Result<(), String> {
    // A process that leads its group already has a session or gets none; its group is enough.
    let _ = rustix::process::setsid();
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
            .map_err(|e| e.to_string())?;
        let now =
            rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs());
        if now != parent {
            return Err("its parent has ended".to_owned());
        }
    }
    let _ = parent;
    Ok(())
}
