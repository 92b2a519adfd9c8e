//! Supplies validation with facts: one snapshot of the user's files, the context lists, the memos.

use std::collections::BTreeSet;
use std::path::Path;

use crate::git::object::read;
use crate::git::object::{BlobId, EntryMode, TreeId};
use crate::git::repository::Repository;
use crate::git::sparse::leaves_out;
use crate::host::file::{FileKind, Root};
use crate::plan::state::{FileState, StateMode};
use crate::plan::validate::{Entry, Facts};
use crate::session::artifact::Artifacts;
use crate::text::path::RepoPath;
use crate::text::resource::Resource;
use crate::workflow::context::lists::ContextLists;

pub struct Snapshotted<'a> {
    pub repository: &'a Repository,
    pub tree: TreeId,
    /// The user's directory, to explain paths that the snapshot lacks.
    pub workspace: &'a Root,
    pub lists: &'a ContextLists,
    pub own: &'a Artifacts,
    /// The plan was generated from an agent's changes, so it can edit files that are in no context
    /// list.
    pub is_made: bool,
    pub memos: &'a [String],
    pub agents: BTreeSet<String>,
    /// Agents that only an untrusted repository defines.
    pub untrusted_agents: BTreeSet<String>,
    /// Why RESEARCH cannot search; `None` if it can.
    pub search_obstacle: Option<String>,
    pub artifacts: &'a dyn Fn(&Resource) -> bool,
}

impl Snapshotted<'_> {
    /// Classifies a path that the snapshot lacks. A directory that is empty or contains only
    /// ignored files counts as a directory; a nested repository without a commit does not.
    fn beside_the_snapshot(&self, path: &Path) -> Entry {
        match self.workspace.kind(path) {
            Ok(None) => Entry::Absent,
            Ok(Some(FileKind::Dir))
                if matches!(self.workspace.kind(&path.join(".git")), Ok(None)) =>
            {
                Entry::Dir
            }
            _ => Entry::LeftOut,
        }
    }
}

impl Facts for Snapshotted<'_> {
    fn entry(&self, path: &RepoPath) -> anyhow::Result<Entry> {
        let mut above: Vec<&str> = path.ancestors().collect();
        above.reverse();
        for prefix in above {
            match self
                .repository
                .entry(self.tree, prefix.as_bytes())?
                .map(|entry| entry.mode)
            {
                Some(EntryMode::Tree) => {}
                Some(EntryMode::Link) => return Ok(Entry::Link),
                Some(EntryMode::Gitlink) => return Ok(Entry::Repository),
                Some(EntryMode::File | EntryMode::Executable) => {
                    // A file where the path needs a directory. Its content does not matter.
                    return Ok(Entry::File { bytes: Vec::new() });
                }
                None => break,
            }
        }

        Ok(
            match self
                .repository
                .entry(self.tree, path.as_str().as_bytes())?
                .map(|entry| entry.mode)
            {
                Some(EntryMode::File | EntryMode::Executable) => Entry::File {
                    bytes: read::checked_out(self.repository, self.tree, path.as_str())?,
                },
                Some(EntryMode::Tree) => Entry::Dir,
                Some(EntryMode::Link) => Entry::Link,
                Some(EntryMode::Gitlink) => Entry::Repository,
                None => self.beside_the_snapshot(Path::new(path.as_str())),
            },
        )
    }

    fn paths(&self) -> anyhow::Result<Vec<String>> {
        let leaves = self.repository.leaves(self.tree)?;
        Ok(leaves
            .into_iter()
            .filter_map(|leaf| String::from_utf8(leaf.path).ok())
            .collect())
    }

    fn in_context(&self, resource: &Resource) -> bool {
        self.is_made || self.lists.has(resource)
    }

    fn in_turn_context(&self, resource: &Resource) -> bool {
        self.lists.turn_has(resource)
    }

    fn is_from_agent(&self) -> bool {
        self.is_made
    }

    fn memos(&self) -> &[String] {
        self.memos
    }

    fn agents(&self) -> BTreeSet<String> {
        self.agents.clone()
    }

    fn untrusted_agents(&self) -> BTreeSet<String> {
        self.untrusted_agents.clone()
    }

    fn search_obstacle(&self) -> Option<String> {
        self.search_obstacle.clone()
    }

    fn has_artifact(&self, resource: &Resource) -> bool {
        (self.artifacts)(resource)
    }

    fn state(&self, path: &RepoPath) -> anyhow::Result<Option<FileState>> {
        let name = path.as_str();
        let entry = self.repository.entry(self.tree, name.as_bytes())?;
        let mode = match entry.as_ref().map(|entry| entry.mode) {
            Some(EntryMode::File) => StateMode::Plain,
            Some(EntryMode::Executable) => StateMode::Executable,
            Some(EntryMode::Link) => StateMode::Link,
            _ => return Ok(None),
        };
        let bytes = match entry {
            Some(entry) if mode == StateMode::Link => self.repository.blob(BlobId::of(entry.id))?,
            _ => read::checked_out(self.repository, self.tree, name)?,
        };
        Ok(Some(FileState { mode, bytes }))
    }

    fn is_hidden(&self, path: &RepoPath) -> anyhow::Result<bool> {
        leaves_out(self.repository, path.as_str().as_bytes())
    }

    fn taken_bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.own.0.get(name).cloned()
    }
}
