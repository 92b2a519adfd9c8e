//! Removes what earlier turns left in a worktree, except ignored files and nested repositories.

use std::collections::BTreeSet;

use gix::bstr::ByteSlice;
use gix::index::State;
use gix::index::entry::Mode as IndexMode;
use gix::worktree::stack::state::ignore;

use super::path::{is_special_file, parent_dir};
use super::scan::Other;
use super::switch::Switch;
use crate::git::During;
use crate::git::path_handle::{IfMissing, PathHandle, WalkResult};

/// Directories below this depth are removed without checking for ignored files: no build is that
/// deep, and the check takes quadratic time.
const MAX_PRUNE_DEPTH: usize = 128;

impl Switch<'_> {
    /// Removes everything that is neither in the index nor ignored. Nested repositories stay.
    pub(super) fn remove_leftovers(&self, new: &State) -> anyhow::Result<()> {
        if self.scan.others.is_empty() {
            return Ok(());
        }

        let source = ignore::Source::WorktreeThenIdMappingIfNotSkipped;
        let mut rules = self
            .repository
            .gix
            .excludes(new, None, source)
            .during("reading ignore rules")?;
        let mut dirs = BTreeSet::new();
        let mut others = self.without_pipes(self.scan.others.clone())?;

        while let Some(Other { path, dir }) = others.pop() {
            let path_of = path.as_bstr();
            let is_known = new.entry_by_path(path_of).is_some();
            if !dir && is_known {
                continue;
            }

            let mode = if dir { IndexMode::DIR } else { IndexMode::FILE };

            if !is_known
                && rules
                    .at_entry(path_of, Some(mode))
                    .during("reading ignore rules")?
                    .is_excluded()
            {
                continue;
            }

            if !dir {
                self.remove_file(&path)?;
                dirs.extend(parent_dir(&path).map(<[u8]>::to_vec));
                continue;
            }

            if path.iter().filter(|&&byte| byte == b'/').count() >= MAX_PRUNE_DEPTH && !is_known {
                self.remove_whole(&path)?;
                dirs.extend(parent_dir(&path).map(<[u8]>::to_vec));
                continue;
            }

            others.extend(self.without_pipes(self.inside(&path)?)?);
            dirs.insert(path);
        }

        self.remove_empty_dirs(dirs)
    }

    /// Removes pipes, sockets and devices, even ignored ones: reading a pipe named like a rule file
    /// would block.
    fn without_pipes(&self, mut others: Vec<Other>) -> anyhow::Result<Vec<Other>> {
        let mut removed = Ok(());
        others.retain(|other| {
            let special = |handle: &PathHandle| {
                Ok::<_, std::io::Error>(handle.file_type()?.is_some_and(is_special_file))
            };
            match self.top.walk(&other.path, IfMissing::Stop) {
                Ok(WalkResult::Handle(handle))
                    if !other.dir && special(&handle).unwrap_or(false) =>
                {
                    removed = std::mem::replace(&mut removed, Ok(())).and(handle.remove());
                    false
                }
                _ => true,
            }
        });

        removed?;
        Ok(others)
    }

    fn remove_whole(&self, path: &[u8]) -> anyhow::Result<()> {
        match self.top.walk(path, IfMissing::Stop)? {
            WalkResult::Handle(handle) => Ok(handle.remove_all()?),
            _ => Ok(()),
        }
    }

    /// Lists a directory; empty if it is a nested repository.
    fn inside(&self, path: &[u8]) -> anyhow::Result<Vec<Other>> {
        let WalkResult::Handle(inside) = self.top.walk(&[path, b"/x"].concat(), IfMissing::Stop)?
        else {
            return Ok(Vec::new());
        };
        let mut others = Vec::new();

        for name in inside.siblings()? {
            let dir = inside
                .sibling(&name)
                .file_type()?
                .is_some_and(rustix::fs::FileType::is_dir);
            others.push(Other {
                path: [path, b"/", &name].concat(),
                dir,
            });
        }

        Ok(others)
    }
}
