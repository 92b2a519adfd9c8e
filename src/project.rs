//! `Project`: a repository with its settings and its current session. All workflows start from it.
//!
//! Settings of an untrusted repository are confined when the project is opened.

pub mod teddy_files;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context as _;

use crate::config::layer::{self, ConfigError, Layer};
use crate::config::settings::Settings;
use crate::config::trust::{self, Trust};
use crate::git::land::commit::INSIDE;
use crate::git::open::OpenError;
use crate::git::repository::Repository;
use crate::git::snapshot::limits::SnapshotLimits;
use crate::git::{refs, worktree};
use crate::host::file::{
    Root, keep_temporary_files_outside, make_dirs, read_regular_text, write_atomic,
};
use crate::host::lock::{self, Lock, LockHolder, patience};
use crate::host::{env, process};
use crate::model::acting::mcp::McpServer;
use crate::model::known::usual_keys;
use crate::model::local::{Give, Take};
use crate::model::model_env::ModelEnv;
use crate::project::teddy_files::{GLOBAL, MAX_FILE, is_own_global};
use crate::session::draft::Draft;
use crate::session::journal::Journal;
use crate::session::name::SessionName;
use crate::session::store::Store;
use crate::session::turn::Turn;
use crate::text::hint::{error_with_hint, name_session};
use crate::text::sanitize::sanitize_line;
use crate::workspace::Checkout;

const MAX_NAME: u64 = 1024;

#[derive(Debug, Clone)]
pub struct UserDirs {
    pub home: Option<PathBuf>,
    /// `$XDG_CONFIG_HOME/teddy`
    pub config: PathBuf,
    pub config_file: PathBuf,
    /// `$XDG_CACHE_HOME/teddy`
    pub cache: PathBuf,
}

/// How the user carries the input of a `manual` model to a chat and its answer back.
#[derive(Clone)]
pub struct ManualIo {
    pub give: Rc<Give>,
    pub take: Rc<Take>,
}

impl Default for ManualIo {
    /// Without a user, both fail.
    fn default() -> ManualIo {
        let ModelEnv { give, take, .. } = ModelEnv::default();
        ManualIo { give, take }
    }
}

/// Of the command line.
#[derive(Debug, Clone, Default)]
pub struct ProjectOptions {
    /// From `--session` or `TEDDY_SESSION`.
    pub session: Option<SessionName>,
    /// From `-c key=value`.
    pub settings: Vec<(String, String)>,
    /// The call runs and records nothing, so it can do without the repository's settings if they are
    /// broken.
    pub reads_only: bool,
}

pub struct Project {
    pub repository: Repository,
    pub settings: Settings,
    /// Files of the repository's `.teddy/` that require trust. Read only once, so that exactly the
    /// files that were checked are used.
    pub proposed: BTreeMap<String, String>,
    /// The user trusts exactly these files.
    pub trusted: bool,
    /// Names of the repository's settings that do not apply.
    pub ignored: Vec<String>,
    /// Why none of the repository's settings applies.
    pub broken: Option<ConfigError>,
    pub user_dirs: UserDirs,
    pub manual_io: ManualIo,
    /// Of the editor that the call serves, for an agent inside.
    pub mcp_servers: Vec<McpServer>,
    /// Given for this call.
    requested_session: Option<SessionName>,
}

#[derive(Debug, thiserror::Error)]
#[error("no session is in use here")]
pub struct NoSession {
    /// The repository has a work tree.
    pub can_start: bool,
}

/// git knows the worktree of a session like a checkout of the user's, but the next plan would
/// discard what is done there.
fn is_no_session_worktree(repository: &Repository) -> anyhow::Result<()> {
    // Only linked worktrees can be those of a session.
    if repository.git_dir() == repository.common_dir() {
        return Ok(());
    }
    let listed = worktree::session_worktrees(repository).into_iter();
    let mut here = listed.filter(|listed| listed.path == repository.workdir());
    match here.next() {
        None => Ok(()),
        Some(listed) => Err(error_with_hint(
            format!(
                "this is the worktree of session `{}`, in which its plans run",
                listed.session
            ),
            "run TeDDy in your own checkout; `git worktree list` names it first",
        )),
    }
}

impl Project {
    pub fn open(
        dir: &Path,
        user_dirs: UserDirs,
        options: ProjectOptions,
    ) -> anyhow::Result<Project> {
        let repository = Repository::discover(dir, user_dirs.home.as_deref())?;
        is_no_session_worktree(&repository)?;
        Project::of(repository, user_dirs, options)
    }

    /// For commands that only read the record. Accepts a bare repository.
    pub fn open_record(
        dir: &Path,
        user_dirs: UserDirs,
        options: ProjectOptions,
    ) -> anyhow::Result<Project> {
        let repository = Repository::discover_record(dir, user_dirs.home.as_deref())?;
        Project::of(repository, user_dirs, options)
    }

    fn of(
        repository: Repository,
        user_dirs: UserDirs,
        options: ProjectOptions,
    ) -> anyhow::Result<Project> {
        let teddy = repository.workdir().join(".teddy");
        let record = Trust::of(&user_dirs.config, &repository.common_dir()).record();
        let proposed = proposed(&repository);
        let trusted = record.covers(&proposed);
        // Parsed from the bytes that the trust decision covers; the file is not read again.
        let text = proposed.get("config.yaml").map_or("", String::as_str);
        let mut broken = None;
        let mut own = match own_settings(&teddy.join("config.yaml"), text, trusted) {
            Err(error) if options.reads_only => {
                broken = Some(error);
                OwnSettings::default()
            }
            own => own?,
        };
        let users = [
            Layer::from_git(&repository.config_section("teddy"))?,
            Layer::read(&user_dirs.config_file)?,
        ];

        if !trusted {
            // Without trust, a repository can lower limits but not raise them.
            own.ignored.extend(own.layer.lower(&layer::merge(&users)?));
        }

        let [git, user] = users;
        let settings = layer::merge(&[
            git,
            user,
            own.layer,
            Layer::from_pairs(layer::CALL, &options.settings)?,
        ])?;
        keep_temporary_files_outside(repository.workdir());
        // From here on, child processes do not inherit variables with keys.
        process::withhold_env(usual_keys().chain(settings.key_variables()));

        Ok(Project {
            repository,
            settings,
            proposed,
            trusted,
            ignored: own.ignored,
            broken,
            user_dirs,
            manual_io: ManualIo::default(),
            mcp_servers: Vec::new(),
            requested_session: options.session,
        })
    }

    pub fn checkout(&self) -> Checkout<'_> {
        Checkout {
            repository: &self.repository,
            limits: self.limits(),
            worktrees: self.worktrees(),
        }
    }

    pub fn store(&self) -> Store<'_> {
        Store {
            repository: &self.repository,
        }
    }

    pub fn journal(&self) -> Journal {
        Journal::new(&self.repository.teddy_dir())
    }

    /// The given session, else the one in use here. Fails with [`NoSession`].
    pub fn session(&self) -> anyhow::Result<SessionName> {
        match &self.requested_session {
            Some(session) => Ok(session.clone()),
            None => self.session_in_use(),
        }
    }

    /// The last used in this worktree, else the only one. Fails with [`NoSession`].
    pub fn session_in_use(&self) -> anyhow::Result<SessionName> {
        let last = read_regular_text(&self.last_used(), MAX_NAME)
            .ok()
            .and_then(|text| SessionName::from_ref(text.trim()).ok());
        if let Some(last) = last
            // A damaged ref counts as existing; recovery will repair it.
            && refs::read(&self.repository, &last.reference()).map_or(true, |commit| commit.is_some())
        {
            return Ok(last);
        }

        match self.store().sessions()?.as_slice() {
            [(only, _)] => Ok(only.clone()),
            _ => Err(NoSession {
                can_start: !self.repository.is_bare(),
            }
            .into()),
        }
    }

    /// From a turn's name, such as `origin/add-auth:3`, else the current session.
    pub fn session_of(&self, turn: &str) -> anyhow::Result<SessionName> {
        if let Some((before, _)) = turn.split_once(':')
            && let Ok(session) = SessionName::from_address(before)
        {
            return Ok(session);
        }

        // The name of a fetched session denotes its newest turn.
        match SessionName::from_address(turn) {
            Ok(session) if session.remote().is_some() && self.has(&session) => Ok(session),
            _ => self.session(),
        }
    }

    fn has(&self, session: &SessionName) -> bool {
        let commit = refs::read(&self.repository, &session.reference());
        commit.is_ok_and(|commit| commit.is_some())
    }

    pub fn named_session(&self) -> Option<SessionName> {
        self.requested_session.clone()
    }

    /// For the rest of this call. The current session of the worktree stays the same.
    pub fn work_on(&mut self, session: &SessionName) {
        self.requested_session = Some(session.clone());
    }

    pub fn use_session(&mut self, session: &SessionName) -> anyhow::Result<()> {
        self.requested_session = Some(session.clone());
        name_session(None);
        let path = self.last_used();
        let dir = path.parent().expect("the note has a folder");
        make_dirs(dir).with_context(|| format!("making `{}`", dir.display()))?;
        if read_regular_text(&path, MAX_NAME).is_ok_and(|text| text.trim() == session.as_str()) {
            return Ok(());
        }

        Ok(write_atomic(&path, format!("{session}\n").as_bytes())?)
    }

    /// The newest turn of a session, and the draft of the next one.
    pub fn in_progress(&self, session: &SessionName) -> anyhow::Result<(Turn, Draft)> {
        let tip = self.store().tip(session)?;
        let draft = self.store().draft(&tip)?;
        Ok((tip, draft))
    }

    /// The model that the user chose for a session. `None` if the newest turn is another user's:
    /// the choice was for an earlier session of this name.
    pub fn session_model(&self, session: &SessionName) -> Option<String> {
        let tip = refs::read(&self.repository, &session.reference()).ok()??;
        self.journal().own_tip(session, tip)?;
        self.journal().model(session)
    }

    /// The session's model, else the configured one.
    pub fn model_of(&self, session: &SessionName) -> Option<String> {
        self.session_model(session)
            .or_else(|| self.settings.model.clone())
    }

    /// `preferred`, or that with a number.
    pub fn free_name(&self, preferred: SessionName) -> anyhow::Result<SessionName> {
        let mut name = preferred.clone();
        let mut number = 1;
        while self.store().has(&name)? {
            number += 1;
            name = preferred.numbered(number);
        }
        Ok(name)
    }

    /// The lock of a session covers its draft and its worktree.
    pub fn lock_session(&self, session: &SessionName, command: &str) -> anyhow::Result<Lock> {
        // Fetched sessions are read-only.
        session.writable()?;
        // A hook of `land` would wait for its own caller.
        let patience = match env::var(INSIDE) {
            Some(_) => Duration::ZERO,
            None => patience(),
        };
        let lock = Lock::take(&self.session_lock(session), command, patience)?;
        // Commands of a killed TeDDy can still run in the worktree, until their supervisor ends
        // them.
        Lock::wait_released(&self.checkout().commands_lock(session.as_str()), patience)?;
        // Their supervisor can have been killed, too.
        if lock.holder_crashed {
            crate::host::shell::end_orphans();
        }

        Ok(lock)
    }

    fn session_lock(&self, session: &SessionName) -> PathBuf {
        let locks = self.repository.teddy_dir().join("locks");
        locks.join(session.as_str())
    }

    /// Cached list of the secrets in a checkout.
    pub fn secrets(&self, name: &str) -> PathBuf {
        self.repository.teddy_dir().join("secrets").join(name)
    }

    pub fn limits(&self) -> SnapshotLimits {
        SnapshotLimits {
            max_file_size: self.settings.snapshot.max_file_size.0,
            max_new_files: self.settings.snapshot.max_new_files,
            max_new_size: self.settings.snapshot.max_new_size.0,
            exclude: self.settings.snapshot.exclude.clone(),
            include: self.settings.snapshot.include.clone(),
            ..SnapshotLimits::default()
        }
    }

    /// Parent directory of this repository's worktrees.
    pub fn worktrees(&self) -> PathBuf {
        let root = match &self.settings.worktree.root {
            Some(root) => self.repository.workdir().join(root),
            None => self.user_dirs.cache.join("worktrees"),
        };
        root.join(self.repository.identity())
    }

    fn last_used(&self) -> PathBuf {
        self.repository
            .teddy_dir()
            .join("current")
            .join(self.repository.worktree_name())
    }
}

/// Name of the project's directory.
pub fn project_name(project: &Project) -> String {
    let dir = project.repository.workdir();
    let name = dir.file_name().unwrap_or(dir.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Of the repository.
#[derive(Default)]
struct OwnSettings {
    layer: Layer,
    /// Names of those that do not apply.
    ignored: Vec<String>,
}

fn own_settings(file: &Path, text: &str, trusted: bool) -> Result<OwnSettings, ConfigError> {
    let mut layer = Layer::parse(&file.display().to_string(), text)?;
    let ignored = layer.confine(trusted);
    layer::merge(std::slice::from_ref(&layer))?;
    Ok(OwnSettings { layer, ignored })
}

/// Configuration, prompts, pipelines, and the global context list if it is committed.
fn proposed(repository: &Repository) -> BTreeMap<String, String> {
    // A bare repository has no work tree.
    if repository.is_bare() {
        return BTreeMap::new();
    }

    let mut files = trust::files(&repository.workdir().join(".teddy"));
    // A global list that git tracks is the repository's, and could name pages to fetch.
    if !is_own_global(repository) {
        let text = Root::open(repository.workdir())
            .and_then(|root| root.read(Path::new(GLOBAL), MAX_FILE))
            .unwrap_or_default();
        files.insert(
            "global.context".to_owned(),
            String::from_utf8_lossy(&text).into_owned(),
        );
    }

    files
}

impl Project {
    /// Accepts a bare repository. With invalid settings, uses the defaults and also returns the
    /// error.
    pub fn open_degraded(
        dir: &Path,
        user_dirs: &UserDirs,
        options: &ProjectOptions,
    ) -> Result<(Project, Option<anyhow::Error>), OpenError> {
        let find = || Repository::discover_record(dir, user_dirs.home.as_deref());
        match Project::of(find()?, user_dirs.clone(), options.clone()) {
            Ok(project) => Ok((project, None)),
            Err(mistake) => {
                let project = Project::without_settings(find()?, user_dirs, options);
                Ok((project, Some(mistake)))
            }
        }
    }

    fn without_settings(
        repository: Repository,
        user_dirs: &UserDirs,
        options: &ProjectOptions,
    ) -> Project {
        Project {
            proposed: proposed(&repository),
            repository,
            settings: Settings::default(),
            trusted: false,
            ignored: Vec::new(),
            broken: None,
            user_dirs: user_dirs.clone(),
            manual_io: ManualIo::default(),
            mcp_servers: Vec::new(),
            requested_session: options.session.clone(),
        }
    }
}

/// What a process does with the plan of a turn, as it tells others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanActivity {
    Review(u64),
    Run(u64),
}

/// Of the command that reviews and runs plans.
const EXECUTE: &str = "execute: ";
/// Ends the note of a process that has a plan in review.
pub const REVIEWED: &str = " is open in a review";
/// Ends the note of a process that runs a plan.
const RUNNING: &str = " is running";

impl PlanActivity {
    fn note(self) -> String {
        match self {
            PlanActivity::Review(turn) => format!("{EXECUTE}the plan for turn {turn}{REVIEWED}"),
            PlanActivity::Run(turn) => format!("{EXECUTE}turn {turn}{RUNNING}"),
        }
    }
}

/// Returns what the holder of a session's lock does, as a sentence without its full stop.
pub fn describe_activity(holder: &LockHolder) -> String {
    let activity = match holder.command.strip_prefix(EXECUTE) {
        Some(activity) => sanitize_line(activity).into_owned(),
        None => format!(
            "another `teddy {}` in this session",
            sanitize_line(&holder.command)
        ),
    };
    match holder.stopped {
        false => activity,
        true => {
            let turn = activity.strip_suffix(RUNNING);
            turn.map_or_else(
                || format!("{activity}, stopped"),
                |turn| format!("{turn} is stopped"),
            )
        }
    }
}

/// Returns whether the holder of a session's lock runs a plan.
pub fn is_running(holder: &LockHolder) -> bool {
    holder.command.ends_with(RUNNING)
}

/// Returns whether the holder of a session's lock has a plan in review.
pub fn is_in_review(holder: &LockHolder) -> bool {
    holder.command.ends_with(REVIEWED)
}

/// Another process that works in a session.
pub fn active_process(project: &Project, session: &SessionName) -> Option<LockHolder> {
    lock::living_holder(&project.session_lock(session))
}

/// For other processes, under the session's lock.
/// `None` at the end of it.
pub fn note_activity(project: &Project, session: &SessionName, activity: Option<PlanActivity>) {
    let note = activity.map_or_else(|| "execute".to_owned(), PlanActivity::note);
    lock::note_activity(&project.session_lock(session), &note);
}
