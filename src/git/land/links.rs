//! Links the user's ignored files into a scratch worktree, because hooks need `node_modules` or a
//! virtual environment.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::git::repository::Repository;
use crate::git::user_git::{in_checkout, run_checked, silent_git};
use crate::host::file::read_regular;

// Dependencies of a project are fewer; the rest is build output.
const MAX_LINKS: usize = 1000;
const MAX_RULE_FILE: u64 = 1 << 20;

/// Links each ignored file or directory whose parent exists in the worktree and whose path is free,
/// and writes rules by which git ignores the links.
pub(super) fn link_ignored(
    repository: &Repository,
    worktree: &Path,
    rules: &Path,
) -> anyhow::Result<()> {
    let own = repository.global_file("core.excludesFile", "ignore");
    let mut text = read_regular(&own, MAX_RULE_FILE).unwrap_or_default();
    for path in ignored_paths(repository)?.iter().take(MAX_LINKS) {
        let name = OsStr::from_bytes(path);
        let target = repository.workdir().join(name);
        // The directory of the sessions' worktrees can be in the project.
        if worktree.starts_with(&target) {
            continue;
        }

        match std::os::unix::fs::symlink(&target, worktree.join(name)) {
            Ok(()) => text.extend(ignore_rule(path)),
            // Linked for an earlier commit, tracked, or in an untracked directory.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                text.extend(ignore_rule(path))
            }
            Err(_) => {}
        }
    }

    Ok(std::fs::write(rules, text)?)
}

/// Returns the ignored files and directories; a directory covers everything in it.
fn ignored_paths(repository: &Repository) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut git = in_checkout(silent_git(repository.workdir())?, repository);
    git.args(["ls-files", "--others", "--ignored", "--exclude-standard"])
        .args(["--directory", "-z"]);
    let list = run_checked(&mut git, "list what it ignores")?;
    let paths = list.split(|byte| *byte == 0);
    let paths = paths.map(|path| path.strip_suffix(b"/").unwrap_or(path));

    Ok(paths
        .filter(|path| !path.is_empty())
        .map(<[u8]>::to_vec)
        .collect())
}

fn ignore_rule(path: &[u8]) -> Vec<u8> {
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
        assert_eq!(ignore_rule(b"a b/[c]*"), b"\n/a\\ b/\\[c]\\*\n");
    }
}
