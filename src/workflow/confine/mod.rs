//! Builds the sandbox policy for commands and agents.

pub mod backend;
mod caches;
mod policy;
mod private;
mod refusal;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use policy::RunPaths;

use crate::config::settings::Sandbox;
use crate::git::snapshot::secrets::secrets_in;
use crate::git::worktree::{SessionWorktree, worktree_dirs};
use crate::host::file::make_dirs;
use crate::host::sandbox::{Availability, Network, Policy, availability, describe};
use crate::text::path_alias::PathAliases;
use crate::workflow::hint::error_with_hint;
use crate::workflow::project::Project;
pub(super) use refusal::explain_refusal;

/// Describes in a few words how commands will be confined, for the approval prompt.
pub fn confinement(project: &Project) -> String {
    let nowhere = Path::new("/nonexistent");
    let policy = policy_of(
        project,
        RunPaths {
            worktree: nowhere,
            common_dir: nowhere,
            workspace: nowhere,
            caches: nowhere,
        },
    );
    describe(policy.as_ref())
}

/// The policy for commands in a worktree; `None` if they are not confined. Fails if
/// `execute.sandbox` is `require` and the machine cannot enforce it.
pub fn policy(project: &Project, worktree: &SessionWorktree) -> anyhow::Result<Option<Policy>> {
    if project.settings.execute.sandbox == Sandbox::Require
        && let Availability::None(why) | Availability::Partly(why) = availability()
    {
        return Err(error_with_hint(
            format!("`execute.sandbox` is `require`, which this machine cannot do: {why}"),
            "`-c execute.sandbox=on` confines commands as far as it can",
        ));
    }

    let common = project.repository.common_dir();
    let caches = tool_caches(project);
    let mut policy = policy_of(
        project,
        RunPaths {
            worktree: &worktree.path,
            common_dir: &common,
            workspace: project.repository.workdir(),
            caches: &caches,
        },
    );

    if let Some(policy) = &mut policy {
        policy.read.extend(worktree.borrowed_paths());
        let worktrees = worktree_dirs(&project.repository, &project.worktrees());
        policy.hidden.extend(worktrees);
        policy.hidden.extend(secrets_beside_programs(project)?);
        caches::prepare_caches(&caches, &policy.write)
            .with_context(|| format!("making `{}`", caches.display()))?;
    }

    Ok(policy)
}

/// The policy for an agent in a worktree: like that for commands, but with network access and
/// writable state directories.
pub fn policy_for_agent(
    project: &Project,
    worktree: &SessionWorktree,
    state: &[PathBuf],
) -> anyhow::Result<Option<Policy>> {
    let Some(mut policy) = policy(project, worktree)? else {
        return Ok(None);
    };

    // Landlock can only allow paths that exist. A name with an extension is assumed to be a file.
    let is_lost = |path: &&PathBuf| !path.exists() && path.extension().is_none();
    for dir in state.iter().filter(is_lost) {
        make_dirs(dir).with_context(|| format!("making `{}`", dir.display()))?;
    }

    policy.network = Network::On;
    policy.write.extend_from_slice(state);
    Ok(Some(policy))
}

/// Variables that point the tools of confined commands to writable caches.
pub fn cache_variables(project: &Project, policy: &Policy) -> Vec<(String, String)> {
    caches::cache_dir_variables(&tool_caches(project), policy.network)
}

/// Names for the directories of a run, in what is recorded and shown of its output.
pub fn aliases(project: &Project, worktree: &Path) -> PathAliases {
    let mut aliases = PathAliases::of_worktree(worktree);
    aliases.add(&tool_caches(project), "$XDG_CACHE_HOME");
    aliases
}

/// The cache directory of this repository's commands.
pub fn tool_caches(project: &Project) -> PathBuf {
    let tools = project.user_dirs.cache.join("tools");
    tools.join(project.repository.identity())
}

fn policy_of(project: &Project, paths: RunPaths<'_>) -> Option<Policy> {
    let settings = &project.settings.execute;
    if settings.sandbox == Sandbox::Off {
        return None;
    }

    let mut policy = policy::default_policy(paths);
    policy.network = if settings.network {
        Network::On
    } else {
        Network::Off
    };

    // The linked paths of the worktree lead to the workspace, which is otherwise hidden.
    policy.read.extend(
        project
            .settings
            .worktree
            .link
            .iter()
            .map(|name| project.repository.workdir().join(name)),
    );
    policy
        .write
        .extend(settings.writable.iter().map(|dir| expand(project, dir)));
    Some(policy)
}

/// Secrets next to programs in `PATH`.
fn secrets_beside_programs(project: &Project) -> anyhow::Result<Vec<PathBuf>> {
    let workdir = project.repository.workdir();
    // Their directories are readable, so the secrets inside must be hidden one by one.
    let dirs = policy::program_dirs_in_path(workdir).into_iter();
    let dirs = dirs.filter_map(|dir| {
        let inside = dir.strip_prefix(workdir).ok()?;
        Some(inside.as_os_str().as_bytes().to_vec())
    });
    let secrets = secrets_in(workdir, &project.limits(), dirs.collect())
        .context("looking for secrets beside the programs of your PATH")?;
    let paths = secrets.iter().map(|path| OsStr::from_bytes(path));
    Ok(paths.map(|path| workdir.join(path)).collect())
}

/// Expands a path of the settings: relative to the home directory with `~/`, else to the project.
fn expand(project: &Project, dir: &str) -> PathBuf {
    match (dir.strip_prefix("~/"), &project.user_dirs.home) {
        (Some(suffix), Some(home)) => home.join(suffix),
        _ => project.repository.workdir().join(dir),
    }
}
