//! Caches the last resolved directory for the next path in it.
//!
//! The result of a walk is only true at its own instant: the process can be paused for longer than
//! [`MAX_RECENT_AGE`] before it uses the result. So a directory that was resolved within that time is as
//! good as one resolved just now, and many files in one directory cost one walk per millisecond.
//! The open directory itself is never a symlink.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gix::bstr::ByteSlice as _;

use super::state::DirRights;
use super::{IfMissing, PathHandle, Top, WalkResult, is_ordinary};

const MAX_RECENT_AGE: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
pub(in crate::git) struct RecentLookup {
    last: Option<RecentDir>,
}

#[derive(Debug)]
struct RecentDir {
    /// Empty for the top.
    path: Vec<u8>,
    dir: Arc<OwnedFd>,
    began: Instant,
    /// Rights in the directory, once requested.
    rights: Option<DirRights>,
}

impl RecentLookup {
    /// Resolves the directory of a path like [`Top::walk`], unless it is cached.
    pub(in crate::git) fn walk(
        &mut self,
        top: &Top,
        path: &[u8],
        missing: IfMissing,
    ) -> io::Result<WalkResult> {
        let (dir, name) = path.rsplit_once_str(b"/").unwrap_or((b"", path));
        let is_here = |recent: &&RecentDir| {
            recent.path == dir && is_ordinary(name) && recent.began.elapsed() < MAX_RECENT_AGE
        };
        if let Some(recent) = self.last.as_ref().filter(is_here) {
            return Ok(WalkResult::Handle(PathHandle {
                dir: Arc::clone(&recent.dir),
                name: name.to_vec(),
            }));
        }

        // Before the walk, so the directory is never older than it seems.
        let began = Instant::now();
        let walked = top.walk(path, missing)?;
        self.last = match &walked {
            WalkResult::Handle(handle) => Some(RecentDir {
                path: dir.to_vec(),
                dir: Arc::clone(&handle.dir),
                began,
                rights: None,
            }),
            _ => None,
        };

        Ok(walked)
    }

    /// Like [`PathHandle::is_free`], but reads the rights of the cached directory only once.
    pub(in crate::git) fn is_free(&mut self, handle: &PathHandle) -> io::Result<bool> {
        let current = self.last.as_mut();
        let Some(recent) = current.filter(|last| Arc::ptr_eq(&last.dir, &handle.dir)) else {
            return handle.is_free();
        };
        let rights = match recent.rights {
            Some(rights) => rights,
            None => *recent.rights.insert(handle.rights()?),
        };

        handle.is_free_in(rights)
    }

    /// Clears the cache, because the directory was possibly removed.
    pub(in crate::git) fn forget(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_walked_to_again_after_a_moment() {
        let outer = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(outer.path().join("a/b")).unwrap();
        let top = Top::open(outer.path()).unwrap();
        let mut recent = RecentLookup::default();
        let dir = |recent: &mut RecentLookup, path: &str| match recent
            .walk(&top, path.as_bytes(), IfMissing::Stop)
            .unwrap()
        {
            WalkResult::Handle(handle) => Ok(handle.dir),
            other => Err(format!("{other:?}")),
        };
        let first = dir(&mut recent, "a/b/1").unwrap();
        recent.last.as_mut().unwrap().began = Instant::now() + Duration::from_secs(60);
        let second = dir(&mut recent, "a/b/2").unwrap();
        assert!(Arc::ptr_eq(&first, &second));

        recent.last.as_mut().unwrap().began = Instant::now() - MAX_RECENT_AGE;
        let third = dir(&mut recent, "a/b/3").unwrap();
        assert!(!Arc::ptr_eq(&first, &third));
        assert_eq!(dir(&mut recent, "a/b/.git").unwrap_err(), "Refused");
        recent.forget();
        std::fs::rename(outer.path().join("a"), outer.path().join("c")).unwrap();
        assert_eq!(dir(&mut recent, "a/b/4").unwrap_err(), "Missing");
    }
}
