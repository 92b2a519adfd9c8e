//! `fetch`: sessions of a remote, to be looked at here.
//!
//! What comes in is a stranger's until it was looked at: git checks every object, then each chain
//! is checked as `verify` does, and only a sound one gets a name by which it can be read.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::git::object::CommitId;
use crate::git::refs::signed::SIGNED;
use crate::git::refs::{self, Expected, RefMove, Reference};
use crate::git::remote::error::RemoteError;
use crate::git::remote::receive::{WantedRef, receive};
use crate::git::remote::{self, FetchProgress, RemoteName, RemoteRef};
use crate::git::revision;
use crate::session::name::{SESSIONS, SessionName};
use crate::session::record::RECORDS;
use crate::session::turn::Turn;
use crate::session::verify::{Checked, Fault, check};
use crate::text::visible::visible;
use crate::workflow::project::Project;

/// More faults of a session than these are not named.
const MOST_FAULTS: usize = 3;

/// What to fetch.
#[derive(Debug, Clone, Default)]
pub struct FetchOptions {
    /// The remote; the one that git would fetch from if none is named.
    pub remote: Option<String>,
    /// The sessions, by their names there; all of them if none is named.
    pub sessions: Vec<SessionName>,
    /// Forget sessions that the remote does not have any more.
    pub prune: bool,
    /// Whether git shows how far it is.
    pub progress: bool,
}

/// How a session here compares with what came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FetchState {
    /// It was not here.
    New,
    /// It has more turns.
    Updated,
    /// It is not what was fetched before with more turns, but another one.
    Rewritten,
    /// It is the same.
    Unchanged,
}

/// A session that was fetched.
#[derive(Debug, Clone, Serialize)]
pub struct FetchedSession {
    /// Its name here, `<remote>/<session>`.
    pub session: SessionName,
    /// Its newest turn.
    pub tip: CommitId,
    /// The number of the newest turn.
    pub turns: u64,
    /// The subject of the newest turn.
    pub title: String,
    /// How it compares with what was here.
    pub state: FetchState,
    /// Whether it has the files, or is a record without them.
    pub code: bool,
}

/// Something of the remote that was not taken.
#[derive(Debug, Clone, Serialize)]
pub struct RefusedRef {
    /// The ref there.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Why.
    pub why: String,
    /// Whether it is a session that does not tell the truth, and not only a strange name.
    pub unsound: bool,
}

/// What came of it.
#[derive(Debug, Clone, Serialize)]
pub struct FetchResult {
    /// The remote.
    pub remote: RemoteName,
    /// The sessions that are there and can be read now.
    pub sessions: Vec<FetchedSession>,
    /// What was not taken.
    pub refused: Vec<RefusedRef>,
    /// The sessions that were forgotten, as the remote does not have them any more.
    pub pruned: Vec<SessionName>,
    /// The sessions that were asked for and are not there.
    pub missing: Vec<SessionName>,
}

/// A session as a remote lists it.
#[derive(Debug, Clone, Serialize)]
pub struct OfferedSession {
    /// The name that it would have here.
    pub session: SessionName,
    /// Its newest turn.
    pub tip: String,
    /// Whether it has the files.
    pub code: bool,
    /// Whether exactly that is here already.
    pub fetched: bool,
}

/// Lists what a remote has; nothing is fetched.
///
/// # Errors
/// The remote cannot be reached.
pub fn offered(
    project: &Project,
    wanted: Option<&str>,
) -> anyhow::Result<(RemoteName, Vec<OfferedSession>)> {
    let remote = remote_of(project, wanted)?;
    let mut sessions: BTreeMap<SessionName, OfferedSession> = BTreeMap::new();
    let here = project.store().remote_sessions(Some(remote.as_str()))?;
    let here: BTreeMap<SessionName, CommitId> = here.into_iter().collect();

    for RemoteRef { name, target } in
        remote::list(&project.repository, &remote, &[RECORDS, SESSIONS])?
    {
        let code = name.starts_with(SESSIONS);
        let prefix = if code { SESSIONS } else { RECORDS };
        let Some(Ok(own)) = name.strip_prefix(prefix).map(SessionName::from_ref) else {
            continue;
        };
        let session = own.at(remote.as_str());
        let fetched = here
            .get(&session)
            .is_some_and(|tip| tip.to_string() == target);
        let known = sessions.get(&session).is_some_and(|known| known.code);
        if known {
            continue;
        }

        let offer = OfferedSession {
            session: session.clone(),
            tip: target,
            code,
            fetched,
        };
        sessions.insert(session, offer);
    }

    Ok((remote, sessions.into_values().collect()))
}

/// Fetches sessions.
///
/// # Errors
/// The remote cannot be reached, what it sends is not sound, or the refs cannot be written.
pub fn fetch(project: &Project, wish: &FetchOptions) -> anyhow::Result<FetchResult> {
    let remote = remote_of(project, wish.remote.as_deref())?;
    let repository = &project.repository;

    let names: Vec<String> = wish.sessions.iter().flat_map(references).collect();
    let wanted: Vec<WantedRef<'_>> = if names.is_empty() {
        [SESSIONS, RECORDS, SIGNED].map(WantedRef::Below).into()
    } else {
        names.iter().map(|name| WantedRef::One(name)).collect()
    };
    let progress = if wish.progress {
        FetchProgress::Shown
    } else {
        FetchProgress::Hidden
    };
    let came = receive(repository, &remote, &wanted, progress)?;

    take(project, &remote, &came.refs, wish)
}

/// Returns the remote that is meant.
fn remote_of(project: &Project, wanted: Option<&str>) -> Result<RemoteName, RemoteError> {
    match wanted {
        Some(name) => remote::named(&project.repository, name),
        None => remote::to_fetch_from(&project.repository),
    }
}

/// Returns the refs in which a remote can have a session.
fn references(session: &SessionName) -> [String; 3] {
    [SESSIONS, RECORDS, SIGNED].map(|prefix| format!("{prefix}{session}"))
}

/// What a remote has of a session.
#[derive(Default)]
struct RemoteOffer {
    /// The session.
    code: Option<CommitId>,
    /// The record.
    record: Option<CommitId>,
    /// The tag that signs it.
    signature: Option<CommitId>,
}

/// Looks at what came, and gives what is sound its name.
fn take(
    project: &Project,
    remote: &RemoteName,
    came: &[Reference],
    wish: &FetchOptions,
) -> anyhow::Result<FetchResult> {
    let mut result = FetchResult {
        remote: remote.clone(),
        sessions: Vec::new(),
        refused: Vec::new(),
        pruned: Vec::new(),
        missing: Vec::new(),
    };
    let offers = offers(came, &mut result.refused);
    let mut taker = Taker {
        project,
        remote,
        moves: Vec::new(),
    };

    for (name, offer) in &offers {
        match taker.session(name, offer)? {
            Ok(fetched) => result.sessions.push(fetched),
            Err(refused) => result.refused.push(refused),
        }
    }

    let moves: Vec<RefMove<'_>> = taker.moves.iter().map(PlannedMove::of).collect();
    refs::apply(&project.repository, &moves, "teddy: fetch")?;
    let is_there = |name: &SessionName| offers.contains_key(name);
    let missing = wish.sessions.iter().filter(|name| !is_there(name));
    result.missing = missing.cloned().collect();

    if wish.prune && wish.sessions.is_empty() {
        result.pruned = prune(project, remote, &is_there)?;
    }
    Ok(result)
}

/// Sorts what came by session; a ref whose name is none of a session's is refused.
fn offers(came: &[Reference], refused: &mut Vec<RefusedRef>) -> BTreeMap<SessionName, RemoteOffer> {
    let mut offers: BTreeMap<SessionName, RemoteOffer> = BTreeMap::new();
    for Reference { name, target } in came {
        let found = [SESSIONS, RECORDS, SIGNED].into_iter().find_map(|prefix| {
            let session = SessionName::from_ref(name.strip_prefix(prefix)?).ok()?;
            Some((prefix, session))
        });
        let Some((prefix, session)) = found else {
            refused.push(RefusedRef {
                reference: visible(name).into_owned(),
                why: "its name is not that of a session".to_owned(),
                unsound: false,
            });
            continue;
        };

        let offer = offers.entry(session).or_default();
        match prefix {
            SESSIONS => offer.code = Some(*target),
            RECORDS => offer.record = Some(*target),
            _ => offer.signature = Some(*target),
        }
    }

    // A signature without a session says nothing.
    offers.retain(|_, offer| offer.code.is_some() || offer.record.is_some());
    offers
}

/// A ref that is to be moved.
struct PlannedMove {
    /// The ref.
    name: String,
    /// What it is to point at.
    to: CommitId,
}

impl PlannedMove {
    /// Returns it as the refs take it: what is fetched is what the remote says, whatever was here.
    fn of(&self) -> RefMove<'_> {
        RefMove {
            name: &self.name,
            expected: Expected::Any,
            to: self.to,
        }
    }
}

/// Takes sessions.
struct Taker<'p> {
    /// The project.
    project: &'p Project,
    /// The remote.
    remote: &'p RemoteName,
    /// The refs that are to be moved.
    moves: Vec<PlannedMove>,
}

impl Taker<'_> {
    /// Looks at one session.
    fn session(
        &mut self,
        own: &SessionName,
        offer: &RemoteOffer,
    ) -> anyhow::Result<Result<FetchedSession, RefusedRef>> {
        let repository = &self.project.repository;
        let session = own.at(self.remote.as_str());
        let (prefix, tip) = match (offer.code, offer.record) {
            (Some(code), _) => (SESSIONS, code),
            (None, Some(record)) => (RECORDS, record),
            (None, None) => unreachable!("an offer has one of them"),
        };
        let before = refs::read(repository, &session.reference()).ok().flatten();
        let checked = check(repository, &session, tip);
        let unsound = |why: String| RefusedRef {
            reference: format!("{prefix}{own}"),
            why,
            unsound: true,
        };
        if let Some(why) = fault(&checked, before == Some(tip), prefix == SESSIONS) {
            return Ok(Err(unsound(why)));
        }

        // What was here before was not judged again, and need not be readable.
        let newest = match Turn::read(repository, &session, tip) {
            Ok(newest) => newest,
            Err(error) => return Ok(Err(unsound(format!("{error:#}")))),
        };
        let state = match before {
            None => FetchState::New,
            Some(before) if before == tip => FetchState::Unchanged,
            Some(before) if self.goes_on(&session, before, (tip, &checked)) => FetchState::Updated,
            Some(_) => FetchState::Rewritten,
        };
        self.plan(
            &session,
            tip,
            offer.signature.filter(|_| prefix == SESSIONS),
        )?;
        Ok(Ok(FetchedSession {
            tip,
            turns: newest.number(),
            title: newest.title,
            state,
            code: prefix == SESSIONS,
            session,
        }))
    }

    /// Returns whether a chain goes on from what was here: that is part of it, or was the record
    /// of a part of it.
    fn goes_on(
        &self,
        session: &SessionName,
        before: CommitId,
        (tip, checked): (CommitId, &Checked),
    ) -> bool {
        let repository = &self.project.repository;
        if revision::is_ancestor(repository, before, tip).unwrap_or(false) {
            return true;
        }

        let before = Turn::read(repository, session, before).ok();
        let record = before.filter(|turn| turn.without_code);
        record.is_some_and(|record| {
            let id = record.meta.turn_id;
            checked.turns.iter().any(|turn| turn.turn_id == id)
        })
    }

    /// Notes the moves of refs that give a session its name, and its signature with it.
    fn plan(
        &mut self,
        session: &SessionName,
        tip: CommitId,
        signature: Option<CommitId>,
    ) -> anyhow::Result<()> {
        let repository = &self.project.repository;
        let signed = session.signed_reference();
        if signature.is_none() && refs::held(repository, &signed)?.is_some() {
            refs::delete(repository, &signed, Expected::Any)?;
        }

        let wanted = [(session.reference(), Some(tip)), (signed, signature)];
        for (name, to) in wanted {
            let Some(to) = to else { continue };
            if refs::held(repository, &name).ok().flatten() != Some(to) {
                self.moves.push(PlannedMove { name, to });
            }
        }
        Ok(())
    }
}

/// Returns why a chain is not taken, if it is not: what is wrong with it.
fn fault(checked: &Checked, is_known: bool, is_code: bool) -> Option<String> {
    if is_known {
        return None;
    }

    let lacks_code = checked.turns.iter().rev().find(|turn| turn.without_code);
    if let Some(turn) = lacks_code.filter(|_| is_code) {
        return Some(format!(
            "turn {} has no files, and the session is not a record",
            turn.number
        ));
    }
    if checked.faults.is_empty() {
        return None;
    }

    let named = checked
        .faults
        .iter()
        .take(MOST_FAULTS)
        .map(Fault::to_string);
    let named: Vec<String> = named.collect();
    Some(format!("it is not a sound session: {}", named.join("; ")))
}

/// Forgets what is here of sessions that a remote does not have any more.
fn prune(
    project: &Project,
    remote: &RemoteName,
    is_there: &dyn Fn(&SessionName) -> bool,
) -> anyhow::Result<Vec<SessionName>> {
    let repository = &project.repository;
    let mut pruned = Vec::new();
    for (session, tip) in project.store().remote_sessions(Some(remote.as_str()))? {
        if is_there(&session.own()) {
            continue;
        }

        refs::delete(repository, &session.reference(), Expected::At(tip))?;
        if refs::held(repository, &session.signed_reference())?.is_some() {
            refs::delete(repository, &session.signed_reference(), Expected::Any)?;
        }
        pruned.push(session);
    }

    Ok(pruned)
}
