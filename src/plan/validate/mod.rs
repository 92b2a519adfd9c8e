//! Validation: simulates the plan on the snapshot before anything runs.
//!
//! Each action sees the simulated result of the earlier ones, so a plan can edit a file it creates,
//! and a FIND can depend on the previous pair. All mistakes are reported together. A consequence of
//! another mistake is not reported.
//!
//! An EXECUTE can change any file. A mistake that it could fix is not reported after it: whether a
//! file, directory or link exists, its content, whether a name has a twin. Such an action is
//! *provisional* and is checked again when it runs. Mistakes that no command can fix remain: a
//! blank FIND, a REPLACE that equals it, a file of the snapshot that is in no context list, a
//! forbidden variable, memos, agents, a search without an engine, an action after a hand-over.

mod case_collision;
pub mod elision;
mod git_file;
mod memo;
mod name;
mod nul;
mod order;
pub mod resource;
pub mod simulated_files;

use std::collections::{BTreeMap, BTreeSet};

use super::Plan;
use super::action::Action;
use super::diagnostic::{Diagnostic, in_order};
use super::state::FileState;
use crate::text::edit::MatchPlace;
use crate::text::path::RepoPath;
use crate::text::resource::Resource;
use crate::text::sanitize::sanitize_line;
use simulated_files::SimulatedFiles;

/// Characters of the target in a diagnostic's label.
const MAX_LABEL: usize = 80;

/// Entry of the snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Does not exist.
    Absent,
    /// A regular file.
    File {
        /// Content as on disk, line endings included.
        bytes: Vec<u8>,
    },
    /// A directory.
    Dir,
    /// A symbolic link.
    Link,
    /// A submodule or an embedded repository.
    Repository,
    /// Exists but is not in the snapshot: too large, a secret, unreadable, special.
    LeftOut,
}

/// Facts about the project for validation, all from one snapshot.
pub trait Facts {
    /// Returns the entry at a path. If a parent is a link or a file, returns what that parent is.
    fn entry(&self, path: &RepoPath) -> anyhow::Result<Entry>;
    /// Returns every file path of the snapshot, sorted.
    fn paths(&self) -> anyhow::Result<Vec<String>>;
    /// Returns whether the resource is in one of the three context lists, or below a listed
    /// directory.
    fn in_context(&self, resource: &Resource) -> bool;
    /// Returns whether PRUNE can remove it: it is in the turn's own list.
    fn in_turn_context(&self, resource: &Resource) -> bool;
    /// Returns whether the plan was generated from an agent's changes, so that its targets exist
    /// already in the agent's files.
    fn is_from_agent(&self) -> bool {
        false
    }
    /// Returns the current memos.
    fn memos(&self) -> &[String];
    /// Returns the agents that INVOKE can name.
    fn agents(&self) -> BTreeSet<String>;
    /// Returns the agents that INVOKE could name if the user trusted the repository.
    fn untrusted_agents(&self) -> BTreeSet<String>;
    /// Returns the reason why RESEARCH cannot search; `None` if it can.
    fn search_obstacle(&self) -> Option<String>;
    /// Returns whether an artifact of a turn exists.
    fn has_artifact(&self, resource: &Resource) -> bool;
    /// Returns the file or link at the path with its mode; `None` for anything else.
    fn state(&self, path: &RepoPath) -> anyhow::Result<Option<FileState>>;
    /// Returns whether a sparse checkout leaves out a file of the snapshot, so that it is not on
    /// disk.
    fn is_hidden(&self, _path: &RepoPath) -> anyhow::Result<bool> {
        Ok(false)
    }
    /// Returns the content of an artifact of the plan's own turn, for TAKE.
    fn taken_bytes(&self, name: &str) -> Option<Vec<u8>>;
}

/// Result of the simulation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Simulation {
    /// All diagnostics, by line.
    pub diagnostics: Vec<Diagnostic>,
    /// One step per action of the plan.
    pub steps: Vec<Step>,
}

/// Simulated effect of one action on a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Step {
    /// Content before, as on disk; `None` if the file does not exist.
    pub before: Option<Vec<u8>>,
    /// Content after; `None` if the action writes no file or is wrong.
    pub after: Option<Vec<u8>>,
    /// EDIT: place of each matching pair, by its index.
    pub positions: Vec<(usize, MatchPlace)>,
    /// Set if an earlier EXECUTE could have changed the file. The action is checked again when it
    /// runs.
    pub provisional: bool,
    /// TAKE: the path no longer exists afterwards.
    pub removed: bool,
    /// In a plan from an agent's changes: a name that some file systems treat as the same file.
    pub case_collision: Option<String>,
    /// The file is in no context list.
    pub outside_context: bool,
    /// The action has a mistake.
    pub wrong: bool,
}

impl Step {
    /// Returns the number of lines of a non-empty file whose content is replaced.
    pub fn replaced_lines(&self) -> Option<usize> {
        let before = self.before.as_deref().filter(|bytes| !bytes.is_empty())?;
        let lines = before.split_inclusive(|&byte| byte == b'\n').count();
        let after = self.after.as_deref().filter(|after| *after != before);
        after.map(|_| lines)
    }
}

impl Simulation {
    /// Returns the step of an action; an empty step if the simulation stopped before it.
    pub fn step(&self, index: usize) -> &Step {
        static NOTHING: Step = Step {
            before: None,
            after: None,
            positions: Vec::new(),
            provisional: false,
            removed: false,
            case_collision: None,
            outside_context: false,
            wrong: false,
        };

        self.steps.get(index).unwrap_or(&NOTHING)
    }

    /// Returns the labels of the correct actions, which the model is asked to repeat unchanged.
    pub fn correct_actions(&self, plan: &Plan) -> Vec<String> {
        let correct = plan
            .actions
            .iter()
            .zip(&self.steps)
            .filter(|(_, step)| !step.wrong);
        correct.map(|(action, _)| label(action)).collect()
    }
}

/// Simulates a parsed plan. Mistakes that the parser reports are not checked again. Fails only if
/// the snapshot is unreadable; a wrong plan is in the result.
pub fn validate(plan: &Plan, facts: &dyn Facts) -> anyhow::Result<Simulation> {
    let simulation = simulate(plan, facts)?;
    Ok(Simulation {
        diagnostics: in_order(simulation.diagnostics),
        ..simulation
    })
}

/// Like [`validate`], for a plan that the user changed and that the parser has not seen.
pub fn validate_changed(plan: &Plan, facts: &dyn Facts) -> anyhow::Result<Simulation> {
    let mut simulation = simulate(plan, facts)?;
    nul::check_nul(plan, &mut simulation);
    Ok(Simulation {
        diagnostics: in_order(simulation.diagnostics),
        ..simulation
    })
}

fn simulate(plan: &Plan, facts: &dyn Facts) -> anyhow::Result<Simulation> {
    Ok(validate_actions(plan, facts)?.simulation)
}

/// Like [`validate`], and also returns the final state of each path that the plan writes.
pub fn written(
    plan: &Plan,
    facts: &dyn Facts,
) -> anyhow::Result<(Simulation, BTreeMap<RepoPath, Option<FileState>>)> {
    let validator = validate_actions(plan, facts)?;
    Ok((validator.simulation, validator.files.into_written()))
}

fn validate_actions<'a>(plan: &'a Plan, facts: &'a dyn Facts) -> anyhow::Result<Validator<'a>> {
    let mut validator = Validator {
        plan,
        files: SimulatedFiles::new(facts, plan)?,
        simulation: Simulation::default(),
    };
    memo::check_memos(&mut validator);
    for action in &plan.actions {
        validator.simulation.steps.push(Step {
            provisional: validator.files.unknown_after_command
                && action.kind.worktree_path().is_some(),
            ..Step::default()
        });
        if name::check_name(&mut validator, action)? {
            action.kind.check(&mut validator, action)?;
            git_file::check(&mut validator, action);
        }
    }

    order::check_handover_order(&mut validator);
    Ok(validator)
}

/// Returns the name of an action for messages: `EDIT src/a.rs`.
pub fn label(action: &Action) -> String {
    let target = action.kind.target();
    let rendered = sanitize_line(&target);
    let short: String = rendered.chars().take(MAX_LABEL).collect();
    let ellipsis = if short.len() < rendered.len() {
        "…"
    } else {
        ""
    };
    format!("{} {short}{ellipsis}", action.kind.name())
        .trim_end()
        .to_owned()
}

/// A mistake before its position, and whether it is reported, are known.
pub struct Mistake {
    message: String,
    hint: Option<String>,
}

impl Mistake {
    /// Creates a mistake with a hint.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Mistake {
        Mistake {
            message: message.into(),
            hint: Some(hint.into()),
        }
    }
}

/// State of the simulation.
pub struct Validator<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The simulated files.
    pub files: SimulatedFiles<'a>,
    /// Results so far.
    pub simulation: Simulation,
}

impl Validator<'_> {
    /// Returns the step of the current action.
    pub fn step(&mut self) -> &mut Step {
        self.simulation
            .steps
            .last_mut()
            .expect("a step was pushed before its action was judged")
    }

    /// Reports a mistake that no command can fix.
    pub fn refuse(&mut self, action: &Action, line: usize, mistake: Mistake) {
        self.step().wrong = true;
        let (message, hint) = (mistake.message, mistake.hint);
        self.simulation.diagnostics.push(Diagnostic {
            line,
            action: label(action),
            message,
            hint,
        });
    }

    /// Reports a mistake unless an earlier EXECUTE could fix it.
    pub fn refuse_unless_fixable(&mut self, action: &Action, line: usize, mistake: Mistake) {
        if self.files.unknown_after_command {
            self.step().provisional = true;
        } else {
            self.refuse(action, line, mistake);
        }
    }
}

#[cfg(test)]
mod tests;
