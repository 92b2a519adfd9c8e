//! Distinguishes failures of the plan from failures of the machine.
//!
//! A failure of the plan is an outcome, which the model sees. A failure of the machine says nothing
//! about the plan: it interrupts the run, and the user's files stay unchanged.

use std::io;

use crate::host::fault;
use crate::host::file::reason;

/// Why an action failed.
#[derive(Debug)]
pub enum ActionError {
    /// The action is impossible in the current state of the files.
    Plan(String),
    /// The machine failed: full disk, no inodes, broken device, too many open files.
    World(io::Error),
}

impl ActionError {
    /// Classifies an error from reading or inspecting a path.
    pub fn reading(error: io::Error) -> ActionError {
        // While reading, this is our own limit, which the plan exceeds. While writing, EFBIG is a
        // limit of the machine.
        if is_about_the_path(error.kind()) || error.kind() == io::ErrorKind::FileTooLarge {
            ActionError::Plan(reason(&error))
        } else {
            ActionError::World(error)
        }
    }

    /// Classifies an error from writing a file. A file size limit counts as a failure of the
    /// machine.
    pub fn writing(error: io::Error) -> ActionError {
        if is_about_the_path(error.kind()) {
            ActionError::Plan(reason(&error))
        } else {
            ActionError::World(error)
        }
    }
}

impl From<String> for ActionError {
    fn from(why: String) -> ActionError {
        ActionError::Plan(why)
    }
}

/// Returns whether an error describes the state of the path, which commands and other plans can
/// cause. Any other error counts as the machine's: publishing half a plan is worse than running a
/// plan again.
fn is_about_the_path(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{
        AlreadyExists, DirectoryNotEmpty, InvalidData, InvalidFilename, InvalidInput, IsADirectory,
        NotADirectory, NotFound, PermissionDenied, Unsupported,
    };

    matches!(
        kind,
        AlreadyExists
            | DirectoryNotEmpty
            | InvalidData
            | InvalidFilename
            | InvalidInput
            | IsADirectory
            | NotADirectory
            | NotFound
            | PermissionDenied
            | Unsupported
    )
}

/// Passes a fault point. A failure injected by a test counts as the machine's.
pub fn pass_fault_point(name: &str) -> Result<(), ActionError> {
    fault::point(name).map_err(|error| ActionError::World(io::Error::other(format!("{error:#}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names the side that an error from writing a file is attributed to.
    fn classify(errno: i32) -> &'static str {
        match ActionError::writing(io::Error::from_raw_os_error(errno)) {
            ActionError::Plan(_) => "plan",
            ActionError::World(_) => "world",
        }
    }

    #[test]
    fn what_the_machine_cannot_do_is_not_the_plans_fault() {
        // EINTR, EIO, ENOMEM, ENFILE, EMFILE, EFBIG, ENOSPC, EROFS, EDQUOT, ESTALE
        for errno in [4, 5, 12, 23, 24, 27, 28, 30, 122, 116] {
            assert_eq!(classify(errno), "world", "{errno}");
        }
        // ENOENT, EACCES, EEXIST, ENOTDIR, EISDIR, EINVAL, ENAMETOOLONG
        for errno in [2, 13, 17, 20, 21, 22, 36] {
            assert_eq!(classify(errno), "plan", "{errno}");
        }
    }

    #[test]
    fn a_file_that_is_too_large_to_be_read_is_what_the_plan_asked_for() {
        let error = io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 3 bytes");
        assert!(matches!(ActionError::reading(error), ActionError::Plan(_)));
    }
}
