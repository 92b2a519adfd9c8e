//! Repositories inside the worktree: opaque, recorded by the commit that they are at.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gix::ObjectId;

use super::context::ScanContext;
use crate::git::open::plain;
use crate::git::refs::choose;

/// What a folder with a `.git` is.
pub(super) enum Embedded {
    /// A repository at this commit.
    At(ObjectId),
    /// A repository without a commit, or one that we cannot read.
    Unborn,
    /// One with another hash function, whose ids no tree of this repository can have.
    OtherHash,
    /// No repository: `.git` is something else.
    None,
}

/// Returns what a folder with a `.git` is.
pub(super) fn look(scan: &ScanContext<'_>, path: &[u8]) -> Embedded {
    let top = scan
        .workdir
        .join(Path::new(std::ffi::OsStr::from_bytes(path)));
    let git = top.join(".git");
    if git.symlink_metadata().is_err() {
        return Embedded::None;
    }

    match gix::open_opts(&top, plain()) {
        Ok(repo) if repo.object_hash() != scan.basis.root.kind() => Embedded::OtherHash,
        Ok(repo) => head(&repo).map_or(Embedded::Unborn, Embedded::At),
        // A repository in a format that we do not know is still not ours to enter.
        Err(_) if git.join("HEAD").exists() && git.join("objects").is_dir() => Embedded::Unborn,
        Err(_) => Embedded::None,
    }
}

/// Returns the commit at HEAD of a repository, if there is one that can be read.
fn head(repo: &gix::Repository) -> Option<ObjectId> {
    let refs = choose::of(repo, repo.common_dir()).ok()?;
    Some(refs.head().ok()?.commit?.into())
}

/// Returns the commit that an embedded repository is at.
pub(super) fn commit(scan: &ScanContext<'_>, path: &[u8]) -> Option<ObjectId> {
    match look(scan, path) {
        Embedded::At(id) => Some(id),
        Embedded::Unborn | Embedded::OtherHash | Embedded::None => None,
    }
}
