//! The step `challenge`: a challenger criticizes the documents, and its verdict determines the
//! phase.

use serde::Serialize;

use super::ask::{Role, RoleClient, RoleQuestion};
use super::{ChangeOptions, ChangeStep, allow, now};
use crate::change::document::{self, Documents};
use crate::change::finding::is_usable;
use crate::change::id::ChangeId;
use crate::change::phase::{ChangeEvent as Happened, ChangePhase};
use crate::change::review::{self, ChangeReview, Issues, ReviewVerdict};
use crate::change::state::ChangeEntry;
use crate::change::store::{Change, ChangeError};
use crate::change::{proposal, section, tasks};
use crate::project::Project;
use crate::text::hint::error_with_hint;
use crate::workflow::change::ask::render_material;
use crate::workflow::change::{self, open_change};
use crate::workflow::user::Notice;
use crate::workflow::user::{Event, User};

const CHALLENGER: &str = include_str!("../../../prompts/change/challenger.md");

#[derive(Debug, Clone, Serialize)]
pub struct Judgement {
    pub change: ChangeId,
    pub phase: ChangePhase,
    pub iteration: u32,
    pub verdict: ReviewVerdict,
    pub issues: Issues,
    pub only_minor_issues: bool,
}

pub fn challenge(
    project: &Project,
    id: &ChangeId,
    options: &ChangeOptions,
    user: &mut dyn User,
) -> anyhow::Result<Judgement> {
    let _lock = change::lock_change(project, id, "challenge")?;
    project.recover(user)?;
    let mut change = open_change(project, id)?;
    challenge_locked(
        &mut RoleClient {
            project,
            id,
            options,
            user,
        },
        &mut change,
    )
}

/// The caller has locked the change.
pub(super) fn challenge_locked(
    client: &mut RoleClient<'_>,
    change: &mut Change,
) -> anyhow::Result<Judgement> {
    // Whether the step is allowed does not depend on the verdict.
    allow(
        change,
        Happened::Challenge(ReviewVerdict::Approved),
        "challenge",
    )?;
    require_usable(&change.id, &change.documents, client.user)?;
    let iteration = change.state.iteration;
    let input = render_material(
        &client.project.repository,
        change,
        change::files_now(client.project)?,
    )?;
    let message = format!(
        "Challenge iteration {iteration} of the change `{}` now.",
        change.id
    );
    let about = "a review with a verdict";
    let question = RoleQuestion {
        role: Role::Challenger,
        about,
        system: CHALLENGER.to_owned(),
        input: &input,
        message,
    };

    let ((body, verdict), usage) = client.ask(question, &parse_challenge)?;
    let review = block(Role::Challenger, iteration, &body, verdict, &usage.model);
    let issues = review.issues();
    let text = review::append(change.documents.text(proposal::FILE), &review);
    change.documents.insert(proposal::FILE, text);
    // The verdict covers exactly these documents. Later edits show up as stale.
    change.state.seal(&change.documents, &now());
    let entry = ChangeEntry {
        verdict: Some(verdict),
        issues: Some(issues.into()),
        usage: Some(usage),
        ..ChangeEntry::of("challenge", &now())
    };

    let title = format!(
        "Challenge {iteration}: {} ({})",
        verdict.word().to_lowercase().replace('_', " "),
        issues.summary()
    );
    let step = ChangeStep {
        event: Happened::Challenge(verdict),
        command: "challenge",
        entry,
        title,
        lines: titles(&body),
    };

    change::save(client.project, change, step)?;
    Ok(Judgement {
        change: change.id.clone(),
        phase: change.state.phase,
        iteration,
        verdict,
        issues,
        only_minor_issues: issues.only_minor(),
    })
}

/// Reports mistakes, and fails if the documents are unusable.
pub(super) fn require_usable(
    id: &ChangeId,
    documents: &Documents,
    user: &mut dyn User,
) -> anyhow::Result<()> {
    let findings = documents.check(id);
    if is_usable(&findings) {
        return Ok(());
    }

    let count = findings.len();
    user.report(Event::Notice(Notice::DocumentMistakes(findings)));
    Err(ChangeError::Invalid {
        id: id.clone(),
        count,
    }
    .into())
}

pub(super) fn parse_challenge(text: &str) -> Result<(String, ReviewVerdict), Vec<String>> {
    let body = document::review_text(text);
    match review::read_verdict(&body) {
        Ok(verdict) => Ok((body, verdict)),
        Err(error) => Err(vec![format!("the verdict is unknown: {error}")]),
    }
}

pub(super) fn block(
    role: Role,
    iteration: u32,
    body: &str,
    verdict: ReviewVerdict,
    model: &str,
) -> ChangeReview {
    ChangeReview {
        line: 0,
        iteration,
        reviewer: role.word().to_owned(),
        model: Some(model.to_owned()),
        status: verdict.word().to_lowercase(),
        body: review::plain(body),
        closed: true,
    }
}

pub(super) fn titles(body: &str) -> Vec<String> {
    let sections = section::read(body);
    let Some(all) = section::find(&sections, 2, "issues") else {
        return Vec::new();
    };
    let line = |issue: &section::DocumentSection| {
        let severity = section::field(&issue.body, "severity")
            .map(|(_, word)| format!("{}: ", word.to_lowercase()))
            .unwrap_or_default();
        format!(
            "- {severity}{}",
            issue.title.trim_start_matches("Issue:").trim()
        )
    };

    section::read(&all.body)
        .iter()
        .filter(|issue| issue.level == 3)
        .map(line)
        .collect()
}

/// Despite the verdict, or without one.
pub fn approve(
    project: &Project,
    id: &ChangeId,
    reason: &str,
    user: &mut dyn User,
) -> anyhow::Result<Change> {
    let reason = reason.trim();
    let _lock = change::lock_change(project, id, "approve")?;
    project.recover(user)?;
    let mut change = open_change(project, id)?;
    allow(&change, Happened::Approve, "approve")?;

    if reason.is_empty() {
        return Err(error_with_hint(
            "an approval against a verdict needs a reason",
            format!("`teddy change approve {id} --reason '<why>'` says it"),
        ));
    }

    require_usable(id, &change.documents, user)?;
    if change.state.phase == ChangePhase::Implementing {
        let open = tasks::read(change.documents.text(tasks::FILE))
            .iter()
            .filter(|task| !task.is_done)
            .count();
        anyhow::ensure!(
            open == 0,
            ChangeError::OpenTasks {
                id: id.clone(),
                open
            }
        );
    }

    change.state.seal(&change.documents, &now());
    let about = if change.state.phase == ChangePhase::Implementing {
        "review"
    } else {
        "challenge"
    };

    let reason = crate::text::secret::redact(reason).into_owned();
    let lines = reason.lines().map(str::to_owned).collect();
    let entry = ChangeEntry {
        about: Some(about.to_owned()),
        reason: Some(reason.clone()),
        ..ChangeEntry::of("approve", &now())
    };
    let title = format!(
        "Approve in place of the {about}: {}",
        reason.lines().next().unwrap_or_default()
    );

    change::save(
        project,
        &mut change,
        ChangeStep {
            event: Happened::Approve,
            command: "approve",
            entry,
            title,
            lines,
        },
    )?;
    Ok(change)
}
