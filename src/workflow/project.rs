//! `Project`: a repository with its settings and the session in use; what every workflow starts
//! from.

mod ailing;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::Context as _;

use crate::config::error;
use crate::config::layer::{self, Layer};
use crate::config::settings::Settings;
use crate::config::trust::{self, Trust};
use crate::git::refs;
use crate::git::repository::Repository;
use crate::git::snapshot::limits::SnapshotLimits;
use crate::host::fault;
use crate::host::file::{Root, make_folders, read_regular_text, write_atomic};
use crate::host::lock::{Lock, LockError, patience};
use crate::host::process;
use crate::model::manual::{Give, Take};
use crate::model::outside::Outside;
use crate::session::journal::Journal;
use crate::session::name::SessionName;
use crate::session::store::Store;
use crate::workflow::context::teddy_files::{GLOBAL, MAX_FILE, is_own_global};
use crate::workflow::user::{User, telling};
use crate::workspace::transaction::Transaction;
use crate::workspace::{Checkout, recover};

/// A session's name and a line end.
const MAX_NAME: u64 = 1024;

/// Where the user keeps what is not a project's.
#[derive(Debug, Clone)]
pub struct UserFolders {
    /// The home directory.
    pub home: Option<PathBuf>,
    /// `$XDG_CONFIG_HOME/teddy`
    pub config: PathBuf,
    /// The user's configuration file.
    pub config_file: PathBuf,
    /// `$XDG_CACHE_HOME/teddy`
    pub cache: PathBuf,
}

/// The hands of a person: they give the input of a `manual` model away and take its answer.
#[derive(Clone)]
pub struct Hands {
    /// Gives a text away.
    pub give: Rc<Give>,
    /// Takes the answer.
    pub take: Rc<Take>,
}

impl Default for Hands {
    /// Returns nobody's.
    fn default() -> Hands {
        let Outside { give, take, .. } = Outside::default();
        Hands { give, take }
    }
}

/// What the command line says about the project.
#[derive(Debug, Clone, Default)]
pub struct ProjectOptions {
    /// The session, by `--session` or `TEDDY_SESSION`.
    pub session: Option<SessionName>,
    /// Settings of this call, `-c key=value`.
    pub settings: Vec<(String, String)>,
}

/// A repository with its settings.
pub struct Project {
    /// The repository.
    pub repository: Repository,
    /// The settings that hold.
    pub settings: Settings,
    /// What of the repository's own `.teddy/` takes trust, read once: what is judged is what is
    /// used.
    pub proposed: BTreeMap<String, String>,
    /// Whether exactly that is trusted.
    pub trusted: bool,
    /// Settings of the repository that are ignored.
    pub ignored: Vec<String>,
    /// Where the user's things are.
    pub places: UserFolders,
    /// How a person carries the input of a `manual` model away and brings its answer.
    pub hands: Hands,
    /// The session that was asked for.
    wanted: Option<SessionName>,
}

/// No session is in use.
#[derive(Debug, thiserror::Error)]
#[error("no session is in use here")]
pub struct NoSession {
    /// Whether one can be started: there are files to work on.
    pub can_start: bool,
}

impl Project {
    /// Opens the project of a folder.
    ///
    /// # Errors
    /// Where there is no fit repository, or a configuration is wrong.
    pub fn open(
        folder: &Path,
        places: UserFolders,
        wanted: ProjectOptions,
    ) -> anyhow::Result<Project> {
        let repository = Repository::discover(folder, places.home.as_deref())?;
        Project::of(repository, places, wanted)
    }

    /// Opens the project of a folder to read its record only: a bare repository will do.
    ///
    /// # Errors
    /// As for [`Project::open`].
    pub fn open_record(
        folder: &Path,
        places: UserFolders,
        wanted: ProjectOptions,
    ) -> anyhow::Result<Project> {
        let repository = Repository::discover_record(folder, places.home.as_deref())?;
        Project::of(repository, places, wanted)
    }

    /// Reads the settings that hold in a repository.
    fn of(
        repository: Repository,
        places: UserFolders,
        wanted: ProjectOptions,
    ) -> anyhow::Result<Project> {
        let teddy = repository.workdir().join(".teddy");
        let record = Trust::of(&places.config, &repository.common_dir()).record();
        let proposed = proposed(&repository);
        let trusted = record.covers(&proposed);
        let mut own = match proposed.get("config.yaml") {
            Some(text) => Layer::parse(&teddy.join("config.yaml").display().to_string(), text)?,
            None => Layer::default(),
        };
        let mut ignored = own.confine(trusted);
        let users = [
            Layer::from_git(&repository.config_section("teddy"))?,
            Layer::read(&places.config_file)?,
        ];

        if !trusted {
            ignored.extend(own.lower(&layer::merge(&users)?));
        }

        let [git, user] = users;
        let settings = layer::merge(&[
            git,
            user,
            own,
            Layer::from_pairs(error::CALL, &wanted.settings)?,
        ])?;
        process::withhold(
            Outside::default()
                .keys
                .into_iter()
                .chain(settings.key_variables()),
        );

        Ok(Project {
            repository,
            settings,
            proposed,
            trusted,
            ignored,
            places,
            hands: Hands::default(),
            wanted: wanted.session,
        })
    }

    /// Returns the user's files.
    pub fn checkout(&self) -> Checkout<'_> {
        Checkout {
            repository: &self.repository,
            limits: self.limits(),
            worktrees: self.worktrees(),
        }
    }

    /// Takes the lock under which refs and the user's files change, and recovers first.
    ///
    /// # Errors
    /// If another process holds it for too long, or what a crash left cannot be finished.
    pub fn enter(&self, command: &str, user: &mut dyn User) -> anyhow::Result<Transaction> {
        Transaction::enter(&self.checkout(), command, &mut telling(user))
    }

    /// Finishes what a crash interrupted, under the lock. Returns whether there was anything to do.
    ///
    /// # Errors
    /// As for [`Project::enter`].
    pub fn recover(&self, user: &mut dyn User) -> anyhow::Result<bool> {
        let lock = self.lock("recover")?;
        fault::point("after-lock")?;
        Ok(recover::recover(&self.checkout(), &mut telling(user))? | lock.abandoned)
    }

    /// Finishes what a crash interrupted, under the lock, and looks at everything that the refs
    /// reach.
    ///
    /// # Errors
    /// As for [`Project::enter`].
    pub fn recover_thoroughly(&self, user: &mut dyn User) -> anyhow::Result<bool> {
        let lock = self.lock("recover")?;
        fault::point("after-lock")?;
        Ok(recover::recover_thoroughly(&self.checkout(), &mut telling(user))? | lock.abandoned)
    }

    /// Returns the sessions.
    pub fn store(&self) -> Store<'_> {
        Store {
            repository: &self.repository,
        }
    }

    /// Returns the journal.
    pub fn journal(&self) -> Journal {
        Journal::new(&self.repository.teddy_dir())
    }

    /// Returns the session in use: the one asked for, else the one last used in this worktree,
    /// else the only one that there is.
    ///
    /// # Errors
    /// [`NoSession`].
    pub fn session(&self) -> anyhow::Result<SessionName> {
        if let Some(wanted) = &self.wanted {
            return Ok(wanted.clone());
        }

        let last = read_regular_text(&self.last_used(), MAX_NAME)
            .ok()
            .and_then(|text| SessionName::from_ref(text.trim()).ok());
        if let Some(last) = last
            // A damaged ref is that of a session all the same; whoever changes something mends it
            // first.
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

    /// Returns the session that the name of a turn has before it, such as `origin/add-auth:3`, else
    /// the one in use.
    ///
    /// # Errors
    /// As for [`Project::session`].
    pub fn session_of(&self, turn: &str) -> anyhow::Result<SessionName> {
        if let Some((before, _)) = turn.split_once(':')
            && let Ok(named) = SessionName::from_address(before)
        {
            return Ok(named);
        }

        // The whole name of one of a remote stands for its newest turn.
        match SessionName::from_address(turn) {
            Ok(named) if named.remote().is_some() && self.has(&named) => Ok(named),
            _ => self.session(),
        }
    }

    /// Returns whether there is a session of this name.
    fn has(&self, session: &SessionName) -> bool {
        let found = refs::read(&self.repository, &session.reference());
        found.is_ok_and(|found| found.is_some())
    }

    /// Returns the session that this call names, if it names one.
    pub fn named_session(&self) -> Option<SessionName> {
        self.wanted.clone()
    }

    /// Works on a session for the rest of this call; the one in use in this worktree stays the one
    /// in use.
    pub fn work_on(&mut self, session: &SessionName) {
        self.wanted = Some(session.clone());
    }

    /// Makes a session the one in use in this worktree.
    ///
    /// # Errors
    /// Where the note cannot be written.
    pub fn use_session(&mut self, session: &SessionName) -> anyhow::Result<()> {
        self.wanted = Some(session.clone());
        let path = self.last_used();
        let folder = path.parent().expect("the note has a folder");
        make_folders(folder).with_context(|| format!("making `{}`", folder.display()))?;
        if read_regular_text(&path, MAX_NAME).is_ok_and(|text| text.trim() == session.as_str()) {
            return Ok(());
        }

        Ok(write_atomic(&path, format!("{session}\n").as_bytes())?)
    }

    /// Returns a name that no session has: the wanted one, or it with a number.
    ///
    /// # Errors
    /// Where the refs cannot be read.
    pub fn free_name(&self, wanted: SessionName) -> anyhow::Result<SessionName> {
        let mut name = wanted.clone();
        let mut number = 1;
        while refs::read(&self.repository, &name.reference())?.is_some() {
            number += 1;
            name = wanted.numbered(number);
        }
        Ok(name)
    }

    /// Takes the lock under which refs move and the user's files change.
    ///
    /// # Errors
    /// Where another process holds it for too long.
    pub fn lock(&self, command: &str) -> Result<Lock, LockError> {
        Lock::take(&self.repository.teddy_dir(), command, patience())
    }

    /// Takes the lock of a session's turn in progress and its worktree.
    ///
    /// # Errors
    /// As for [`Project::lock`].
    pub fn lock_session(&self, session: &SessionName, command: &str) -> anyhow::Result<Lock> {
        session.writable()?;
        let lock = Lock::take(
            &self
                .repository
                .teddy_dir()
                .join("locks")
                .join(session.as_str()),
            command,
            patience(),
        )?;
        // Its commands may still be running, in the worktree that this call is about to use; who
        // watches them ends them if TeDDy was killed.
        Lock::outlast(&self.commands_lock(session.as_str()), patience())?;
        if lock.abandoned {
            crate::host::shell::end_orphans();
        }

        Ok(lock)
    }

    /// Returns the file that is locked while a command runs in a session's worktree, by the
    /// session's name or that of its folder.
    pub fn commands_lock(&self, name: &str) -> PathBuf {
        let session =
            SessionName::from_folder(name).map_or_else(|| name.to_owned(), |name| name.to_string());

        // No session can have this name: git refuses refs that end like that.
        self.repository
            .teddy_dir()
            .join("locks")
            .join(session)
            .join("commands.lock")
    }

    /// Returns the private index of a checkout.
    pub fn index(&self, name: &str) -> PathBuf {
        self.repository.teddy_dir().join("index").join(name)
    }

    /// Returns the file that keeps which secrets there are in a checkout.
    pub fn secrets(&self, name: &str) -> PathBuf {
        self.repository.teddy_dir().join("secrets").join(name)
    }

    /// Returns what a snapshot leaves out.
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

    /// Returns the folder that holds the worktrees of this repository's sessions.
    pub fn worktrees(&self) -> PathBuf {
        let root = match &self.settings.worktree.root {
            Some(root) => self.repository.workdir().join(root),
            None => self.places.cache.join("worktrees"),
        };
        root.join(self.repository.identity())
    }

    /// Returns where the session last used in this worktree is noted.
    fn last_used(&self) -> PathBuf {
        self.repository
            .teddy_dir()
            .join("current")
            .join(self.repository.worktree_name())
    }
}

/// Returns how a project is called: as its folder.
pub fn project_name(project: &Project) -> String {
    let folder = project.repository.workdir();
    let name = folder.file_name().unwrap_or(folder.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Returns what takes trust: configuration, prompts and pipelines, and the context of every session
/// where it came with a commit.
fn proposed(repository: &Repository) -> BTreeMap<String, String> {
    // A bare repository has no files that could propose something.
    if repository.is_bare() {
        return BTreeMap::new();
    }

    let mut files = trust::files(&repository.workdir().join(".teddy"));
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
