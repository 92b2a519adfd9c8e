//! `retry`: sends the recorded input of a turn again, byte for byte. The answer becomes the draft
//! of a new branch.

use anyhow::Context as _;

use crate::git::repository::Repository;
use crate::project::Project;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::meta::MessageOrigin;
use crate::session::name::{SessionName, fitting};
use crate::session::turn::Turn;
use crate::workflow::context::lists::lists;
use crate::workflow::lifecycle::fork_session;
use crate::workflow::model::budget::TokenEstimate;
use crate::workflow::model::pipelines::{PlanSource, plan_source};
use crate::workflow::model::request::ask_watching;
use crate::workflow::open_session::OpenSession;
use crate::workflow::plan::{Answered, WaitingPlan};
use crate::workflow::user::{Event, Notice, User};

/// Sent, or needed by validation.
const RECORDED: [&str; 5] = [
    artifact::INPUT,
    artifact::USER_PROMPT,
    artifact::SYSTEM_PROMPT,
    artifact::TURN_CONTEXT,
    artifact::SESSION_CONTEXT,
];

#[derive(Debug, Clone, Default)]
pub struct RetryOptions {
    pub turn: String,
    /// `None` for the turn's model or pipeline.
    pub model: Option<String>,
}

/// Switches to the new session with the answer.
pub fn retry(
    project: &mut Project,
    options: &RetryOptions,
    user: &mut dyn User,
) -> anyhow::Result<WaitingPlan> {
    let session = project.session_of(&options.turn)?;
    let turn = project.store().turn(&session, &options.turn)?;
    turn.session.writable()?;
    let previous = turn
        .previous
        .context("turn 0 has no input: it is the session's start")?;
    let input = turn.text(&project.repository, artifact::INPUT)?;
    let input = input.with_context(|| {
        format!(
            "turn {} has no recorded input: no model was asked",
            turn.number()
        )
    })?;

    // Fail on an unavailable model before creating a branch.
    let source = source_of(project, &turn, options.model.as_deref())?;
    let name = free_name(project, &turn.session)?;
    let before = format!("{}:{previous}", turn.session);
    fork_session(project, &before, &name, user)?;
    project.work_on(&name);
    let planned = ask_again(project, &turn, source, input.as_str(), user)
        .with_context(|| format!("session `{name}` was started, but has no plan"))?;

    project.use_session(&name)?;
    Ok(planned)
}

fn source_of(project: &Project, turn: &Turn, model: Option<&str>) -> anyhow::Result<PlanSource> {
    // The author of another user's turn must not choose a program to run.
    let is_own = project.checkout().is_own_turn(turn)?;
    let pipeline = turn.meta.pipeline.as_deref().filter(|_| is_own);
    let recorded_model = || {
        let recorded = turn.meta.model.as_ref();
        recorded
            .map(|model| model.asked.as_str())
            .filter(|_| is_own && pipeline.is_none())
    };

    // A replay counts answers up to the previous turn, so it gives the same answer again.
    let before = Turn::read(
        &project.repository,
        &turn.session,
        turn.previous.context("turn 0 has no input")?,
    )?;
    plan_source(
        project,
        &before,
        model.or_else(recorded_model),
        pipeline.filter(|_| model.is_none()),
        MessageOrigin::User,
    )
}

fn free_name(project: &Project, session: &SessionName) -> anyhow::Result<SessionName> {
    let base = session.as_str().replace('/', "-");
    let mut number = 1;
    loop {
        let name = SessionName::parse(&fitting(&base, &format!("-retry-{number}")))?;
        if !project.store().has(&name)? {
            return Ok(name);
        }
        number += 1;
    }
}

fn ask_again(
    project: &Project,
    turn: &Turn,
    source: PlanSource,
    input: &str,
    user: &mut dyn User,
) -> anyhow::Result<WaitingPlan> {
    let mut session = OpenSession::current(project, "retry", user)?;
    take_over(&project.repository, turn, &mut session.draft)?;
    let recorded = session.record_files(&[], user)?;
    session.draft.meta.planned_on = Some(recorded.commit);
    let lists = lists(&project.repository, &session.draft, recorded.tree)?;
    let weight = TokenEstimate::of_input(input, 0, 0);
    let reply = ask_watching(&mut session, &recorded, source, weight, user)?;

    report_other_steps(&project.repository, turn, &session.draft, user)?;
    let before = turn
        .meta
        .workspace
        .as_ref()
        .map(|workspace| project.repository.commit(workspace.before))
        .transpose()?;
    if before.is_some_and(|before| before.tree != recorded.tree) {
        let before_turn = state_before(turn, &session.tip);
        user.report(Event::Notice(Notice::FilesDiffer(before_turn)));
    }

    let answered = Answered {
        session,
        lists: &lists,
        recorded: &recorded,
        is_kept: true,
    };
    answered.take(reply)
}

/// Returns the name of the turn before `turn`. `tip` is this turn in the new session, where a start
/// has no files to restore.
fn state_before(turn: &Turn, tip: &Turn) -> String {
    match tip.workspace {
        Some(_) => "@".to_owned(),
        None => format!("{}:{}", turn.session, tip.number()),
    }
}

/// Later steps depend on the answer of the first one.
fn report_other_steps(
    repository: &Repository,
    turn: &Turn,
    draft: &Draft,
    user: &mut dyn User,
) -> anyhow::Result<()> {
    let Some(name) = &draft.meta.pipeline else {
        return Ok(());
    };
    let first = |name: &&String| name.starts_with("steps/01-") && name.ends_with("/input.md");
    let Some(sent) = draft.artifacts.0.keys().find(first) else {
        return Ok(());
    };

    if turn.text(repository, sent)? != draft.artifacts.text(sent) {
        let step = sent
            .trim_start_matches("steps/01-")
            .trim_end_matches("/input.md");
        user.report(Event::Notice(Notice::StepChanged {
            pipeline: name.clone(),
            step: step.to_owned(),
        }));
    }

    Ok(())
}

fn take_over(repository: &Repository, turn: &Turn, draft: &mut Draft) -> anyhow::Result<()> {
    let files = repository.files(turn.tree)?;
    for name in RECORDED {
        match files.get(name) {
            Some(bytes) => draft.artifacts.insert(name, bytes.clone()),
            None => draft.artifacts.remove(name),
        }
    }

    draft.meta.agent.clone_from(&turn.meta.agent);
    draft.meta.origin = turn.meta.origin;
    draft.meta.question = turn.meta.question;
    draft.meta.caller_turn_id = turn.meta.caller_turn_id;
    draft.begin();
    Ok(())
}
