//! Paths as trees and indexes have them: bytes, with `/` between components.

use gix::bstr::ByteSlice as _;

/// Returns the directories above a path, innermost first, without the top.
pub(in crate::git) fn parent_dirs(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.rfind_iter(b"/").map(|end| &path[..end])
}

/// Splits a path into its directory, which is empty for the top, and the name in it.
pub(in crate::git) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    path.rsplit_once_str(b"/").unwrap_or((b"", path))
}

/// Returns the path of a name in a directory, which is empty for the top.
pub(in crate::git) fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    match dir {
        b"" => name.to_vec(),
        _ => [dir, b"/", name].concat(),
    }
}
