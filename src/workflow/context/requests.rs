//! The requests of a session: what its turns hand on, and what the turn in progress adds.

use crate::git::revision;
use uuid::Uuid;

use crate::git::repository::Repository;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::meta::{MessageOrigin, Restored};
use crate::session::requests::limit::MAX_SIZE;
use crate::session::requests::{RequestState, Requests, UserRequest};
use crate::session::turn::{Turn, in_next};
use crate::workflow::project::Project;

/// In how many turns the first request of a session is looked for that was recorded by a version
/// without a list of them.
const FIRST_TURNS: u64 = 16;

/// Returns what the user asked for before the turn in progress, in its own list where it has
/// one.
///
/// # Errors
/// Where the repository or the list cannot be read.
pub fn requests(project: &Project, tip: &Turn, draft: &Draft) -> anyhow::Result<Requests> {
    match draft.artifacts.text(artifact::REQUESTS) {
        Some(text) => Requests::read(&text),
        None => requests_after(project, tip),
    }
}

/// Returns the requests before the turn in progress where the user now says something else: a
/// message that waited, or whose plan did, is one of them.
///
/// # Errors
/// As for [`requests`].
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

    // Nothing of a turn in progress is cut before it must be: it stands nowhere else.
    Ok(requests.within(MAX_SIZE))
}

/// Returns the requests that a turn hands on which is recorded from a draft.
///
/// # Errors
/// As for [`requests`].
pub fn requests_with(project: &Project, tip: &Turn, draft: &Draft) -> anyhow::Result<Requests> {
    let mut requests = requests(project, tip, draft)?;
    if let Some(request) = request_of(tip, draft) {
        requests.push(UserRequest {
            question: tip.question(&project.repository)?,
            ..request
        });
    }
    Ok(requests.within(max_requests_size(project)))
}

/// Returns the requests after the session went back to a turn: those after it are undone.
///
/// # Errors
/// As for [`requests`].
pub fn requests_back_at(
    project: &Project,
    (tip, draft): (&Turn, &Draft),
    target: &Turn,
) -> anyhow::Result<Requests> {
    let mut requests = requests_but_for(project, tip, draft, "")?;
    if target.commit != tip.commit {
        requests = requests.back_to(requests_after(project, target)?);
    }
    Ok(requests.within(max_requests_size(project)))
}

/// Keeps what the user says besides the work that a turn's message describes, and returns it.
///
/// # Errors
/// As for [`requests`].
pub fn keep_said(
    project: &Project,
    tip: &Turn,
    draft: &mut Draft,
    said: String,
) -> anyhow::Result<String> {
    let mut requests = requests(project, tip, draft)?;
    requests.push(UserRequest {
        turn: draft.meta.number,
        session: tip.session.to_string(),
        turn_id: Uuid::now_v7(),
        state: RequestState::Open,
        work: None,
        question: tip.question(&project.repository)?,
        text: said.clone(),
        cut: false,
    });

    let requests = requests.within(MAX_SIZE);
    draft.artifacts.remove(artifact::USER_PROMPT);
    draft.artifacts.put(artifact::REQUESTS, requests.write());
    Ok(said)
}

/// Returns what the user said for the turn in progress in a call that made no plan.
///
/// # Errors
/// As for [`requests`].
pub fn said(project: &Project, tip: &Turn, draft: &Draft) -> anyhow::Result<Option<String>> {
    let requests = requests(project, tip, draft)?.requests.into_iter();
    let now = requests
        .filter(|request| request.turn == draft.meta.number && request.state == RequestState::Open);
    let texts: Vec<String> = now.map(|request| request.text).collect();
    Ok((!texts.is_empty()).then(|| texts.join("\n\n")))
}

/// Returns the bytes that the requests may take.
pub fn max_requests_size(project: &Project) -> usize {
    usize::try_from(project.settings.context.max_requests_size.0).unwrap_or(usize::MAX)
}

/// Returns what the user asked for with a turn: its message, or where that is a machine's, the newest
/// request that holds.
///
/// # Errors
/// As for [`requests`].
pub fn asked_with(project: &Project, turn: &Turn) -> anyhow::Result<Option<String>> {
    if turn.meta.origin == MessageOrigin::User {
        return turn.text(&project.repository, artifact::USER_PROMPT);
    }
    let requests = requests_after(project, turn)?.requests.into_iter().rev();
    let mut holding = requests.filter(|request| request.state == RequestState::Open);
    Ok(holding.next().map(|request| request.text))
}

/// Returns the requests that a turn hands on.
fn requests_after(project: &Project, turn: &Turn) -> anyhow::Result<Requests> {
    match turn.text(&project.repository, &in_next(artifact::REQUESTS))? {
        Some(text) => Requests::read(&text),
        None => requests_of_chain(project, turn),
    }
}

/// Puts together the requests of turns that were recorded without a list of them. It is handed
/// on from then on, so that a session is walked through once.
fn requests_of_chain(project: &Project, from: &Turn) -> anyhow::Result<Requests> {
    let limit = max_requests_size(project);
    let (mut found, mut size, mut undone_after) = (Vec::new(), 0, u64::MAX);
    for turn in project.store().history(from.clone()) {
        let turn = turn?;
        if let Some(text) = turn.text(&project.repository, &in_next(artifact::REQUESTS))? {
            let earlier = Requests::read(&text)?;
            found.extend(earlier.requests.into_iter().rev());
            break;
        }

        if let Some(Restored { turn: back, .. }) = &turn.meta.restored {
            undone_after = undone_after.min(*back);
        }

        if let Some(request) = request_of_turn(&project.repository, &turn, undone_after)? {
            size += request.size();
            found.push(request);
        }

        if size > limit {
            found.extend(first_request(&project.repository, from, turn.number())?);
            break;
        }
    }

    found.reverse();
    Ok(Requests::of(found).within(limit))
}

/// Returns the first request of a session, in one of the turns before `end`.
fn first_request(
    repository: &Repository,
    from: &Turn,
    end: u64,
) -> anyhow::Result<Option<UserRequest>> {
    for number in 1..end.min(FIRST_TURNS) {
        let back = from.number().saturating_sub(number);
        let commit = revision::first_parent(repository, from.commit, back)?;
        let turn = Turn::read(repository, &from.session, commit)?;
        if let Some(request) = request_of_turn(repository, &turn, u64::MAX)? {
            return Ok(Some(request));
        }
    }
    Ok(None)
}

/// Returns what the user asked for in a turn; it is undone if the session went back to a turn
/// before it.
fn request_of_turn(
    repository: &Repository,
    turn: &Turn,
    undone_after: u64,
) -> anyhow::Result<Option<UserRequest>> {
    let text = turn.text(repository, artifact::USER_PROMPT)?;
    let said = turn.meta.origin == MessageOrigin::User && turn.meta.work.is_none();
    let Some(text) = text.filter(|text| said && !text.trim().is_empty()) else {
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

/// Returns what the message of a turn in progress asks for, unless it is a machine's.
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
