//! Hooks and aliases of git that would send sessions by accident, and hooks that cannot run.

use std::path::{Path, PathBuf};

use super::{HealthCheck, display_path, path_word};
use crate::git::repository::Repository;
use crate::host::file::read_regular;
use crate::text::sanitize::sanitize_line;
use crate::text::shell_word::shell_word;

const MAX_HOOK: u64 = 64 << 10;
const MOST_HOOKS: usize = 50;

pub(super) fn check_hooks(repository: &Repository) -> Vec<HealthCheck> {
    let aliases = repository.config_section("alias");
    let aliases = aliases.iter().filter(|(_, line)| sends_all(line));
    let aliases = aliases.map(|(name, _)| {
        let reason = format!(
            "the alias `git {}` pushes everything, and with `refs/teddy` all your sessions and snapshots, untracked files included",
            sanitize_line(name)
        );
        let remedy = format!("git config --show-origin {}", shell_word(format!("alias.{name}")));
        HealthCheck::warning("push", reason).remedy(format!("{remedy}  # shows where it is set"))
    });
    let hooks = list_hooks(repository)
        .into_iter()
        .filter(|path| is_sending_hook(path));
    let hooks = hooks.map(|path| {
        let reason = format!(
            "the hook `{}` pushes everything, and with `refs/teddy` all your sessions and snapshots, untracked files included",
            display_path(&path)
        );
        let remedy = format!("grep -n push {}", path_word(&path));
        HealthCheck::warning("push", reason).remedy(remedy)
    });

    aliases
        .chain(hooks)
        .chain(check_missing_hooks_dir(repository))
        .collect()
}

/// Looks at whether there is a directory of hooks where the configuration says.
fn check_missing_hooks_dir(repository: &Repository) -> Option<HealthCheck> {
    let (dir, file) = repository.missing_hooks_dir()?;
    let reason = format!(
        "`core.hooksPath` is `{}`, which does not exist: neither git nor `teddy land` runs any hook",
        display_path(&dir)
    );
    let remedy = format!(
        "git config --file {} --unset-all core.hooksPath",
        path_word(&file)
    );
    Some(HealthCheck::warning("hooks", reason).remedy(remedy))
}

fn list_hooks(repository: &Repository) -> Vec<PathBuf> {
    let dir = match repository.config("core.hooksPath") {
        Some(path) => repository.workdir().join(path),
        None => repository.common_dir().join("hooks"),
    };
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        // Not the `.sample` files.
        .filter(|path| path.extension().is_none())
        .take(MOST_HOOKS)
        .collect();
    paths.sort();
    paths
}

fn is_sending_hook(path: &Path) -> bool {
    let bytes = read_regular(path, MAX_HOOK).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines().map(str::trim_start);
    lines.any(|line| !line.starts_with('#') && sends_all(line))
}

fn sends_all(line: &str) -> bool {
    let mut tokens = line.split(|c: char| c.is_whitespace() || "'\";&|".contains(c));
    tokens.any(|word| word == "push")
        && tokens.any(|word| {
            let spec = word.trim_start_matches('+');
            word == "--mirror" || spec.starts_with("refs/*") || spec.starts_with("refs/teddy/")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_of_everything_is_known() {
        let check = |line: &str, expected: bool| assert_eq!(sends_all(line), expected, "{line}");
        check("git push --mirror backup", true);
        check("!git push backup '+refs/*:refs/*'", true);
        check("push backup refs/teddy/*:refs/teddy/*", true);
        check("push --all", false);
        check("git push origin HEAD; git fetch --all", false);
        check("git clone --mirror x", false);
        check("echo pushed --mirror", false);
    }
}
