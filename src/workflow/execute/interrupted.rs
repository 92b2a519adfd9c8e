//! Records an interrupted run: the turn reports what ran, the user's files stay unchanged, and the
//! plan becomes the next draft.

use super::result::{RecordedTurn, TurnEnding};
use super::run::FinishedRun;
use super::turn::{EndedTurn, finish};
use crate::git::refs;
use crate::plan::run::Interruption;
use crate::session::artifact;
use crate::session::meta::{ModelUse, Status, Workspace};
use crate::session::transition;
use crate::workflow::notice::Notice;
use crate::workflow::project::Project;
use crate::workflow::user::{Event, User};
use crate::workflow::validation::review_content::{modifications, render_as_run};
use crate::workspace::transaction::Transaction;

/// Artifacts that the next draft needs to run the plan again.
const REUSED_ARTIFACTS: [&str; 4] = [
    artifact::INPUT,
    artifact::USER_PROMPT,
    artifact::REPLY,
    artifact::PLAN,
];

pub(super) fn record_interrupted(
    transaction: &Transaction,
    project: &Project,
    mut run: FinishedRun<'_>,
    user: &mut dyn User,
) -> anyhow::Result<RecordedTurn> {
    // The result itself might be what cannot be written, for example on a full disk. Record at
    // least that the plan ran.
    let commit = run.commit(project, run.result.worktree.base, run.result.worktree.tree);
    let after = commit.or_else(|error| {
        run.result.ran.cut_short(&error);
        run.commit(project, run.case.recorded.commit, run.case.recorded.tree)
    })?;
    let FinishedRun {
        case,
        approved,
        result,
    } = &run;
    let (context, prompt) = (case.lists.turn(), case.prompt(project)?);
    let writing = EndedTurn {
        ending: TurnEnding::Interrupted {
            outcomes: result.ran.outcomes.clone(),
            cause: result
                .ran
                .interruption
                .clone()
                .unwrap_or(Interruption::User),
        },
        plan: &approved.plan,
        approved: render_as_run(&case.validated.plan, approved),
        memos: &[],
        modifications: &modifications(&case.validated.plan, approved, &case.validated.simulation),
        next: transition::without_effects(&case.current(&context, &prompt)),
        workspace: Workspace {
            worktree: project.repository.worktree_name(),
            branch: refs::branch_or_head(&project.repository).ok(),
            before: case.recorded.commit,
            after,
            synced: false,
            overlaps: Vec::new(),
        },
        repository_changes: result.worktree.repository_changes.clone(),
        not_captured: case.recorded.not_captured.clone(),
    };

    let recorded = finish(transaction, project, case, writing, None)?;

    if let Err(error) = restore_draft(project, &run) {
        user.report(Event::Notice(Notice::PlanNotKept(format!("{error:#}"))));
    }

    Ok(recorded)
}

fn restore_draft(project: &Project, run: &FinishedRun<'_>) -> anyhow::Result<()> {
    let old = &run.case.draft;
    let tip = project.store().tip(&run.case.tip.session)?;
    let mut draft = project.store().draft(&tip)?;
    let is_kept = |name: &str| {
        REUSED_ARTIFACTS.contains(&name)
            || name.starts_with(artifact::STEPS)
            || name.starts_with(artifact::TAKEN_FILES)
            || name.starts_with(artifact::PAGES)
    };

    for (name, contents) in old.artifacts.0.iter().filter(|(name, _)| is_kept(name)) {
        draft.artifacts.insert(name, contents.as_slice());
    }

    draft.meta.status = Status::Planned;
    draft.meta.origin = old.meta.origin;
    draft.meta.replans = old.meta.replans;
    draft.meta.made = old.meta.made;
    draft.meta.pipeline.clone_from(&old.meta.pipeline);
    draft.meta.repair.clone_from(&old.meta.repair);

    // The interrupted turn has already accounted for the cost.
    draft.meta.model = old.meta.model.as_ref().map(|model| ModelUse {
        asked: model.asked.clone(),
        answered: model.answered.clone(),
        cost: model.cost.map(|_| 0.0),
        ..ModelUse::default()
    });
    draft.begin();
    project.store().save_draft(&tip, &mut draft)
}
