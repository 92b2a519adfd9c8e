//! What git ignores in the user's files, linked into a scratch worktree: a hook needs the
//! `node_modules` or the virtual environment that is there.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::git::repository::Repository;
use crate::git::user_git::{answer, in_checkout, silent_git};
use crate::host::file::read_regular;

/// So many files and folders are linked; more are no dependencies of a project.
const MAX_LINKS: usize = 1000;
/// More than this is no file of rules.
const MAX_RULES: u64 = 1 << 20;

/// Links what is ignored, wherever the worktree has the folder for it and nothing else there; and
/// writes rules by which git ignores the links, beside the user's own.
///
/// # Errors
/// If git cannot list what is ignored, or the rules cannot be written.
pub(super) fn link_ignored(
    repository: &Repository,
    worktree: &Path,
    rules: &Path,
) -> anyhow::Result<()> {
    let own = repository.global_file("core.excludesFile", "ignore");
    let mut text = read_regular(&own, MAX_RULES).unwrap_or_default();
    for path in ignored(repository)?.iter().take(MAX_LINKS) {
        let name = OsStr::from_bytes(path);
        let target = repository.workdir().join(name);
        // The worktrees of sessions can be in the project.
        if worktree.starts_with(&target) {
            continue;
        }

        match std::os::unix::fs::symlink(&target, worktree.join(name)) {
            Ok(()) => text.extend(rule(path)),
            // From the commit before, or committed, or below a folder that is in no commit.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => text.extend(rule(path)),
            Err(_) => {}
        }
    }

    Ok(std::fs::write(rules, text)?)
}

/// Returns the files and the whole folders that git ignores.
fn ignored(repository: &Repository) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut git = in_checkout(silent_git(repository.workdir())?, repository);
    git.args(["ls-files", "--others", "--ignored", "--exclude-standard"])
        .args(["--directory", "-z"]);
    let list = answer(&mut git, "list what it ignores")?;
    let paths = list.split(|byte| *byte == 0);
    let paths = paths.map(|path| path.strip_suffix(b"/").unwrap_or(path));

    Ok(paths
        .filter(|path| !path.is_empty())
        .map(<[u8]>::to_vec)
        .collect())
}

/// Returns the rule by which git ignores just this path.
fn rule(path: &[u8]) -> Vec<u8> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_for_one_path() {
        assert_eq!(rule(b"a b/[c]*"), b"\n/a\\ b/\\[c]\\*\n");
    }
}
