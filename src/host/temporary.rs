//! Creates temporary directories, which are removed when dropped.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;

use super::file::PRIVATE;

/// Creates a directory in `TMPDIR` that only this user can read. The error names `TMPDIR`.
pub fn temporary_dir() -> io::Result<tempfile::TempDir> {
    prefixed_temporary_dir("teddy-")
}

/// Like [`temporary_dir`], with another beginning of its name.
pub fn prefixed_temporary_dir(prefix: &str) -> io::Result<tempfile::TempDir> {
    let created = tempfile::Builder::new()
        .prefix(prefix)
        .permissions(Permissions::from_mode(PRIVATE))
        .tempdir();
    created.map_err(|error| {
        let parent = std::env::temp_dir();
        let kind = error.kind();
        let message = format!(
            "no temporary directory can be made in `{}` (`TMPDIR`): {kind}",
            parent.display()
        );
        io::Error::new(kind, message)
    })
}
