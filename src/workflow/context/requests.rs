//! The user's requests of a session: the list that each turn carries, extended by the draft.

use uuid::Uuid;

use crate::project::Project;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::meta::MessageOrigin;
use crate::session::requests::{MAX_LIST_SIZE, RequestState, Requests, UserRequest};
use crate::session::turn::{Turn, in_next};

pub fn requests(project: &Project, tip: &Turn, draft: &Draft) -> anyhow::Result<Requests> {
    match draft.artifacts.text(artifact::REQUESTS) {
        Some(text) => Requests::read(&text),
        None => requests_after(project, tip),
    }
}

/// The message of the draft, or of a waiting plan, becomes a replaced request.
pub fn requests_but_for(
    project: &Project,
    tip: &Turn,
    draft: &Draft,
    message: &str,
) -> anyhow::Result<Requests> {
    let mut requests = requests(project, tip, draft)?;
    let replaced = request_of(tip, draft)
        .filter(|request| request.work.is_none() && request.text.trim() != message.trim());
    if let Some(replaced) = replaced {
        requests.push(UserRequest {
            state: RequestState::Replaced,
            question: tip.question(&project.repository)?,
            ..replaced
        });
    }

    // The full limit, and not the configured one: the draft has the only copy.
    Ok(requests.limited_to(MAX_LIST_SIZE))
}

pub fn requests_with(project: &Project, tip: &Turn, draft: &Draft) -> anyhow::Result<Requests> {
    let mut requests = requests(project, tip, draft)?;
    if let Some(request) = request_of(tip, draft) {
        requests.push(UserRequest {
            question: tip.question(&project.repository)?,
            ..request
        });
    }
    Ok(requests.limited_to(max_requests_size(project)))
}

/// Later requests are marked as undone.
pub fn requests_back_at(
    project: &Project,
    tip: &Turn,
    draft: &Draft,
    target: &Turn,
) -> anyhow::Result<Requests> {
    let mut requests = requests_but_for(project, tip, draft, "")?;
    if target.commit != tip.commit {
        requests = requests.back_to(requests_after(project, target)?);
    }
    Ok(requests.limited_to(max_requests_size(project)))
}

pub fn keep_request(
    project: &Project,
    tip: &Turn,
    draft: &mut Draft,
    text: String,
) -> anyhow::Result<String> {
    let mut requests = requests(project, tip, draft)?;
    requests.push(UserRequest {
        turn: draft.meta.number,
        session: tip.session.to_string(),
        turn_id: Uuid::now_v7(),
        state: RequestState::Open,
        work: None,
        question: tip.question(&project.repository)?,
        text: text.clone(),
        cut: false,
    });

    let requests = requests.limited_to(MAX_LIST_SIZE);
    draft.artifacts.remove(artifact::USER_PROMPT);
    draft.artifacts.insert(artifact::REQUESTS, requests.write());
    Ok(text)
}

/// From an earlier call that made no plan.
pub fn read_open_requests(
    project: &Project,
    tip: &Turn,
    draft: &Draft,
) -> anyhow::Result<Option<String>> {
    let requests = requests(project, tip, draft)?.requests.into_iter();
    let now = requests
        .filter(|request| request.turn == draft.meta.number && request.state == RequestState::Open);
    let texts: Vec<String> = now.map(|request| request.text).collect();
    Ok((!texts.is_empty()).then(|| texts.join("\n\n")))
}

/// In bytes.
pub fn max_requests_size(project: &Project) -> usize {
    usize::try_from(project.settings.context.max_requests_size.0).unwrap_or(usize::MAX)
}

/// The turn's message, or if TeDDy wrote that, the newest open request.
pub fn asked_with(project: &Project, turn: &Turn) -> anyhow::Result<Option<String>> {
    if turn.meta.origin == MessageOrigin::User {
        return turn.text(&project.repository, artifact::USER_PROMPT);
    }
    let requests = requests_after(project, turn)?.requests.into_iter().rev();
    let mut holding = requests.filter(|request| request.state == RequestState::Open);
    Ok(holding.next().map(|request| request.text))
}

fn requests_after(project: &Project, turn: &Turn) -> anyhow::Result<Requests> {
    match turn.text(&project.repository, &in_next(artifact::REQUESTS))? {
        Some(text) => Requests::read(&text),
        None => Ok(Requests::default()),
    }
}

fn request_of(tip: &Turn, draft: &Draft) -> Option<UserRequest> {
    let (text, origin) = draft.message()?;
    (origin == MessageOrigin::User).then(|| UserRequest {
        turn: draft.meta.number,
        session: tip.session.to_string(),
        turn_id: draft.meta.turn_id,
        state: RequestState::Open,
        work: draft.meta.work.clone(),
        question: None,
        text,
        cut: false,
    })
}
