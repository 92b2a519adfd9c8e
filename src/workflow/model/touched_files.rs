//! Reports if the user's files changed while a program was asked for a plan. Such a program can do
//! more than answer.

use super::request::{PlanRequest, ask};
use super::source::PlanSource;
use crate::git::diff;
use crate::git::object::TreeId;
use crate::text::path::lossy;
use crate::workflow::notice::Notice;
use crate::workflow::project::Project;
use crate::workflow::user::{Event, User};
use crate::workspace::snapshot::snapshot;

/// Like [`ask`]. `before` is the tree of the user's files before the request.
pub fn ask_watching(
    project: &Project,
    before: TreeId,
    plan_request: PlanRequest<'_>,
    user: &mut dyn User,
) -> anyhow::Result<String> {
    let program = asked_program(&plan_request.source);
    let answer = ask(project, plan_request, user);
    if let Some(model) = program {
        // If the snapshot fails, the next command that takes one reports why.
        let paths = changed_paths(project, before).unwrap_or_default();
        if !paths.is_empty() {
            user.report(Event::Notice(Notice::FilesTouched { model, paths }));
        }
    }

    answer
}

fn asked_program(source: &PlanSource) -> Option<String> {
    match source {
        PlanSource::Model(model) => model.is_program.then(|| model.model.name().to_owned()),
        PlanSource::Pipeline(pipeline) => {
            let mut programs = pipeline.models.values().filter(|model| model.is_program);
            programs.next().map(|model| model.model.name().to_owned())
        }
    }
}

fn changed_paths(project: &Project, before: TreeId) -> anyhow::Result<Vec<String>> {
    let now = snapshot(&project.checkout(), &[])?.tree;
    let changes = diff::changes(&project.repository, before, now)?;
    Ok(changes.iter().map(|change| lossy(&change.path)).collect())
}
