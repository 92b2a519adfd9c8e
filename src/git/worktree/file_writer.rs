//! Writes files of a session's worktree, in the place of whatever is there.
//!
//! A file shares blocks with the user's file of the same content, if the file system can do that.
//! The comparison is made with the new file after it was cloned, so a later write to the user's
//! file does not matter.

use std::collections::HashSet;
use std::io::{self, ErrorKind};
use std::path::Path;

use anyhow::Context as _;
use gix::bstr::ByteSlice as _;
use gix::index::entry::Stat;

use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::path_handle::{self, IfMissing, OnDisk, PathHandle, RecentLookup, Top, WalkResult};
use crate::git::paths;
use crate::git::repository::Repository;
use crate::git::stat::as_in_index;
use crate::git::version::{self, TreeVersion};

/// Smaller files are written as fast as they are compared.
const LARGE: u64 = 16 << 10;

/// Walks to a path, makes its directories, and removes a file or symlink in the place of one.
pub(super) fn walk_to_write(top: &Top, path: &[u8]) -> io::Result<WalkResult> {
    let walked = top.walk(path, IfMissing::Make)?;
    let WalkResult::Blocked(end) = walked else {
        return Ok(walked);
    };
    if let WalkResult::Handle(blocking) = top.walk(&path[..end], IfMissing::Stop)? {
        // Another thread can be faster. Then this fails, and the second walk does not.
        let _ = blocking.remove();
    }
    top.walk(path, IfMissing::Make)
}

pub(super) struct FileWriter<'a> {
    repository: &'a Repository,
    top: &'a Top,
    /// The user's files, as long as it seems that blocks can be shared with them.
    user: Option<Top>,
    version: TreeVersion<'a>,
    recent: RecentLookup,
}

impl<'a> FileWriter<'a> {
    /// Prepares to write files of a tree at these paths. `user` is the top of the user's files.
    pub(super) fn new<'p>(
        repository: &'a Repository,
        top: &'a Top,
        user: &Path,
        tree: TreeId,
        paths: impl Iterator<Item = &'p [u8]>,
    ) -> anyhow::Result<FileWriter<'a>> {
        // All files of a directory have the same attribute files.
        let mut dirs = HashSet::new();
        let paths = paths.filter(|path| dirs.insert(paths::split(path).0));
        let may_share = top.may_share_blocks();
        Ok(FileWriter {
            repository,
            top,
            user: may_share.then(|| Top::open(user).ok()).flatten(),
            version: version::tree_version(repository, tree, paths)?,
            recent: RecentLookup::default(),
        })
    }

    /// Writes a file or symlink, in the place of whatever is there, and returns its stat.
    pub(super) fn write(&mut self, path: &[u8], entry: &TreeEntry) -> anyhow::Result<Stat> {
        let during = || format!("cannot write `{}`", path.to_str_lossy());
        let handle = self.handle(path)?;
        if let Some(stat) = self.share(&handle, path, entry)? {
            return Ok(stat);
        }

        let contents = self.version.contents(path, entry, None)?;
        let created = match handle.create(&contents, false) {
            // Something that is not in the tree, or on a file system that ignores case another file
            // of the tree.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => handle
                .remove_all()
                .and_then(|()| handle.create(&contents, false)),
            created => created,
        };
        created.with_context(during)?;
        let stat = handle.stat()?.with_context(during)?;
        Ok(as_in_index(&stat))
    }

    fn handle(&mut self, path: &[u8]) -> anyhow::Result<PathHandle> {
        let mut walked = self.recent.walk(self.top, path, IfMissing::Make)?;
        if let WalkResult::Blocked(_) = walked {
            walked = walk_to_write(self.top, path)?;
        }
        let why = match walked {
            WalkResult::Handle(handle) => return Ok(handle),
            WalkResult::Boundary => "is in a repository of its own",
            WalkResult::Refused => "is not a valid file name",
            WalkResult::Denied => "is in a directory that cannot be entered",
            WalkResult::Blocked(_) | WalkResult::Missing => "is in a directory that cannot be made",
        };
        anyhow::bail!("`{}` {why}", path.to_str_lossy())
    }

    /// Clones a file from the user's, and returns its stat. `None` if it must be written.
    fn share(
        &mut self,
        handle: &PathHandle,
        path: &[u8],
        entry: &TreeEntry,
    ) -> anyhow::Result<Option<Stat>> {
        let Some(user) = self.user.as_ref().filter(|_| entry.is_file()) else {
            return Ok(None);
        };
        // An unreadable object counts as small: writing it reports the error.
        let size = self.repository.gix.find_header(entry.id);
        let size = size.map(|header| header.size()).unwrap_or_default();
        if size < LARGE {
            return Ok(None);
        }
        let source = match user.walk(path, IfMissing::Stop) {
            Ok(WalkResult::Handle(source)) => path_handle::open_file_of_size(&source, size),
            _ => None,
        };
        let Some(source) = source else {
            return Ok(None);
        };

        let keeps_bit = version::abilities(self.repository).executable;
        let is_executable = entry.mode == EntryMode::BlobExecutable && keeps_bit;
        match path_handle::clone_blocks(handle, &source, is_executable) {
            Ok(()) => {}
            Err(error) => {
                if error.kind() != ErrorKind::AlreadyExists {
                    // The file system cannot share blocks.
                    self.user = None;
                }
                return Ok(None);
            }
        }

        // The stat is taken before reading, so a later write is noticed.
        let stat = handle.stat()?.context("a new file is gone")?;
        let OnDisk::File { body, .. } = handle.read()? else {
            return Ok(None);
        };
        let is_same = version::body_id(self.repository, &body)? == Some(entry.id)
            && self.version.checked_out_id(path, entry)? == entry.id;
        if !is_same {
            handle.remove()?;
        }
        Ok(is_same.then(|| as_in_index(&stat)))
    }
}
