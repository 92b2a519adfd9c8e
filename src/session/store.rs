//! The store: sessions and their turns as refs and commits.

pub mod back;
mod drafts;
pub mod tips;

use std::collections::BTreeMap;

use anyhow::Context as _;

use super::artifact::{self, Artifacts};
use super::message::TurnMessage;
use super::meta::{self, MessageOrigin, Meta, Workspace};
use super::name::{REMOTES, SESSIONS, SessionName};
use super::turn::Turn;
use crate::git::object::batch::{self, Batch};
use crate::git::object::{CommitId, EntryMode, NewCommit, TreeEntry};
use crate::git::refs::{self};
use crate::git::repository::Repository;
use crate::git::revision;
use crate::host::clock;
use crate::text::near::nearest;

/// Git abbreviates ids to this many digits at least.
const ABBREVIATED: usize = 7;

/// How a person names the turn in progress.
pub const DRAFT: &str = "draft";

/// The sessions of a repository.
pub struct Store<'a> {
    /// The repository.
    pub repository: &'a Repository,
}

/// A session or turn that is not there.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No session has this name.
    #[error("there is no session `{name}`")]
    NoSession {
        /// What was asked for.
        name: SessionName,
        /// The session that is called most like it.
        near: Option<String>,
    },
    /// A session has this name already.
    #[error("there is a session `{0}` already")]
    Taken(SessionName),
    /// No turn of the session is in progress.
    #[error("session `{0}` has no turn in progress")]
    NoDraft(SessionName),
    /// The turn has not run yet.
    #[error("turn {turn} of session `{session}` is in progress: its plan has not run")]
    InProgress {
        /// The session.
        session: SessionName,
        /// The number of the turn.
        turn: u64,
    },
    /// The session has no turn of this name.
    #[error("session `{session}` has no turn `{turn}`; its turns are 0 to {last}")]
    NoTurn {
        /// The session.
        session: SessionName,
        /// What was asked for.
        turn: String,
        /// The number of the newest turn.
        last: u64,
        /// Whether what was asked for is the name of a session.
        has_session: bool,
    },
}

/// A turn to write.
pub struct NewTurn<'a> {
    /// The session.
    pub session: &'a SessionName,
    /// The subject.
    pub title: &'a str,
    /// One line for each thing that was done.
    pub done: &'a [String],
    /// Everything but `meta.yaml`.
    pub artifacts: Artifacts,
    /// Facts about it.
    pub meta: &'a Meta,
    /// The turn before.
    pub previous: Option<CommitId>,
    /// The workspace commit after it.
    pub workspace: Option<CommitId>,
    /// What it brings to the user's files, or what is in them; only beside a workspace commit.
    pub publication: Option<CommitId>,
}

impl<'a> Store<'a> {
    /// Returns every session with its tip, by name; refs that name no session are left out.
    ///
    /// # Errors
    /// Where the refs cannot be read.
    pub fn sessions(&self) -> anyhow::Result<Vec<(SessionName, CommitId)>> {
        let references = refs::list(self.repository, SESSIONS)?;
        let named = |r: refs::Reference| {
            Some((
                SessionName::from_ref(r.name.strip_prefix(SESSIONS)?).ok()?,
                r.target,
            ))
        };
        Ok(references.into_iter().filter_map(named).collect())
    }

    /// Returns the sessions of a remote as they were last fetched, or of all remotes, by name.
    ///
    /// # Errors
    /// Where the refs cannot be read.
    pub fn remote_sessions(
        &self,
        remote: Option<&str>,
    ) -> anyhow::Result<Vec<(SessionName, CommitId)>> {
        let prefix = match remote {
            Some(remote) => format!("{REMOTES}{remote}/"),
            None => REMOTES.to_owned(),
        };
        let named = |r: refs::Reference| {
            let name = SessionName::from_address(r.name.strip_prefix(REMOTES)?).ok()?;
            let found = name.remote()?;
            let is_meant = remote.is_none_or(|remote| remote == found);
            is_meant.then_some((name, r.target))
        };

        let references = refs::list(self.repository, &prefix)?;
        Ok(references.into_iter().filter_map(named).collect())
    }

    /// Returns the newest turn of a session.
    ///
    /// # Errors
    /// [`StoreError::NoSession`], or where it cannot be read.
    pub fn tip(&self, session: &SessionName) -> anyhow::Result<Turn> {
        Turn::read(self.repository, session, self.tip_id(session)?)
    }

    /// Returns the commit of the newest turn of a session, be it unreadable.
    ///
    /// # Errors
    /// [`StoreError::NoSession`], or where the ref cannot be read.
    pub fn tip_id(&self, session: &SessionName) -> anyhow::Result<CommitId> {
        Ok(refs::read(self.repository, &session.reference())?
            .ok_or_else(|| self.no_session(session))?)
    }

    /// Says that there is no such session, and which one may be meant.
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
        }
    }

    /// Returns the turns of a session from this one back to the start.
    pub fn history(&self, from: Turn) -> impl Iterator<Item = anyhow::Result<Turn>> + use<'a> {
        let repository = self.repository;
        let (mut here, mut before) = (Some(from), None);
        std::iter::from_fn(move || {
            let turn = match (here.take(), before.take()) {
                (Some(from), _) => Ok(from),
                (None, Some((session, id))) => Turn::read(repository, &session, id),
                (None, None) => return None,
            };
            let known = turn.as_ref().ok();
            before = known.and_then(|turn| Some((turn.session.clone(), turn.previous?)));
            Some(turn)
        })
    }

    /// Returns the turn that a person names: a number, `@`, `@~2`, `<session>:<turn>`, or anything
    /// that `git rev-parse` takes.
    ///
    /// # Errors
    /// [`StoreError`], or where the expression names no turn, or one that has not run yet.
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

    /// Returns the turn that a person names to look at it: as for [`Store::turn`], and the one in
    /// progress as `draft` or by its number.
    ///
    /// # Errors
    /// [`StoreError`], or where the expression names no turn.
    pub fn turn_or_draft(&self, session: &SessionName, name: &str) -> anyhow::Result<Turn> {
        if let Some((other, turn)) = name.split_once(':')
            && let Ok(other) = SessionName::from_address(other)
        {
            return self.turn_or_draft(&other, turn);
        }
        let tip = self.tip(session)?;
        let is_next = name.parse() == Ok(tip.number() + 1);

        if name != DRAFT && !is_next {
            return self.named(&tip, name);
        }

        match self.draft(&tip)?.commit {
            Some(id) => Turn::read(self.repository, session, id),
            None if is_next => Err(self.no_turn(&tip, name)),
            None => Err(StoreError::NoDraft(session.clone()).into()),
        }
    }

    /// Returns the turn of a name behind the session's.
    fn named(&self, tip: &Turn, name: &str) -> anyhow::Result<Turn> {
        let back = match name.strip_prefix('@') {
            Some("") => Some(0),
            Some(rest) => rest.strip_prefix('~').and_then(|n| {
                if n.is_empty() {
                    Some(1)
                } else {
                    n.parse().ok()
                }
            }),
            None => match name.parse::<u64>() {
                Ok(number) if number <= tip.number() => Some(tip.number() - number),
                // Nobody has as many turns; an abbreviated id may be all digits.
                Ok(_) if name.len() < ABBREVIATED => return Err(self.no_turn(tip, name)),
                _ => None,
            },
        };

        let Some(back) = back else {
            return self.turn_by_revision(tip, name);
        };
        if back > tip.number() {
            return Err(self.no_turn(tip, name));
        }

        Turn::read(
            self.repository,
            &tip.session,
            revision::first_parent(self.repository, tip.commit, back)?,
        )
    }

    /// Returns the turn that a git expression names.
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

    /// Says which turns there are.
    fn no_turn(&self, tip: &Turn, name: &str) -> anyhow::Error {
        let named = SessionName::from_ref(name).map(|named| named.reference());
        let session = named.map(|named| refs::read(self.repository, &named));
        StoreError::NoTurn {
            session: tip.session.clone(),
            turn: name.to_owned(),
            last: tip.number(),
            has_session: matches!(session, Ok(Ok(Some(_)))),
        }
        .into()
    }

    /// Writes a turn anew that says something else about the user's files; no ref moves.
    ///
    /// # Errors
    /// Where the repository cannot be read or written.
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
        let batch = batch::batch(self.repository);
        let blob = batch.blob(meta::write(&meta).as_bytes())?;
        let edit = BTreeMap::from([(
            artifact::META.as_bytes().to_vec(),
            Some(TreeEntry {
                mode: EntryMode::File,
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
        let time = clock::now();
        let commit = batch.commit(&NewCommit {
            tree,
            parents: &parents,
            message: &old.message,
            time: &time,
        })?;

        batch.stage()?;
        Ok(commit)
    }

    /// Stages the objects of a turn; no ref moves.
    ///
    /// # Errors
    /// Where the repository cannot be written.
    pub fn write(&self, new: NewTurn<'_>) -> anyhow::Result<CommitId> {
        write_into(batch::batch(self.repository), new)
    }
}

/// Writes the objects of a turn with those of a batch.
fn write_into(batch: Batch<'_>, mut new: NewTurn<'_>) -> anyhow::Result<CommitId> {
    new.session.writable()?;
    let asked = match new.meta.origin {
        MessageOrigin::User => new.artifacts.text_or_empty(artifact::USER_PROMPT),
        MessageOrigin::Validation | MessageOrigin::Loop => String::new(),
    };
    new.artifacts.put(artifact::META, meta::write(new.meta));
    let mut files = Vec::with_capacity(new.artifacts.0.len());
    for (name, content) in &new.artifacts.0 {
        files.push((name.clone(), batch.blob(content)?));
    }

    let tree = batch.tree_of(&files)?;
    let message = TurnMessage {
        title: new.title,
        asked: &asked,
        done: new.done,
        session: new.session,
        meta: new.meta,
    }
    .render();
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
