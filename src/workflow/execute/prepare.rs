//! Prepares the session's worktree for a run: the user's files, ignored files that commands need,
//! `worktree.setup`, a git directory (docs/decisions/0027-worktrees.md).

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::ErrorKind;

use anyhow::Context as _;

use crate::config::settings::Backend;
use crate::git::object::{CommitId, TreeId};
use crate::git::repository::Repository;
use crate::git::snapshot::secrets::{FoundSecrets, SecretSearch};
use crate::git::worktree::layer::{
    LowerFiles, hide_secrets, open_dirs, pin, session_layer, switch_view,
};
use crate::git::worktree::provision::{self, ProvisionRules, ProvisionedFiles};
use crate::git::worktree::{self, Extent, SessionWorktree, WorktreeTarget};
use crate::host::fault;
use crate::host::file::{Root, remove_below};
use crate::host::machine::disk_space;
use crate::host::overlay::{Overlay, OverlayHolder};
use crate::host::sandbox::Network;
use crate::host::shell::{Script, ScriptEnd, run};
use crate::host::supervisor::Launcher;
use crate::host::threads::join_both;
use crate::project::Project;
use crate::session::artifact::Artifacts;
use crate::session::turn::Turn;
use crate::text::hint::error_with_hint;
use crate::text::path::lossy_paths;
use crate::workflow::confine;
use crate::workflow::confine::backend::{CommandFiles, command_files};
use crate::workflow::user::{Event, Notice, User};
use crate::workspace::snapshot;

/// In bytes. Programs write in blocks, so a full disk still has some bytes free.
const LITTLE: u64 = 64 << 10;

pub(super) struct PreparedWorktree {
    pub worktree: SessionWorktree,
    /// Lead out of the worktree.
    pub linked: Vec<Vec<u8>>,
    /// `None` for a checkout.
    pub overlay: Option<Overlay>,
}

impl PreparedWorktree {
    /// As commands see it.
    pub(super) fn root(&self) -> std::io::Result<Root> {
        match &self.overlay {
            Some(overlay) => overlay.root(),
            None => Root::open(&self.worktree.path),
        }
    }

    /// The plan's own actions must work on the files of its snapshot, in an overlay as in a
    /// checkout.
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

    /// Starts to unmount. From here on only the layer is read.
    pub(super) fn release(&mut self) {
        if let Some(overlay) = &mut self.overlay {
            overlay.release();
        }
    }

    fn close(&mut self) {
        if self.overlay.take().is_some() {
            // The kernel leaves this directory unreadable.
            self.worktree.remove_work();
        }
    }

    /// Files written by commands can be truncated.
    pub(super) fn warn_low_space(&self, user: &mut dyn User) {
        let path = self.worktree.written_dir();
        let disk = disk_space(path);
        if disk.is_some_and(|disk| disk.free < LITTLE || disk.files == Some(0)) {
            let path = path.display().to_string();
            user.report(Event::Notice(Notice::WorktreeDiskFull(path)));
        }
    }

    /// Holds the mount namespace.
    pub(super) fn overlay_holder(&self) -> Option<u32> {
        self.overlay.as_ref().map(Overlay::holder)
    }
}

impl Drop for PreparedWorktree {
    fn drop(&mut self) {
        self.close();
    }
}

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

    /// `None` if unknown.
    pub fn hint(&self) -> Option<String> {
        self.offline.then(|| {
            "it runs without the network; `worktree.network: true` in your own configuration opens it"
                .to_owned()
        })
    }
}

/// Updates the worktree to the user's files. A plan without commands needs only the files that it
/// names.
pub(super) fn prepare(
    project: &Project,
    env: &RunEnv<'_>,
    extent: Extent<'_>,
    user: &mut dyn User,
) -> anyhow::Result<PreparedWorktree> {
    let repository = &project.repository;
    if let Extent::All = extent
        && let Some(prepared) = prepare_overlay(project, env, user)?
    {
        return Ok(prepared);
    }

    let opened = filling(env, extent, user, |aim| {
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
    let provided = provide_files(project, &mut worktree)?;
    report_lacks(&provided.missing, &provided.editable, user);
    worktree.make_git_dir(repository, env.before)?;
    Ok(PreparedWorktree {
        worktree,
        linked: provided.linked,
        overlay: None,
    })
}

fn report_lacks(missing: &[Vec<u8>], editable: &[Vec<u8>], user: &mut dyn User) {
    if !missing.is_empty() || !editable.is_empty() {
        user.report(Event::Notice(Notice::CopyLacks {
            missing: lossy_paths(missing),
            editable: lossy_paths(editable),
        }));
    }
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
    env: &RunEnv<'_>,
    extent: Extent<'_>,
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
        filling(env, Extent::All, user, |aim| {
            worktree.recreate(&project.repository, aim)
        })?;
    }

    provide_files(project, worktree)?;
    worktree.make_git_dir(&project.repository, env.before)?;
    let ended = run_setup(project, env, setup, worktree, None, user)?;
    worktree.remove_git_dir()?;

    // The script can have stopped anywhere, so the next turn starts over.
    if let Some(failed) = SetupFailed::of(ended, project) {
        worktree::remove_session_worktree(&project.repository, env.name)?;
        return Err(failed.into());
    }

    // Only the ignored files that the script created are kept.
    filling(env, Extent::All, user, |aim| {
        worktree.repair(&project.repository, aim)
    })?;
    worktree.keep_setup(setup)
}

fn run_setup(
    project: &Project,
    env: &RunEnv<'_>,
    setup: &str,
    worktree: &SessionWorktree,
    view: Option<u32>,
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
        .holding(project.checkout().commands_lock(env.name))
        .with_overlay(view);
    let script = Script {
        env: confine::variables(project, worktree, launcher.policy.as_ref()),
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
    worktree: &mut SessionWorktree,
) -> anyhow::Result<ProvisionedFiles> {
    let settings = &project.settings.worktree;
    let provided = provision::provision_files(
        worktree,
        &project.repository,
        &ProvisionRules {
            copy: settings.copy.clone(),
            link: settings.link.clone(),
        },
        &project.limits(),
    )?;
    worktree.linked.clone_from(&provided.linked);
    worktree.module_dirs.clone_from(&provided.module_dirs);
    Ok(provided)
}

const GIT_DIR: &str = ".git";

/// `None` if commands run in a checkout instead.
fn prepare_overlay(
    project: &Project,
    env: &RunEnv<'_>,
    user: &mut dyn User,
) -> anyhow::Result<Option<PreparedWorktree>> {
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
    let (limits, index) = (
        project.limits(),
        project.checkout().index(&repository.worktree_name()),
    );
    let tree = match env.users_own {
        true => env.tree,
        false => snapshot::snapshot(&project.checkout(), &[])?.tree,
    };
    let lower = LowerFiles {
        tree,
        start: env.tree,
        index: &index,
        limits: &limits,
    };
    let cached_secrets = project.secrets(&repository.worktree_name());
    let secrets = SecretSearch::new(repository, &limits, &cached_secrets, &index);
    // In parallel: the search needs no mount.
    let work = || {
        let holder = OverlayHolder::start();
        let root = project.worktrees();
        let opened = session_layer(repository, &root, env.name, &lower);
        let mut worktree = opened.map_err(unmade)?;
        fault::point("after-layer")?;
        let mounted = mount_layer(repository, env, &mut worktree, holder)?;
        Ok::<_, anyhow::Error>((worktree, mounted))
    };
    let (secret_paths, layer) = join_both(|| secrets.run(), work);

    let (mut worktree, mounted) = layer?;
    if !worktree.covers_checkout() {
        // The user's modules are hidden, as from a copy.
        let found = provision::find_modules(&worktree, repository, &limits)?;
        report_lacks(&[], &found.editable, user);
        worktree.module_dirs = found.module_dirs;
    }
    let mut prepared = PreparedWorktree {
        worktree,
        linked: Vec::new(),
        overlay: None,
    };
    if let Err(why) =
        hide_secrets_in_overlay(project, &lower, secret_paths, mounted, &mut prepared)?
    {
        return Ok(Err(why));
    }
    if set_up_overlay(project, env, &lower, &secrets, &mut prepared, user)? {
        prepared.overlay = None;
        // Changes to tracked files by `worktree.setup` are not part of the plan's result.
        prepared.worktree.prune_layer(repository, &lower)?;
        if let Err(why) = mount_overlay(project, env, &lower, &secrets, &mut prepared)? {
            return Ok(Err(why));
        }
    }
    Ok(Ok(prepared))
}

/// Hides the user's git directory and secrets.
fn mount_overlay(
    project: &Project,
    env: &RunEnv<'_>,
    lower: &LowerFiles<'_>,
    secrets: &SecretSearch<'_>,
    prepared: &mut PreparedWorktree,
) -> anyhow::Result<Result<(), String>> {
    let work = || {
        let holder = OverlayHolder::start();
        mount_layer(&project.repository, env, &mut prepared.worktree, holder)
    };
    let (secret_paths, mounted) = join_both(|| secrets.run(), work);
    hide_secrets_in_overlay(project, lower, secret_paths, mounted?, prepared)
}

/// Secrets are still visible.
fn mount_layer(
    repository: &Repository,
    env: &RunEnv<'_>,
    worktree: &mut SessionWorktree,
    holder: Result<OverlayHolder, String>,
) -> anyhow::Result<Result<Overlay, String>> {
    worktree.make_git_dir(repository, env.before)?;
    if worktree.leave_checkout(repository) {
        worktree.make_git_dir(repository, env.before)?;
    }
    let hidden = worktree
        .hide_users_git_dir()
        .map_err(|error| format!("{error:#}"));
    let foreign = worktree.hide_foreign_control_dirs(repository, env.tree)?;
    let dirs = worktree.overlay(repository)?;
    let mounted = hidden.and_then(|()| holder?.mount(&dirs, GIT_DIR));
    if let Ok(overlay) = &mounted {
        let root = overlay.root()?;
        // What is empty and opaque becomes a whiteout, so that tools find no directory at all.
        for name in foreign {
            remove_below(&root, OsStr::new(name))?;
        }
    }
    Ok(mounted)
}

/// Fails closed: if secrets cannot be hidden, no overlay is used.
fn hide_secrets_in_overlay(
    project: &Project,
    lower: &LowerFiles<'_>,
    found: anyhow::Result<FoundSecrets>,
    mounted: Result<Overlay, String>,
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
        hide_secrets(repository, lower, &root, found, copy)
    });
    if let Err(error) = hidden {
        drop(overlay);
        worktree.remove_git_dir()?;
        return Ok(Err(format!("your secrets cannot be hidden: {error:#}")));
    }
    worktree.stub_repositories(repository, &root)?;
    if lower.start != lower.tree {
        let switched = switch_view(repository, lower.tree, lower.start, &overlay.path());
        switched.context("preparing an earlier state of the files")?;
    }
    fault::point("after-mount")?;
    prepared.overlay = Some(overlay);
    Ok(Ok(()))
}

/// Returns whether the script ran.
fn set_up_overlay(
    project: &Project,
    env: &RunEnv<'_>,
    below: &LowerFiles<'_>,
    secrets: &SecretSearch<'_>,
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
        if let Err(why) = mount_overlay(project, env, below, secrets, prepared)? {
            anyhow::bail!("the layer cannot be mounted again: {why}");
        }
    }

    let ended = run_setup(
        project,
        env,
        setup,
        &prepared.worktree,
        prepared.overlay_holder(),
        user,
    )?;
    if let Some(failed) = SetupFailed::of(ended, project) {
        prepared.overlay = None;
        let removed = prepared.worktree.remove_layer();
        removed.context("removing the layer of the session")?;
        return Err(failed.into());
    }
    // A power cut must not leave the note without the files.
    prepared.worktree.flush_layer()?;
    prepared.worktree.keep_setup(setup)?;
    Ok(true)
}

pub(in crate::workflow) struct RunEnv<'a> {
    /// Usually that of the session.
    pub name: &'a str,
    pub tip: &'a Turn,
    pub before: CommitId,
    pub tree: TreeId,
    /// Gives only recorded pages and searches, and no network for confined commands.
    pub is_replay: bool,
    /// The files at the start are the user's current files. Otherwise commands see those of the tree
    /// next to the user's ignored files.
    pub users_own: bool,
    /// TAKE reads from these.
    pub artifacts: &'a Artifacts,
}
