//! Content of a name on disk, and content to write.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use rustix::fs::RawMode;

use crate::git::object::large::Stored;

#[derive(Debug, Clone)]
pub(in crate::git) enum OnDisk {
    Absent,
    File {
        body: FileBody,
        permissions: RawMode,
    },
    Link(Vec<u8>),
    Dir,
    /// A special file, or a file that is too large or unreadable.
    Other,
}

#[derive(Debug, Clone)]
pub(in crate::git) enum FileBody {
    Bytes(Vec<u8>),
    /// Larger than [`LARGE`](crate::git::object::large::LARGE): kept open instead of in memory.
    Large {
        file: Arc<File>,
        /// Size when it was opened.
        size: u64,
    },
}

#[derive(Debug, Clone)]
pub(in crate::git) enum FileContents {
    File {
        source: ByteSource,
        /// Permissions; `None` for the defaults of a new file.
        permissions: Option<RawMode>,
        executable: bool,
    },
    Link(Vec<u8>),
}

#[derive(Debug, Clone)]
pub(in crate::git) enum ByteSource {
    Bytes(Vec<u8>),
    Stored(Stored),
}

impl OnDisk {
    pub(in crate::git) fn is_absent(&self) -> bool {
        matches!(self, OnDisk::Absent)
    }

    pub(in crate::git) fn is_dir(&self) -> bool {
        matches!(self, OnDisk::Dir)
    }
}

impl ByteSource {
    pub(super) fn write_to(&self, file: &mut File) -> io::Result<()> {
        match self {
            ByteSource::Bytes(bytes) => file.write_all(bytes),
            ByteSource::Stored(stored) => stored.copy_to(file),
        }
    }
}
