//! Evaluates git's ignore rules; one instance per thread.

use gix::AttributeStack;
use gix::bstr::ByteSlice as _;
use gix::index::entry::Mode;
use gix::worktree::stack::state::ignore::Source;

use rustix::fd::OwnedFd;

use super::context::ScanContext;
use super::limits::display_path;
use crate::git::During;
use crate::git::stat::{NameKind, stat_name};

/// git refuses attribute files above 100 MiB. Real rule files are far smaller, and gix needs many
/// times their size to read them.
const MAX_RULE_FILE: u64 = 8 << 20;

/// Ignore rules from `.gitignore`, `info/exclude` and `core.excludesFile`, read on first use.
pub(super) struct IgnoreRules<'r> {
    repo: &'r gix::Repository,
    /// Rules on the path that was queried last.
    stack: Option<AttributeStack<'r>>,
}

impl<'r> IgnoreRules<'r> {
    pub(super) fn new(repo: &'r gix::Repository) -> IgnoreRules<'r> {
        IgnoreRules { repo, stack: None }
    }

    /// Returns whether git ignores an untracked path or a directory above it.
    pub(super) fn is_ignored(
        &mut self,
        scan: &ScanContext<'_>,
        path: &[u8],
        dir: bool,
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
        let mode = if dir { Mode::DIR } else { Mode::FILE };
        let platform = stack
            .at_entry(path.as_bstr(), Some(mode))
            .during("reading the ignore rules")?;

        Ok(platform.is_excluded())
    }
}

/// Refuses a rule file that gix must not open: reading a pipe would block forever, and a huge file
/// would exhaust memory.
pub(super) fn check_rule_file(dir: &OwnedFd, path: &[u8], kind: NameKind) -> anyhow::Result<()> {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    let why = match kind {
        NameKind::Special => "is a pipe or a device".to_owned(),
        NameKind::File
            if stat_name(dir, name).is_ok_and(|name_stat| name_stat.size > MAX_RULE_FILE) =>
        {
            format!("is larger than {} MiB", MAX_RULE_FILE >> 20)
        }
        _ => return Ok(()),
    };
    anyhow::bail!(
        "`{}` {why}, and git's rules cannot be read; remove it",
        display_path(path)
    )
}
