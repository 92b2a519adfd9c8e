//! Entries of trees.

/// Kind of a tree entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryMode {
    /// A regular file.
    File,
    /// A regular file with the executable bit.
    Executable,
    /// A symlink; the blob is its target.
    Link,
    /// A directory.
    Tree,
    /// A submodule or nested repository; the id is a commit of that repository.
    Gitlink,
}

/// An entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// Kind of the entry.
    pub mode: EntryMode,
    /// Object of the entry.
    pub id: gix::ObjectId,
}

impl From<gix::objs::tree::EntryMode> for EntryMode {
    fn from(mode: gix::objs::tree::EntryMode) -> EntryMode {
        EntryMode::from(mode.kind())
    }
}

impl From<gix::objs::tree::EntryKind> for EntryMode {
    fn from(kind: gix::objs::tree::EntryKind) -> EntryMode {
        use gix::objs::tree::EntryKind;

        match kind {
            EntryKind::Blob => EntryMode::File,
            EntryKind::BlobExecutable => EntryMode::Executable,
            EntryKind::Link => EntryMode::Link,
            EntryKind::Tree => EntryMode::Tree,
            EntryKind::Commit => EntryMode::Gitlink,
        }
    }
}

impl From<EntryMode> for gix::objs::tree::EntryKind {
    fn from(mode: EntryMode) -> gix::objs::tree::EntryKind {
        use gix::objs::tree::EntryKind;

        match mode {
            EntryMode::File => EntryKind::Blob,
            EntryMode::Executable => EntryKind::BlobExecutable,
            EntryMode::Link => EntryKind::Link,
            EntryMode::Tree => EntryKind::Tree,
            EntryMode::Gitlink => EntryKind::Commit,
        }
    }
}
