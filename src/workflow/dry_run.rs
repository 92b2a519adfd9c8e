//! Simulates the waiting plan against the user's current files. Runs nothing.

use std::collections::BTreeMap;

use crate::git::object::TreeId;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::reading::Reading;
use crate::plan::state::ModeChange;
use crate::project::Project;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::turn::Turn;
use crate::text::damage::FileFacts;
use crate::workflow::context::lists::lists;
use crate::workflow::execute::planned::forced;
use crate::workflow::plan::read_reply;
use crate::workflow::validation::{Beside, ValidatedPlan, ValidationInput, validate_plan};
use crate::workspace::snapshot;

#[derive(Debug, Clone)]
pub struct DryRun {
    /// Changed by the plan itself.
    pub files: BTreeMap<String, Rewrite>,
    /// What commands change is only known after a run.
    pub commands: usize,
    /// Why the plan cannot run at the moment.
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    /// `None` if absent.
    pub before: Option<Vec<u8>>,
    /// `None` if deleted.
    pub after: Option<Vec<u8>>,
    /// Written by TAKE: type and mode can change too, not only the content.
    pub is_taken: bool,
    /// By TAKE.
    pub mode: ModeChange,
    /// What the disk and git's attributes say of the file.
    pub facts: FileFacts,
}

/// Against the user's current files.
pub fn dry_run(project: &Project, tip: &Turn, draft: &Draft) -> anyhow::Result<DryRun> {
    let force = forced(&reading_of(tip, draft)?.plan);
    let tree = snapshot::snapshot(&project.checkout(), &force)?.tree;
    dry_run_at(project, tip, draft, tree, Beside::Workspace)
}

/// Against the files of `tree`.
pub(in crate::workflow) fn dry_run_at(
    project: &Project,
    tip: &Turn,
    draft: &Draft,
    tree: TreeId,
    beside: Beside,
) -> anyhow::Result<DryRun> {
    let lists = lists(&project.repository, draft, tree)?;
    let input = ValidationInput {
        tip,
        tree,
        lists: &lists,
        draft,
    };
    let reading = reading_of(tip, draft)?;
    Ok(collect(validate_plan(project, reading, &input, beside)?))
}

pub(in crate::workflow) fn reading_of(tip: &Turn, draft: &Draft) -> anyhow::Result<Reading> {
    anyhow::ensure!(
        draft.is_planned(),
        "turn {} has no plan yet",
        draft.meta.number
    );
    let written = draft.artifacts.text_or_empty(artifact::PLAN);
    // The raw reply, as `execute` reads it.
    let text = draft.artifacts.text(artifact::REPLY).unwrap_or(written);
    Ok(read_reply(tip, draft, &text))
}

fn collect(validated: ValidatedPlan) -> DryRun {
    let ValidatedPlan {
        plan, simulation, ..
    } = validated;
    let mut files: BTreeMap<String, Rewrite> = BTreeMap::new();
    for (action, step) in plan.actions.iter().zip(simulation.steps) {
        let Some(path) = action.kind.path() else {
            continue;
        };
        if step.after.is_none() && !step.removed {
            continue;
        }

        let file = files.entry(path.to_string()).or_insert_with(|| Rewrite {
            before: step.before,
            after: None,
            is_taken: false,
            mode: ModeChange::default(),
            facts: step.facts,
        });
        file.mode = file.mode.then(action.kind.mode_change());
        file.after = step.after;
        file.is_taken |= action.kind.artifact().is_some();
    }

    files.retain(|_, file| file.before != file.after || file.is_taken);
    let actions = plan.actions.iter();
    DryRun {
        files,
        commands: actions.filter(|it| it.kind.command().is_some()).count(),
        diagnostics: simulation.diagnostics,
    }
}
