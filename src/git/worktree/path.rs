//! Kinds of names, and the folders above a path.

/// Returns whether something is neither a file nor a link nor a folder.
pub(super) fn is_special(kind: rustix::fs::FileType) -> bool {
    !(kind.is_file() || kind.is_symlink() || kind.is_dir())
}

/// Returns the folder that a path is in, unless it is the top.
pub(super) fn parent(path: &[u8]) -> Option<&[u8]> {
    path.iter()
        .rposition(|&byte| byte == b'/')
        .map(|at| &path[..at])
}

/// Returns the folders above a path, the nearest first.
pub(super) fn folders_above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(parent(path), |folder| parent(folder))
}
