//! Judging a plan: repaired, parsed, simulated on a snapshot, every mistake at once.

mod facts;
pub mod modified;
pub mod resource;

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
use crate::workflow::judge::facts::Snapshotted;
use crate::workflow::model::agents;
use crate::workflow::project::Project;

/// What a rejection for words beside commands is called among the mistakes of a turn.
pub const ASIDES: &str = "asides";

/// A plan, judged.
#[derive(Debug, Clone)]
pub struct Judged {
    /// Its text and what repair did.
    pub repaired: Repaired,
    /// The plan.
    pub plan: Plan,
    /// What it would do; its diagnostics include those of the parser.
    pub simulation: Simulation,
    /// How it was read, where its structure is at fault.
    pub outline: Option<String>,
}

/// On what a plan is judged.
pub struct JudgeInput<'a> {
    /// The newest turn.
    pub tip: &'a Turn,
    /// The user's files.
    pub tree: TreeId,
    /// The context lists.
    pub lists: &'a ContextLists,
    /// The turn in progress that the plan belongs to.
    pub draft: &'a Draft,
}

impl Judged {
    /// Returns every mistake.
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
            let is_wrong = step.places.len() < pairs.len() && step.before.is_some();
            let path = action.kind.path().filter(|_| is_wrong)?;
            Some(Resource::File(path.clone()))
        });
        wrong.collect()
    }

    /// Names the mistakes, so that the same ones are known again: each FIND that does not fit by
    /// file and text; where there is none, all mistakes together.
    pub fn mistakes(&self) -> Vec<String> {
        let mut names = Vec::new();
        for (action, step) in self.plan.actions.iter().zip(&self.simulation.steps) {
            let kind = &action.kind;
            let Some((path, pairs)) = kind.path().zip(kind.pairs()) else {
                continue;
            };
            let fits = |index: usize| step.places.iter().any(|(at, _)| *at == index);
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

/// Judges a reply or plan as it was read.
///
/// # Errors
/// Where the repository cannot be read.
pub fn judge(
    project: &Project,
    reading: Reading,
    ground: &JudgeInput<'_>,
) -> anyhow::Result<Judged> {
    let root = Root::open(project.repository.workdir())?;
    let exists = |path: &RepoPath| lists::exists(&project.repository, &root, ground.tree, path);
    let Reading {
        repaired,
        plan,
        mut diagnostics,
        outline,
        is_plan: _,
    } = reading::with_plain_paths(reading, &exists);
    let mut simulation = with_facts(project, ground, &mut |facts| validate(&plan, facts))?;
    simulation.diagnostics.append(&mut diagnostics);
    simulation.diagnostics.sort_by_key(|d| d.line);

    Ok(Judged {
        repaired,
        plan,
        simulation,
        outline,
    })
}

/// Runs a plan in the mind that the user changed in the review.
///
/// # Errors
/// As for [`judge`].
pub fn simulate(
    project: &Project,
    plan: &Plan,
    ground: &JudgeInput<'_>,
) -> anyhow::Result<Simulation> {
    with_facts(project, ground, &mut |facts| validate_changed(plan, facts))
}

/// Gives what validation must know to `run`.
fn with_facts(
    project: &Project,
    ground: &JudgeInput<'_>,
    run: &mut dyn FnMut(&dyn Facts) -> anyhow::Result<Simulation>,
) -> anyhow::Result<Simulation> {
    let root = Root::open(project.repository.workdir())?;
    let memos = teddy_files::memos(&root)?;
    let artifacts = |resource: &Resource| match resource {
        Resource::Artifact(artifact) => artifacts::artifact(project, ground.tip, artifact)
            .ok()
            .flatten()
            .is_some(),
        _ => false,
    };

    let facts = Snapshotted {
        repository: &project.repository,
        tree: ground.tree,
        workspace: &root,
        lists: ground.lists,
        own: &ground.draft.artifacts,
        is_made: ground.draft.meta.made,
        memos: &memos,
        agents: agents::agents(project),
        untrusted_agents: agents::prompts(project).untrusted(),
        search_obstacle: pages::search_obstacle(project),
        artifacts: &artifacts,
    };
    run(&facts)
}
