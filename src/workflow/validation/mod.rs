//! Validates a plan: repairs, parses and simulates it on a snapshot, and reports all mistakes at
//! once.

mod facts;
pub mod resource;
pub mod review_content;

use crate::git::object::TreeId;
use crate::host::file::Root;
use crate::plan::Plan;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::reading::{self, Reading};
use crate::plan::repair::Repaired;
use crate::plan::validate::{Facts, Simulation, validate, validate_changed};
use crate::session::draft::Draft;
use crate::session::turn::Turn;
use crate::text::path::RepoPath;
use crate::text::resource::Resource;
use crate::workflow::context::artifacts;
use crate::workflow::context::lists::{self, ContextLists};
use crate::workflow::context::pages;
use crate::workflow::context::teddy_files;
use crate::workflow::model::agents;
use crate::workflow::project::Project;
use crate::workflow::validation::facts::Snapshotted;

/// What a rejection for words beside commands is called among the mistakes of a turn.
pub const ASIDES: &str = "asides";

/// A plan, judged.
#[derive(Debug, Clone)]
pub struct ValidatedPlan {
    /// Its text, with the repairs.
    pub repaired: Repaired,
    /// The parsed plan.
    pub plan: Plan,
    /// The simulation. Its diagnostics include those of the parser.
    pub simulation: Simulation,
    /// Outline as parsed, if the structure is invalid.
    pub outline: Option<String>,
}

/// Input of validation.
pub struct ValidationInput<'a> {
    /// Newest turn.
    pub tip: &'a Turn,
    /// Tree of the user's files.
    pub tree: TreeId,
    /// The context lists.
    pub lists: &'a ContextLists,
    /// The draft that contains the plan.
    pub draft: &'a Draft,
}

impl ValidatedPlan {
    /// All mistakes.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.simulation.diagnostics
    }

    /// Returns what is said beside commands, as mistakes for the model to correct.
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

    /// Returns the files of EDITs that do not fit, so that the model sees their true text.
    pub fn mistaken(&self) -> Vec<Resource> {
        let edits = self.plan.actions.iter().zip(&self.simulation.steps);
        let wrong = edits.filter_map(|(action, step)| {
            let pairs = action.kind.pairs()?;
            let is_wrong = step.positions.len() < pairs.len() && step.before.is_some();
            let path = action.kind.path().filter(|_| is_wrong)?;
            Some(Resource::File(path.clone()))
        });
        wrong.collect()
    }

    /// Identifies mistakes, to recognize repeated ones: each failing FIND by file and text,
    /// otherwise all mistakes together.
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

/// Validates a parsed reply or plan.
pub fn validate_plan(
    project: &Project,
    reading: Reading,
    input: &ValidationInput<'_>,
) -> anyhow::Result<ValidatedPlan> {
    let root = Root::open(project.repository.workdir())?;
    let exists = |path: &RepoPath| lists::exists(&project.repository, &root, input.tree, path);
    let Reading {
        repaired,
        plan,
        mut diagnostics,
        outline,
        is_plan: _,
    } = reading::with_plain_paths(reading, &exists);
    let mut simulation = with_facts(project, input, &mut |facts| validate(&plan, facts))?;
    simulation.diagnostics.append(&mut diagnostics);
    simulation.diagnostics.sort_by_key(|d| d.line);

    Ok(ValidatedPlan {
        repaired,
        plan,
        simulation,
        outline,
    })
}

/// Validates a plan that the user changed in the review.
pub fn simulate(
    project: &Project,
    plan: &Plan,
    input: &ValidationInput<'_>,
) -> anyhow::Result<Simulation> {
    with_facts(project, input, &mut |facts| validate_changed(plan, facts))
}

fn with_facts(
    project: &Project,
    input: &ValidationInput<'_>,
    run: &mut dyn FnMut(&dyn Facts) -> anyhow::Result<Simulation>,
) -> anyhow::Result<Simulation> {
    let root = Root::open(project.repository.workdir())?;
    let memos = teddy_files::memos(&root)?;
    let artifacts = |resource: &Resource| match resource {
        Resource::Artifact(artifact) => artifacts::read_artifact(project, input.tip, artifact)
            .ok()
            .flatten()
            .is_some(),
        _ => false,
    };

    let facts = Snapshotted {
        repository: &project.repository,
        tree: input.tree,
        workspace: &root,
        lists: input.lists,
        own: &input.draft.artifacts,
        is_made: input.draft.meta.made,
        memos: &memos,
        agents: agents::agents(project),
        untrusted_agents: agents::prompts(project).untrusted(),
        search_obstacle: pages::search_obstacle(project),
        artifacts: &artifacts,
    };
    run(&facts)
}
