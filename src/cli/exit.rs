//! Exit codes, which scripts rely on.

use std::process::ExitCode;

/// An exit code with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Code(pub u8);

/// It is done.
pub(super) const DONE: Code = Code(0);
/// An action failed, or the world did.
pub(super) const FAILED: Code = Code(1);
/// The command line is wrong.
pub(super) const USAGE: Code = Code(2);
/// The plan was rejected.
pub(super) const REJECTED: Code = Code(3);
/// The turn is recorded, but overlaps with the user's own edits.
pub(super) const OVERLAP: Code = Code(4);
/// The model waits for the user's answer, or the work is not finished and nobody goes on.
pub(super) const WAITS: Code = Code(5);
/// Another process holds the lock.
pub(super) const BUSY: Code = Code(75);
/// The user interrupted.
pub(super) const INTERRUPTED: Code = Code(130);

impl From<Code> for ExitCode {
    fn from(code: Code) -> ExitCode {
        ExitCode::from(code.0)
    }
}
