//! Stores sessions and turns as refs and commits.
//!
//! Objects of a turn are written first. They are unreachable until `workspace::complete` moves the
//! session's ref.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::Context as _;
use uuid::Uuid;

use super::artifact::{self, Artifacts};
use super::meta::{self, MessageOrigin, Meta, Workspace};
use super::name::{REMOTES, SESSIONS, SessionName};
use super::turn::Turn;
use crate::git::history;
use crate::git::keep::protect::{self, MergePolicy};
use crate::git::object::{Commit, CommitId, EntryMode, NewCommit, TreeEntry, TreeId, batch};
use crate::git::parallel::map_parallel;
use crate::git::refs::{self, Expected};
use crate::git::repository::Repository;
use crate::host::{clock, fault};
use crate::session::draft::Draft;
use crate::session::journal::Journal;
use crate::session::meta::Status;
use crate::session::transition::Caller;
use crate::session::turn::{TurnMessage, in_next, trailer};
use crate::text::context_list;
use crate::text::near::nearest;

// git's default abbreviation.
const ABBREVIATED: usize = 7;

/// The user's name for the turn in progress.
pub const DRAFT: &str = "draft";

pub struct Store<'a> {
    pub repository: &'a Repository,
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("there is no session `{name}`")]
    NoSession {
        name: SessionName,
        /// The most similar name.
        near: Option<String>,
        /// A session of a remote has this name.
        fetched: Option<SessionName>,
    },
    #[error("there is a session `{0}` already")]
    Taken(SessionName),
    #[error("session `{0}` has no turn in progress")]
    NoDraft(SessionName),
    #[error("turn {turn} of session `{session}` is in progress: its plan has not run")]
    InProgress { session: SessionName, turn: u64 },
    #[error("session `{session}` has no turn `{turn}`; its turns are 0 to {last}")]
    NoTurn {
        session: SessionName,
        turn: String,
        last: u64,
        /// The requested turn is the name of a session.
        has_session: bool,
    },
}

pub struct NewTurn<'a> {
    pub session: &'a SessionName,
    pub title: &'a str,
    pub results: &'a [String],
    /// Without `meta.yaml`.
    pub artifacts: Artifacts,
    pub meta: &'a Meta,
    pub previous: Option<CommitId>,
    pub workspace: Option<CommitId>,
    /// Ignored without a workspace commit.
    pub publication: Option<CommitId>,
}

impl<'a> Store<'a> {
    /// Returns the turn that handed over to the agent of the turn after `tip`.
    pub fn caller(&self, tip: &Turn, id: Option<Uuid>) -> anyhow::Result<Option<Caller>> {
        let Some(id) = id else { return Ok(None) };
        for turn in self.history(tip.clone()) {
            let turn = turn?;
            if turn.meta.turn_id == id {
                let text = |name| {
                    turn.text(self.repository, name)
                        .map(Option::unwrap_or_default)
                };
                return Ok(Some(Caller {
                    turn_id: id,
                    caller_turn_id: turn.meta.caller_turn_id,
                    agent: turn.meta.agent.clone(),
                    system_prompt: text(artifact::SYSTEM_PROMPT)?,
                    context: context_list::read(&text(artifact::TURN_CONTEXT)?).entries,
                }));
            }
        }

        Ok(None)
    }

    /// Sorted by name. Skips refs with invalid names.
    pub fn sessions(&self) -> anyhow::Result<Vec<(SessionName, CommitId)>> {
        let references = refs::list(self.repository, SESSIONS)?;
        let parse_ref = |r: refs::Reference| {
            Some((
                SessionName::from_ref(r.name.strip_prefix(SESSIONS)?).ok()?,
                r.target,
            ))
        };
        Ok(references.into_iter().filter_map(parse_ref).collect())
    }

    /// Fetched sessions of one remote or of all, sorted by name.
    pub fn remote_sessions(
        &self,
        remote: Option<&str>,
    ) -> anyhow::Result<Vec<(SessionName, CommitId)>> {
        let prefix = match remote {
            Some(remote) => format!("{REMOTES}{remote}/"),
            None => REMOTES.to_owned(),
        };
        let parse_ref = |r: refs::Reference| {
            let name = SessionName::from_address(r.name.strip_prefix(REMOTES)?).ok()?;
            let ref_remote = name.remote()?;
            let is_meant = remote.is_none_or(|remote| remote == ref_remote);
            is_meant.then_some((name, r.target))
        };

        let references = refs::list(self.repository, &prefix)?;
        Ok(references.into_iter().filter_map(parse_ref).collect())
    }

    /// Fails with [`StoreError::NoSession`].
    pub fn tip(&self, session: &SessionName) -> anyhow::Result<Turn> {
        Turn::read(self.repository, session, self.tip_id(session)?)
    }

    /// Like [`Store::tip`], without reading the turn.
    pub fn tip_id(&self, session: &SessionName) -> anyhow::Result<CommitId> {
        Ok(refs::read(self.repository, &session.reference())?
            .ok_or_else(|| self.no_session(session))?)
    }

    pub fn has(&self, session: &SessionName) -> anyhow::Result<bool> {
        Ok(refs::read(self.repository, &session.reference())?.is_some())
    }

    fn no_session(&self, session: &SessionName) -> StoreError {
        let sessions = match session.remote() {
            Some(_) => self.remote_sessions(None),
            None => self.sessions(),
        };
        let sessions = sessions.unwrap_or_default();
        let names = sessions.iter().map(|(name, _)| name.as_str());
        StoreError::NoSession {
            name: session.clone(),
            near: nearest(session.as_str(), names).map(str::to_owned),
            fetched: self.fetched_as(session),
        }
    }

    /// Returns the first remote session with the name of a missing session.
    fn fetched_as(&self, session: &SessionName) -> Option<SessionName> {
        let fetched = self.remote_sessions(None).ok()?.into_iter();
        let mut names = fetched.map(|(name, _)| name);
        names.find(|name| name.own() == *session)
    }

    /// Oldest first.
    pub fn turns(&self, session: &SessionName) -> anyhow::Result<Vec<Turn>> {
        let history = self.history(self.tip(session)?);
        let mut turns = history.collect::<anyhow::Result<Vec<Turn>>>()?;
        turns.reverse();
        Ok(turns)
    }

    /// Newest first. Ends after an unreadable turn.
    pub fn history(&self, from: Turn) -> impl Iterator<Item = anyhow::Result<Turn>> + use<'a> {
        let repository = self.repository;
        let (mut here, mut before) = (Some(from), None);
        std::iter::from_fn(move || {
            let turn = match (here.take(), before.take()) {
                (Some(from), _) => Ok(from),
                (None, Some((session, id))) => Turn::read(repository, &session, id),
                (None, None) => return None,
            };
            let current = turn.as_ref().ok();
            before = current.and_then(|turn| Some((turn.session.clone(), turn.previous?)));
            Some(turn)
        })
    }

    /// Resolves a number, `@`, `@~2`, `<session>:<turn>`, or a revision as in `git rev-parse`.
    /// Fails with [`StoreError::InProgress`] for a draft.
    pub fn turn(&self, session: &SessionName, name: &str) -> anyhow::Result<Turn> {
        let turn = self.turn_or_draft(session, name)?;
        if turn.is_draft() {
            return Err(StoreError::InProgress {
                session: turn.session.clone(),
                turn: turn.number(),
            }
            .into());
        }
        Ok(turn)
    }

    /// Like [`Store::turn`], and resolves the turn in progress by its number or as `draft`.
    pub fn turn_or_draft(&self, session: &SessionName, name: &str) -> anyhow::Result<Turn> {
        if let Some((other, turn)) = name.split_once(':')
            && let Ok(other) = SessionName::from_address(other)
        {
            return self.turn_or_draft(&other, turn);
        }
        let tip = self.tip(session)?;
        let is_next = name.parse() == Ok(tip.number() + 1);

        if name != DRAFT && !is_next {
            return self.resolve_name(&tip, name);
        }

        match self.draft(&tip)?.commit {
            Some(id) => Turn::read(self.repository, session, id),
            None if is_next => Err(self.no_turn(&tip, name)),
            None => Err(StoreError::NoDraft(session.clone()).into()),
        }
    }

    fn resolve_name(&self, tip: &Turn, name: &str) -> anyhow::Result<Turn> {
        let back = match name.strip_prefix('@') {
            Some("") => Some(0),
            Some(suffix) => suffix.strip_prefix('~').and_then(|n| {
                if n.is_empty() {
                    Some(1)
                } else {
                    n.parse().ok()
                }
            }),
            None => match name.parse::<u64>() {
                Ok(number) if number <= tip.number() => Some(tip.number() - number),
                // A shorter number cannot be an abbreviated commit id, which can consist of digits
                // only.
                Ok(_) if name.len() < ABBREVIATED => return Err(self.no_turn(tip, name)),
                _ => None,
            },
        };

        let Some(back) = back else {
            return self.turn_by_revision(tip, name);
        };
        match tip.number().checked_sub(back) {
            Some(number) => self.earlier(tip, number),
            None => Err(self.no_turn(tip, name)),
        }
    }

    /// Returns the turn of a number in the chain that ends at `last`.
    pub fn earlier(&self, last: &Turn, number: u64) -> anyhow::Result<Turn> {
        let back = last.number().checked_sub(number);
        let back = back.with_context(|| format!("the session ends before turn {number}"))?;
        let id = history::first_parent(self.repository, last.commit, back)?;
        Turn::read(self.repository, &last.session, id)
    }

    fn turn_by_revision(&self, tip: &Turn, name: &str) -> anyhow::Result<Turn> {
        let Ok(commit) = refs::resolve(self.repository, name) else {
            return match SessionName::from_address(name) {
                Ok(other) if other.remote().is_some() => self.tip(&other),
                _ => Err(self.no_turn(tip, name)),
            };
        };
        Turn::read(self.repository, &tip.session, commit)
            .with_context(|| format!("`{name}` names no turn"))
    }

    fn no_turn(&self, tip: &Turn, name: &str) -> anyhow::Error {
        let reference = SessionName::from_ref(name).map(|reference| reference.reference());
        let session = reference.map(|reference| refs::read(self.repository, &reference));
        StoreError::NoTurn {
            session: tip.session.clone(),
            turn: name.to_owned(),
            last: tip.number(),
            has_session: matches!(session, Ok(Ok(Some(_)))),
        }
        .into()
    }

    /// Writes a copy of a turn with different workspace facts. Moves no ref.
    pub fn with_workspace(
        &self,
        turn: &Turn,
        workspace: Workspace,
        publication: Option<CommitId>,
    ) -> anyhow::Result<CommitId> {
        let old = self.repository.commit(turn.commit)?;
        let meta = Meta {
            workspace: Some(workspace),
            ..turn.meta.clone()
        };
        let batch = batch::begin_batch(self.repository);
        let blob = batch.blob(meta::write(&meta).as_bytes())?;
        let edit = BTreeMap::from([(
            artifact::META.as_bytes().to_vec(),
            Some(TreeEntry {
                mode: EntryMode::Blob,
                id: blob.into(),
            }),
        )]);
        let tree = batch.tree_with(turn.tree, &edit)?;
        let parents: Vec<CommitId> = turn
            .previous
            .into_iter()
            .chain(turn.workspace)
            .chain(publication)
            .collect();
        let commit = batch.commit(&NewCommit {
            tree,
            parents: &parents,
            message: &old.message,
            time: &clock::now(),
        })?;

        batch.stage()?;
        Ok(commit)
    }

    /// Writes the objects of a turn. Moves no ref.
    pub fn write(&self, mut new: NewTurn<'_>) -> anyhow::Result<CommitId> {
        new.session.writable()?;
        // The commit message quotes only the user's own messages (T7).
        let asked = match new.meta.origin {
            MessageOrigin::User => new.artifacts.text_or_empty(artifact::USER_PROMPT),
            MessageOrigin::Validation | MessageOrigin::Loop => String::new(),
        };
        new.artifacts.insert(artifact::META, meta::write(new.meta));
        let batch = batch::begin_batch(self.repository);
        let mut files = Vec::with_capacity(new.artifacts.0.len());
        for (name, bytes) in &new.artifacts.0 {
            files.push((name.clone(), batch.blob(bytes)?));
        }

        let tree = batch.tree_of(&files)?;
        let message = TurnMessage {
            title: new.title,
            asked: &asked,
            results: new.results,
            session: new.session,
            meta: new.meta,
        }
        .render();
        // Parents are positional (T3). Without a workspace commit, the publication would be taken for
        // it.
        let publication = new.publication.filter(|_| new.workspace.is_some());
        let parents: Vec<CommitId> = new
            .previous
            .into_iter()
            .chain(new.workspace)
            .chain(publication)
            .collect();
        let commit = batch.commit(&NewCommit {
            tree,
            parents: &parents,
            message: &message,
            time: &clock::now(),
        })?;

        batch.stage()?;
        Ok(commit)
    }
}

// Lists the newest turns of many sessions from their commits alone. Reading the metadata as well
// would take five times as long.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTip {
    pub session: SessionName,
    pub commit: CommitId,
    pub number: u64,
    pub title: String,
    /// Its artifacts.
    pub tree: TreeId,
    /// In seconds since 1970.
    pub seconds: i64,
    /// For a session of a remote: its workspace commits were fetched too.
    pub code: Option<bool>,
}

impl Store<'_> {
    /// Most recent first. Skips refs that do not point at a turn: they can come from elsewhere.
    pub fn newest(
        &self,
        sessions: Vec<(SessionName, CommitId)>,
    ) -> anyhow::Result<Vec<SessionTip>> {
        let parts = map_parallel(self.repository, sessions, |repository, part| {
            let tips = part
                .into_iter()
                .filter_map(|(session, id)| read_session_tip(repository, session, id));
            Ok(tips.collect::<Vec<_>>())
        })?;
        let mut tips: Vec<SessionTip> = parts.into_iter().flatten().collect();
        tips.sort_by_key(|tip| Reverse(tip.seconds));
        Ok(tips)
    }
}

fn read_session_tip(
    repository: &Repository,
    session: SessionName,
    id: CommitId,
) -> Option<SessionTip> {
    let commit = repository.commit(id).ok()?;
    let number = match turn_number_of(&commit) {
        Some(number) => number,
        // Without trailers, the commit can still be a turn.
        None => Turn::read(repository, &session, id).ok()?.number(),
    };
    let code = match session.remote() {
        None => None,
        // The second parent is the workspace commit.
        Some(_) if commit.parents.len() > 1 => Some(true),
        Some(_) => Some(!Turn::read(repository, &session, id).ok()?.without_code),
    };

    Some(SessionTip {
        session,
        commit: id,
        number,
        title: commit.subject().to_owned(),
        tree: commit.tree,
        seconds: commit.seconds,
        code,
    })
}

/// From the trailers. Also requires a status, because workspace commits and landed commits have a
/// `Teddy-Turn` too.
fn turn_number_of(commit: &Commit) -> Option<u64> {
    trailer(&commit.message, "Teddy-Status")?;
    trailer(&commit.message, "Teddy-Turn")?.parse().ok()
}

impl Store<'_> {
    /// The saved draft, or a new one from the state that the newest turn prepared.
    pub fn draft(&self, tip: &Turn) -> anyhow::Result<Draft> {
        match self.saved_draft(tip)? {
            Some(commit) => self.read_draft(commit.id, commit.tree),
            None => self.fresh_draft(tip),
        }
    }

    /// As [`Store::draft`], but another user's draft is left out.
    pub fn own_draft(&self, tip: &Turn) -> anyhow::Result<Draft> {
        let own = Journal::new(&self.repository.teddy_dir()).own_drafts(&tip.session);
        match self.saved_draft(tip)? {
            Some(commit) if own.contains(&commit.id) => self.read_draft(commit.id, commit.tree),
            _ => self.fresh_draft(tip),
        }
    }

    pub fn saved_draft(&self, tip: &Turn) -> anyhow::Result<Option<Commit>> {
        // A fetched session is read-only, and a plan in it must not run.
        if tip.session.remote().is_some() {
            return Ok(None);
        }
        let Some(id) = refs::read(self.repository, &tip.session.draft_reference())? else {
            return Ok(None);
        };
        let commit = self.repository.commit(id)?;
        // After a crash the ref can point at a draft of an older turn, which is obsolete, or at a
        // complete turn, which has a second parent.
        Ok((commit.parents == [tip.commit]).then_some(commit))
    }

    fn read_draft(&self, id: CommitId, tree: crate::git::object::TreeId) -> anyhow::Result<Draft> {
        let mut artifacts = Artifacts(self.repository.files(tree)?);
        let text = artifacts
            .text(artifact::META)
            .with_context(|| format!("the draft {id} has no `{}`", artifact::META))?;
        let meta =
            meta::read(&text).with_context(|| format!("`{}` of the draft {id}", artifact::META))?;
        artifacts.remove(artifact::META);

        Ok(Draft {
            artifacts,
            meta,
            commit: Some(id),
        })
    }

    fn fresh_draft(&self, tip: &Turn) -> anyhow::Result<Draft> {
        let next = tip.next(self.repository)?;
        let mut artifacts = Artifacts::default();
        for (name, from) in [
            (artifact::TURN_CONTEXT, in_next(artifact::TURN_CONTEXT)),
            (artifact::SYSTEM_PROMPT, in_next(artifact::SYSTEM_PROMPT)),
            (
                artifact::SESSION_CONTEXT,
                artifact::SESSION_CONTEXT.to_owned(),
            ),
        ] {
            artifacts.insert(
                name,
                self.repository.file(tip.tree, &from)?.unwrap_or_default(),
            );
        }

        let rejected = tip.meta.status == Status::Rejected;
        let meta = Meta {
            parent_turn_id: Some(next.parent_turn_id),
            caller_turn_id: next.caller_turn_id,
            replans: match rejected {
                // A fetched turn can name any number.
                true => tip.meta.replans.saturating_add(1),
                false => 0,
            },
            ..Meta::of(Uuid::now_v7(), tip.number() + 1, Status::Ready, &next.agent)
        };
        Ok(Draft {
            artifacts,
            meta,
            commit: None,
        })
    }

    /// Durable. Fails if another process saved a draft concurrently.
    pub fn save_draft(&self, tip: &Turn, draft: &mut Draft) -> anyhow::Result<()> {
        let title = format!("Draft of turn {}", draft.meta.number);
        let new = NewTurn {
            session: &tip.session,
            title: &title,
            results: &[],
            artifacts: draft.artifacts.clone(),
            meta: &draft.meta,
            previous: Some(tip.commit),
            workspace: None,
            publication: None,
        };

        let commit = self.write(new)?;
        let name = tip.session.draft_reference();
        let stale = refs::read(self.repository, &name)?;
        // A draft that was never saved replaces an obsolete one.
        let expected = match (draft.commit, stale) {
            (Some(saved), _) => Expected::At(saved),
            (None, Some(stale)) => Expected::At(stale),
            (None, None) => Expected::Absent,
        };

        let journal = Journal::new(&self.repository.teddy_dir());
        if !journal.owns_draft(&tip.session, draft) {
            // The new draft keeps the context lists of another user's draft.
            journal.record_foreign_context(&tip.session, tip.commit)?;
        }
        // Before the ref moves, because a plan with an unrecorded origin does not run.
        journal.record_draft(&tip.session, commit, stale)?;
        let protected = protect::protect_commits(
            self.repository,
            &[commit],
            &[tip.tree],
            MergePolicy::Separate,
        )?
        .context("`git gc` removed objects of the draft; try again")?;
        fault::point("before-draft-ref")?;
        refs::move_to(self.repository, &name, expected, commit, "teddy: draft")?;

        // The answer was paid for, so it must survive a power cut.
        refs::sync(self.repository, &name)?;
        protect::release_protected(self.repository, &protected)?;
        draft.commit = Some(commit);
        Ok(())
    }

    /// Best effort: a draft that remains is older than the newest turn and is ignored.
    pub fn discard_draft(&self, session: &SessionName) {
        let name = session.draft_reference();
        if matches!(refs::read(self.repository, &name), Ok(Some(_))) {
            let tip = refs::read(self.repository, &session.reference())
                .ok()
                .flatten();
            // `discard` leaves a packed ref, because removing it needs git's lock on `packed-refs`,
            // which a crash could leave behind. Pointing it at the newest turn marks the draft as
            // complete.
            let _ = match (refs::discard(self.repository, &name), tip) {
                (Ok(false), Some(tip)) => {
                    refs::move_to(self.repository, &name, Expected::Any, tip, "teddy: done")
                }
                _ => Ok(()),
            };
            Journal::new(&self.repository.teddy_dir()).forget_draft(session);
        }
    }
}
