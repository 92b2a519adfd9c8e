//! Helpers for paths and file types.

/// Returns whether a name is a pipe, socket or device.
pub(super) fn is_special(kind: rustix::fs::FileType) -> bool {
    !(kind.is_file() || kind.is_symlink() || kind.is_dir())
}

/// Returns the parent directory; `None` at the top.
pub(super) fn parent(path: &[u8]) -> Option<&[u8]> {
    path.iter()
        .rposition(|&byte| byte == b'/')
        .map(|at| &path[..at])
}

/// Returns the parent directories, innermost first.
pub(super) fn folders_above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(parent(path), |folder| parent(folder))
}
