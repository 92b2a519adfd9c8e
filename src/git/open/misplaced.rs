//! Detects settings that contradict the files of a repository, such as `core.bare=true` beside files.

use std::path::{Path, PathBuf};

use super::error::OpenError;
use crate::git::repository::Repository;
use crate::host::env;
use crate::host::file::read_regular_text;

/// Larger than any configuration file of git's, in bytes.
const MAX_GIT_FILE: u64 = 16 << 20;

impl Repository {
    /// Returns the directory that `core.hooksPath` names and the configuration file that says so, if
    /// the directory does not exist: git runs no hook then.
    pub fn missing_hooks_dir(&self) -> Option<(PathBuf, PathBuf)> {
        let config = self.gix.config_snapshot();
        let hooks_path = config.trusted_path("core.hooksPath").ok()??;
        let dir = self.workdir.join(hooks_path);
        let is_missing = !dir.as_os_str().is_empty() && !dir.exists();
        let file = is_missing.then(|| file_that_sets(&self.gix, "hooksPath"));
        Some((dir, file??))
    }
}

/// Returns the configuration file that sets a variable of the section `core`. `None` if no file does.
pub(super) fn file_that_sets(gix: &gix::Repository, name: &str) -> Option<PathBuf> {
    let config = gix.config_snapshot();
    let sections = config.plumbing().sections_by_name("core")?;
    // Later sections override earlier ones.
    let setting = sections.filter(|section| section.contains_value_name(name));
    setting.last()?.meta().path.clone()
}

/// Returns what `core.bare` says, `config.worktree` included.
pub(super) fn is_configured_bare(gix: &gix::Repository) -> bool {
    let config = gix.config_snapshot();
    config.boolean("core.bare").unwrap_or_default()
}

/// Returns whether the user says where the files are, so that `core.bare` does not count.
fn has_explicit_worktree(gix: &gix::Repository) -> bool {
    let is_set = gix.config_snapshot().string("core.worktree").is_some();
    is_set || env::var_os("GIT_WORK_TREE").is_some()
}

/// Returns whether git takes a repository for bare, be it because of `config.worktree`.
pub(super) fn is_bare(gix: &gix::Repository) -> bool {
    is_configured_bare(gix) && !has_explicit_worktree(gix) && gix.git_dir() == gix.common_dir()
}

/// Returns why git sees no files in a repository that has some.
///
/// An index beside a `.git` is taken for files: a bare repository that is cloned into a `.git`, with
/// linked worktrees beside it, has none. Only `core.bare` of the worktree itself counts in a linked
/// one, unless `extensions.worktreeConfig` is set.
pub(super) fn explain_wrongly_bare(gix: &gix::Repository) -> Option<OpenError> {
    if has_explicit_worktree(gix) || !is_configured_bare(gix) {
        return None;
    }

    let (git_dir, common) = (gix.git_dir(), gix.common_dir());
    let file = file_that_sets(gix, "bare")?;
    let is_linked = git_dir != common;
    if is_linked {
        let holds = gix
            .config_snapshot()
            .boolean("extensions.worktreeConfig")
            .unwrap_or_default();
        let top = gix.workdir().unwrap_or(git_dir).to_owned();
        return holds.then_some(OpenError::LinkedBare(top, file));
    }

    let has_files = git_dir.ends_with(".git") && git_dir.join("index").exists();
    has_files.then(|| OpenError::ConfiguredBare(git_dir.to_owned(), file))
}

/// Returns whether `core.worktree` names a directory whose `.git` does not point back, as that of a
/// submodule does. Commands would change other files than those next to the repository.
pub(super) fn is_worktree_elsewhere(gix: &gix::Repository, workdir: &Path) -> bool {
    let is_set = gix.config_snapshot().string("core.worktree").is_some();
    if !is_set || env::var_os("GIT_WORK_TREE").is_some() {
        return false;
    }

    let link = workdir.join(".git");
    let target = read_regular_text(&link, MAX_GIT_FILE)
        .ok()
        .and_then(|text| Some(workdir.join(text.trim_end().strip_prefix("gitdir: ")?)))
        .unwrap_or(link);
    let same = |a: &Path, b: &Path| Some(a.canonicalize().ok()? == b.canonicalize().ok()?);

    same(&target, gix.git_dir()) != Some(true)
}
