//! Helpers for paths and file types.

/// Returns whether a name is a pipe, socket or device.
pub(super) fn is_special_file(kind: rustix::fs::FileType) -> bool {
    !(kind.is_file() || kind.is_symlink() || kind.is_dir())
}

/// Returns the parent directory; `None` at the top.
pub(super) fn parent_dir(path: &[u8]) -> Option<&[u8]> {
    path.iter()
        .rposition(|&byte| byte == b'/')
        .map(|at| &path[..at])
}

/// Returns the parent directories, innermost first.
pub(super) fn parent_dirs(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(parent_dir(path), |dir| parent_dir(dir))
}
