//! Validation: the plan run in the mind, on the snapshot, before anything runs.

use std::collections::BTreeSet;

use super::diagnostic::Diagnostic;
use crate::text::edit::Place;
use crate::text::path::RepoPath;
use crate::text::resource::Resource;

/// What is at a path of the snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// As on disk, line ends included.
        bytes: Vec<u8>,
    },
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A submodule or an embedded repository.
    Repository,
    /// There, but not in the snapshot: too large, a secret, unreadable, special.
    LeftOut,
}

/// What validation must know of the world, all of it from one snapshot.
pub trait Facts {
    /// What is at the path; a parent that is a link or a file is reported as that parent would be.
    ///
    /// # Errors
    /// Where the repository cannot be read.
    fn entry(&self, path: &RepoPath) -> anyhow::Result<Entry>;
    /// Every file path of the snapshot, sorted.
    ///
    /// # Errors
    /// As for [`Facts::entry`].
    fn paths(&self) -> anyhow::Result<Vec<String>>;
    /// Whether the resource is in one of the three context lists, or in a listed folder.
    fn in_context(&self, resource: &Resource) -> bool;
    /// Whether PRUNE may drop it: it stands in the turn's own list.
    fn in_turn_context(&self, resource: &Resource) -> bool;
    /// The memos as they are.
    fn memos(&self) -> &[String];
    /// The agents that INVOKE may name.
    fn agents(&self) -> BTreeSet<String>;
    /// Whether there is an agent to return to.
    fn has_caller(&self) -> bool;
    /// Whether an artifact of a turn exists.
    fn has_artifact(&self, resource: &Resource) -> bool;
}

/// What a plan would do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Simulation {
    /// Every mistake, by line.
    pub diagnostics: Vec<Diagnostic>,
    /// One for each action of the plan.
    pub steps: Vec<Step>,
}

/// What one action would do to a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Step {
    /// The file before, as on disk; `None` where there is none.
    pub before: Option<Vec<u8>>,
    /// The file after; `None` where the action is no file action or is wrong.
    pub after: Option<Vec<u8>>,
    /// For EDIT: where each pair that fits has its place, by its index.
    pub places: Vec<(usize, Place)>,
    /// An EXECUTE before it may have changed its file: it is judged again when it runs.
    pub provisional: bool,
    /// The file is in no context list.
    pub outside_context: bool,
}
