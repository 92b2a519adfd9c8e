//! The folder that was walked to a moment ago, for the next path in it.
//!
//! A walk tells of its own moment only: between it and the call that it is for, a process can be
//! stopped for longer than [`MOMENT`]. So a folder that was reached within the moment is as good as
//! one that was just reached, and many files in one folder cost one walk each millisecond instead
//! of one each. It is still the folder itself that is open, and never a link to it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gix::bstr::ByteSlice as _;

use super::look::FolderRights;
use super::{IfMissing, Place, Top, WalkResult, is_ordinary};

/// How long a walk is taken for true.
const MOMENT: Duration = Duration::from_millis(1);

/// The folder that was walked to last.
#[derive(Debug, Default)]
pub(in crate::git) struct Recent {
    /// The folder, if there is one.
    last: Option<RecentFolder>,
}

/// A folder that was walked to.
#[derive(Debug)]
struct RecentFolder {
    /// Its path; empty for the top.
    path: Vec<u8>,
    /// The folder.
    folder: Arc<OwnedFd>,
    /// When the walk began.
    began: Instant,
    /// What may be changed in it, once that was asked.
    room: Option<FolderRights>,
}

impl Recent {
    /// Walks to the folder of a path below a top, as [`Top::walk`] does, unless it was just there.
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

    /// Returns whether what is at a place may be changed, as [`Place::is_free`] does; its folder is
    /// asked about once while it is the last.
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

    /// Forgets the folder: it was removed, or could have been.
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
