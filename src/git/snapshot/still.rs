//! The reading of a file that others may write to meanwhile.

use std::fs::File;
use std::os::fd::AsFd as _;

use gix::index::entry::Stat;

use crate::git::stat::{self, NameKind};
use crate::host::file::read_sized;

/// How often a file that changes while it is read is read again.
pub(super) const ATTEMPTS: usize = 3;

/// Reads a file until it stands still.
pub(super) fn read_still(file: &File) -> std::io::Result<(Vec<u8>, Stat)> {
    let mut data = Vec::new();
    for _ in 0..ATTEMPTS {
        let before = stat::look_at(file.as_fd())?;
        if before.kind != NameKind::File {
            return Err(std::io::ErrorKind::NotFound.into());
        }

        // As git does, which knows no more of it: a log that grows while it is read has no end.
        data = read_sized(file, before.size, before.size)?;
        data.truncate(usize::try_from(before.size).unwrap_or(usize::MAX));
        if stat::look_at(file.as_fd())?.stat == before.stat {
            return Ok((data, before.stat));
        }
    }

    Ok((data, Stat::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_is_read_no_further_than_the_system_says() {
        // It has bytes, and a size of none.
        let (data, _) = read_still(&File::open("/proc/self/maps").unwrap()).unwrap();
        assert_eq!(data, b"");
        let (data, stat) = read_still(&File::open("Cargo.toml").unwrap()).unwrap();
        assert_eq!(data.len(), stat.size as usize);
    }
}
