//! Git's ignore rules, as one thread asks for them.

use gix::AttributeStack;
use gix::bstr::ByteSlice as _;
use gix::index::entry::Mode;
use gix::worktree::stack::state::ignore::Source;

use rustix::fd::OwnedFd;

use super::context::ScanContext;
use super::limits::shown;
use crate::git::During;
use crate::git::stat::{NameKind, look};

/// git itself refuses files of attributes of more than 100 MiB. Files of rules are far smaller, and
/// reading one takes many times its size.
const MAX_RULES: u64 = 8 << 20;

/// Ignore rules: `.gitignore` files, `info/exclude`, the user's own file. Read when first asked.
pub(super) struct IgnoreRules<'r> {
    /// The repository, this thread's own.
    repo: &'r gix::Repository,
    /// The rules on the way to the path that was asked for last.
    stack: Option<AttributeStack<'r>>,
}

impl<'r> IgnoreRules<'r> {
    /// Starts without having read any.
    pub(super) fn new(repo: &'r gix::Repository) -> IgnoreRules<'r> {
        IgnoreRules { repo, stack: None }
    }

    /// Returns whether git ignores a path, or a folder above it, if it is not tracked.
    pub(super) fn is_ignored(
        &mut self,
        scan: &ScanContext<'_>,
        path: &[u8],
        folder: bool,
    ) -> anyhow::Result<bool> {
        let stack = match &mut self.stack {
            Some(stack) => stack,
            empty => {
                let source = Source::WorktreeThenIdMappingIfNotSkipped;
                empty.insert(
                    self.repo
                        .excludes(&scan.index()?.state, None, source)
                        .during("reading the ignore rules")?,
                )
            }
        };
        let mode = if folder { Mode::DIR } else { Mode::FILE };
        let platform = stack
            .at_entry(path.as_bstr(), Some(mode))
            .during("reading the ignore rules")?;

        Ok(platform.is_excluded())
    }
}

/// Refuses what has the name of a file of rules, in an open folder, and must not be opened by it:
/// reading a pipe would wait for ever, and a large file fills the memory.
pub(super) fn check(folder: &OwnedFd, path: &[u8], kind: NameKind) -> anyhow::Result<()> {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    let why = match kind {
        NameKind::Special => "is a pipe or a device".to_owned(),
        NameKind::File if look(folder, name).is_ok_and(|seen| seen.size > MAX_RULES) => {
            format!("is larger than {} MiB", MAX_RULES >> 20)
        }
        _ => return Ok(()),
    };
    anyhow::bail!(
        "`{}` {why}, and git's rules cannot be read; remove it",
        shown(path)
    )
}
