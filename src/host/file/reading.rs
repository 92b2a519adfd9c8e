//! Reads files that other programs might have put in place: regular files only, and never more than
//! a limit.
//!
//! A file in `.git/teddy`, in git's directories or in the user's home can be a FIFO that blocks, a
//! device without end, or too large for memory.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::{CWD, Mode, OFlags, RawMode};
use rustix::io::Errno;

use super::{Mounts, PRIVATE_FILE, Root, not_regular, open_beneath, regular_size};
use crate::host::file::failure;

// Initial buffer limit. Larger files grow it.
const FIRST: u64 = 1 << 24;

const BLOCK: usize = 64 << 10;

/// Reads a regular file. Links are followed. Fails with `InvalidInput` for other types, with
/// `FileTooLarge` beyond `limit` bytes. Never blocks on a FIFO.
pub fn read_regular(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    take(open_regular(path)?, limit).map_err(|error| failure("read", path, error))
}

/// Like [`read_regular`], for text. Fails with `InvalidData` if the file is not UTF-8.
pub fn read_regular_text(path: &Path, limit: u64) -> io::Result<String> {
    String::from_utf8(read_regular(path, limit)?).map_err(|error| {
        failure(
            "read",
            path,
            io::Error::new(io::ErrorKind::InvalidData, error),
        )
    })
}

/// Reads a file or a pipe, such as a shell's `<(...)`, that the user named. Fails with
/// `FileTooLarge` beyond `limit` bytes. The error does not name the file.
pub fn read_named(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    take(File::open(path)?, limit)
}

/// Returns `true` if `path` is the null device, which users pass to say "no file".
pub fn is_null_device(path: &Path) -> bool {
    path.canonicalize()
        .is_ok_and(|path| path == Path::new("/dev/null"))
}

/// Reads an open regular file that had `size` bytes when it was checked. If it has grown, the
/// result can exceed `limit` by up to one block.
pub fn read_sized(file: &File, size: u64, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    loop {
        if bytes.len() == bytes.capacity() {
            bytes.reserve(BLOCK);
        }

        let at = bytes.len() as u64;
        let read = match rustix::io::pread(file, spare_capacity(&mut bytes), at) {
            Err(Errno::INTR) => continue,
            read => read?,
        };
        // Saves the usual second `pread`: a short read of exactly `size` bytes is the end.
        let is_end = bytes.len() as u64 == size && bytes.len() < bytes.capacity();
        if read == 0 || is_end || bytes.len() as u64 >= limit {
            return Ok(bytes);
        }
    }
}

/// Opens a regular file for reading. Links are followed. Fails with `InvalidInput` for other types.
/// Never blocks on a FIFO.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let during = |error: io::Error| failure("read", path, error);

    let opened = super::openat(CWD, path, flags, Mode::empty());
    let file = opened.map_err(|errno| during(errno.into()))?;
    let stat = rustix::fs::fstat(&file).map_err(|errno| during(errno.into()))?;
    regular_size("read", path, &stat)?;

    Ok(file.into())
}

/// Appends to a regular file of ours. Creates it if it does not exist.
pub fn append_regular(path: &Path, bytes: &[u8]) -> io::Result<()> {
    append(path, bytes, PRIVATE_FILE)
}

/// Like [`append_regular`], for a file of git's: a new one has the permissions of the umask.
pub fn append_shared(path: &Path, bytes: &[u8]) -> io::Result<()> {
    append(path, bytes, 0o666)
}

fn append(path: &Path, bytes: &[u8], mode: RawMode) -> io::Result<()> {
    let mut file = open_with_mode(path, OFlags::WRONLY | OFlags::APPEND, mode)?;
    let written = file.write_all(bytes);
    written.map_err(|error| failure("write", path, error))
}

/// Opens a regular file of ours for writing. Creates it if it does not exist. Fails with
/// `InvalidInput` if it is a link or another type. Never blocks on a FIFO.
pub fn open_own(path: &Path, flags: OFlags) -> io::Result<File> {
    open_with_mode(path, flags, PRIVATE_FILE)
}

fn open_with_mode(path: &Path, flags: OFlags, mode: RawMode) -> io::Result<File> {
    let always =
        OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let during = |error: io::Error| failure("write", path, error);
    let opened = super::openat(CWD, path, flags | always, Mode::from_raw_mode(mode));
    let file = match opened {
        Err(Errno::LOOP) => {
            let why = io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link");
            return Err(during(why));
        }
        opened => File::from(opened.map_err(|errno| during(errno.into()))?),
    };
    match file.metadata().map_err(during)?.is_file() {
        true => Ok(file),
        false => Err(not_regular("write", path)),
    }
}

fn take(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let size = file.metadata()?.len();
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(limit).min(FIRST)).unwrap_or(0));

    // The size can be wrong (devices, growing files); one more byte than allowed is certain.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let why = format!("it is larger than {}", format_limit(limit));
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

fn format_limit(limit: u64) -> String {
    match limit {
        limit if limit >= 1 << 20 => format!("{} MiB", limit >> 20),
        limit if limit >= 1 << 10 => format!("{} KiB", limit >> 10),
        limit => format!("{limit} bytes"),
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileEnd {
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
    let size = regular_size("read", path, &stat)?;
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
    fn check(path: &Path, limit: u64, expected: Result<&str, &str>) {
        let result = read_regular_text(path, limit).map_err(|error| error.to_string());
        let expected = expected.map(str::to_owned).map_err(|why| {
            let path = path.display();
            format!("cannot read `{path}`: {why}")
        });
        assert_eq!(result, expected);
    }

    #[test]
    fn only_regular_files_within_the_limit_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "0123456789").unwrap();
        std::os::unix::fs::symlink(&file, dir.path().join("link")).unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();

        check(&file, 10, Ok("0123456789"));
        check(&dir.path().join("link"), 10, Ok("0123456789"));
        check(&file, 9, Err("it is larger than 9 bytes"));
        check(&pipe, 10, Err("it is not a regular file"));
        check(dir.path(), 10, Err("it is not a regular file"));
        check(Path::new("/dev/zero"), 10, Err("it is not a regular file"));
        check(
            &dir.path().join("gone"),
            10,
            Err("no such file or directory"),
        );
    }

    #[test]
    fn a_file_that_has_grown_is_read_no_further_than_it_may() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        let file = File::open(&path).unwrap();
        let read = |size, limit| read_sized(&file, size, limit).unwrap().len();
        assert_eq!(read(10, 10), 11);
        assert_eq!(read(10, 1 << 20), 1 << 20);
        assert_eq!(read(10, u64::MAX), 1 << 20);
        assert_eq!(read(1 << 20, 1 << 20), 1 << 20);
    }

    #[test]
    fn a_device_without_an_end_is_refused() {
        let error = read_named(Path::new("/dev/zero"), 1 << 20).unwrap_err();
        assert_eq!(error.to_string(), "it is larger than 1 MiB");
        assert_eq!(read_named(Path::new("/dev/null"), 10).unwrap(), b"");
    }
}

#[cfg(test)]
mod end_tests {
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
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let root = Root::open(dir.path()).unwrap();
        for path in ["link", "linked/a", "pipe", "real", "gone", "../x"] {
            assert!(read_end(&root, Path::new(path), 0, 9).is_err(), "{path}");
        }
    }
}
