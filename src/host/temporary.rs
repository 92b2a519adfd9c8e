//! Creates temporary directories, which are removed when dropped.

use std::io;

/// Creates a directory in `TMPDIR` that only this user can read. The error names `TMPDIR`.
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
