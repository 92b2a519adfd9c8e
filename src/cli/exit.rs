//! Exit codes. Scripts rely on them.

use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::host::output;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExitStatus(pub u8);

pub(super) const SUCCESS: ExitStatus = ExitStatus(0);
/// An action failed, or the environment did.
pub(super) const FAILED: ExitStatus = ExitStatus(1);
pub(super) const USAGE: ExitStatus = ExitStatus(2);
pub(super) const REJECTED: ExitStatus = ExitStatus(3);
/// The turn is recorded but conflicts with the user's edits.
pub(super) const OVERLAP: ExitStatus = ExitStatus(4);
/// The model waits for an answer, or the work is unfinished and stopped.
pub(super) const WAITS: ExitStatus = ExitStatus(5);
/// Another process holds the lock.
pub(super) const BUSY: ExitStatus = ExitStatus(75);
/// `record` did not find its program, as in shells.
pub(super) const NO_PROGRAM: ExitStatus = ExitStatus(127);
pub(super) const INTERRUPTED: ExitStatus = ExitStatus(130);

/// Returns [`SUCCESS`] or [`FAILED`].
pub(super) fn success_if(is_success: bool) -> ExitStatus {
    success_or(is_success, FAILED)
}

pub(super) fn success_or(is_success: bool, otherwise: ExitStatus) -> ExitStatus {
    if is_success { SUCCESS } else { otherwise }
}

/// Returns the exit code after printing to stdout. A closed pipe is not an error.
pub(super) fn printed(result: io::Result<()>) -> ExitStatus {
    let flushed = result.and_then(|()| io::stdout().flush());
    match output::ignore_closed_pipe(flushed) {
        Ok(()) => SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: writing to standard output: {error}");
            FAILED
        }
    }
}

/// A command without other exit codes returns nothing.
impl From<()> for ExitStatus {
    fn from(_: ()) -> ExitStatus {
        SUCCESS
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(code: ExitStatus) -> ExitCode {
        ExitCode::from(code.0)
    }
}
