//! Directories for temporary files, removed when they are dropped.

use std::io;

/// Makes a directory that only this user can read, below the one for temporary files.
///
/// # Errors
/// It cannot be made; the message names the directory that it was to be in.
pub fn temporary_folder() -> io::Result<tempfile::TempDir> {
    let made = tempfile::Builder::new().prefix("teddy-").tempdir();
    made.map_err(|error| {
        let place = std::env::temp_dir();
        let kind = error.kind();
        let message = format!(
            "no temporary directory can be made in `{}` (`TMPDIR`): {kind}",
            place.display()
        );
        io::Error::new(kind, message)
    })
}
