//! What the plan that waits would change in the user's files as they are now; nothing runs.

use std::collections::BTreeMap;

use crate::git::object::TreeId;
use crate::plan::Plan;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::reading::Reading;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::turn::Turn;
use crate::workflow::context::lists::lists;
use crate::workflow::execute::forced;
use crate::workflow::judge::judge;
use crate::workflow::judge::{JudgeInput, Judged};
use crate::workflow::project::Project;
use crate::workspace::snapshot;

/// What a plan would do.
#[derive(Debug, Clone)]
pub struct DryRun {
    /// The files that it would change itself, by path.
    pub files: BTreeMap<String, Rewrite>,
    /// How many commands it would run as well; what they change is known when they ran.
    pub commands: usize,
    /// Why it cannot run as things are.
    pub diagnostics: Vec<Diagnostic>,
}

/// A file before a plan and after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    /// Its bytes now; nothing where there is none.
    pub before: Option<Vec<u8>>,
    /// Its bytes then; nothing where there is none.
    pub after: Option<Vec<u8>>,
    /// What it is, and not only its bytes, may be another thing.
    pub is_taken: bool,
}

/// Returns what the plan of a turn in progress would do.
///
/// # Errors
/// Where no plan waits, or the files cannot be looked at.
pub fn dry_run(project: &Project, tip: &Turn, draft: &Draft) -> anyhow::Result<DryRun> {
    let reading = reading_of(draft)?;
    let tree = snapshot::snapshot(&project.checkout(), &forced(&reading.plan))?.tree;
    dry_run_of(project, (tip, draft), (reading, tree))
}

/// Returns what the plan of a turn in progress would do to the files of a tree.
///
/// # Errors
/// As for [`dry_run`].
pub fn dry_run_at(
    project: &Project,
    tip: &Turn,
    draft: &Draft,
    tree: TreeId,
) -> anyhow::Result<DryRun> {
    dry_run_of(project, (tip, draft), (reading_of(draft)?, tree))
}

/// Reads the plan that waits.
fn reading_of(draft: &Draft) -> anyhow::Result<Reading> {
    anyhow::ensure!(
        draft.is_planned(),
        "turn {} has no plan yet",
        draft.meta.number
    );
    let written = draft.artifacts.text_or_empty(artifact::PLAN);
    let text = draft.artifacts.text(artifact::REPLY).unwrap_or(written);
    Ok(crate::plan::reading::read(&text))
}

/// Returns what a plan would do to the files of a tree.
fn dry_run_of(
    project: &Project,
    (tip, draft): (&Turn, &Draft),
    (reading, tree): (Reading, TreeId),
) -> anyhow::Result<DryRun> {
    let lists = lists(&project.repository, draft, tree)?;
    let ground = JudgeInput {
        tip,
        tree,
        lists: &lists,
        draft,
    };

    Ok(collect(judge(project, reading, &ground)?))
}

/// Puts together what the actions of a plan do to each file.
fn collect(judged: Judged) -> DryRun {
    let Judged {
        plan, simulation, ..
    } = judged;
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
        });
        file.after = step.after;
        file.is_taken |= action.kind.artifact().is_some();
    }

    files.retain(|_, file| file.before != file.after || file.is_taken);
    DryRun {
        files,
        commands: commands(&plan),
        diagnostics: simulation.diagnostics,
    }
}

/// Counts the commands of a plan.
fn commands(plan: &Plan) -> usize {
    let kinds = plan.actions.iter().map(|action| &action.kind);
    kinds.filter(|kind| kind.command().is_some()).count()
}
