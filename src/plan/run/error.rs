//! Why an action does not do what it says: the plan asks for something that cannot be done, or the
//! machine cannot do anything.
//!
//! The first is an outcome, which the model is told. The second says nothing about the plan: it
//! interrupts the run, and nothing of the plan is brought to the user's files.

use std::io;

use crate::host::fault;
use crate::host::file::reason;

/// Why an action failed.
#[derive(Debug)]
pub enum ActionError {
    /// It cannot be done as things are.
    Plan(String),
    /// The world failed: a full disk, no more inodes, a broken device, too many open files.
    World(io::Error),
}

impl ActionError {
    /// Judges the failure of a look at a path, or of reading it.
    pub fn reading(error: io::Error) -> ActionError {
        if is_about_the_path(error.kind()) || error.kind() == io::ErrorKind::FileTooLarge {
            ActionError::Plan(reason(&error))
        } else {
            ActionError::World(error)
        }
    }

    /// Judges the failure of writing a file: a limit on its size is the machine's.
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

/// Returns whether an error tells what is at a path, as commands and other plans may leave it. What
/// is not known to be so is the world's, as half a plan in the user's files is worse than a plan
/// that runs again.
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

/// Passes a fault point; what a test makes fail there is a failure of the world.
pub fn point(name: &str) -> Result<(), ActionError> {
    fault::point(name).map_err(|error| ActionError::World(io::Error::other(format!("{error:#}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says whose failure an error of the system is while a file is written.
    fn whose(errno: i32) -> &'static str {
        match ActionError::writing(io::Error::from_raw_os_error(errno)) {
            ActionError::Plan(_) => "plan",
            ActionError::World(_) => "world",
        }
    }

    #[test]
    fn what_the_machine_cannot_do_is_not_the_plans_fault() {
        // EINTR, EIO, ENOMEM, ENFILE, EMFILE, EFBIG, ENOSPC, EROFS, EDQUOT, ESTALE
        for errno in [4, 5, 12, 23, 24, 27, 28, 30, 122, 116] {
            assert_eq!(whose(errno), "world", "{errno}");
        }
        // ENOENT, EACCES, EEXIST, ENOTDIR, EISDIR, EINVAL, ENAMETOOLONG
        for errno in [2, 13, 17, 20, 21, 22, 36] {
            assert_eq!(whose(errno), "plan", "{errno}");
        }
    }

    #[test]
    fn a_file_that_is_too_large_to_be_read_is_what_the_plan_asked_for() {
        let error = io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 3 bytes");
        assert!(matches!(ActionError::reading(error), ActionError::Plan(_)));
    }
}
