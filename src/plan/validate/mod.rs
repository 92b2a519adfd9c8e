//! Validation: the plan run in the mind, on the snapshot, before anything runs.
//!
//! Every action sees what those before it would have done, so a CREATE can be edited and a FIND may
//! rest on the pair above it. All mistakes are found at once, and what depends on a mistake alone
//! is none of its own.
//!
//! An EXECUTE may change any file. What it could put right is no mistake after it: whether a file,
//! folder or link is there, what it says, whether a name has a twin. Such an action is
//! *provisional*, and judged again when it runs. Mistakes that no command can put right stay: a
//! blank FIND, a REPLACE that equals it, a file of the snapshot that is in no context list, a
//! forbidden variable, memos, agents, a search without an engine, the order of the last action.

pub mod elision;
mod memo;
mod name;
mod nul;
mod order;
pub mod resource;
mod twin;
pub mod world;

use std::collections::{BTreeMap, BTreeSet};

use super::Plan;
use super::action::Action;
use super::diagnostic::{Diagnostic, in_order};
use super::state::FileState;
use crate::text::edit::MatchPlace;
use crate::text::path::RepoPath;
use crate::text::resource::Resource;
use crate::text::visible::visible;
use world::World;

/// The characters of a target that stand in a diagnostic's label.
const LABEL: usize = 80;

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
    /// Whether the plan was written from what an agent did: what it names is there already, in the
    /// agent's files.
    fn is_made(&self) -> bool {
        false
    }
    /// The memos as they are.
    fn memos(&self) -> &[String];
    /// The agents that INVOKE may name.
    fn agents(&self) -> BTreeSet<String>;
    /// The agents that INVOKE could name if the user trusted the repository.
    fn untrusted_agents(&self) -> BTreeSet<String>;
    /// Why RESEARCH cannot search; `None` where it can.
    fn search_obstacle(&self) -> Option<String>;
    /// Whether an artifact of a turn exists.
    fn has_artifact(&self, resource: &Resource) -> bool;
    /// The file or link at the path, with its mode; nothing for anything else.
    ///
    /// # Errors
    /// As for [`Facts::entry`].
    fn state(&self, path: &RepoPath) -> anyhow::Result<Option<FileState>>;
    /// Whether a file of the snapshot is not on disk, because a sparse checkout leaves it out.
    ///
    /// # Errors
    /// As for [`Facts::entry`].
    fn is_hidden(&self, _path: &RepoPath) -> anyhow::Result<bool> {
        Ok(false)
    }
    /// The bytes of an artifact of the plan's own turn that a TAKE names.
    fn taken(&self, name: &str) -> Option<Vec<u8>>;
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
    pub places: Vec<(usize, MatchPlace)>,
    /// An EXECUTE before it may have changed its file: it is judged again when it runs.
    pub provisional: bool,
    /// For TAKE: nothing is there after it.
    pub removed: bool,
    /// In the plan of what an agent did: a name that some file systems take for that of its file.
    pub twin: Option<String>,
    /// The file is in no context list.
    pub outside_context: bool,
    /// It has a mistake.
    pub wrong: bool,
}

impl Step {
    /// Counts the lines of a file with content that gets another one.
    pub fn replaced_lines(&self) -> Option<usize> {
        let before = self.before.as_deref().filter(|bytes| !bytes.is_empty())?;
        let lines = before.split_inclusive(|&byte| byte == b'\n').count();
        let after = self.after.as_deref().filter(|after| *after != before);
        after.map(|_| lines)
    }
}

impl Simulation {
    /// Returns what an action would do; nothing where the plan was not run so far in the mind.
    pub fn step(&self, index: usize) -> &Step {
        static NOTHING: Step = Step {
            before: None,
            after: None,
            places: Vec::new(),
            provisional: false,
            removed: false,
            twin: None,
            outside_context: false,
            wrong: false,
        };

        self.steps.get(index).unwrap_or(&NOTHING)
    }

    /// Returns the labels of the actions without a mistake, for the model to repeat as they are.
    pub fn right(&self, plan: &Plan) -> Vec<String> {
        let right = plan
            .actions
            .iter()
            .zip(&self.steps)
            .filter(|(_, step)| !step.wrong);
        right.map(|(action, _)| label(action)).collect()
    }
}

/// Runs a plan in the mind, as it was parsed: what the parser refuses is not looked for again.
///
/// # Errors
/// Where the snapshot cannot be read. A wrong plan is no error: its mistakes are in the result.
pub fn validate(plan: &Plan, facts: &dyn Facts) -> anyhow::Result<Simulation> {
    let simulation = simulate(plan, facts)?;
    Ok(Simulation {
        diagnostics: in_order(simulation.diagnostics),
        ..simulation
    })
}

/// Runs a plan in the mind that no parser has read in this shape, because a person changed it.
///
/// # Errors
/// As for [`validate`].
pub fn validate_changed(plan: &Plan, facts: &dyn Facts) -> anyhow::Result<Simulation> {
    let mut simulation = simulate(plan, facts)?;
    nul::check(plan, &mut simulation);
    Ok(Simulation {
        diagnostics: in_order(simulation.diagnostics),
        ..simulation
    })
}

/// Runs a plan in the mind.
fn simulate(plan: &Plan, facts: &dyn Facts) -> anyhow::Result<Simulation> {
    Ok(judged(plan, facts)?.simulation)
}

/// Runs a plan in the mind, and returns what is then at each path that it writes.
///
/// # Errors
/// As for [`validate`].
pub fn written(
    plan: &Plan,
    facts: &dyn Facts,
) -> anyhow::Result<(Simulation, BTreeMap<RepoPath, Option<FileState>>)> {
    let judge = judged(plan, facts)?;
    Ok((judge.simulation, judge.world.into_written()))
}

/// Judges every action of a plan, in order.
fn judged<'a>(plan: &'a Plan, facts: &'a dyn Facts) -> anyhow::Result<Judge<'a>> {
    let mut judge = Judge {
        plan,
        world: World::new(facts, plan)?,
        simulation: Simulation::default(),
    };
    memo::check(&mut judge);
    for action in &plan.actions {
        judge.simulation.steps.push(Step {
            provisional: judge.world.shaken && action.kind.worktree_path().is_some(),
            ..Step::default()
        });
        if name::check(&mut judge, action)? {
            action.kind.check(&mut judge, action)?;
        }
    }

    order::check(&mut judge);
    Ok(judge)
}

/// Returns the name of an action in a message: `EDIT src/a.rs`.
pub fn label(action: &Action) -> String {
    let target = action.kind.target();
    let shown = visible(&target);
    let short: String = shown.chars().take(LABEL).collect();
    let rest = if short.len() < shown.len() { "…" } else { "" };
    format!("{} {short}{rest}", action.kind.name())
        .trim_end()
        .to_owned()
}

/// Something that is wrong, before it is known where and whether it counts.
pub struct Mistake {
    /// What is wrong.
    message: String,
    /// What would be right.
    hint: Option<String>,
}

impl Mistake {
    /// Makes a mistake with a hint.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Mistake {
        Mistake {
            message: message.into(),
            hint: Some(hint.into()),
        }
    }
}

/// The plan on its way through the mind.
pub struct Judge<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The files as they would be now.
    pub world: World<'a>,
    /// What came out so far.
    pub simulation: Simulation,
}

impl Judge<'_> {
    /// Returns the step of the action that is being judged.
    pub fn step(&mut self) -> &mut Step {
        self.simulation
            .steps
            .last_mut()
            .expect("a step was pushed before its action was judged")
    }

    /// Records a mistake that nothing puts right.
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

    /// Records a mistake, unless an EXECUTE before the action may put it right.
    pub fn miss(&mut self, action: &Action, line: usize, mistake: Mistake) {
        if self.world.shaken {
            self.step().provisional = true;
        } else {
            self.refuse(action, line, mistake);
        }
    }
}

#[cfg(test)]
mod tests;
