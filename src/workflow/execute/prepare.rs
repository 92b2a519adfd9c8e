//! Prepares the session's worktree for a run: the user's files, ignored files that commands need,
//! `worktree.setup`, a git directory.

use std::cell::RefCell;
use std::io::ErrorKind;

use crate::git::worktree;
use crate::git::worktree::provision;
use anyhow::Context as _;

mod layered;

use super::run_env::RunEnv;
use crate::git::worktree::layer::pin;
use crate::git::worktree::provision::{ProvisionRules, ProvisionedFiles};
use crate::git::worktree::{Extent, SessionWorktree, WorktreeTarget};
use crate::host::file::Root;
use crate::host::overlay::Overlay;
use crate::host::sandbox::Network;
use crate::host::shell::{Script, ScriptEnd, run};
use crate::host::space::disk_space;
use crate::host::supervisor::Launcher;
use crate::workflow::confine;
use crate::workflow::hint::error_with_hint;
use crate::workflow::notice::Notice;
use crate::workflow::project::Project;
use crate::workflow::user::{Event, User};

/// Programs write in blocks, so a full disk still has some bytes free.
const LITTLE: u64 = 64 << 10;

pub(super) struct PreparedWorktree {
    pub worktree: SessionWorktree,
    /// Symlinks that lead out of it.
    pub linked: Vec<Vec<u8>>,
    /// The mounted overlay; `None` for a checkout.
    pub overlay: Option<Overlay>,
}

impl PreparedWorktree {
    /// Opens the root directory as commands see it.
    pub(super) fn root(&self) -> std::io::Result<Root> {
        match &self.overlay {
            Some(overlay) => overlay.root(),
            None => Root::open(&self.worktree.path),
        }
    }

    /// Makes sure that the plan's own actions work on the files of its snapshot, in an overlay as in
    /// a checkout.
    pub(super) fn pin(
        &self,
        project: &Project,
        env: &RunEnv<'_>,
        targets: &[Vec<u8>],
    ) -> anyhow::Result<()> {
        let Some(overlay) = &self.overlay else {
            return Ok(());
        };
        let (root, path) = (overlay.root()?, overlay.path());
        pin(&project.repository, env.tree, &root, &path, targets).map_err(unmade)
    }

    /// Starts to unmount the overlay. From here on only the layer is read.
    pub(super) fn release(&mut self) {
        if let Some(overlay) = &mut self.overlay {
            overlay.release();
        }
    }

    /// Unmounts the overlay and removes its work directory, which the kernel leaves unreadable.
    fn close(&mut self) {
        if self.overlay.take().is_some() {
            self.worktree.remove_work();
        }
    }

    /// Warns if the disk is full, so that files written by commands can be truncated.
    pub(super) fn warn_low_space(&self, user: &mut dyn User) {
        let path = &self.worktree.path;
        let disk = disk_space(path);
        if disk.is_some_and(|disk| disk.free < LITTLE || disk.files == Some(0)) {
            let path = path.display().to_string();
            user.report(Event::Notice(Notice::WorktreeDiskFull(path)));
        }
    }

    /// The process that holds the mount namespace of the commands.
    pub(super) fn overlay_holder(&self) -> Option<u32> {
        self.overlay.as_ref().map(Overlay::holder)
    }
}

impl Drop for PreparedWorktree {
    fn drop(&mut self) {
        self.close();
    }
}

/// `worktree.setup` failed.
#[derive(Debug, thiserror::Error)]
#[error("`worktree.setup` failed with exit code {code}; nothing was run")]
pub struct SetupFailed {
    code: i32,
    offline: bool,
}

impl SetupFailed {
    fn of(ended: ScriptEnd, project: &Project) -> Option<SetupFailed> {
        (ended != ScriptEnd::Exited(0)).then(|| SetupFailed {
            code: ended.code(),
            offline: !project.settings.worktree.network,
        })
    }

    /// What the user can do, if known.
    pub fn hint(&self) -> Option<String> {
        self.offline.then(|| {
            "it runs without the network; `worktree.network: true` in your own configuration opens it"
                .to_owned()
        })
    }
}

/// Updates the worktree to the user's files. Only commands need more than the files that the plan
/// names.
pub(super) fn prepare(
    project: &Project,
    env: &RunEnv<'_>,
    extent: Extent<'_>,
    user: &mut dyn User,
) -> anyhow::Result<PreparedWorktree> {
    let repository = &project.repository;
    if let Extent::All = extent
        && let Some(prepared) = layered::prepare_overlay(project, env, user)?
    {
        return Ok(prepared);
    }

    let opened = filling((env, extent), user, |aim| {
        worktree::session_worktree(repository, &project.worktrees(), env.name, aim)
    });
    let mut worktree = opened.map_err(unmade)?;

    if let Extent::Paths(_) = extent {
        return Ok(PreparedWorktree {
            worktree,
            linked: Vec::new(),
            overlay: None,
        });
    }

    set_up(project, env, &mut worktree, user)?;
    let provided = provide_files(project, &worktree)?;
    worktree.make_git_dir(repository, env.before)?;
    Ok(PreparedWorktree {
        worktree,
        linked: provided.linked,
        overlay: None,
    })
}

fn unmade(error: anyhow::Error) -> anyhow::Error {
    let is_full = |cause: &std::io::Error| {
        matches!(
            cause.kind(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded
        )
    };
    let is_full = error
        .chain()
        .any(|cause| cause.downcast_ref().is_some_and(is_full));
    let error = error.context("the session's worktree cannot be made; nothing was run");
    match is_full {
        true => error_with_hint(
            format!("{error:#}"),
            "`teddy gc` frees space; `worktree.root` puts worktrees on another disk",
        ),
        false => error,
    }
}

fn filling<T>(
    (env, extent): (&RunEnv<'_>, Extent<'_>),
    user: &mut dyn User,
    work: impl FnOnce(WorktreeTarget<'_>) -> T,
) -> T {
    let user = RefCell::new(user);
    let watch = |filled| user.borrow_mut().report(Event::Filling(filled));
    work(WorktreeTarget {
        at: env.before,
        extent,
        watch: &watch,
    })
}

/// Runs `worktree.setup` if it has not run yet.
fn set_up(
    project: &Project,
    env: &RunEnv<'_>,
    worktree: &mut SessionWorktree,
    user: &mut dyn User,
) -> anyhow::Result<()> {
    let settings = &project.settings.worktree;
    let Some(setup) = settings
        .setup
        .as_deref()
        .filter(|setup| !worktree.is_set_up(setup))
    else {
        return Ok(());
    };

    // The script runs with its own network setting. It must not run on files that a plan wrote and
    // the user never reviewed.
    if !worktree.fresh {
        filling((env, Extent::All), user, |aim| {
            worktree.recreate(&project.repository, aim)
        })?;
    }

    provide_files(project, worktree)?;
    worktree.make_git_dir(&project.repository, env.before)?;
    let ended = run_setup(project, env, setup, (worktree, None), user)?;
    worktree.remove_git_dir()?;

    if let Some(failed) = SetupFailed::of(ended, project) {
        worktree::remove_session_worktree(&project.repository, env.name)?;
        return Err(failed.into());
    }

    // Only the ignored files that the script created are kept.
    filling((env, Extent::All), user, |aim| {
        worktree.repair(&project.repository, aim)
    })?;
    worktree.keep_setup(setup)
}

fn run_setup(
    project: &Project,
    env: &RunEnv<'_>,
    setup: &str,
    (worktree, view): (&SessionWorktree, Option<u32>),
    user: &mut dyn User,
) -> anyhow::Result<ScriptEnd> {
    user.report(Event::Notice(Notice::SetupStarted(setup.to_owned())));
    let mut policy = confine::policy(project, worktree)?;
    if let Some(policy) = &mut policy {
        policy.network = if project.settings.worktree.network {
            Network::On
        } else {
            Network::Off
        };
    }

    let launcher = Launcher::new(policy)
        .context("starting `worktree.setup`")?
        .holding(project.commands_lock(env.name))
        .with_overlay(view);
    let confined = launcher.policy.as_ref();
    let script = Script {
        env: confined
            .map(|policy| confine::cache_variables(project, policy))
            .unwrap_or_default(),
        timeout: Some(project.settings.execute.timeout()),
        keep_env: project.settings.execute.keep_env.clone(),
        launcher: Some(launcher),
        aliases: confine::aliases(project, &worktree.path),
        ..Script::new(setup, &worktree.path)
    };

    let finished = run(&script, &mut |bytes| user.report(Event::Output { bytes }))?;
    // A surviving process would write next to the plan's commands.
    anyhow::ensure!(
        finished.survivors.is_empty(),
        "what `worktree.setup` started could not be ended: {}",
        finished.survivors.join(", ")
    );
    Ok(finished.end)
}

fn provide_files(
    project: &Project,
    worktree: &SessionWorktree,
) -> anyhow::Result<ProvisionedFiles> {
    let settings = &project.settings.worktree;
    provision::provision_files(
        worktree,
        &project.repository,
        (
            &ProvisionRules {
                copy: settings.copy.clone(),
                link: settings.link.clone(),
            },
            &project.limits(),
        ),
    )
}
