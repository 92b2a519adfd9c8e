//! Caches the last resolved directory for the next path in it.
//!
//! The result of a walk is only true at its own instant: the process can be paused for longer than
//! [`MOMENT`] before it uses the result. So a directory that was resolved within the moment is as
//! good as one resolved just now, and many files in one directory cost one walk per millisecond.
//! The open directory itself is never a symlink.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gix::bstr::ByteSlice as _;

use super::look::FolderRights;
use super::{IfMissing, Place, Top, WalkResult, is_ordinary};

const MOMENT: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
pub(in crate::git) struct Recent {
    last: Option<RecentFolder>,
}

#[derive(Debug)]
struct RecentFolder {
    /// Empty for the top.
    path: Vec<u8>,
    folder: Arc<OwnedFd>,
    began: Instant,
    /// Rights in the directory, once requested.
    room: Option<FolderRights>,
}

impl Recent {
    /// Resolves the directory of a path like [`Top::walk`], unless it is cached.
    pub(in crate::git) fn walk(
        &mut self,
        top: &Top,
        path: &[u8],
        missing: IfMissing,
    ) -> io::Result<WalkResult> {
        let (folder, name) = path.rsplit_once_str(b"/").unwrap_or((b"", path));
        let is_here = |reached: &&RecentFolder| {
            reached.path == folder && is_ordinary(name) && reached.began.elapsed() < MOMENT
        };
        if let Some(reached) = self.last.as_ref().filter(is_here) {
            return Ok(WalkResult::Place(Place {
                folder: Arc::clone(&reached.folder),
                name: name.to_vec(),
            }));
        }

        // Before the walk, so the directory is never older than it seems.
        let began = Instant::now();
        let walked = top.walk(path, missing)?;
        self.last = match &walked {
            WalkResult::Place(place) => Some(RecentFolder {
                path: folder.to_vec(),
                folder: Arc::clone(&place.folder),
                began,
                room: None,
            }),
            _ => None,
        };

        Ok(walked)
    }

    /// Like [`Place::is_free`], but reads the rights of the cached directory only once.
    pub(in crate::git) fn is_free(&mut self, place: &Place) -> io::Result<bool> {
        let here = self.last.as_mut();
        let Some(reached) = here.filter(|last| Arc::ptr_eq(&last.folder, &place.folder)) else {
            return place.is_free();
        };
        let room = match reached.room {
            Some(room) => room,
            None => *reached.room.insert(place.room()?),
        };

        place.is_free_in(room)
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
        let mut recent = Recent::default();
        let folder = |recent: &mut Recent, path: &str| match recent
            .walk(&top, path.as_bytes(), IfMissing::Stop)
            .unwrap()
        {
            WalkResult::Place(place) => Ok(place.folder),
            other => Err(format!("{other:?}")),
        };
        let first = folder(&mut recent, "a/b/1").unwrap();
        recent.last.as_mut().unwrap().began = Instant::now() + Duration::from_secs(60);
        let second = folder(&mut recent, "a/b/2").unwrap();
        assert!(Arc::ptr_eq(&first, &second));

        recent.last.as_mut().unwrap().began = Instant::now() - MOMENT;
        let third = folder(&mut recent, "a/b/3").unwrap();
        assert!(!Arc::ptr_eq(&first, &third));
        assert_eq!(folder(&mut recent, "a/b/.git").unwrap_err(), "Refused");
        recent.forget();
        std::fs::rename(outer.path().join("a"), outer.path().join("c")).unwrap();
        assert_eq!(folder(&mut recent, "a/b/4").unwrap_err(), "Missing");
    }
}
