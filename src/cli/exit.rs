//! Exit codes, which scripts rely on.

use std::process::ExitCode;

/// An exit code with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExitStatus(pub u8);

/// It is done.
pub(super) const DONE: ExitStatus = ExitStatus(0);
/// An action failed, or the world did.
pub(super) const FAILED: ExitStatus = ExitStatus(1);
/// The command line is wrong.
pub(super) const USAGE: ExitStatus = ExitStatus(2);
/// The plan was rejected.
pub(super) const REJECTED: ExitStatus = ExitStatus(3);
/// The turn is recorded, but overlaps with the user's own edits.
pub(super) const OVERLAP: ExitStatus = ExitStatus(4);
/// The model waits for the user's answer, or the work is not finished and nobody goes on.
pub(super) const WAITS: ExitStatus = ExitStatus(5);
/// Another process holds the lock.
pub(super) const BUSY: ExitStatus = ExitStatus(75);
/// The user interrupted.
pub(super) const INTERRUPTED: ExitStatus = ExitStatus(130);

impl From<ExitStatus> for ExitCode {
    fn from(code: ExitStatus) -> ExitCode {
        ExitCode::from(code.0)
    }
}
