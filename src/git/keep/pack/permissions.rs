//! Permissions of packs, as git sets them: read-only, reduced by the umask, and adjusted by
//! `core.sharedRepository`.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;

use crate::git::repository::Repository;

const OWNER: u32 = 0o600;
const GROUP: u32 = 0o660;
const EVERYBODY: u32 = 0o664;
const WRITE: u32 = 0o222;
const READERS: u32 = 0o044;
const USUAL_UMASK: u32 = 0o022;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sharing {
    Umask,
    /// The permissions of the umask and these.
    AtLeast(u32),
    /// These, whatever the umask is.
    Exactly(u32),
}

/// Returns who besides the owner can read a new pack, as bits of a mode. A file without these bits is
/// private. 0 also if the repository is explicitly shared: the user has decided who reads objects.
pub(in crate::git) fn readers_of_packs(repository: &Repository) -> u32 {
    match Sharing::of(repository) {
        Sharing::Umask => READERS & !umask(),
        Sharing::AtLeast(_) | Sharing::Exactly(_) => 0,
    }
}

/// Makes a file readable for its owner only.
pub(super) fn close(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o400))
}

/// Reads the umask, which the system call would change.
fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let value = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    let value = value.and_then(|value| u32::from_str_radix(value.trim(), 8).ok());
    value.unwrap_or(USUAL_UMASK)
}

/// Adjusts the permissions of a new file of the object directory, which has those of the umask.
pub(super) fn share(repository: &Repository, file: &File) -> io::Result<()> {
    let sharing = Sharing::of(repository);
    if sharing == Sharing::Umask {
        return Ok(());
    }
    let old = file.metadata()?.permissions().mode() & 0o777;
    let new = sharing.adjust(old);
    if new == old {
        return Ok(());
    }
    file.set_permissions(Permissions::from_mode(new))
}

impl Sharing {
    fn of(repository: &Repository) -> Sharing {
        const KEY: &str = "core.sharedRepository";
        match repository.config(KEY) {
            Some(value) => Sharing::parse(&value),
            // A name without a value is true.
            None if repository.gix.config_snapshot().boolean(KEY) == Some(true) => {
                Sharing::AtLeast(GROUP)
            }
            None => Sharing::Umask,
        }
    }

    /// Parses a value. git stops at an invalid one, so for other programs it means nothing.
    fn parse(value: &str) -> Sharing {
        match value {
            "umask" => return Sharing::Umask,
            "group" => return Sharing::AtLeast(GROUP),
            "all" | "world" | "everybody" => return Sharing::AtLeast(EVERYBODY),
            _ => {}
        }

        match u32::from_str_radix(value.trim(), 8) {
            Ok(0) => Sharing::Umask,
            Ok(1) => Sharing::AtLeast(GROUP),
            Ok(2) => Sharing::AtLeast(EVERYBODY),
            Ok(mode) if mode & OWNER == OWNER => Sharing::Exactly(mode & 0o666),
            Ok(_) => Sharing::Umask,
            Err(_) => match value.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" => Sharing::AtLeast(GROUP),
                _ => Sharing::Umask,
            },
        }
    }

    /// Returns the permissions of a file that cannot be written.
    fn adjust(self, mode: u32) -> u32 {
        match self {
            Sharing::Umask => mode,
            Sharing::AtLeast(shared) => mode | (shared & !WRITE),
            Sharing::Exactly(shared) => shared & !WRITE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_mean_what_they_mean_to_git() {
        for (value, expected) in [
            ("umask", Sharing::Umask),
            ("false", Sharing::Umask),
            ("0", Sharing::Umask),
            ("", Sharing::Umask),
            ("0440", Sharing::Umask),
            ("group", Sharing::AtLeast(0o660)),
            ("TRUE", Sharing::AtLeast(0o660)),
            ("1", Sharing::AtLeast(0o660)),
            ("all", Sharing::AtLeast(0o664)),
            ("2", Sharing::AtLeast(0o664)),
            ("0640", Sharing::Exactly(0o640)),
            ("0770", Sharing::Exactly(0o660)),
        ] {
            assert_eq!(Sharing::parse(value), expected, "{value}");
        }
    }

    #[test]
    fn nothing_becomes_writable() {
        for (sharing, mode, expected) in [
            (Sharing::Umask, 0o400, 0o400),
            (Sharing::AtLeast(GROUP), 0o400, 0o440),
            (Sharing::AtLeast(EVERYBODY), 0o400, 0o444),
            (Sharing::AtLeast(GROUP), 0o444, 0o444),
            (Sharing::Exactly(0o640), 0o444, 0o440),
            (Sharing::Exactly(0o600), 0o444, 0o400),
        ] {
            assert_eq!(sharing.adjust(mode), expected, "{sharing:?} {mode:o}");
        }
    }
}
