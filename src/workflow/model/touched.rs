//! A model that is a program is to answer, and can do more: what of the user's files changed while
//! it was asked is said, whatever became of the answer.

use super::request::{PlanRequest, ask};
use super::source::PlanSource;
use crate::git::diff;
use crate::git::object::TreeId;
use crate::text::path::lossy;
use crate::workflow::notice::Notice;
use crate::workflow::project::Project;
use crate::workflow::user::{Event, User};
use crate::workspace::snapshot::snapshot;

/// Asks as [`ask`] does; the user's files were `before` when it began.
///
/// # Errors
/// As for [`ask`].
pub fn ask_watching(
    project: &Project,
    before: TreeId,
    asking: PlanRequest<'_>,
    user: &mut dyn User,
) -> anyhow::Result<String> {
    let program = program(&asking.source);
    let answer = ask(project, asking, user);
    if let Some(model) = program {
        // Where they cannot be looked at, whoever needs them next says so.
        let paths = changed(project, before).unwrap_or_default();
        if !paths.is_empty() {
            user.tell(Event::Notice(Notice::FilesTouched { model, paths }));
        }
    }

    answer
}

/// Returns the name of a program that is asked; nothing if none is.
fn program(source: &PlanSource) -> Option<String> {
    match source {
        PlanSource::Model(model) => model.is_program.then(|| model.model.name().to_owned()),
        PlanSource::Pipeline(pipeline) => {
            let mut programs = pipeline.models.values().filter(|model| model.is_program);
            programs.next().map(|model| model.model.name().to_owned())
        }
    }
}

/// Returns the files that are not as they were.
fn changed(project: &Project, before: TreeId) -> anyhow::Result<Vec<String>> {
    let now = snapshot(&project.checkout(), &[])?.tree;
    let changes = diff::changes(&project.repository, before, now)?;
    Ok(changes.iter().map(|change| lossy(&change.path)).collect())
}
