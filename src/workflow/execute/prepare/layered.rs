//! A worktree whose commands see the user's own files: below a layer that takes what they change.

use anyhow::Context as _;

use super::{PreparedWorktree, SetupFailed, run_setup, unmade};
use crate::config::settings::Backend;
use crate::git::worktree::SessionWorktree;
use crate::git::worktree::layer::{LowerFiles, hide_secrets, session_layer};
use crate::host::fault;
use crate::host::overlay::Overlay;
use crate::workflow::confine::backend::{CommandFiles, command_files};
use crate::workflow::execute::run_env::RunEnv;
use crate::workflow::hinted::hinted;
use crate::workflow::notice::Notice;
use crate::workflow::project::Project;
use crate::workflow::user::{Event, User};

/// The folder that must hide the user's.
const GIT: &str = ".git";

/// Makes it ready; nothing where commands run in a checkout.
pub(super) fn prepare(
    project: &Project,
    env: &RunEnv<'_>,
    user: &mut dyn User,
) -> anyhow::Result<Option<PreparedWorktree>> {
    if !env.users_own {
        return Ok(None);
    }
    let is_required = project.settings.worktree.backend == Backend::Overlay;
    let (opened, is_known) = match command_files(project) {
        CommandFiles::Overlay => (open(project, env, user)?, false),
        CommandFiles::Checkout(why) => (Err(why), true),
    };
    match opened {
        Ok(prepared) => Ok(Some(prepared)),
        Err(why) if is_required => Err(hinted(
            format!("`worktree.backend` is `overlay`, which this machine cannot do: {why}"),
            "`-c worktree.backend=auto` runs commands in a copy of the files where it must",
        )),
        Err(why) => {
            // What holds for the whole machine, or was set so, is not said each time.
            if !is_known {
                user.tell(Event::Notice(Notice::CommandsInCopy(why)));
            }
            Ok(None)
        }
    }
}

/// Opens the layer and mounts it; says why this machine cannot.
fn open(
    project: &Project,
    env: &RunEnv<'_>,
    user: &mut dyn User,
) -> anyhow::Result<Result<PreparedWorktree, String>> {
    let repository = &project.repository;
    let (limits, index) = (project.limits(), project.index(&repository.worktree_name()));
    let below = LowerFiles {
        tree: env.tree,
        known: &index,
        limits: &limits,
    };
    let root = project.worktrees();
    let opened = session_layer(repository, &root, env.name, &below);
    let worktree = opened.map_err(unmade)?;
    fault::point("after-layer")?;
    let mut prepared = PreparedWorktree {
        worktree,
        linked: Vec::new(),
        overlay: None,
    };

    if let Err(why) = mount(project, env, &below, &mut prepared)? {
        return Ok(Err(why));
    }
    if set_up(project, env, &below, &mut prepared, user)? {
        prepared.overlay = None;
        prepared.worktree.sweep_layer(repository, &below)?;
        if let Err(why) = mount(project, env, &below, &mut prepared)? {
            return Ok(Err(why));
        }
    }
    Ok(Ok(prepared))
}

/// Mounts the layer over the user's files, without their git directory and their secrets.
fn mount(
    project: &Project,
    env: &RunEnv<'_>,
    below: &LowerFiles<'_>,
    prepared: &mut PreparedWorktree,
) -> anyhow::Result<Result<(), String>> {
    let (repository, worktree) = (&project.repository, &prepared.worktree);
    worktree.make_git_dir(repository, env.before)?;
    let hidden = worktree
        .hide_users_git_dir()
        .map_err(|error| format!("{error:#}"));
    let folders = worktree.overlay(repository)?;
    let overlay = match hidden.and_then(|()| Overlay::mount(&folders, GIT)) {
        Ok(overlay) => overlay,
        Err(why) => {
            worktree.remove_git_dir()?;
            return Ok(Err(why));
        }
    };

    let copy = &project.settings.worktree.copy;
    if let Err(error) = hide_secrets(repository, below, &overlay.root()?, copy) {
        drop(overlay);
        worktree.remove_git_dir()?;
        return Ok(Err(format!("your secrets cannot be hidden: {error:#}")));
    }
    fault::point("after-mount")?;
    prepared.overlay = Some(overlay);
    Ok(Ok(()))
}

/// Runs `worktree.setup` where it has not run in this layer; returns whether it did.
fn set_up(
    project: &Project,
    env: &RunEnv<'_>,
    below: &LowerFiles<'_>,
    prepared: &mut PreparedWorktree,
    user: &mut dyn User,
) -> anyhow::Result<bool> {
    let setup = project.settings.worktree.setup.as_deref();
    let Some(setup) = setup.filter(|setup| !prepared.worktree.is_set_up(setup)) else {
        return Ok(false);
    };
    if !prepared.worktree.fresh {
        // Nothing may lie in it that a plan wrote and nobody looked at.
        prepared.overlay = None;
        prepared.worktree.clear_layer()?;
        if let Err(why) = mount(project, env, below, prepared)? {
            anyhow::bail!("the layer cannot be mounted again: {why}");
        }
    }

    let ended = run_setup(
        project,
        env,
        setup,
        (&prepared.worktree, prepared.view()),
        user,
    )?;
    if let Some(failed) = SetupFailed::of(ended, project) {
        prepared.overlay = None;
        forget(&prepared.worktree)?;
        return Err(failed.into());
    }
    prepared.worktree.keep_setup(setup)?;
    Ok(true)
}

/// Removes a layer in which the set-up failed.
fn forget(worktree: &SessionWorktree) -> anyhow::Result<()> {
    worktree
        .remove_layer()
        .context("removing the layer of the session")
}
