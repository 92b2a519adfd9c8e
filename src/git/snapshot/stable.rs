//! Reads files that other processes can write to at the same time.

use std::fs::File;
use std::os::fd::AsFd as _;

use gix::index::entry::Stat;

use crate::git::stat::{self, NameKind};
use crate::host::file::read_sized;

pub(super) const READ_ATTEMPTS: usize = 3;

/// Reads a file until its stat is the same before and after. The stat is null after `ATTEMPTS`
/// changes, so the next snapshot reads the file again.
pub(super) fn read_stable(file: &File) -> std::io::Result<(Vec<u8>, Stat)> {
    let mut data = Vec::new();
    for _ in 0..READ_ATTEMPTS {
        let before = stat::stat_fd(file.as_fd())?;
        // Something else has taken the file's name since it was listed.
        if before.kind != NameKind::File {
            return Err(std::io::ErrorKind::NotFound.into());
        }

        // Read at most the size in the stat, like git: a log that grows while it is read has no
        // end.
        data = read_sized(file, before.size, before.size)?;
        data.truncate(usize::try_from(before.size).unwrap_or(usize::MAX));
        if stat::stat_fd(file.as_fd())?.stat == before.stat {
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
        // It has content, but its size is 0.
        let (data, _) = read_stable(&File::open("/proc/self/maps").unwrap()).unwrap();
        assert_eq!(data, b"");
        let (data, stat) = read_stable(&File::open("Cargo.toml").unwrap()).unwrap();
        assert_eq!(data.len(), stat.size as usize);
    }
}
