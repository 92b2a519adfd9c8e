//! The file of an agent's settings: where it is, and how it is written without following a link out
//! of the place where it belongs.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::{HookedAgent, entry};
use crate::host::env;
use crate::host::file::{FileMode, Root, remove_below};
use crate::workflow::hinted::{hinted, with_hint};

/// The largest file that is read.
const MAX_FILE: u64 = 4 << 20;

/// Whose settings they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookScope {
    /// The project's, for everybody who works on it.
    Project,
    /// The user's own, for all projects.
    User,
}

/// A file of settings.
#[derive(Debug)]
pub struct HookFile {
    /// The agent.
    agent: HookedAgent,
    /// The folder below which no link is followed.
    root: PathBuf,
    /// The path below it.
    below: PathBuf,
}

/// What is to become of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookChange {
    /// What it has; nothing if it is not there.
    pub before: Option<String>,
    /// What it gets; nothing if it goes.
    pub after: Option<String>,
}

impl HookFile {
    /// Returns the file of an agent's settings in a project.
    ///
    /// # Errors
    /// The agent has none there.
    pub fn of_project(agent: HookedAgent, project: &Path) -> anyhow::Result<HookFile> {
        if agent == HookedAgent::Codex {
            return Err(hinted(
                "Codex takes `notify` from your own settings only",
                "`teddy hooks install codex --user`",
            ));
        }
        Ok(HookFile {
            agent,
            root: project.to_owned(),
            below: Path::new(agent.folder()).join(agent.file()),
        })
    }

    /// Returns the file of a user's own settings. Links are followed as long as they stay below
    /// the home folder: many keep their settings in a repository there.
    ///
    /// # Errors
    /// It is kept elsewhere, or there is no home folder.
    pub fn of_user(agent: HookedAgent, home: Option<&Path>) -> anyhow::Result<HookFile> {
        if let Some(folder) = agent.folder_variable().and_then(env::folder) {
            return Ok(HookFile {
                agent,
                root: folder,
                below: agent.file().into(),
            });
        }

        let home = home.context("HOME is not set")?;
        let path = home.join(agent.folder()).join(agent.file());
        let home = home.canonicalize().context("the home folder is gone")?;
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(_) => home.join(agent.folder()).join(agent.file()),
        };
        let below = real.strip_prefix(&home).map_err(|_| {
            let (path, real) = (path.display(), real.display());
            anyhow::anyhow!("`{path}` is `{real}`, which is not below your home folder")
        })?;
        Ok(HookFile {
            agent,
            below: below.to_owned(),
            root: home.clone(),
        })
    }

    /// Returns its path.
    pub fn path(&self) -> PathBuf {
        self.root.join(&self.below)
    }

    /// Returns what it has; nothing if it is not there.
    ///
    /// # Errors
    /// It cannot be read, or is no text.
    pub fn read(&self) -> anyhow::Result<Option<String>> {
        let Ok(root) = Root::open(&self.root) else {
            return Ok(None);
        };
        if root.kind(&self.below)?.is_none() {
            return Ok(None);
        }
        let bytes = root.read(&self.below, MAX_FILE)?;
        let text = String::from_utf8(bytes);
        text.map(Some)
            .with_context(|| format!("`{}` is not UTF-8", self.path().display()))
    }

    /// Returns what it says of us.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn state(&self) -> anyhow::Result<entry::EntryState> {
        entry::state(self.agent, &self.read()?.unwrap_or_default())
            .with_context(|| format!("`{}` is left as it is", self.path().display()))
    }

    /// Returns the programs that our entries in it call.
    ///
    /// # Errors
    /// As for [`HookFile::state`].
    pub fn programs(&self) -> anyhow::Result<Vec<String>> {
        entry::programs(self.agent, &self.read()?.unwrap_or_default())
    }

    /// Returns what it takes to add our entry.
    ///
    /// # Errors
    /// The file cannot be read, or has something else in its place.
    pub fn to_install(&self) -> anyhow::Result<HookChange> {
        let before = self.read()?;
        let after = entry::added(self.agent, before.as_deref().unwrap_or_default());
        Ok(HookChange {
            after: Some(after.map_err(|error| self.refused(error))?),
            before,
        })
    }

    /// Returns what it takes to remove our entry. A file with nothing else in it goes.
    ///
    /// # Errors
    /// As for [`HookFile::to_install`].
    pub fn to_remove(&self) -> anyhow::Result<HookChange> {
        let Some(before) = self.read()? else {
            return Ok(HookChange {
                before: None,
                after: None,
            });
        };
        let after = entry::removed(self.agent, &before).map_err(|error| self.refused(error))?;
        let is_empty = ["", "{}"].contains(&after.trim()) && after != before;
        Ok(HookChange {
            before: Some(before),
            after: (!is_empty).then_some(after),
        })
    }

    /// Says that the file is left as it is; a hint stays one.
    fn refused(&self, error: anyhow::Error) -> anyhow::Error {
        let hint = error.downcast_ref::<crate::workflow::hinted::Hinted>();
        let hint = hint.map(|hinted| hinted.hint.clone());
        let error = anyhow::anyhow!("`{}` is left as it is: {error:#}", self.path().display());
        match hint {
            Some(hint) => with_hint(error, hint),
            None => error,
        }
    }

    /// Writes a change.
    ///
    /// # Errors
    /// The file is not as it was any more, or cannot be written; it is whole in any case.
    pub fn write(&self, change: &HookChange) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.read()? == change.before,
            "`{}` changed meanwhile; try again",
            self.path().display()
        );
        crate::host::file::make_shared_folders(&self.root)?;
        let root = Root::open(&self.root)?;
        match (&change.before, &change.after) {
            (Some(_), Some(after)) => root.replace(&self.below, after.as_bytes())?,
            (None, Some(after)) => {
                root.create_new(&self.below, after.as_bytes(), FileMode::Plain)?;
            }
            (Some(_), None) => {
                let folder = self.below.parent().unwrap_or(Path::new(""));
                let name = self.below.file_name().context("the file has a name")?;
                remove_below(&root.folder(folder)?, name)?;
            }
            (None, None) => {}
        }
        Ok(())
    }
}
