//! The step `review`: a reviewer reads the changes of the session, and its verdict decides whether
//! the change is complete.

use super::ask::{Role, RoleClient, RoleQuestion};
use super::challenge::{Judgement, block, parse_challenge, titles};
use super::work::require_done;
use super::{ChangeOptions, ChangeStep, allow, now};
use crate::change::document::REVIEW;
use crate::change::id::ChangeId;
use crate::change::phase::ChangeEvent as Happened;
use crate::change::review;
use crate::change::review::ReviewVerdict;
use crate::change::state::ChangeEntry;
use crate::change::store::Change;
use crate::git::diff;
use crate::git::object::TreeId;
use crate::git::object::read;
use crate::git::refs;
use crate::project::Project;
use crate::query::sum::sum;
use crate::text::diff::unified;
use crate::text::sanitize::sanitize_line;
use crate::workflow::change;
use crate::workflow::change::ask::push_block as fenced;
use crate::workflow::change::ask::render_material;
use crate::workflow::change::open_change;
use crate::workflow::user::User;

const REVIEWER: &str = include_str!("../../../prompts/change/reviewer.md");
/// In bytes. Files beyond this are only named.
const MAX_DIFF: usize = 600 * 1024;

pub fn review(
    project: &Project,
    id: &ChangeId,
    options: &ChangeOptions,
    user: &mut dyn User,
) -> anyhow::Result<Judgement> {
    let _lock = change::lock_change(project, id, "review")?;
    project.recover(user)?;
    let mut change = open_change(project, id)?;
    review_locked(project, &mut change, (options, user))
}

/// The caller has locked the change.
pub(super) fn review_locked(
    project: &Project,
    change: &mut Change,
    doing: (&ChangeOptions, &mut dyn User),
) -> anyhow::Result<Judgement> {
    let (options, user) = doing;
    // Whether the step is allowed does not depend on the verdict.
    allow(change, Happened::Review(ReviewVerdict::Approved), "review")?;
    require_done(change)?;
    let id = change.id.clone();
    let number =
        u32::try_from(review::read(change.documents.text(REVIEW)).len() + 1).unwrap_or(u32::MAX);
    let mut input = render_material(&project.repository, change, change::files_now(project)?)?;

    input.push_str("## 5. What Was Done\n");
    fenced(
        &mut input,
        "diff",
        &crate::text::secret::redact(&done_so_far(project, &id)?),
    );
    let message =
        format!("Review the implementation of the change `{id}` now; this is review {number}.");
    let question = RoleQuestion {
        role: Role::Reviewer,
        about: "a review with a verdict",
        system: REVIEWER.to_owned(),
        input: &input,
        message,
    };

    let ((body, verdict), usage) = RoleClient {
        project,
        id: &id,
        options,
        user,
    }
    .ask(question, &parse_challenge)?;
    let review = block(Role::Reviewer, number, &body, verdict, &usage.model);
    let issues = review.issues();
    let text = review::append(change.documents.text(REVIEW), &review);

    change.documents.insert(REVIEW, text.as_str());
    change.state.seal_one(REVIEW, &text, &now());
    let entry = ChangeEntry {
        verdict: Some(verdict),
        issues: Some(issues.into()),
        usage: Some(usage),
        ..ChangeEntry::of("review", &now())
    };

    let word = if verdict == ReviewVerdict::NeedsRevision {
        "needs fix".to_owned()
    } else {
        verdict.word().to_lowercase()
    };

    let title = format!("Review {number}: {word} ({})", issues.summary());
    change::save(
        project,
        change,
        ChangeStep {
            event: Happened::Review(verdict),
            command: "review",
            entry,
            title,
            lines: titles(&body),
        },
    )?;
    Ok(Judgement {
        change: id,
        phase: change.state.phase,
        iteration: number,
        verdict,
        issues,
        only_minor_issues: issues.only_minor(),
    })
}

pub(super) fn last_review(change: &Change) -> Option<(usize, String)> {
    let reviews = review::read(change.documents.text(REVIEW));
    let latest = review::latest(&reviews)?;
    Some((
        usize::try_from(latest.iteration).unwrap_or(usize::MAX),
        latest.body.clone(),
    ))
}

/// The files without and with what the turns of the session did, without the user's own edits.
/// `None` if no turn ran.
pub fn span_of(project: &Project, id: &ChangeId) -> anyhow::Result<Option<(TreeId, TreeId)>> {
    let session = id.session();
    if refs::read(&project.repository, &session.reference())?.is_none() {
        return Ok(None);
    }

    let turns = project.store().history(project.store().tip(&session)?);
    let mut turns = turns.collect::<anyhow::Result<Vec<_>>>()?;
    turns.reverse();
    let sum = sum(&project.repository, None, &turns)?;
    Ok(sum.map(|sum| (sum.before, sum.after)))
}

fn done_so_far(project: &Project, id: &ChangeId) -> anyhow::Result<String> {
    let Some((before, after)) = span_of(project, id)? else {
        return Ok("(nothing)\n".to_owned());
    };
    let mut text = String::new();
    for change in diff::changes(&project.repository, before, after)? {
        let path = String::from_utf8_lossy(&change.path).into_owned();
        let display_path = sanitize_line(&path);
        if text.len() > MAX_DIFF {
            text.push_str(&format!(
                "(`{display_path}` changed too; the difference is too large to be shown)\n"
            ));
            continue;
        }

        let (old, new) = (
            read::text_of(&project.repository, change.old.as_ref())?,
            read::text_of(&project.repository, change.new.as_ref())?,
        );
        match (old, new) {
            (Some(old), Some(new)) => text.push_str(&unified(
                &old,
                &new,
                (&format!("a/{display_path}"), &format!("b/{display_path}")),
            )),
            _ => text.push_str(&format!(
                "(`{display_path}` is large or not text, and changed)\n"
            )),
        }
    }

    Ok(if text.is_empty() {
        "(nothing)\n".to_owned()
    } else {
        text
    })
}
