//! Comments on lines of a plan's result: the plan is declined with them.

use super::result::RecordedTurn;
use super::{PlanInReview, decline};
use crate::session::artifact;
use crate::session::comments::{CommentStatus, LineComment, MAX_COMMENTS, message, parse, render};
use crate::session::meta::Status;
use crate::text::path::RepoPath;
use crate::workflow::hint::error_with_hint;
use crate::workflow::project::Project;
use crate::workflow::user::User;

/// A comment on lines of a file as it would be after the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommentRequest {
    pub path: RepoPath,
    pub first: usize,
    pub last: usize,
    pub text: String,
}

/// Declines the plan with comments. They become the message of the next turn.
pub(super) fn request_changes(
    project: &Project,
    mut case: PlanInReview<'_>,
    requests: &[CommentRequest],
    user: &mut dyn User,
) -> anyhow::Result<RecordedTurn> {
    anyhow::ensure!(
        requests.len() <= MAX_COMMENTS,
        "at most {MAX_COMMENTS} comments are possible at once"
    );
    let comments: Vec<LineComment> = requests
        .iter()
        .map(|request| comment(project, &case, request))
        .collect::<anyhow::Result<_>>()?;
    case.draft
        .artifacts
        .insert(artifact::COMMENTS, render(&comments));
    decline(project, case, Some(message(&comments)), user)
}

fn comment(
    project: &Project,
    case: &PlanInReview<'_>,
    request: &CommentRequest,
) -> anyhow::Result<LineComment> {
    let CommentRequest {
        path,
        first,
        last,
        text,
    } = request;
    let version = text_after(project, case, path)?;
    let comment = version
        .as_deref()
        .and_then(|version| LineComment::on(path.clone(), *first, *last, version, text));
    comment.ok_or_else(|| {
        let (problem, hint) = match version.map(|version| version.lines().count()) {
            None => (
                format!("after this plan there is no file `{path}`"),
                "`teddy diff` shows what the plan does".to_owned(),
            ),
            Some(lines) => (
                format!("`{path}` has no lines {first} to {last} after this plan"),
                format!("it has {lines}; lines are counted from 1"),
            ),
        };
        error_with_hint(problem, hint)
    })
}

/// Returns the comments with which the plan before this one was declined, and what became of their
/// lines.
pub(super) fn earlier_comments(
    project: &Project,
    case: &PlanInReview<'_>,
) -> anyhow::Result<Vec<(LineComment, CommentStatus)>> {
    if case.tip.meta.status != Status::Declined {
        return Ok(Vec::new());
    }
    let text = case.tip.text(&project.repository, artifact::COMMENTS)?;
    let comments = text.and_then(|text| parse(&text)).unwrap_or_default();
    let with_status = |comment: LineComment| {
        let version = text_after(project, case, &comment.path)?;
        let status = comment.status(version.as_deref());
        Ok((comment, status))
    };
    comments.into_iter().map(with_status).collect()
}

/// Returns a file as it would be after the plan. `None` if it would not exist.
fn text_after(
    project: &Project,
    case: &PlanInReview<'_>,
    path: &RepoPath,
) -> anyhow::Result<Option<String>> {
    let simulation = &case.validated.simulation;
    let actions = case.validated.plan.actions.iter().enumerate().rev();
    for (index, _) in actions.filter(|(_, action)| action.kind.path() == Some(path)) {
        let step = simulation.step(index);
        if step.removed {
            return Ok(None);
        }
        if let Some(after) = &step.after {
            return Ok(Some(String::from_utf8_lossy(after).into_owned()));
        }
    }
    let bytes = project.repository.file(case.recorded.tree, path.as_str())?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}
