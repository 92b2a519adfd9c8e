//! Validates a plan: repairs, parses and simulates it on a snapshot, and reports all mistakes at
//! once.

pub mod review_content;

use std::collections::BTreeSet;
use std::path::Path;

use crate::config::settings::EngineKind;
use crate::git::object::{BlobId, EntryMode, TreeId, read};
use crate::git::repository::Repository;
use crate::git::sparse::leaves_out;
use crate::host::file::{FileKind, Root};
use crate::host::shell::Shell;
use crate::plan::Plan;
use crate::plan::action::Action;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::reading::{self, ProseKind, Reading};
use crate::plan::repair::Repaired;
use crate::plan::state::{FileState, StateMode};
use crate::plan::validate::{
    Entry, Facts, ReadOnlyTarget, Simulation, label, validate, validate_changed,
};
use crate::project::Project;
use crate::project::teddy_files;
use crate::session::draft::Draft;
use crate::session::turn::Turn;
use crate::text::damage::FileFacts;
use crate::text::path::RepoPath;
use crate::text::resource::Resource;
use crate::workflow::context::lists::{self, ContextLists};
use crate::workflow::context::pages;
use crate::workflow::model::agents;

/// Among the mistakes of a turn: rejected for text next to commands.
pub const ASIDES: &str = "asides";

#[derive(Debug, Clone)]
pub struct ValidatedPlan {
    pub repaired: Repaired,
    pub plan: Plan,
    /// Its diagnostics include those of the parser.
    pub simulation: Simulation,
    /// Set if the structure is invalid.
    pub outline: Option<String>,
    /// Set if the model answered in prose. The plan is that message.
    pub prose: Option<ProseKind>,
}

pub struct ValidationInput<'a> {
    pub tip: &'a Turn,
    pub tree: TreeId,
    pub lists: &'a ContextLists,
    pub draft: &'a Draft,
}

impl ValidatedPlan {
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.simulation.diagnostics
    }

    /// Text next to commands, as mistakes for the model to correct.
    pub fn asides(&self) -> Vec<Diagnostic> {
        let hint = "send the plan again without these words; if the command must not run yet, leave it out and ask with ### `CHAT_WITH_USER`";
        let asides = self.repaired.asides();
        asides
            .map(|note| {
                let message = format!(
                    "words beside a command, which may say not to run it: {}",
                    note.message
                );
                Diagnostic::new(note.line, message).hint(hint)
            })
            .collect()
    }

    /// Returns the files that EDITs change although the model has not seen them, if that is all that
    /// is wrong with the plan. A FIND that does not fit such a file follows from it.
    pub fn unseen(&self) -> Vec<String> {
        let steps = self.plan.actions.iter().zip(&self.simulation.steps);
        let unseen: Vec<&Action> = steps
            .filter(|(_, step)| step.outside_context && step.wrong)
            .map(|(action, _)| action)
            .collect();
        let labels: Vec<String> = unseen.iter().map(|action| label(action)).collect();
        let is_theirs = |wrong: &Diagnostic| labels.contains(&wrong.action);
        if !self.diagnostics().iter().all(is_theirs) {
            return Vec::new();
        }

        let mut paths = Vec::new();
        for path in unseen.iter().filter_map(|action| action.kind.path()) {
            if !paths.contains(&path.to_string()) {
                paths.push(path.to_string());
            }
        }
        paths
    }

    /// Returns the files of EDITs that do not fit, so that the model sees their true text.
    pub fn mistaken(&self) -> Vec<Resource> {
        let edits = self.plan.actions.iter().zip(&self.simulation.steps);
        let wrong = edits.filter_map(|(action, step)| {
            let pairs = action.kind.pairs()?;
            let is_wrong =
                step.positions.len() < pairs.len() && step.before.is_some() || step.outside_context;
            let path = action.kind.path().filter(|_| is_wrong)?;
            Some(Resource::File(path.clone()))
        });
        wrong.collect()
    }

    /// To recognize repeated mistakes: each failing FIND by file and text, otherwise all mistakes
    /// together.
    pub fn mistakes(&self) -> Vec<String> {
        let mut names = Vec::new();
        for (action, step) in self.plan.actions.iter().zip(&self.simulation.steps) {
            let kind = &action.kind;
            let Some((path, pairs)) = kind.path().zip(kind.pairs()) else {
                continue;
            };
            let fits = |index: usize| step.positions.iter().any(|(at, _)| *at == index);
            let wrong = pairs.iter().enumerate().filter(|(index, _)| !fits(*index));

            names.extend(
                wrong.map(|(_, pair)| format!("{path}#{}", crate::text::digest(&pair.find))),
            );
        }

        if names.is_empty() && !self.diagnostics().is_empty() {
            let all: String = self
                .diagnostics()
                .iter()
                .map(|d| format!("{}: {}\n", d.action, d.message))
                .collect();
            names.push(format!("all#{}", crate::text::digest(&all)));
        }

        if self.repaired.asides().next().is_some() {
            names.push(ASIDES.to_owned());
        }

        names
    }
}

/// What explains a path that the snapshot lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    Workspace,
    /// As if the user's files were still those of the snapshot.
    Nothing,
}

pub fn validate_plan(
    project: &Project,
    reading: Reading,
    input: &ValidationInput<'_>,
    beside: Beside,
) -> anyhow::Result<ValidatedPlan> {
    let root = Root::open(project.repository.workdir())?;
    let exists = |path: &RepoPath| lists::exists(&project.repository, &root, input.tree, path);
    let Reading {
        repaired,
        plan,
        mut diagnostics,
        outline,
        is_plan: _,
        prose,
    } = reading::with_plain_paths(reading, &exists);
    let mut simulation = validate(&plan, &Snapshotted::of(project, input, beside)?)?;
    simulation.diagnostics.append(&mut diagnostics);
    simulation.diagnostics.sort_by_key(|d| d.line);

    Ok(ValidatedPlan {
        repaired,
        plan,
        simulation,
        outline,
        prose,
    })
}

pub fn simulate(
    project: &Project,
    plan: &Plan,
    input: &ValidationInput<'_>,
) -> anyhow::Result<Simulation> {
    validate_changed(plan, &Snapshotted::of(project, input, Beside::Workspace)?)
}

/// What a plan is compared with. Looks up only what the plan's actions ask for.
struct Snapshotted<'a> {
    project: &'a Project,
    input: &'a ValidationInput<'a>,
    /// To explain paths that the snapshot lacks.
    workspace: Root,
    beside: Beside,
    memos: Vec<String>,
}

impl<'a> Snapshotted<'a> {
    fn of(
        project: &'a Project,
        input: &'a ValidationInput<'a>,
        beside: Beside,
    ) -> anyhow::Result<Snapshotted<'a>> {
        let workspace = Root::open(project.repository.workdir())?;
        Ok(Snapshotted {
            project,
            input,
            memos: teddy_files::memos(&workspace)?,
            workspace,
            beside,
        })
    }

    fn mode(&self, path: &str) -> anyhow::Result<Option<EntryMode>> {
        let entry = self.repository().entry(self.input.tree, path.as_bytes())?;
        Ok(entry.map(|entry| entry.mode))
    }

    fn repository(&self) -> &Repository {
        &self.project.repository
    }

    /// A directory that is empty or contains only ignored files counts as a directory; a nested
    /// repository without a commit does not.
    fn beside_the_snapshot(&self, path: &Path) -> Entry {
        if self.beside == Beside::Nothing {
            return Entry::Absent;
        }
        match self.workspace.kind(path) {
            Ok(None) => Entry::Absent,
            Ok(Some(FileKind::Dir))
                if matches!(self.workspace.kind(&path.join(".git")), Ok(None)) =>
            {
                Entry::Dir
            }
            // A file system that ignores case finds a file of the snapshot by another spelling.
            Ok(Some(_)) if !self.has_spelling(path) => Entry::Absent,
            _ => Entry::LeftOut,
        }
    }

    /// Returns whether the directories list a path exactly as it is spelled.
    fn has_spelling(&self, path: &Path) -> bool {
        path.ancestors().all(|path| {
            let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
                return true;
            };
            let names = self.workspace.open_dir(dir).and_then(|dir| dir.names());
            names.is_ok_and(|names| names.iter().any(|listed| listed == name))
        })
    }
}

impl Facts for Snapshotted<'_> {
    fn entry(&self, path: &RepoPath) -> anyhow::Result<Entry> {
        for prefix in path.ancestors().rev() {
            match self.mode(prefix)? {
                Some(EntryMode::Tree) => {}
                Some(EntryMode::Link) => return Ok(Entry::Link),
                Some(EntryMode::Commit) => return Ok(Entry::Repository),
                Some(EntryMode::Blob | EntryMode::BlobExecutable) => {
                    // A file where the path needs a directory. Its content does not matter.
                    return Ok(Entry::File { bytes: Vec::new() });
                }
                None => break,
            }
        }

        Ok(match self.mode(path.as_str())? {
            Some(EntryMode::Blob | EntryMode::BlobExecutable) => Entry::File {
                bytes: read::checked_out(self.repository(), self.input.tree, path.as_str())?,
            },
            Some(EntryMode::Tree) => Entry::Dir,
            Some(EntryMode::Link) => Entry::Link,
            Some(EntryMode::Commit) => Entry::Repository,
            None => self.beside_the_snapshot(Path::new(path.as_str())),
        })
    }

    fn paths(&self) -> anyhow::Result<Vec<String>> {
        let leaves = self.repository().leaves(self.input.tree)?;
        Ok(leaves
            .into_iter()
            .filter_map(|leaf| String::from_utf8(leaf.path).ok())
            .collect())
    }

    fn names(&self, dir: &str) -> anyhow::Result<Vec<String>> {
        self.repository().names(self.input.tree, dir)
    }

    fn in_context(&self, resource: &Resource) -> bool {
        self.is_from_agent() || self.input.lists.has(resource)
    }

    fn in_turn_context(&self, resource: &Resource) -> bool {
        self.input.lists.turn_has(resource)
    }

    fn is_from_agent(&self) -> bool {
        self.input.draft.meta.made
    }

    fn memos(&self) -> &[String] {
        &self.memos
    }

    fn agents(&self) -> BTreeSet<String> {
        agents::agents(self.project)
    }

    fn untrusted_agents(&self) -> BTreeSet<String> {
        agents::prompts(self.project).untrusted()
    }

    fn search_obstacle(&self) -> Option<String> {
        pages::search_obstacle(self.project)
    }

    fn searches_with_program(&self) -> bool {
        self.project.settings.research.engine == Some(EngineKind::Command)
    }

    fn missing_interpreter(&self, script: &str) -> Option<String> {
        let shell = self.project.settings.execute.shell.as_deref();
        Shell::new(shell, "").missing_interpreter(script)
    }

    fn has_artifact(&self, resource: &Resource) -> bool {
        matches!(resource, Resource::Artifact(artifact)
            if lists::has_artifact(self.project, self.input.tip, artifact))
    }

    fn state(&self, path: &RepoPath) -> anyhow::Result<Option<FileState>> {
        let name = path.as_str();
        let entry = self.repository().entry(self.input.tree, name.as_bytes())?;
        let mode = entry.as_ref().and_then(|entry| state_mode(entry.mode));
        let (Some(entry), Some(mode)) = (entry, mode) else {
            return Ok(None);
        };
        let bytes = match mode {
            StateMode::Link => self.repository().blob(BlobId::of(entry.id))?,
            _ => read::checked_out(self.repository(), self.input.tree, name)?,
        };
        Ok(Some(FileState { mode, bytes }))
    }

    fn is_hidden(&self, path: &RepoPath) -> anyhow::Result<bool> {
        leaves_out(self.repository(), path.as_str().as_bytes())
    }

    fn read_only(&self, path: &RepoPath) -> Option<ReadOnlyTarget> {
        let is_closed = |path: &Path| {
            let info = self.workspace.entry(path).ok().flatten()?;
            (!matches!(info.kind, FileKind::Link)).then_some(info.permissions & 0o222 == 0)
        };
        let path = Path::new(path.as_str());
        if is_closed(path) == Some(true) {
            return Some(ReadOnlyTarget::File);
        }
        // A new directory is created in the nearest one that exists.
        let mut above = path.ancestors().skip(1);
        let is_dir_closed = above.find_map(is_closed);
        is_dir_closed
            .filter(|closed| *closed)
            .map(|_| ReadOnlyTarget::Dir)
    }

    fn file_facts(&self, path: &RepoPath) -> FileFacts {
        let name = path.as_str().as_bytes();
        let marked =
            read::marked_generated(self.repository(), self.input.tree, std::iter::once(name));
        FileFacts {
            other_links: self.workspace.other_links(Path::new(path.as_str())),
            // Attributes that cannot be read mark no file.
            is_marked_generated: marked.is_ok_and(|marked| marked.contains(name)),
        }
    }

    fn taken_bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.input.draft.artifacts.0.get(name).cloned()
    }
}

/// `None` for a directory or a nested repository.
pub(super) fn state_mode(mode: EntryMode) -> Option<StateMode> {
    match mode {
        EntryMode::Blob => Some(StateMode::Plain),
        EntryMode::BlobExecutable => Some(StateMode::Executable),
        EntryMode::Link => Some(StateMode::Link),
        EntryMode::Tree | EntryMode::Commit => None,
    }
}
