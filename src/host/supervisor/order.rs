//! What TeDDy and a supervisor say to each other, one JSON value on a line.
//!
//! It goes over a socket and not in arguments: arguments are limited, and everyone on the machine
//! can read them.

use std::io;

use serde::{Deserialize, Serialize};

use crate::host::raw::RawText;
use crate::host::sandbox::{Kernel, Policy};

/// What a supervisor is told first.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    /// The sandbox, if there is one.
    pub policy: Option<Policy>,
    /// What of it can be enforced.
    pub kernel: Kernel,
    /// The program, by its path, and its arguments.
    pub words: Vec<RawText>,
    /// The folder in which it runs.
    pub folder: RawText,
    /// Variables that the command gets and the supervisor does not obey.
    pub variables: Vec<(String, String)>,
    /// The named pipe that is the command's input; without one it has none.
    pub input: Option<RawText>,
    /// The file that is locked until nothing is left.
    pub lock: Option<RawText>,
    /// The process that holds the view of the files in which the command runs, if there is one.
    pub view: Option<u32>,
}

/// What a supervisor tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SupervisorMessage {
    /// The command runs.
    Started,
    /// It does not, and why.
    Refused(String),
    /// It does not, because a private view of folders began and could not be finished; without one
    /// it may.
    Halfway(String),
    /// It has ended; what it started may still live.
    Ended(CommandEnding),
    /// Nothing is left but the named processes, which could not be ended.
    Gone(Vec<String>),
    /// The supervisor itself has ended without a word. Never sent.
    Lost,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandEnding {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
}

impl Order {
    /// Returns the line that is sent.
    ///
    /// # Errors
    /// Never for what this program makes.
    pub fn encode(&self) -> io::Result<Vec<u8>> {
        encode(self)
    }

    /// Reads a line.
    pub fn decode(line: &[u8]) -> Option<Order> {
        serde_json::from_slice(line).ok()
    }
}

impl SupervisorMessage {
    /// Returns the line that is sent.
    ///
    /// # Errors
    /// Never for what this program makes.
    pub fn encode(&self) -> io::Result<Vec<u8>> {
        encode(self)
    }

    /// Reads a line.
    pub fn decode(line: &[u8]) -> Option<SupervisorMessage> {
        serde_json::from_slice(line).ok()
    }
}

/// Returns a value as a line.
fn encode(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}
