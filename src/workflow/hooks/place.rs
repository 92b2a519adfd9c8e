//! Locates, reads and writes an agent's settings file. Symlinks that lead outside the home
//! directory or project are not followed.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::{HookedAgent, entry};
use crate::host::env;
use crate::host::file::{FileMode, Root, remove_below};
use crate::workflow::hinted::{hinted, with_hint};

const MAX_FILE: u64 = 4 << 20;

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
    below: PathBuf,
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

    /// Settings file of the user. Follows symlinks within the home directory: many users keep their
    /// settings in a repository there.
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

    /// Its path.
    pub fn path(&self) -> PathBuf {
        self.root.join(&self.below)
    }

    /// Its content; `None` if absent.
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

    /// State of our entry.
    pub fn state(&self) -> anyhow::Result<entry::EntryState> {
        entry::state(self.agent, &self.read()?.unwrap_or_default())
            .with_context(|| format!("`{}` is left as it is", self.path().display()))
    }

    /// Programs that our entries call.
    pub fn programs(&self) -> anyhow::Result<Vec<String>> {
        entry::programs(self.agent, &self.read()?.unwrap_or_default())
    }

    /// The change that adds our entry.
    pub fn to_install(&self) -> anyhow::Result<HookChange> {
        let before = self.read()?;
        let after = entry::added(self.agent, before.as_deref().unwrap_or_default());
        Ok(HookChange {
            after: Some(after.map_err(|error| self.refused(error))?),
            before,
        })
    }

    /// The change that removes our entry. A file without other content is deleted.
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

    /// Adds the path and keeps the hint.
    fn refused(&self, error: anyhow::Error) -> anyhow::Error {
        let hint = error.downcast_ref::<crate::workflow::hinted::Hinted>();
        let hint = hint.map(|hinted| hinted.hint.clone());
        let error = anyhow::anyhow!("`{}` is left as it is: {error:#}", self.path().display());
        match hint {
            Some(hint) => with_hint(error, hint),
            None => error,
        }
    }

    /// Writes a change. Fails if the file changed since it was read.
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
