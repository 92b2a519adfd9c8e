//! Checks free disk space, and the size of caches.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{HealthCheck, Patient, shown};
use crate::git::worktree;
use crate::host::env;
use crate::host::space::{DiskSpace, space};
use crate::text::sized;
use crate::workflow::confine;

/// With less free space, recording a turn can fail.
const LEAST: u64 = 64 << 20;
/// With less free space, the next build can fill the disk.
const LITTLE: u64 = 1 << 30;
/// With fewer free inodes, the next build can run out of them.
const FEW_FILES: u64 = 10_000;
/// Worktrees and caches above this are worth a hint.
const MUCH: u64 = 5 << 30;
const PATIENCE: Duration = Duration::from_millis(500);

pub(super) fn look(patient: &Patient) -> Vec<HealthCheck> {
    let mut seen = Vec::new();
    let mut checks = Vec::new();
    for (what, path) in places(patient) {
        // Directories on the same file system are reported once.
        let Some(space) = space(&path).filter(|space| !seen.contains(&space.device)) else {
            continue;
        };
        seen.push(space.device);
        checks.push(judge(&space, &format!("{what} (`{}`)", shown(&path))));
    }

    checks.push(caches(patient));
    checks
}

fn places(patient: &Patient) -> Vec<(&'static str, PathBuf)> {
    let project = patient.project.as_ref().ok();
    let repository = project.map(|project| ("the repository", project.repository.common_dir()));
    let worktrees = match project {
        Some(project) if !project.repository.is_bare() => project.worktrees(),
        _ => patient.places.cache.join("worktrees"),
    };
    let others = [
        ("the worktrees of sessions", worktrees),
        ("temporary files", temporary()),
    ];
    repository.into_iter().chain(others).collect()
}

fn temporary() -> PathBuf {
    env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
}

fn judge(space: &DiskSpace, place: &str) -> HealthCheck {
    let reason = format!("{} free for {place}", sized(space.free));
    let shows = "teddy gc  # frees space; `teddy du` shows what uses it";
    match space.files {
        _ if space.read_only => {
            let reason = format!("nothing can be written for {place}: it is mounted read-only");
            HealthCheck::problem("room", reason)
        }
        _ if space.free < LEAST => {
            let reason = format!("only {reason}: a turn may not be recorded");
            HealthCheck::problem("room", reason).remedy(shows)
        }
        _ if space.free < LITTLE => {
            HealthCheck::warning("room", format!("only {reason}")).remedy(shows)
        }
        Some(files) if files < FEW_FILES => {
            let reason = format!("there is space for {files} more files only for {place}");
            HealthCheck::warning("room", reason).remedy("df -i")
        }
        _ => HealthCheck::ok("room", reason),
    }
}

fn caches(patient: &Patient) -> HealthCheck {
    let mut folders = Vec::new();
    match &patient.project {
        Ok(project) => {
            let listed = worktree::session_worktrees(&project.repository).into_iter();
            folders.extend(listed.map(|listed| listed.path));
            folders.push(confine::tool_caches(project));
            folders.push(project.repository.teddy_dir());
        }
        Err(_) => folders.push(patient.places.cache.clone()),
    }

    let counted = size(folders, Instant::now() + PATIENCE);
    let least = if counted.is_whole { "" } else { "at least " };
    let reason = format!(
        "worktrees, caches and undo data take {least}{}",
        sized(counted.bytes)
    );
    if counted.bytes > MUCH {
        return HealthCheck::note("caches", reason)
            .remedy("teddy gc  # `teddy du` shows what uses it");
    }
    HealthCheck::ok("caches", reason)
}

struct CountedSize {
    bytes: u64,
    is_whole: bool,
}

/// Sums file sizes until the deadline. Does not follow symlinks.
fn size(mut folders: Vec<PathBuf>, deadline: Instant) -> CountedSize {
    let mut bytes: u64 = 0;
    while let Some(folder) = folders.pop() {
        if Instant::now() > deadline {
            return CountedSize {
                bytes,
                is_whole: false,
            };
        }
        bytes = bytes.saturating_add(size_of(&folder, &mut folders));
    }

    CountedSize {
        bytes,
        is_whole: true,
    }
}

fn size_of(folder: &Path, below: &mut Vec<PathBuf>) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut bytes: u64 = 0;
    for entry in entries {
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if metadata.is_dir() {
            below.push(entry.path());
        } else {
            bytes = bytes.saturating_add(metadata.len());
        }
    }

    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(free: u64, files: Option<u64>, expected: &str) {
        let space = DiskSpace {
            free,
            files,
            read_only: false,
            device: 1,
        };
        let found = judge(&space, "x");
        assert_eq!(format!("{:?}: {}", found.state, found.reason), expected);
    }

    #[test]
    fn little_room_is_told_in_numbers() {
        check(17 << 30, None, "Ok: 17.0 GiB free for x");
        check(900 << 20, None, "Warning: only 900.0 MiB free for x");
        check(
            1 << 20,
            Some(1),
            "Problem: only 1.0 MiB free for x: a turn may not be recorded",
        );
        check(
            17 << 30,
            Some(12),
            "Warning: there is space for 12 more files only for x",
        );
    }

    #[test]
    fn counting_ends_in_time_and_follows_no_link() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("a")).unwrap();
        std::fs::write(folder.path().join("a/x"), "12345").unwrap();
        std::os::unix::fs::symlink(folder.path(), folder.path().join("a/up")).unwrap();
        let later = Instant::now() + Duration::from_secs(60);
        let counted = size(vec![folder.path().to_owned()], later);
        assert!(
            counted.is_whole && counted.bytes < 1000,
            "{}",
            counted.bytes
        );
        assert!(!size(vec![folder.path().to_owned()], Instant::now()).is_whole);
    }
}
