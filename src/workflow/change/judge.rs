//! The steps that decide a phase: a challenger judges the documents, a reviewer the implementation,
//! and the user can override both.

use serde::Serialize;

use super::ask::{Role, RoleQuestion};
use super::reopen::newest_turn;
use super::{OpenChange, now};
use crate::change::document;
use crate::change::id::ChangeId;
use crate::change::phase::{ChangePhase, ChangeStep};
use crate::change::proposal;
use crate::change::review::{self, ChangeReview, Issues, ReviewVerdict};
use crate::change::state::ChangeEntry;
use crate::change::store::Change;
use crate::git::diff;
use crate::git::object::{TreeId, read};
use crate::project::Project;
use crate::query::sum::{LastTurn, sum};
use crate::session::input::write_block;
use crate::text::diff::unified;
use crate::text::hint::error_with_hint;
use crate::text::sanitize::sanitize_line;
use crate::text::secret::redact;

const CHALLENGER: &str = include_str!("../../../prompts/change/challenger.md");
const REVIEWER: &str = include_str!("../../../prompts/change/reviewer.md");
/// In bytes. Files beyond this are only named.
const MAX_DIFF: usize = 600 * 1024;

#[derive(Debug, Clone, Serialize)]
pub struct Judgement {
    pub change: ChangeId,
    pub phase: ChangePhase,
    pub iteration: u32,
    pub verdict: ReviewVerdict,
    pub issues: Issues,
    pub only_minor_issues: bool,
}

pub fn challenge(open: &mut OpenChange<'_>) -> anyhow::Result<Judgement> {
    open.allow(ChangeStep::Challenge)?;
    open.require_usable()?;
    let iteration = open.change.state.iteration;
    let question = RoleQuestion {
        role: Role::Challenger,
        about: "a review with a verdict",
        system: CHALLENGER.to_owned(),
        input: open.material()?,
        message: format!(
            "Challenge iteration {iteration} of the change `{}` now.",
            open.change.id
        ),
    };
    judge(open, ChangeStep::Challenge, iteration, question)
}

pub fn review(open: &mut OpenChange<'_>) -> anyhow::Result<Judgement> {
    open.allow(ChangeStep::Review)?;
    open.require_done()?;
    open.report_lacking()?;
    let id = open.change.id.clone();
    let reviews = review::read(open.change.documents.text(review::FILE));
    let number = u32::try_from(reviews.len() + 1).unwrap_or(u32::MAX);
    let mut input = open.material()?;
    input.push_str("## 5. What Was Done\n");
    write_block(
        &mut input,
        "diff",
        &redact(&done_so_far(open.project, &open.change)?),
    );
    let question = RoleQuestion {
        role: Role::Reviewer,
        about: "a review with a verdict",
        system: REVIEWER.to_owned(),
        input,
        message: format!(
            "Review the implementation of the change `{id}` now; this is review {number}."
        ),
    };
    judge(open, ChangeStep::Review, number, question)
}

/// Records the verdict in the document that the step judges.
fn judge(
    open: &mut OpenChange<'_>,
    step: ChangeStep,
    iteration: u32,
    question: RoleQuestion<'_>,
) -> anyhow::Result<Judgement> {
    let role = question.role;
    let is_challenge = step == ChangeStep::Challenge;
    let newest_turn = match is_challenge {
        true => None,
        false => newest_turn(open.project, &open.change)?,
    };
    let ((body, verdict), usage) = open.ask(question, &parse_review)?;
    let review = ChangeReview {
        line: 0,
        iteration,
        reviewer: role.word().to_owned(),
        model: Some(usage.model.clone()),
        status: verdict.word().to_lowercase(),
        body: review::plain(&body),
        closed: true,
    };
    let issues = review.issues();
    let path = if is_challenge {
        proposal::FILE
    } else {
        review::FILE
    };
    let Change {
        documents, state, ..
    } = &mut open.change;
    let text = review::append(documents.text(path), &review);
    documents.insert(path, text.as_str());

    if is_challenge {
        // The verdict covers exactly these documents. Later edits show up as stale.
        state.seal(documents, &now());
    } else {
        state.seal_one(path, &text, &now());
    }

    let entry = ChangeEntry {
        verdict: Some(verdict),
        issues: Some(issues.into()),
        newest_turn,
        usage: Some(usage),
        ..ChangeEntry::default()
    };
    let (name, word) = name_verdict(step, verdict);
    let title = format!("{name} {iteration}: {word} ({})", issues.summary());
    open.save(step, entry, &title, &review::issue_titles(&body))?;
    Ok(Judgement {
        change: open.change.id.clone(),
        phase: open.change.state.phase,
        iteration,
        verdict,
        issues,
        only_minor_issues: issues.only_minor(),
    })
}

/// The kind of the judgement and its result.
fn name_verdict(step: ChangeStep, verdict: ReviewVerdict) -> (&'static str, String) {
    let word = verdict.word().to_lowercase();
    match (step, verdict) {
        (ChangeStep::Challenge, _) => ("Challenge", word.replace('_', " ")),
        (_, ReviewVerdict::NeedsRevision) => ("Review", "needs fix".to_owned()),
        (_, _) => ("Review", word),
    }
}

fn parse_review(text: &str) -> Result<(String, ReviewVerdict), Vec<String>> {
    let body = document::review_text(text);
    match review::read_verdict(&body) {
        Ok(verdict) => Ok((body, verdict)),
        Err(error) => Err(vec![format!("the verdict is unknown: {error}")]),
    }
}

/// Despite the verdict, or without one.
pub fn approve(open: &mut OpenChange<'_>, reason: &str) -> anyhow::Result<()> {
    open.allow(ChangeStep::Approve)?;
    let reason = redact(reason.trim()).into_owned();
    if reason.is_empty() {
        return Err(error_with_hint(
            "an approval against a verdict needs a reason",
            format!(
                "`teddy change approve {} --reason '<why>'` gives one",
                open.change.id
            ),
        ));
    }

    open.require_usable()?;
    let (about, newest_turn) = if open.change.state.phase == ChangePhase::Implementing {
        open.require_done()?;
        ("review", newest_turn(open.project, &open.change)?)
    } else {
        ("challenge", None)
    };

    let Change {
        documents, state, ..
    } = &mut open.change;
    state.seal(documents, &now());
    let lines: Vec<String> = reason.lines().map(str::to_owned).collect();
    let title = format!(
        "Approve in place of the {about}: {}",
        lines.first().map_or("", String::as_str)
    );
    let entry = ChangeEntry {
        about: Some(about.to_owned()),
        reason: Some(reason),
        newest_turn,
        ..ChangeEntry::default()
    };
    open.save(ChangeStep::Approve, entry, &title, &lines)
}

/// Fails if the session with the work on the change was deleted, or is in another repository.
pub(super) fn require_session(project: &Project, change: &Change) -> anyhow::Result<()> {
    let session = change.id.session();
    let mut entries = change.state.history.iter();
    if entries.all(|entry| entry.turn.is_none()) || project.store().has(&session)? {
        return Ok(());
    }
    Err(error_with_hint(
        format!(
            "session `{session}` with the work on `{}` is not in this repository",
            change.id
        ),
        format!(
            "`teddy fetch <remote> {session}`, then `teddy switch <remote>/{session}` takes it from a remote; `teddy fetch <file>` takes it from a bundle, such as those in .git/teddy/archive"
        ),
    ))
}

/// The files without and with what the turns of the session did, without the user's own edits and
/// results that were not applied.
/// `None` if no turn ran.
pub fn span_of(project: &Project, change: &Change) -> anyhow::Result<Option<(TreeId, TreeId)>> {
    require_session(project, change)?;
    let session = change.id.session();
    let store = project.store();
    if !store.has(&session)? {
        return Ok(None);
    }
    let turns = store.turns(&session)?;
    let sum = sum(&project.repository, None, &turns, LastTurn::AsApplied)?;
    Ok(sum.map(|sum| (sum.before, sum.after)))
}

fn done_so_far(project: &Project, change: &Change) -> anyhow::Result<String> {
    let Some((before, after)) = span_of(project, change)? else {
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
            (Some(old), Some(new)) if old == new => {
                text.push_str(&format!(
                    "(`{display_path}` changed, but not in its lines)\n"
                ));
            }
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
