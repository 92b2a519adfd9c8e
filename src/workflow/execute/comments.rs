//! Comments on lines of a plan's result: the plan is declined with them.

use std::collections::BTreeMap;

use super::planned::PlannedTurn;
use crate::git::object::{BlobId, TreeId, read};
use crate::project::Project;
use crate::session::artifact;
use crate::session::comments::{FollowedComment, LineComment, parse, quotable, render};
use crate::session::draft::Draft;
use crate::session::meta::{Approver, Status};
use crate::session::turn::Turn;
use crate::text::counted;
use crate::text::encoding::display_text;
use crate::text::hint::error_with_hint;
use crate::text::path::RepoPath;
use crate::text::secret::redact;
use crate::workflow::open_session::OpenSession;

/// A comment on lines of a file as it would be after the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommentRequest {
    pub path: RepoPath,
    pub first: usize,
    pub last: usize,
    pub text: String,
}

/// Turns between a plan with comments and the next plan for a review. A fetched session can have any
/// number.
const MAX_BETWEEN: usize = 50;

/// Returns the comments on the previous plan that the user reviewed, with the state of their lines.
pub(super) fn earlier_comments(planned: &PlannedTurn<'_>) -> anyhow::Result<Vec<FollowedComment>> {
    let comments = comments_before(planned)?;
    // A fetched turn can have many comments on one large file.
    let mut files: BTreeMap<RepoPath, Option<Vec<String>>> = BTreeMap::new();
    let mut followed = Vec::with_capacity(comments.len());
    for comment in comments {
        if !files.contains_key(&comment.path) {
            let text = text_after(planned, &comment.path)?;
            files.insert(comment.path.clone(), text.as_deref().map(quotable));
        }
        let lines = files.get(&comment.path).and_then(Option::as_deref);
        followed.push(comment.follow(lines));
    }
    Ok(followed)
}

/// Returns the comments of the newest turn that has some. The user reviewed no plan after it.
fn comments_before(planned: &PlannedTurn<'_>) -> anyhow::Result<Vec<LineComment>> {
    let OpenSession { project, tip, .. } = &planned.session;
    let turns = project.store().history(tip.clone());
    // An unreadable turn ends the search: the review does not depend on it.
    for turn in turns.map_while(Result::ok).take(MAX_BETWEEN) {
        if matches!(turn.meta.status, Status::Declined | Status::Rejected) {
            let text = small_text(project, turn.tree, artifact::COMMENTS)?;
            if let Some(text) = text {
                return Ok(parse(&text).unwrap_or_default());
            }
        }
        if !was_without_review(&turn) {
            break;
        }
    }
    Ok(Vec::new())
}

/// Returns whether validation rejected the plan of a turn, or it only read or told something.
fn was_without_review(turn: &Turn) -> bool {
    match turn.meta.status {
        Status::Rejected => true,
        Status::Executed => turn.meta.question || turn.meta.approved_by == Some(Approver::Reads),
        _ => false,
    }
}

pub(super) fn comment(
    planned: &PlannedTurn<'_>,
    request: &CommentRequest,
) -> anyhow::Result<LineComment> {
    let CommentRequest {
        path,
        first,
        last,
        text,
    } = request;
    let version = text_after(planned, path)?;
    let comment = version
        .as_deref()
        .and_then(|version| LineComment::on(path.clone(), *first, *last, version, text));
    comment.ok_or_else(|| {
        let (problem, hint) = match version.map(|version| version.lines().count()) {
            None => (
                format!(
                    "after this plan there is no file `{path}`, or it is binary or too large to comment on"
                ),
                "`teddy diff draft` shows what the plan does".to_owned(),
            ),
            Some(lines) => (
                format!("`{path}` has no lines {first} to {last} after this plan"),
                format!("it has {}, counted from 1", counted(lines, "line")),
            ),
        };
        error_with_hint(problem, hint)
    })
}

/// Saves comments that are not sent yet in the draft.
pub(super) fn save(
    project: &Project,
    tip: &Turn,
    draft: &mut Draft,
    comments: &[LineComment],
) -> anyhow::Result<()> {
    let mut comments = comments.to_vec();
    for comment in &mut comments {
        comment.text = redact(&comment.text).into_owned();
    }
    match comments.is_empty() {
        true => draft.artifacts.remove(artifact::COMMENTS),
        false => draft
            .artifacts
            .insert(artifact::COMMENTS, render(&comments)),
    }
    project.store().save_draft(tip, draft)
}

/// Keeps comments in a turn whose plan is rejected: the model gets them with the mistakes.
pub(super) fn put_back(draft: &mut Draft, comments: &[LineComment]) {
    if !comments.is_empty() {
        draft.artifacts.insert(artifact::COMMENTS, render(comments));
    }
}

/// Removes the comments that are not sent yet from a draft, without saving it.
pub(super) fn take_written(draft: &mut Draft) -> Vec<LineComment> {
    let text = draft.artifacts.text(artifact::COMMENTS);
    draft.artifacts.remove(artifact::COMMENTS);
    text.and_then(|text| parse(&text)).unwrap_or_default()
}

/// Returns a file as it would be after the plan. `None` if it would not exist, is binary, or is
/// too large.
fn text_after(planned: &PlannedTurn<'_>, path: &RepoPath) -> anyhow::Result<Option<String>> {
    let simulation = &planned.validated.simulation;
    let actions = planned.validated.plan.actions.iter().enumerate().rev();
    for (index, _) in actions.filter(|(_, action)| action.kind.path() == Some(path)) {
        let step = simulation.step(index);
        if step.removed {
            return Ok(None);
        }
        if let Some(after) = &step.after {
            return Ok(shown(after));
        }
    }
    small_text(
        planned.session.project,
        planned.recorded.tree,
        path.as_str(),
    )
}

/// Returns a text. `None` if there is no such file, if it is binary, or if it is too large for a line diff: anyone
/// whose turns are fetched can name it.
fn small_text(project: &Project, tree: TreeId, path: &str) -> anyhow::Result<Option<String>> {
    let repository = &project.repository;
    let entry = repository.entry(tree, path.as_bytes())?;
    let Some(entry) = entry.filter(|entry| entry.is_file()) else {
        return Ok(None);
    };
    let bytes = read::small_blob(repository, BlobId::of(entry.id))?;
    Ok(bytes.as_deref().and_then(shown))
}

/// Returns the text as the review shows it. `None` if it is binary.
fn shown(bytes: &[u8]) -> Option<String> {
    display_text(bytes).map(|shown| shown.text.into_owned())
}
