//! Paths as trees and indexes have them: bytes, with `/` between components.

use gix::bstr::ByteSlice as _;
use gix::validate::path::component;

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

/// Returns whether git allows a name in a tree.
pub fn is_valid_name(name: &[u8]) -> bool {
    gix::validate::path::component(name.into(), None, PROTECTED_NAMES).is_ok()
}

/// Returns whether git allows a symlink of this name in a tree: not for a spelling of
/// `.gitmodules`.
pub fn is_valid_link_name(name: &[u8]) -> bool {
    let mode = Some(component::Mode::Symlink);
    gix::validate::path::component(name.into(), mode, PROTECTED_NAMES).is_ok()
}

/// Refuses names that some file system treats as git's own.
const PROTECTED_NAMES: component::Options = component::Options {
    protect_windows: false,
    protect_hfs: true,
    protect_ntfs: true,
};
