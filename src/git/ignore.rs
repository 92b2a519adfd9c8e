//! Ignore rules in git's syntax: git's own, and those of a text such as `.teddyignore`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use gix::bstr::BStr;
use gix::glob::pattern::Case;
use gix::ignore::Search;
use gix::ignore::search::Ignore;
use gix::index::State;
use gix::index::entry::{Flags, Mode};
use gix::worktree::stack::state::ignore::Source;

use super::During;
use super::irregular::{self, Irregular};
use super::paths::parent_dirs;
use super::repository::Repository;
use super::snapshot::loaded::stat_of;
use super::snapshot::tracked::Index;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IgnoreStatus {
    pub tracked: bool,
    /// The index tells git not to check it.
    pub frozen: bool,
    /// git's rules ignore it or a directory above it.
    pub ignored: bool,
}

pub fn ignore_status(
    repository: &Repository,
    paths: &[&[u8]],
) -> anyhow::Result<Vec<IgnoreStatus>> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }

    check_rules(repository, paths)?;
    let index = user_index(repository)?;
    let index = &index.state;
    let mut rules = IgnoreStack::of(&repository.gix, index)?;
    let mut statuses = Vec::new();

    for path in paths {
        let ignored = rules.ignores(path, Mode::FILE)?;
        let entry = index.entry_by_path(BStr::new(path));
        let marks = Flags::SKIP_WORKTREE | Flags::ASSUME_VALID;
        statuses.push(IgnoreStatus {
            tracked: entry.is_some(),
            frozen: entry.is_some_and(|entry| entry.flags.intersects(marks)),
            ignored,
        });
    }

    Ok(statuses)
}

/// Returns the user's index, from the cache of this process if it is current.
pub(in crate::git) fn user_index(repository: &Repository) -> anyhow::Result<Arc<Index>> {
    let now = stat_of(&repository.gix.index_path()).unwrap_or_default();
    match repository.loaded.user_index(&now) {
        Some(index) => Ok(index),
        None => Index::load(&repository.gix).map(Arc::new),
    }
}

/// git's ignore rules: `.gitignore`, `info/exclude` and `core.excludesFile`.
pub(in crate::git) struct IgnoreStack<'r>(gix::AttributeStack<'r>);

const READING_RULES: &str = "reading git's ignore rules";

impl<'r> IgnoreStack<'r> {
    pub(in crate::git) fn of(
        gix: &'r gix::Repository,
        index: &State,
    ) -> anyhow::Result<IgnoreStack<'r>> {
        let source = Source::WorktreeThenIdMappingIfNotSkipped;
        let excludes = gix.excludes(index, None, source);
        excludes.during(READING_RULES).map(IgnoreStack)
    }

    /// Returns whether git ignores a path or a directory above it.
    pub(in crate::git) fn ignores(&mut self, path: &[u8], mode: Mode) -> anyhow::Result<bool> {
        let entry = self.0.at_entry(BStr::new(path), Some(mode));
        Ok(entry.during(READING_RULES)?.is_excluded())
    }
}

/// An [`IgnoreStack`] that is loaded on first use.
pub(in crate::git) struct LazyRules<'r> {
    repository: &'r Repository,
    rules: Option<IgnoreStack<'r>>,
}

impl<'r> LazyRules<'r> {
    pub(in crate::git) fn new(repository: &'r Repository) -> LazyRules<'r> {
        LazyRules {
            repository,
            rules: None,
        }
    }

    /// Returns whether git ignores a path or a directory above it.
    pub(in crate::git) fn ignores(&mut self, path: &[u8], mode: Mode) -> anyhow::Result<bool> {
        let rules = match &mut self.rules {
            Some(rules) => rules,
            none => {
                let index = user_index(self.repository)?;
                none.insert(IgnoreStack::of(&self.repository.gix, &index.state)?)
            }
        };
        // The rules below a link are those of its target, which can be anywhere or nowhere.
        let top = self.repository.workdir();
        let is_link = |dir: &&[u8]| top.join(OsStr::from_bytes(dir)).is_symlink();
        match parent_dirs(path).filter(is_link).last() {
            Some(link) => rules.ignores(link, Mode::DIR),
            None => rules.ignores(path, mode),
        }
    }
}

/// Returns a rule for one path, on a line of its own. A rule for a directory does not match a link to
/// one.
pub(in crate::git) fn rule_for(path: &[u8]) -> Vec<u8> {
    let mut rule = b"\n/".to_vec();
    for byte in path {
        if b"\\*?[ ".contains(byte) {
            rule.push(b'\\');
        }
        rule.push(*byte);
    }

    rule.push(b'\n');
    rule
}

/// Rejects rule files above these paths that must not be opened, for example pipes.
fn check_rules(repository: &Repository, paths: &[&[u8]]) -> Result<(), Irregular> {
    let paths = paths.iter().map(|path| Path::new(OsStr::from_bytes(path)));
    let dirs: BTreeSet<&Path> = paths.flat_map(|path| path.ancestors().skip(1)).collect();
    dirs.into_iter()
        .map(|dir| repository.workdir().join(dir).join(".gitignore"))
        // git does not follow a symlink here, and ignores a directory.
        .filter(|path| !path.is_symlink() && !path.is_dir())
        .try_for_each(|path| irregular::rules(&path))
}

pub struct TextRules {
    search: Search,
    included: Vec<String>,
}

impl TextRules {
    pub fn parse(text: &[u8]) -> TextRules {
        let mut search = Search::default();
        // Reading from memory cannot fail; an empty search ignores nothing.
        let _ = search.add_patterns_buffer(
            text,
            "rules",
            Some(Path::new("")),
            Ignore {
                support_precious: false,
            },
        );
        let text = String::from_utf8_lossy(text);
        let literal = |line: &str| {
            let name = line.trim().strip_prefix('!')?.trim_start_matches('/');
            (!name.is_empty() && !name.contains(['*', '?', '[', '\\']) && !name.ends_with('/'))
                .then(|| name.to_owned())
        };

        TextRules {
            included: text.lines().filter_map(literal).collect(),
            search,
        }
    }

    /// Returns whether a file or a directory above it is ignored.
    pub fn excludes(&self, path: &[u8]) -> bool {
        self.keep([path].into_iter()).next().is_none()
    }

    /// Returns the paths that are neither ignored nor in an ignored directory. For adjacent paths
    /// of one directory, that directory is matched once.
    pub fn keep<'p>(
        &self,
        paths: impl Iterator<Item = &'p [u8]>,
    ) -> impl Iterator<Item = &'p [u8]> {
        let mut dir: Option<(&[u8], bool)> = None;
        paths.filter(move |path| {
            let ignored = match (parent_dirs(path).next(), dir) {
                (None, _) => false,
                (Some(above), Some((last, ignored))) if last == above => ignored,
                (Some(above), _) => {
                    let ignored = self.excludes_dir(above);
                    dir = Some((above, ignored));
                    ignored
                }
            };
            !self.match_rule(path, false).unwrap_or(ignored)
        })
    }

    fn excludes_dir(&self, path: &[u8]) -> bool {
        let ends = path.iter().enumerate().filter(|&(_, &b)| b == b'/');
        ends.map(|(at, _)| at)
            .chain([path.len()])
            .fold(false, |ignored, at| {
                self.match_rule(&path[..at], true).unwrap_or(ignored)
            })
    }

    /// Returns the names in negated rules without wildcards. They are included even if git ignores
    /// them.
    pub fn included_names(&self) -> impl Iterator<Item = &str> {
        self.included.iter().map(String::as_str)
    }

    /// Returns whether the last matching rule ignores the path; `None` without a match.
    fn match_rule(&self, path: &[u8], is_dir: bool) -> Option<bool> {
        if self
            .search
            .patterns
            .iter()
            .all(|list| list.patterns.is_empty())
        {
            return None;
        }

        let matched = self.search.pattern_matching_relative_path(
            BStr::new(path),
            Some(is_dir),
            Case::Sensitive,
        )?;
        Some(!matched.pattern.is_negative())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_for_one_path() {
        assert_eq!(rule_for(b"a b/[c]*"), b"\n/a\\ b/\\[c]\\*\n");
    }

    #[test]
    fn the_last_rule_that_fits_decides() {
        let rules = TextRules::parse(b"dist/\n*.log\n!keep.log\n!dist/bundle.js\n");
        let check = |path: &str, expected: bool| {
            assert_eq!(rules.excludes(path.as_bytes()), expected, "{path}");
        };
        check("dist/x.js", true);
        check("dist/bundle.js", false);
        check("a/b.log", true);
        check("a/keep.log", false);
        check("src/main.rs", false);

        let paths = [
            "a/b.log",
            "a/c",
            "dist/a",
            "dist/bundle.js",
            "dist/sub/c",
            "e",
        ];
        let remaining: Vec<_> = rules
            .keep(paths.iter().map(|path| path.as_bytes()))
            .collect();
        assert_eq!(remaining, ["a/c", "dist/bundle.js", "e"].map(str::as_bytes));
        assert_eq!(
            rules.included_names().collect::<Vec<_>>(),
            ["keep.log", "dist/bundle.js"]
        );
    }
}
