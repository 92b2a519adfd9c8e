//! Checks free disk space, and the size of caches.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{HealthCheck, Patient, display_path};
use crate::git::worktree;
use crate::host::env;
use crate::host::space::{DiskSpace, disk_space};
use crate::text::sized;
use crate::workflow::confine;

/// With less free space, recording a turn can fail.
const MIN_FREE: u64 = 64 << 20;
/// With less free space, the next build can fill the disk.
const LOW_FREE: u64 = 1 << 30;
/// With fewer free inodes, the next build can run out of them.
const LOW_FREE_INODES: u64 = 10_000;
/// Worktrees and caches above this are worth a hint.
const LARGE_CACHES: u64 = 5 << 30;
const MAX_COUNTING: Duration = Duration::from_millis(500);

pub(super) fn check_disk_space(patient: &Patient) -> Vec<HealthCheck> {
    let mut devices = Vec::new();
    let mut checks = Vec::new();
    for (label, path) in list_dirs(patient) {
        // Directories on the same file system are reported once.
        let Some(space) = disk_space(&path).filter(|space| !devices.contains(&space.device)) else {
            continue;
        };
        devices.push(space.device);
        checks.push(check_space(
            &space,
            &format!("{label} (`{}`)", display_path(&path)),
        ));
    }

    checks.push(check_cache_size(patient));
    checks
}

fn list_dirs(patient: &Patient) -> Vec<(&'static str, PathBuf)> {
    let project = patient.project.as_ref().ok();
    let repository = project.map(|project| ("the repository", project.repository.common_dir()));
    let worktrees = match project {
        Some(project) if !project.repository.is_bare() => project.worktrees(),
        _ => patient.user_dirs.cache.join("worktrees"),
    };
    let others = [
        ("the worktrees of sessions", worktrees),
        ("temporary files", temporary_dir()),
    ];
    repository.into_iter().chain(others).collect()
}

fn temporary_dir() -> PathBuf {
    env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
}

fn check_space(space: &DiskSpace, location: &str) -> HealthCheck {
    let reason = format!("{} free for {location}", sized(space.free));
    let shows = "teddy gc  # frees space; `teddy du` shows what uses it";
    match space.files {
        _ if space.read_only => {
            let reason = format!("nothing can be written for {location}: it is mounted read-only");
            HealthCheck::problem("room", reason)
        }
        _ if space.free < MIN_FREE => {
            let reason = format!("only {reason}: a turn may not be recorded");
            HealthCheck::problem("room", reason).remedy(shows)
        }
        _ if space.free < LOW_FREE => {
            HealthCheck::warning("room", format!("only {reason}")).remedy(shows)
        }
        Some(files) if files < LOW_FREE_INODES => {
            let reason = format!("there is space for {files} more files only for {location}");
            HealthCheck::warning("room", reason).remedy("df -i")
        }
        _ => HealthCheck::ok("room", reason),
    }
}

fn check_cache_size(patient: &Patient) -> HealthCheck {
    let mut dirs = Vec::new();
    match &patient.project {
        Ok(project) => {
            let listed = worktree::session_worktrees(&project.repository).into_iter();
            dirs.extend(listed.map(|listed| listed.path));
            dirs.push(confine::tool_caches(project));
            dirs.push(project.repository.teddy_dir());
        }
        Err(_) => dirs.push(patient.user_dirs.cache.clone()),
    }

    let counted = count_size(dirs, Instant::now() + MAX_COUNTING);
    let least = if counted.is_whole { "" } else { "at least " };
    let reason = format!(
        "worktrees, caches and undo data take {least}{}",
        sized(counted.bytes)
    );
    if counted.bytes > LARGE_CACHES {
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
fn count_size(mut dirs: Vec<PathBuf>, deadline: Instant) -> CountedSize {
    let mut bytes: u64 = 0;
    while let Some(dir) = dirs.pop() {
        if Instant::now() > deadline {
            return CountedSize {
                bytes,
                is_whole: false,
            };
        }
        bytes = bytes.saturating_add(count_dir(&dir, &mut dirs));
    }

    CountedSize {
        bytes,
        is_whole: true,
    }
}

fn count_dir(dir: &Path, subdirs: &mut Vec<PathBuf>) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut bytes: u64 = 0;
    for entry in entries {
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if metadata.is_dir() {
            subdirs.push(entry.path());
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
        let actual = check_space(&space, "x");
        assert_eq!(format!("{:?}: {}", actual.state, actual.reason), expected);
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
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("a")).unwrap();
        std::fs::write(dir.path().join("a/x"), "12345").unwrap();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("a/up")).unwrap();
        let later = Instant::now() + Duration::from_secs(60);
        let counted = count_size(vec![dir.path().to_owned()], later);
        assert!(
            counted.is_whole && counted.bytes < 1000,
            "{}",
            counted.bytes
        );
        assert!(!count_size(vec![dir.path().to_owned()], Instant::now()).is_whole);
    }
}
