//! The session's worktree before a run: the user's files, what git ignores and commands need, the
//! set-up, a git directory.

use std::cell::RefCell;
use std::io::ErrorKind;

use crate::git::worktree;
use crate::git::worktree::bring;
use anyhow::Context as _;

mod layered;

use super::run_env::RunEnv;
use crate::git::worktree::bring::{Bring, BroughtFiles};
use crate::git::worktree::{Extent, SessionWorktree, WorktreeAim};
use crate::host::file::Root;
use crate::host::overlay::Overlay;
use crate::host::sandbox::Network;
use crate::host::shell::{Script, ScriptEnd, run};
use crate::host::space::space;
use crate::host::supervisor::Launcher;
use crate::workflow::confine;
use crate::workflow::hinted::hinted;
use crate::workflow::notice::Notice;
use crate::workflow::project::Project;
use crate::workflow::user::{Event, User};

/// A disk with less room than this is full: programs write in blocks.
const LITTLE: u64 = 64 << 10;

/// A worktree that is ready for a run.
pub(super) struct PreparedWorktree {
    /// The worktree.
    pub worktree: SessionWorktree,
    /// The links in it that lead out of it.
    pub linked: Vec<Vec<u8>>,
    /// The view in which it is seen, if its files are a layer over the user's.
    pub overlay: Option<Overlay>,
}

impl PreparedWorktree {
    /// Opens its top, as commands see it.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(super) fn root(&self) -> std::io::Result<Root> {
        match &self.overlay {
            Some(overlay) => overlay.root(),
            None => Root::open(&self.worktree.path),
        }
    }

    /// Begins to take the view away: from here on nothing but the layer is looked at.
    pub(super) fn release(&mut self) {
        if let Some(overlay) = &mut self.overlay {
            overlay.release();
        }
    }

    /// Takes the view away, and what the kernel leaves of one, which nobody else could list.
    fn close(&mut self) {
        if self.overlay.take().is_some() {
            self.worktree.remove_work();
        }
    }

    /// Tells the user where what commands wrote may be incomplete because no room was left.
    pub(super) fn tell_of_room(&self, user: &mut dyn User) {
        let path = &self.worktree.path;
        let left = space(path);
        if left.is_some_and(|left| left.free < LITTLE || left.files == Some(0)) {
            let path = path.display().to_string();
            user.tell(Event::Notice(Notice::WorktreeDiskFull(path)));
        }
    }

    /// Returns the process that holds the view in which commands run.
    pub(super) fn view(&self) -> Option<u32> {
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
    /// Its exit code.
    code: i32,
    /// Whether it had no network.
    offline: bool,
}

impl SetupFailed {
    /// Returns how a set-up failed, if it did.
    fn of(ended: ScriptEnd, project: &Project) -> Option<SetupFailed> {
        (ended != ScriptEnd::Exited(0)).then(|| SetupFailed {
            code: ended.code(),
            offline: !project.settings.worktree.network,
        })
    }

    /// Returns what the user can do about it, as far as that can be told.
    pub fn hint(&self) -> Option<String> {
        self.offline.then(|| {
            "it runs without the network; `worktree.network: true` in your own configuration opens it"
                .to_owned()
        })
    }
}

/// Opens the worktree at the user's files. Only commands need more than these.
pub(super) fn prepare(
    project: &Project,
    env: &RunEnv<'_>,
    extent: Extent<'_>,
    user: &mut dyn User,
) -> anyhow::Result<PreparedWorktree> {
    let repository = &project.repository;
    if let Extent::Whole = extent
        && let Some(prepared) = layered::prepare(project, env, user)?
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
    let brought = bring(project, &worktree)?;
    worktree.make_git_dir(repository, env.before)?;
    Ok(PreparedWorktree {
        worktree,
        linked: brought.linked,
        overlay: None,
    })
}

/// Says that a worktree cannot be made, and what helps where the disk is full.
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
        true => hinted(
            format!("{error:#}"),
            "`teddy gc` makes room; `worktree.root` puts worktrees on another disk",
        ),
        false => error,
    }
}

/// Does what fills a worktree, and tells the user how far it is.
fn filling<T>(
    (env, extent): (&RunEnv<'_>, Extent<'_>),
    user: &mut dyn User,
    work: impl FnOnce(WorktreeAim<'_>) -> T,
) -> T {
    let user = RefCell::new(user);
    let watch = |filled| user.borrow_mut().tell(Event::Filling(filled));
    work(WorktreeAim {
        at: env.before,
        extent,
        watch: &watch,
    })
}

/// Runs `worktree.setup` where it has not run: in a new worktree, in which nothing lies that a plan
/// wrote and nobody looked at.
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

    if !worktree.fresh {
        filling((env, Extent::Whole), user, |aim| {
            worktree.make_anew(&project.repository, aim)
        })?;
    }

    bring(project, worktree)?;
    worktree.make_git_dir(&project.repository, env.before)?;
    let ended = run_setup(project, env, setup, (worktree, None), user)?;
    worktree.remove_git_dir()?;

    if let Some(failed) = SetupFailed::of(ended, project) {
        worktree::remove_session_worktree(&project.repository, env.name)?;
        return Err(failed.into());
    }

    // What it changed besides ignored files is no part of the user's files.
    filling((env, Extent::Whole), user, |aim| {
        worktree.put_right(&project.repository, aim)
    })?;
    worktree.keep_setup(setup)
}

/// Runs the set-up, confined as commands are, with the network as its own setting says.
fn run_setup(
    project: &Project,
    env: &RunEnv<'_>,
    setup: &str,
    (worktree, view): (&SessionWorktree, Option<u32>),
    user: &mut dyn User,
) -> anyhow::Result<ScriptEnd> {
    user.tell(Event::Notice(Notice::SetupStarted(setup.to_owned())));
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
        .within(view);
    let confined = launcher.policy.as_ref();
    let script = Script {
        env: confined
            .map(|policy| confine::cache_variables(project, policy))
            .unwrap_or_default(),
        timeout: Some(project.settings.execute.timeout()),
        launcher: Some(launcher),
        ..Script::new(setup, &worktree.path)
    };

    let finished = run(&script, &mut |bytes| user.tell(Event::Output { bytes }))?;
    // What it started and could not be ended would go on writing beside the plan's commands.
    anyhow::ensure!(
        finished.left.is_empty(),
        "what `worktree.setup` started could not be ended: {}",
        finished.left.join(", ")
    );
    Ok(finished.end)
}

/// Brings what git ignores and the settings name.
fn bring(project: &Project, worktree: &SessionWorktree) -> anyhow::Result<BroughtFiles> {
    let settings = &project.settings.worktree;
    bring::bring(
        worktree,
        &project.repository,
        (
            &Bring {
                copy: settings.copy.clone(),
                link: settings.link.clone(),
            },
            &project.limits(),
        ),
    )
}
