//! Prepares a worktree in which commands see the user's files through an overlay.

use anyhow::Context as _;

use super::{PreparedWorktree, SetupFailed, run_setup, unmade};
use crate::config::settings::Backend;
use crate::git::repository::Repository;
use crate::git::snapshot::secrets::{FoundSecrets, SecretSearch};
use crate::git::worktree::SessionWorktree;
use crate::git::worktree::layer::{LowerFiles, hide_secrets, open_dirs, session_layer};
use crate::host::fault;
use crate::host::overlay::{Overlay, OverlayHolder};
use crate::host::threads::join_both;
use crate::workflow::confine::backend::{CommandFiles, command_files};
use crate::workflow::execute::run_env::RunEnv;
use crate::workflow::hint::error_with_hint;
use crate::workflow::notice::Notice;
use crate::workflow::project::Project;
use crate::workflow::user::{Event, User};

const GIT_DIR: &str = ".git";

/// `None` if commands run in a checkout instead.
pub(super) fn prepare_overlay(
    project: &Project,
    env: &RunEnv<'_>,
    user: &mut dyn User,
) -> anyhow::Result<Option<PreparedWorktree>> {
    if !env.users_own {
        return Ok(None);
    }
    let is_required = project.settings.worktree.backend == Backend::Overlay;
    let (opened, is_known) = match command_files(project) {
        CommandFiles::Overlay => (open_overlay(project, env, user)?, false),
        CommandFiles::Checkout(why) => (Err(why), true),
    };
    match opened {
        Ok(prepared) => Ok(Some(prepared)),
        Err(why) if is_required => Err(error_with_hint(
            format!("`worktree.backend` is `overlay`, which this machine cannot do: {why}"),
            "`-c worktree.backend=auto` runs commands in a copy of the files where it must",
        )),
        Err(why) => {
            // A reason that applies to the whole machine or comes from the settings is not repeated
            // on every turn.
            if !is_known {
                user.report(Event::Notice(Notice::CommandsInCopy(why)));
            }
            Ok(None)
        }
    }
}

fn open_overlay(
    project: &Project,
    env: &RunEnv<'_>,
    user: &mut dyn User,
) -> anyhow::Result<Result<PreparedWorktree, String>> {
    let repository = &project.repository;
    let (limits, index) = (project.limits(), project.index(&repository.worktree_name()));
    let lower = LowerFiles {
        tree: env.tree,
        index: &index,
        limits: &limits,
    };
    let cached_secrets = project.secrets(&repository.worktree_name());
    let secrets = SecretSearch::new(repository, &limits, (&cached_secrets, &index));
    let (secret_paths, layer) = search_secrets_during(&secrets, || {
        let holder = OverlayHolder::start();
        let root = project.worktrees();
        let opened = session_layer(repository, &root, env.name, &lower);
        let worktree = opened.map_err(unmade)?;
        fault::point("after-layer")?;
        let mounted = mount_layer(repository, env, &worktree, holder)?;
        Ok::<_, anyhow::Error>((worktree, mounted))
    });

    let (worktree, mounted) = layer?;
    let mut prepared = PreparedWorktree {
        worktree,
        linked: Vec::new(),
        overlay: None,
    };
    if let Err(why) =
        hide_secrets_in_overlay(project, &lower, (secret_paths, mounted), &mut prepared)?
    {
        return Ok(Err(why));
    }
    if set_up_overlay(project, env, (&lower, &secrets), &mut prepared, user)? {
        prepared.overlay = None;
        // Changes to tracked files by `worktree.setup` are not part of the plan's result.
        prepared.worktree.prune_layer(repository, &lower)?;
        if let Err(why) = mount_overlay(project, env, (&lower, &secrets), &mut prepared)? {
            return Ok(Err(why));
        }
    }
    Ok(Ok(prepared))
}

/// Mounts the layer over the user's files, with their git directory and secrets hidden.
fn mount_overlay(
    project: &Project,
    env: &RunEnv<'_>,
    (lower, secrets): (&LowerFiles<'_>, &SecretSearch<'_>),
    prepared: &mut PreparedWorktree,
) -> anyhow::Result<Result<(), String>> {
    let (secret_paths, mounted) = search_secrets_during(secrets, || {
        let holder = OverlayHolder::start();
        mount_layer(&project.repository, env, &prepared.worktree, holder)
    });
    hide_secrets_in_overlay(project, lower, (secret_paths, mounted?), prepared)
}

fn search_secrets_during<T>(
    secrets: &SecretSearch<'_>,
    work: impl FnOnce() -> T,
) -> (anyhow::Result<FoundSecrets>, T) {
    join_both(|| secrets.run(), work)
}

/// Mounts the layer with a git directory for commands. Secrets are still visible.
fn mount_layer(
    repository: &Repository,
    env: &RunEnv<'_>,
    worktree: &SessionWorktree,
    holder: Result<OverlayHolder, String>,
) -> anyhow::Result<Result<Overlay, String>> {
    worktree.make_git_dir(repository, env.before)?;
    let hidden = worktree
        .hide_users_git_dir()
        .map_err(|error| format!("{error:#}"));
    let dirs = worktree.overlay(repository)?;
    Ok(hidden.and_then(|()| holder?.mount(&dirs, GIT_DIR)))
}

/// Hides the user's secrets in a mounted layer and makes it available. Fails closed: if they cannot
/// be hidden, no overlay is used.
fn hide_secrets_in_overlay(
    project: &Project,
    lower: &LowerFiles<'_>,
    (found, mounted): (anyhow::Result<FoundSecrets>, Result<Overlay, String>),
    prepared: &mut PreparedWorktree,
) -> anyhow::Result<Result<(), String>> {
    let (repository, worktree) = (&project.repository, &prepared.worktree);
    let overlay = match mounted {
        Ok(overlay) => overlay,
        Err(why) => {
            worktree.remove_git_dir()?;
            return Ok(Err(why));
        }
    };

    let copy = &project.settings.worktree.copy;
    let root = overlay.root()?;
    let hidden = found.and_then(|found| {
        open_dirs(repository, lower.tree, &root, &found.read_only_dirs)?;
        worktree.keep_hidden(&found.keyed)?;
        hide_secrets(repository, lower, &root, (found, copy))
    });
    if let Err(error) = hidden {
        drop(overlay);
        worktree.remove_git_dir()?;
        return Ok(Err(format!("your secrets cannot be hidden: {error:#}")));
    }
    fault::point("after-mount")?;
    prepared.overlay = Some(overlay);
    Ok(Ok(()))
}

/// Runs `worktree.setup` if it has not run in this layer. Returns whether it did.
fn set_up_overlay(
    project: &Project,
    env: &RunEnv<'_>,
    (below, secrets): (&LowerFiles<'_>, &SecretSearch<'_>),
    prepared: &mut PreparedWorktree,
    user: &mut dyn User,
) -> anyhow::Result<bool> {
    let setup = project.settings.worktree.setup.as_deref();
    let Some(setup) = setup.filter(|setup| !prepared.worktree.is_set_up(setup)) else {
        return Ok(false);
    };
    if !prepared.worktree.fresh {
        // The script must not see files that a plan wrote and the user never reviewed.
        prepared.overlay = None;
        prepared.worktree.clear_layer()?;
        if let Err(why) = mount_overlay(project, env, (below, secrets), prepared)? {
            anyhow::bail!("the layer cannot be mounted again: {why}");
        }
    }

    let ended = run_setup(
        project,
        env,
        setup,
        (&prepared.worktree, prepared.overlay_holder()),
        user,
    )?;
    if let Some(failed) = SetupFailed::of(ended, project) {
        prepared.overlay = None;
        remove_layer(&prepared.worktree)?;
        return Err(failed.into());
    }
    prepared.worktree.keep_setup(setup)?;
    Ok(true)
}

fn remove_layer(worktree: &SessionWorktree) -> anyhow::Result<()> {
    worktree
        .remove_layer()
        .context("removing the layer of the session")
}
