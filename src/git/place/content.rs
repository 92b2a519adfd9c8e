//! What is at a place, and what is to be there.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use rustix::fs::RawMode;

use crate::git::object::large::Stored;

/// What is on disk at a name.
#[derive(Debug, Clone)]
pub(in crate::git) enum OnDisk {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// What is in it.
        body: FileBody,
        /// Its permissions.
        permissions: RawMode,
    },
    /// A link and its target.
    Link(Vec<u8>),
    /// A folder.
    Folder,
    /// A device, a pipe, or a file that is too large or may not be read.
    Other,
}

/// What is in a file on disk.
#[derive(Debug, Clone)]
pub(in crate::git) enum FileBody {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Too many bytes to hold in memory.
    Large {
        /// The file, open.
        file: Arc<File>,
        /// Its size when it was opened.
        size: u64,
    },
}

/// What to write.
#[derive(Debug, Clone)]
pub(in crate::git) enum Content {
    /// A regular file.
    File {
        /// What is to be in it.
        source: ByteSource,
        /// Its permissions; nothing for those that a new file gets.
        permissions: Option<RawMode>,
        /// Whether a new file can be executed.
        executable: bool,
    },
    /// A link and its target.
    Link(Vec<u8>),
}

/// Where the bytes of a new file come from.
#[derive(Debug, Clone)]
pub(in crate::git) enum ByteSource {
    /// They are here.
    Bytes(Vec<u8>),
    /// They are those of a large blob.
    Stored(Stored),
}

impl OnDisk {
    /// Returns whether there is nothing.
    pub(in crate::git) fn is_absent(&self) -> bool {
        matches!(self, OnDisk::Absent)
    }

    /// Returns whether it is a folder.
    pub(in crate::git) fn is_folder(&self) -> bool {
        matches!(self, OnDisk::Folder)
    }
}

impl ByteSource {
    /// Writes the bytes.
    pub(super) fn write_to(&self, file: &mut File) -> io::Result<()> {
        match self {
            ByteSource::Bytes(bytes) => file.write_all(bytes),
            ByteSource::Stored(stored) => stored.copy_to(file),
        }
    }
}
