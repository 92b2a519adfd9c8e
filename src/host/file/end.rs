//! Reads the end of a file that another program appends to, such as a transcript.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use rustix::fs::{FileType, OFlags};

use super::{Mounts, Root, failure, open_beneath};

/// The end of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileEnd {
    /// The last bytes.
    pub bytes: Vec<u8>,
    /// Number of bytes between the requested start and `bytes`.
    pub left_out: u64,
}

/// Reads a regular file from offset `start`, but at most the last `limit` bytes. Follows no link
/// and never blocks.
pub fn read_end(root: &Root, path: &Path, start: u64, limit: u64) -> io::Result<FileEnd> {
    let during = |error: io::Error| failure("read", path, error);
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = open_beneath(&root.dir, path, flags, Mounts::Entered);
    let opened = opened.map_err(|errno| during(errno.into()))?;
    let stat = rustix::fs::fstat(&opened).map_err(|errno| during(errno.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        let why = "it is not a regular file";
        return Err(during(io::Error::new(io::ErrorKind::InvalidInput, why)));
    }

    let size = u64::try_from(stat.st_size).unwrap_or_default();
    // A shorter file was rewritten, so read it from the beginning.
    let start = if start > size { 0 } else { start };
    let left_out = (size - start).saturating_sub(limit);
    let mut file = File::from(opened);
    file.seek(SeekFrom::Start(start + left_out))
        .map_err(during)?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).map_err(during)?;

    Ok(FileEnd { bytes, left_out })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(start: u64, limit: u64, expected: (&str, u64)) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "0123456789").unwrap();
        let root = Root::open(dir.path()).unwrap();
        let end = read_end(&root, Path::new("a"), start, limit).unwrap();
        let text = String::from_utf8(end.bytes).unwrap();
        assert_eq!((text.as_str(), end.left_out), expected);
    }

    #[test]
    fn the_end_is_what_came_last() {
        check(0, 100, ("0123456789", 0));
        check(4, 100, ("456789", 0));
        check(4, 2, ("89", 4));
        check(10, 5, ("", 0));
        check(11, 5, ("56789", 5));
    }

    #[test]
    fn links_and_pipes_are_not_read() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("real")).unwrap();
        std::fs::write(dir.path().join("real/a"), "secret").unwrap();
        std::os::unix::fs::symlink("real", dir.path().join("linked")).unwrap();
        std::os::unix::fs::symlink("real/a", dir.path().join("link")).unwrap();
        let pipe = dir.path().join("pipe");
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, mode, 0).unwrap();
        let root = Root::open(dir.path()).unwrap();
        for path in ["link", "linked/a", "pipe", "real", "gone", "../x"] {
            assert!(read_end(&root, Path::new(path), 0, 9).is_err(), "{path}");
        }
    }
}
