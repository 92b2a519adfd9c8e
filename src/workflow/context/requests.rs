//! The user's requests of a session: the list that each turn carries, extended by the draft.
//!
//! Sessions of early versions have no list. Their turns are traversed once, and the next turn
//! stores the result.

use crate::git::history;
use uuid::Uuid;

use crate::git::repository::Repository;
use crate::project::Project;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::meta::{MessageOrigin, Restored};
use crate::session::requests::{MAX_LIST_SIZE, RequestState, Requests, UserRequest};
use crate::session::turn::{Turn, in_next};

/// For a session without a list, how far the first request is searched.
const FIRST_TURNS: u64 = 16;

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
        None => requests_of_chain(project, turn),
    }
}

fn requests_of_chain(project: &Project, from: &Turn) -> anyhow::Result<Requests> {
    let limit = max_requests_size(project);
    let (mut collected, mut size, mut undone_after) = (Vec::new(), 0, u64::MAX);
    for turn in project.store().history(from.clone()) {
        let turn = turn?;
        if let Some(text) = turn.text(&project.repository, &in_next(artifact::REQUESTS))? {
            let earlier = Requests::read(&text)?;
            collected.extend(earlier.requests.into_iter().rev());
            break;
        }

        if let Some(Restored { turn: back, .. }) = &turn.meta.restored {
            undone_after = undone_after.min(*back);
        }

        if let Some(request) = request_of_turn(&project.repository, &turn, undone_after)? {
            size += request.size();
            collected.push(request);
        }

        if size > limit {
            collected.extend(first_request(&project.repository, from, turn.number())?);
            break;
        }
    }

    collected.reverse();
    Ok(Requests::of(collected).limited_to(limit))
}

fn first_request(
    repository: &Repository,
    from: &Turn,
    end: u64,
) -> anyhow::Result<Option<UserRequest>> {
    for number in 1..end.min(FIRST_TURNS) {
        let back = from.number().saturating_sub(number);
        let commit = history::first_parent(repository, from.commit, back)?;
        let turn = Turn::read(repository, &from.session, commit)?;
        if let Some(request) = request_of_turn(repository, &turn, u64::MAX)? {
            return Ok(Some(request));
        }
    }
    Ok(None)
}

/// Undone if the session went back to an earlier turn.
fn request_of_turn(
    repository: &Repository,
    turn: &Turn,
    undone_after: u64,
) -> anyhow::Result<Option<UserRequest>> {
    let text = turn.text(repository, artifact::USER_PROMPT)?;
    let is_user_message = turn.meta.origin == MessageOrigin::User && turn.meta.work.is_none();
    let Some(text) = text.filter(|text| is_user_message && !text.trim().is_empty()) else {
        return Ok(None);
    };
    Ok(Some(UserRequest {
        turn: turn.number(),
        session: turn.recorded_session(repository)?.to_string(),
        turn_id: turn.meta.turn_id,
        state: if turn.number() > undone_after {
            RequestState::Undone
        } else {
            RequestState::Open
        },
        work: None,
        question: None,
        text,
        cut: false,
    }))
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
