//! `fetch`: fetches the sessions of a remote for reading.
//!
//! Fetched refs are untrusted. git checks every object, then each chain is checked like `verify`
//! does. Only a valid chain gets a name under which it can be read. A remote can have any number of
//! refs, so each tip is checked once, and sessions and turns are limited.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use serde::Serialize;

use crate::git::history;
use crate::git::object::CommitId;
use crate::git::object::id::TagId;
use crate::git::refs::{self, Expected, RefMove, Reference, SIGNED_PREFIX};
use crate::git::remote::error::RemoteError;
use crate::git::remote::transfer::{IncomingRefs, WantedRef, receive_refs};
use crate::git::remote::{self, FetchProgress, RemoteName};
use crate::project::Project;
use crate::session::bare::BARE_SESSIONS;
use crate::session::name::{SESSIONS, SessionName};
use crate::session::signature;
use crate::session::turn::Turn;
use crate::session::verify::{Checked, Fault, SharedChecks, check_newest};
use crate::text::hint::error_with_hint;
use crate::text::sanitize::sanitize_line;
use crate::workflow::push::remote_state::{RemoteState, references};

const MOST_FAULTS: usize = 3;
const MOST_SESSIONS: usize = 10_000;
/// The chain that exceeds the limit is checked to its end.
const MOST_TURNS: usize = 100_000;

#[derive(Debug, Clone, Default)]
pub struct FetchOptions {
    /// Default: the one that `git fetch` would use.
    pub remote: Option<String>,
    /// By their remote names; empty for all.
    pub sessions: Vec<SessionName>,
    /// Deletes sessions that the remote does not have any more.
    pub prune: bool,
    /// Of git.
    pub progress: bool,
}

/// Compared with what was fetched before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FetchState {
    New,
    Updated,
    /// Not a continuation of what was fetched before.
    Rewritten,
    Unchanged,
}

#[derive(Debug, Clone, Serialize)]
pub struct FetchedSession {
    /// `<remote>/<session>`
    pub session: SessionName,
    pub tip: CommitId,
    pub turns: u64,
    pub title: String,
    pub state: FetchState,
    /// Includes the files; otherwise a bare session.
    pub code: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct RefusedRef {
    /// On the remote, escaped.
    #[serde(rename = "ref")]
    pub reference: String,
    pub why: String,
    /// The chain is invalid, as opposed to an unknown ref name.
    pub unsound: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct FetchResult {
    pub remote: RemoteName,
    pub sessions: Vec<FetchedSession>,
    pub refused: Vec<RefusedRef>,
    /// The remote does not have these any more.
    pub pruned: Vec<SessionName>,
    /// Requested, and not on the remote.
    pub missing: Vec<SessionName>,
}

#[derive(Debug, Clone, Serialize)]
pub struct OfferedSession {
    /// After a fetch.
    pub session: SessionName,
    pub tip: CommitId,
    pub code: bool,
    /// Exactly this turn is already here.
    pub fetched: bool,
}

/// Fetches nothing.
pub fn offered(
    project: &Project,
    remote_name: Option<&str>,
) -> anyhow::Result<(RemoteName, Vec<OfferedSession>)> {
    let remote = remote_of(project, remote_name)?;
    let local_tips = project.store().remote_sessions(Some(remote.as_str()))?;
    let local_tips: BTreeMap<SessionName, CommitId> = local_tips.into_iter().collect();
    let listed = remote::list(&project.repository, &remote, &[BARE_SESSIONS, SESSIONS])?;
    let offers = offers(&listed, &mut Vec::new()).into_iter();
    let sessions = offers.filter_map(|(own, offer)| {
        let session = own.at(remote.as_str());
        // If a remote has both, the session with its code wins over the bare one.
        let tip = offer.code.or(offer.bare)?;
        Some(OfferedSession {
            fetched: local_tips.get(&session) == Some(&tip),
            session,
            tip,
            code: offer.code.is_some(),
        })
    });
    let sessions = sessions.collect();
    Ok((remote, sessions))
}

/// Calls `watch` before each session, with the number of checked sessions and of all.
pub fn fetch(
    project: &Project,
    options: &FetchOptions,
    watch: &mut dyn FnMut(usize, usize),
) -> anyhow::Result<FetchResult> {
    let remote = remote_of(project, options.remote.as_deref())?;
    let repository = &project.repository;

    let names: Vec<String> = options.sessions.iter().flat_map(references).collect();
    let requested: Vec<WantedRef<'_>> = if names.is_empty() {
        [SESSIONS, BARE_SESSIONS, SIGNED_PREFIX]
            .map(WantedRef::Prefix)
            .into()
    } else {
        names.iter().map(|name| WantedRef::One(name)).collect()
    };
    let progress = if options.progress {
        FetchProgress::Visible
    } else {
        FetchProgress::Hidden
    };
    let received = receive_refs(repository, &remote, &requested, progress)?;

    take(project, &remote, &received, options, watch)
}

fn remote_of(project: &Project, remote_name: Option<&str>) -> Result<RemoteName, RemoteError> {
    match remote_name {
        Some(name) => remote::find_by_name(&project.repository, name),
        None => remote::to_fetch_from(&project.repository),
    }
}

fn take(
    project: &Project,
    remote: &RemoteName,
    received: &IncomingRefs<'_>,
    options: &FetchOptions,
    watch: &mut dyn FnMut(usize, usize),
) -> anyhow::Result<FetchResult> {
    let mut result = FetchResult {
        remote: remote.clone(),
        sessions: Vec::new(),
        refused: Vec::new(),
        pruned: Vec::new(),
        missing: Vec::new(),
    };
    let unsound = received.unsound.iter();
    let mut listed = received.refs.clone();
    listed.extend(unsound.clone().map(|(reference, _)| reference.clone()));
    let offers = offers(&listed, &mut result.refused);
    if offers.len() > MOST_SESSIONS {
        return Err(too_many(remote, offers.len()));
    }
    let mut taker = Taker {
        project,
        remote,
        remotes: remote::names(&project.repository),
        unsound: unsound
            .map(|(reference, why)| (reference.name.as_str(), why.as_str()))
            .collect(),
        moves: Vec::new(),
        dropped: Vec::new(),
        checked: HashMap::new(),
        shared: SharedChecks::default(),
        turns: 0,
    };

    for (done, (name, offer)) in offers.iter().enumerate() {
        watch(done, offers.len());
        match taker.session(name, offer)? {
            Ok(fetched) => result.sessions.push(fetched),
            Err(refused) => result.refused.push(refused),
        }
    }

    // All sessions were checked before the first ref moves.
    let moves = taker.moves.iter().map(|(name, to)| RefMove {
        name,
        // Unconditional, because the remote's state replaces ours.
        expected: Expected::Any,
        to: *to,
    });
    let moves: Vec<RefMove<'_>> = moves.collect();
    refs::apply(&project.repository, &moves, "teddy: fetch")?;
    let dropped: Vec<&str> = taker.dropped.iter().map(String::as_str).collect();
    refs::delete_all(&project.repository, &dropped)?;
    let is_there = |name: &SessionName| offers.contains_key(name);
    let missing = options.sessions.iter().filter(|name| !is_there(name));
    result.missing = missing.cloned().collect();

    // A fetch of single sessions says nothing about the others.
    if options.prune && options.sessions.is_empty() {
        result.pruned = prune(project, remote, &is_there)?;
    }
    Ok(result)
}

fn too_many(remote: &RemoteName, sessions: usize) -> anyhow::Error {
    error_with_hint(
        format!(
            "`{remote}` has {sessions} sessions, and a fetch takes at most {MOST_SESSIONS}; none was \
             taken"
        ),
        format!("`teddy fetch {remote} <session>` fetches the ones that you name"),
    )
}

/// By session. Refuses names that are not valid for a session.
fn offers(
    received: &[Reference],
    refused: &mut Vec<RefusedRef>,
) -> BTreeMap<SessionName, RemoteState> {
    let mut offers: BTreeMap<SessionName, RemoteState> = BTreeMap::new();
    for Reference { name, target } in received {
        let parsed = [SESSIONS, BARE_SESSIONS, SIGNED_PREFIX]
            .into_iter()
            .find_map(|prefix| {
                let session = SessionName::from_ref(name.strip_prefix(prefix)?).ok()?;
                Some((prefix, session))
            });
        let Some((prefix, session)) = parsed else {
            refused.push(RefusedRef {
                reference: sanitize_line(name).into_owned(),
                why: "its name is not that of a session".to_owned(),
                unsound: false,
            });
            continue;
        };

        let offer = offers.entry(session).or_default();
        match prefix {
            SESSIONS => offer.code = Some(*target),
            BARE_SESSIONS => offer.bare = Some(*target),
            _ => offer.signature = Some(*target),
        }
    }

    // A signature alone cannot be checked.
    offers.retain(|_, offer| offer.code.is_some() || offer.bare.is_some());
    offers
}

struct Taker<'p> {
    project: &'p Project,
    remote: &'p RemoteName,
    /// All of the repository.
    remotes: Vec<RemoteName>,
    /// Refs that git refused, and why.
    unsound: HashMap<&'p str, &'p str>,
    moves: Vec<(String, CommitId)>,
    /// The remote does not have these signatures any more.
    dropped: Vec<String>,
    /// Several sessions can have the same tip.
    checked: HashMap<CommitId, Rc<Checked>>,
    shared: SharedChecks,
    /// Checked so far.
    turns: usize,
}

impl Taker<'_> {
    /// `None` if the limit for turns is reached.
    fn check(&mut self, session: &SessionName, tip: CommitId) -> Option<Rc<Checked>> {
        if let Some(known) = self.checked.get(&tip) {
            return Some(Rc::clone(known));
        }
        if self.turns >= MOST_TURNS {
            return None;
        }

        let checked = Rc::new(check_newest(
            &self.project.repository,
            session,
            tip,
            usize::MAX,
            &mut self.shared,
        ));
        self.turns += checked.turns.len().max(1);
        self.checked.insert(tip, Rc::clone(&checked));
        Some(checked)
    }

    /// Plans the moves of a session's refs.
    fn session(
        &mut self,
        own: &SessionName,
        offer: &RemoteState,
    ) -> anyhow::Result<Result<FetchedSession, RefusedRef>> {
        let repository = &self.project.repository;
        let session = own.at(self.remote.as_str());
        let (prefix, tip) = match (offer.code, offer.bare) {
            (Some(code), _) => (SESSIONS, code),
            (None, Some(bare)) => (BARE_SESSIONS, bare),
            (None, None) => unreachable!("an offer has one of them"),
        };
        // Its ref would be the directory of that remote's refs.
        let taken_by = self.remotes.iter().find(|remote| {
            let below = remote.as_str().strip_prefix(session.as_str());
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        if let Some(remote) = taken_by {
            return Ok(Err(RefusedRef {
                reference: format!("{prefix}{own}"),
                why: format!("`{remote}` is a remote, so its name is taken here"),
                unsound: false,
            }));
        }
        let before = refs::read(repository, &session.reference()).ok().flatten();
        let unsound = |why: String| RefusedRef {
            reference: format!("{prefix}{own}"),
            why,
            unsound: true,
        };
        let refused = [(prefix, "it"), (SIGNED_PREFIX, "its signature")];
        for (prefix, what) in refused {
            if let Some(why) = self.unsound.get(format!("{prefix}{own}").as_str()) {
                return Ok(Err(unsound(format!("git refuses {what}: {why}"))));
            }
        }
        let Some(checked) = self.check(&session, tip) else {
            return Ok(Err(RefusedRef {
                unsound: false,
                ..unsound(format!(
                    "a fetch checks at most {MOST_TURNS} turns; name the session to fetch it"
                ))
            }));
        };
        if let Some(why) = fault(&checked, before == Some(tip), prefix == SESSIONS) {
            return Ok(Err(unsound(why)));
        }

        // A signature covers the session with its code.
        let signature = offer.signature.filter(|_| prefix == SESSIONS);
        let mismatch = signature
            .and_then(|tag| signature::mismatch(repository, own, TagId::of(tag), &checked.turns));
        if let Some(why) = mismatch {
            return Ok(Err(unsound(sanitize_line(&why).into_owned())));
        }

        // `fault` accepts an unchanged tip without checking it again, so it can still be
        // unreadable.
        let newest = match Turn::read(repository, &session, tip) {
            Ok(newest) => newest,
            Err(error) => return Ok(Err(unsound(format!("{error:#}")))),
        };
        let state = match before {
            None => FetchState::New,
            Some(before) if before == tip => FetchState::Unchanged,
            Some(before) if self.goes_on(&session, before, tip, &checked) => FetchState::Updated,
            Some(_) => FetchState::Rewritten,
        };
        self.plan(&session, tip, signature)?;
        Ok(Ok(FetchedSession {
            tip,
            turns: newest.number(),
            title: newest.title,
            state,
            code: prefix == SESSIONS,
            session,
        }))
    }

    /// The old tip is an ancestor, or was the bare session of one.
    fn goes_on(
        &self,
        session: &SessionName,
        before: CommitId,
        tip: CommitId,
        checked: &Checked,
    ) -> bool {
        let repository = &self.project.repository;
        if history::is_ancestor(repository, before, tip).unwrap_or(false) {
            return true;
        }

        let before = Turn::read(repository, session, before).ok();
        // A bare session has other commits than the one with code, and the same turn ids.
        let bare = before.filter(|turn| turn.without_code);
        bare.is_some_and(|bare| {
            let id = bare.meta.turn_id;
            checked.turns.iter().any(|turn| turn.turn_id == id)
        })
    }

    /// Also deletes a signature that the remote dropped.
    fn plan(
        &mut self,
        session: &SessionName,
        tip: CommitId,
        signature: Option<CommitId>,
    ) -> anyhow::Result<()> {
        let repository = &self.project.repository;
        let signed = session.signed_reference();
        if signature.is_none() && refs::read_unpeeled(repository, &signed)?.is_some() {
            self.dropped.push(signed.clone());
        }

        let targets = [(session.reference(), Some(tip)), (signed, signature)];
        for (name, to) in targets {
            let Some(to) = to else { continue };
            if refs::read_unpeeled(repository, &name).ok().flatten() != Some(to) {
                self.moves.push((name, to));
            }
        }
        Ok(())
    }
}

fn fault(checked: &Checked, is_known: bool, is_code: bool) -> Option<String> {
    // Checked when it was fetched.
    if is_known {
        return None;
    }

    let lacks_code = checked.turns.iter().rev().find(|turn| turn.without_code);
    if let Some(turn) = lacks_code.filter(|_| is_code) {
        return Some(format!(
            "turn {} has no files, although the session came with its code",
            turn.number
        ));
    }
    if checked.faults.is_empty() {
        return None;
    }

    let messages = checked
        .faults
        .iter()
        .take(MOST_FAULTS)
        .map(Fault::to_string);
    let messages: Vec<String> = messages.collect();
    Some(format!(
        "it is not a sound session: {}",
        messages.join("; ")
    ))
}

fn prune(
    project: &Project,
    remote: &RemoteName,
    is_there: &dyn Fn(&SessionName) -> bool,
) -> anyhow::Result<Vec<SessionName>> {
    let repository = &project.repository;
    let fetched = project.store().remote_sessions(Some(remote.as_str()))?;
    let sessions = fetched.into_iter().map(|(session, _)| session);
    let pruned: Vec<SessionName> = sessions
        .filter(|session| !is_there(&session.own()))
        .collect();

    let mut names: Vec<String> = Vec::new();
    for session in &pruned {
        names.push(session.reference());
        if refs::read_unpeeled(repository, &session.signed_reference())?.is_some() {
            names.push(session.signed_reference());
        }
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    refs::delete_all(repository, &names)?;
    Ok(pruned)
}
