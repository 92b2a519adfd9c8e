//! Locates, reads and writes an agent's settings file. Symlinks that lead outside the home
//! directory or project are not followed.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;

use super::{HookedAgent, entry};
use crate::host::env;
use crate::host::file::{FileMode, Root, make_shared_dirs, replace_if};
use crate::workflow::hint::{error_with_hint, with_hint};

const MAX_FILE: u64 = 4 << 20;
const MAX_ATTEMPTS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// Owner of the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookScope {
    /// The project, for all its users.
    Project,
    /// The user, for all projects.
    User,
}

/// A settings file.
#[derive(Debug)]
pub struct HookFile {
    agent: HookedAgent,
    /// No symlink below this directory is followed.
    root: PathBuf,
    /// Path relative to `root`.
    rel_path: PathBuf,
}

/// A change of a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookChange {
    /// Current content; `None` if absent.
    pub before: Option<String>,
    /// New content; `None` to delete the file.
    pub after: Option<String>,
}

impl HookFile {
    /// Settings file in a project. Fails for Codex, which reads `notify` only from the user's
    /// settings.
    pub fn of_project(agent: HookedAgent, project: &Path) -> anyhow::Result<HookFile> {
        if agent == HookedAgent::Codex {
            return Err(error_with_hint(
                "Codex takes `notify` from your own settings only",
                "`teddy hooks install codex --user`",
            ));
        }
        Ok(HookFile {
            agent,
            root: project.to_owned(),
            rel_path: Path::new(agent.config_dir()).join(agent.file()),
        })
    }

    /// Settings file of the user. Follows symlinks within the home directory: many users keep their
    /// settings in a repository there.
    pub fn of_user(agent: HookedAgent, home: Option<&Path>) -> anyhow::Result<HookFile> {
        if let Some(dir) = agent.dir_variable().and_then(env::dir_var) {
            return Ok(HookFile {
                agent,
                root: dir,
                rel_path: agent.file().into(),
            });
        }

        let home = home.context("HOME is not set")?;
        let path = home.join(agent.config_dir()).join(agent.file());
        let home = home.canonicalize().context("the home folder is gone")?;
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(_) => home.join(agent.config_dir()).join(agent.file()),
        };
        let rel_path = real.strip_prefix(&home).map_err(|_| {
            let (path, real) = (path.display(), real.display());
            anyhow::anyhow!("`{path}` is `{real}`, which is not below your home folder")
        })?;
        Ok(HookFile {
            agent,
            rel_path: rel_path.to_owned(),
            root: home.clone(),
        })
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        self.root.join(&self.rel_path)
    }

    /// Its content; `None` if absent.
    pub fn read(&self) -> anyhow::Result<Option<String>> {
        let Ok(root) = Root::open(&self.root) else {
            return Ok(None);
        };
        if root.kind(&self.rel_path)?.is_none() {
            return Ok(None);
        }
        let bytes = root.read(&self.rel_path, MAX_FILE)?;
        let text = String::from_utf8(bytes);
        text.map(Some)
            .with_context(|| format!("`{}` is not UTF-8", self.path().display()))
    }

    /// State of our entry.
    pub fn state(&self) -> anyhow::Result<entry::EntryState> {
        entry::entry_state(self.agent, &self.read()?.unwrap_or_default())
            .with_context(|| format!("`{}` is left as it is", self.path().display()))
    }

    /// Programs that our entries call.
    pub fn programs(&self) -> anyhow::Result<Vec<String>> {
        entry::entry_programs(self.agent, &self.read()?.unwrap_or_default())
    }

    /// The change that adds our entry.
    pub fn to_install(&self) -> anyhow::Result<HookChange> {
        let before = self.read()?;
        let after = match before.as_deref() {
            Some(before) => entry::with_entry(self.agent, before),
            None => entry::created(self.agent),
        };
        Ok(HookChange {
            after: Some(after.map_err(|error| self.refused(error))?),
            before,
        })
    }

    /// The change that removes our entry. A file that the addition created is deleted, unless it has
    /// other content by now.
    pub fn to_remove(&self) -> anyhow::Result<HookChange> {
        let Some(before) = self.read()? else {
            return Ok(HookChange {
                before: None,
                after: None,
            });
        };
        let after =
            entry::without_entry(self.agent, &before).map_err(|error| self.refused(error))?;
        let is_created = after != before && entry::is_created(self.agent, &before, &after);
        Ok(HookChange {
            before: Some(before),
            after: (!is_created).then_some(after),
        })
    }

    /// Adds the path and keeps the hint.
    fn refused(&self, error: anyhow::Error) -> anyhow::Error {
        let hint = error.downcast_ref::<crate::workflow::hint::HintedError>();
        let hint = hint.map(|hinted| hinted.hint.clone());
        let error = anyhow::anyhow!("`{}` is left as it is: {error:#}", self.path().display());
        match hint {
            Some(hint) => with_hint(error, hint),
            None => error,
        }
    }

    /// Writes a change. If the agent saves the file at the same time, makes the change again for
    /// what it saved.
    pub fn write(
        &self,
        mut change: HookChange,
        make: fn(&HookFile) -> anyhow::Result<HookChange>,
    ) -> anyhow::Result<()> {
        for _ in 0..MAX_ATTEMPTS {
            if self.write_once(&change)? {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
            change = make(self)?;
        }
        anyhow::bail!(
            "`{}` is changed by another program all the time; try again",
            self.path().display()
        )
    }

    /// Returns `false` if the file is not what the change was made for.
    fn write_once(&self, change: &HookChange) -> anyhow::Result<bool> {
        if change.before == change.after {
            return Ok(true);
        }
        make_shared_dirs(&self.root)?;
        let root = Root::open(&self.root)?;
        let Some(before) = &change.before else {
            let after = change.after.as_deref().unwrap_or_default();
            let created = root.create_new(&self.rel_path, after.as_bytes(), FileMode::Plain);
            return match created {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
                created => Ok(created.map(|()| true)?),
            };
        };
        let after = change.after.as_deref().map(str::as_bytes);
        match replace_if(&root, &self.rel_path, before.as_bytes(), after) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            replaced => Ok(replaced?),
        }
    }
}
