//! Detects nested repositories. A snapshot records their HEAD and not their files.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gix::ObjectId;

use super::context::ScanContext;
use crate::git::open::plain;
use crate::git::refs::choose;

pub(super) enum Embedded {
    At(ObjectId),
    /// A repository without a commit, or an unreadable one.
    Unborn,
    /// A repository with another hash function, whose ids no tree of this repository can contain.
    OtherHash,
    /// Not a repository: `.git` is something else.
    None,
}

pub(super) fn detect_embedded(scan: &ScanContext<'_>, path: &[u8]) -> Embedded {
    let top = scan
        .workdir
        .join(Path::new(std::ffi::OsStr::from_bytes(path)));
    let git = top.join(".git");
    if git.symlink_metadata().is_err() {
        return Embedded::None;
    }

    match gix::open_opts(&top, plain()) {
        Ok(repo) if repo.object_hash() != scan.basis.root.kind() => Embedded::OtherHash,
        Ok(repo) => embedded_head(&repo).map_or(Embedded::Unborn, Embedded::At),
        // A repository in an unknown format is still a repository.
        Err(_) if git.join("HEAD").exists() && git.join("objects").is_dir() => Embedded::Unborn,
        Err(_) => Embedded::None,
    }
}

fn embedded_head(repo: &gix::Repository) -> Option<ObjectId> {
    let refs = choose::of(repo, repo.common_dir()).ok()?;
    Some(refs.head().ok()?.commit?.into())
}

pub(super) fn embedded_commit(scan: &ScanContext<'_>, path: &[u8]) -> Option<ObjectId> {
    match detect_embedded(scan, path) {
        Embedded::At(id) => Some(id),
        Embedded::Unborn | Embedded::OtherHash | Embedded::None => None,
    }
}
