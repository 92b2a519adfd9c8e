//! Messages between TeDDy and a supervisor, one JSON value per line.
//!
//! They are sent over a socket, because arguments are limited in size and visible to all users.

use std::io;

use serde::{Deserialize, Serialize};

use crate::host::raw::RawText;
use crate::host::sandbox::{Kernel, Policy};

/// The first message to a supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    /// Sandbox policy.
    pub policy: Option<Policy>,
    /// The kernel features to use for it.
    pub kernel: Kernel,
    /// Path of the program, and its arguments.
    pub words: Vec<RawText>,
    /// Working directory.
    pub folder: RawText,
    /// Variables for the command only, not for the supervisor.
    pub variables: Vec<(String, String)>,
    /// Named pipe to use as stdin. `None` means `/dev/null`.
    pub input: Option<RawText>,
    /// File to lock until all processes have ended.
    pub lock: Option<RawText>,
    /// The process that holds the overlay in which the command runs.
    pub view: Option<u32>,
}

/// A message from the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SupervisorMessage {
    /// The command was started.
    Started,
    /// The command was not started because of the command itself, with the reason.
    Refused(String),
    /// The command was not started because the machine failed, with the reason.
    Broken(String),
    /// Like `Refused`, because a private mount failed halfway. A retry without private mounts can
    /// work.
    Halfway(String),
    /// The command has ended. Its children can still run.
    Ended(CommandEnding),
    /// All processes have ended, except these, which could not be killed.
    Gone(Vec<String>),
    /// The supervisor died without sending `Gone`. Generated on our side.
    Lost,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandEnding {
    /// Exited with this code.
    Exited(i32),
    /// Killed by this signal.
    Signaled(i32),
}

impl Order {
    /// Encodes the order as a line.
    pub fn encode(&self) -> io::Result<Vec<u8>> {
        encode_line(self)
    }

    /// Decodes a line.
    pub fn decode(line: &[u8]) -> Option<Order> {
        serde_json::from_slice(line).ok()
    }
}

impl SupervisorMessage {
    /// Encodes the message as a line.
    pub fn encode(&self) -> io::Result<Vec<u8>> {
        encode_line(self)
    }

    /// Decodes a line.
    pub fn decode(line: &[u8]) -> Option<SupervisorMessage> {
        serde_json::from_slice(line).ok()
    }
}

fn encode_line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}
