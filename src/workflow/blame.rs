//! `blame`: which turn each line of a file comes from, through landed commits too.
//!
//! git tells which commit a line comes from, in the user's history and in the code of the session.
//! A commit of the first that names turns is traced into the session: a landing of several turns by
//! what each of them brought. The names of turns stand in the message, which a rebase, an amendment
//! and a cherry-pick keep.

mod landed;
mod trailers;

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use anyhow::Context as _;
use serde::Serialize;

use self::landed::LandedFile;
use crate::git::blame::{Asked, Blame, BlamedLine, blame};
use crate::git::object::CommitId;
use crate::git::refs;
use crate::git::repository::Repository;
use crate::host::clock;
use crate::session::artifact;
use crate::session::meta::{MessageOrigin, Status};
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::path::lossy;
use crate::workflow::log::{LogRow, rows};
use crate::workflow::project::Project;
use trailers::{Named, names};

/// So many commits of a plan's own are looked through for a line.
const MOST_COMMITS: usize = 1000;

/// A line and where it comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Blamed {
    /// Its number, from 1.
    pub line: usize,
    /// Its text.
    pub text: String,
    /// Where it comes from.
    #[serde(flatten)]
    pub source: LineSource,
}

/// Where a line comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum LineSource {
    /// A turn.
    Turn {
        /// Its session.
        session: String,
        /// Its number.
        turn: u64,
        /// Its commit; null if the session is not here.
        commit: Option<CommitId>,
        /// Its title; null if the session is not here.
        title: Option<String>,
        /// The model that was asked.
        model: Option<String>,
        /// When it was recorded.
        time: Option<String>,
        /// The commit with which it landed, if it did.
        landed: Option<CommitId>,
    },
    /// A commit of the user's.
    Commit {
        /// Which.
        commit: CommitId,
        /// The first line of its message.
        title: String,
        /// Who wrote it.
        author: String,
        /// When.
        time: Option<String>,
    },
    /// Nobody committed it, and no turn made it.
    Uncommitted,
}

/// Tells where the lines of a file come from, a path below the project's root.
///
/// # Errors
/// There is no such file, git does not know the range, or the repository cannot be read.
pub fn blamed(project: &Project, path: &str, range: Option<&str>) -> anyhow::Result<Vec<Blamed>> {
    let repository = &project.repository;
    let file = repository.workdir().join(path);
    let found = std::fs::symlink_metadata(&file);
    let shown = if path.is_empty() { "." } else { path };
    anyhow::ensure!(
        found.is_ok_and(|found| found.is_file()),
        "`{shown}` is not a file of the project"
    );
    let session = project.session().ok();
    let tip = session
        .as_ref()
        .and_then(|name| project.store().tip(name).ok());
    let code = tip.and_then(|tip| tip.workspace);
    let has_file = |commit: &CommitId| {
        let tree = repository.commit(*commit).map(|commit| commit.tree);
        tree.and_then(|tree| repository.entry(tree, path.as_bytes()))
            .is_ok_and(|entry| entry.is_some())
    };

    let told = |commit: Option<CommitId>| match commit.filter(has_file) {
        Some(commit) => {
            let asked = Asked {
                commit,
                path,
                contents: &file,
                range,
                since: None,
            };
            blame(repository, &asked).map(Some)
        }
        None => Ok(None),
    };
    let (history, code) = (told(refs::head(repository)?)?, told(code)?);
    let lines = match (&history, &code) {
        (Some(told), _) | (None, Some(told)) => told.lines.clone(),
        (None, None) => untold(&file, range)?,
    };

    let mut tracer = Tracer {
        project,
        rows: HashMap::new(),
        turns: HashMap::new(),
        landed: HashMap::new(),
    };
    let of_code = code.as_ref().zip(session.as_ref());
    let sources = lines.iter().enumerate().map(|(at, line)| {
        let committed = history
            .as_ref()
            .and_then(|told| Some((told, told.lines.get(at)?.commit?)));
        let source = match committed {
            Some((told, commit)) => tracer.committed(told, commit, line)?,
            None => match of_code {
                Some((told, session)) => tracer.in_session(told, session, at)?,
                None => LineSource::Uncommitted,
            },
        };
        Ok(Blamed {
            line: line.number,
            text: line.text.clone(),
            source,
        })
    });

    sources.collect()
}

/// Returns what the user asked for that led to a turn: in it, or in the last one before it in which
/// the user said something.
///
/// # Errors
/// A turn cannot be read.
pub fn request(project: &Project, session: &str, commit: CommitId) -> anyhow::Result<String> {
    let session = SessionName::from_ref(session)?;
    let turn = Turn::read(&project.repository, &session, commit)?;
    for turn in project.store().history(turn) {
        let turn = turn?;
        let text = turn.text(&project.repository, artifact::USER_PROMPT)?;
        let is_users = turn.meta.origin == MessageOrigin::User;
        if let Some(text) = text.filter(|text| is_users && !text.trim().is_empty()) {
            return Ok(text);
        }
    }

    Ok(String::new())
}

/// Returns the lines of a file of which no history tells.
fn untold(file: &Path, range: Option<&str>) -> anyhow::Result<Vec<BlamedLine>> {
    anyhow::ensure!(
        range.is_none(),
        "no commit and no turn has `{}`: there is no range in it",
        file.display()
    );
    let bytes = crate::host::file::read_regular(file, 64 << 20)
        .with_context(|| format!("reading `{}`", file.display()))?;
    let text = lossy(&bytes);
    let lines = text.lines().enumerate().map(|(at, text)| BlamedLine {
        commit: None,
        origin: at + 1,
        number: at + 1,
        text: text.to_owned(),
    });

    Ok(lines.collect())
}

/// The turn that brought each line of a file, as far as it is known.
type LineTurns = Rc<[Option<usize>]>;

/// Traces commits to turns; what was worked out is kept.
struct Tracer<'p> {
    /// The project.
    project: &'p Project,
    /// The turns of sessions, newest first; nothing for one that is not here.
    rows: HashMap<SessionName, Vec<LogRow>>,
    /// The turns whose code a commit is, by session.
    turns: HashMap<SessionName, Rc<HashMap<CommitId, usize>>>,
    /// The turns that brought the lines of a file, as a commit has it, by session.
    landed: HashMap<(SessionName, CommitId, String), LineTurns>,
}

impl Tracer<'_> {
    /// Tells of a line of the user's history.
    fn committed(
        &mut self,
        told: &Blame,
        commit: CommitId,
        line: &BlamedLine,
    ) -> anyhow::Result<LineSource> {
        let repository = &self.project.repository;
        let message = repository.commit(commit)?.message;
        let (sessions, named) = names(&message);
        let path = told.commits.get(&commit).map_or("", |origin| &origin.path);
        let mut gone = None;

        for session in &self.candidates(sessions)? {
            let found = self.found(session, &named);
            if found.is_empty() {
                gone = gone.or_else(|| named.first().map(|named| (session.clone(), named.number)));
                continue;
            }

            if let Some(at) = self.landed(session, &found, (commit, path), line)? {
                return Ok(turn(session, &self.rows[session][at], Some(commit)));
            }
        }

        if let Some((session, number)) = gone {
            return Ok(LineSource::Turn {
                session: session.to_string(),
                turn: number,
                commit: None,
                title: None,
                model: None,
                time: None,
                landed: Some(commit),
            });
        }

        let origin = told.commits.get(&commit).cloned().unwrap_or_default();
        Ok(LineSource::Commit {
            commit,
            title: origin.summary,
            author: origin.author,
            time: clock::of_seconds(origin.seconds),
        })
    }

    /// Returns the sessions that can be meant by these names: where one is not here, that of a
    /// remote, as it was fetched.
    fn candidates(&self, named: Vec<SessionName>) -> anyhow::Result<Vec<SessionName>> {
        let store = self.project.store();
        let mut candidates = Vec::new();
        for name in named {
            if store.tip_id(&name).is_err() {
                let theirs = store.remote_sessions(None)?.into_iter();
                let theirs = theirs.filter(|(theirs, _)| theirs.own() == name);
                candidates.extend(theirs.map(|(theirs, _)| theirs));
            }

            candidates.push(name);
        }

        Ok(candidates)
    }

    /// Returns which of the turns that a commit names brought a line of it.
    fn landed(
        &mut self,
        session: &SessionName,
        named: &[usize],
        (commit, path): (CommitId, &str),
        line: &BlamedLine,
    ) -> anyhow::Result<Option<usize>> {
        let turns = self.turns_of(session)?;
        let file = LandedFile {
            repository: &self.project.repository,
            rows: &self.rows[session],
            turns: &turns,
            named,
            commit,
            path,
        };

        let key = (session.clone(), commit, path.to_owned());
        let lines = match self.landed.get(&key) {
            Some(lines) => Rc::clone(lines),
            None => {
                // Of an object that is gone git cannot tell; the content can.
                let lines: LineTurns = file.lines().unwrap_or_default().into();
                self.landed.insert(key, Rc::clone(&lines));
                lines
            }
        };

        let told = lines.get(line.origin.saturating_sub(1)).copied().flatten();
        Ok(told.or_else(|| file.by_content(&line.text)))
    }

    /// Returns which turn of a session made each commit of its code.
    fn turns_of(&mut self, session: &SessionName) -> anyhow::Result<Rc<HashMap<CommitId, usize>>> {
        if let Some(turns) = self.turns.get(session) {
            return Ok(Rc::clone(turns));
        }
        let turns = Rc::new(code_of(&self.project.repository, self.rows_of(session))?);
        self.turns.insert(session.clone(), Rc::clone(&turns));
        Ok(turns)
    }

    /// Returns which turns of a session a message names, newest first.
    fn found(&mut self, session: &SessionName, named: &[Named]) -> Vec<usize> {
        let rows = self.rows_of(session).iter().enumerate();
        let is_named = |row: &LogRow| {
            let id = row.turn_id.to_string();
            named.iter().any(|named| named.id == id)
        };
        rows.filter(|(_, row)| is_named(row))
            .map(|(at, _)| at)
            .collect()
    }

    /// Returns the turns of a session, newest first.
    fn rows_of(&mut self, session: &SessionName) -> &[LogRow] {
        let project = self.project;
        self.rows
            .entry(session.clone())
            .or_insert_with(|| rows(project, session).unwrap_or_default())
    }

    /// Tells of a line that no commit of the user's has: a turn may have made it.
    fn in_session(
        &mut self,
        told: &Blame,
        session: &SessionName,
        at: usize,
    ) -> anyhow::Result<LineSource> {
        let Some(commit) = told.lines.get(at).and_then(|line| line.commit) else {
            return Ok(LineSource::Uncommitted);
        };
        let Some(&found) = self.turns_of(session)?.get(&commit) else {
            // What the user had in the files when a turn began.
            return Ok(LineSource::Uncommitted);
        };

        let rows = &self.rows[session];
        let path = told.commits.get(&commit).map_or("", |origin| &origin.path);
        // What a restore brought back, a turn before it had made.
        let made = rows[found..].iter().find(|row| {
            row.status != Status::Restored
                && brought(&self.project.repository, row, path, &told.lines[at].text)
        });
        let row = match rows[found].status {
            Status::Restored => made.unwrap_or(&rows[found]),
            _ => &rows[found],
        };

        Ok(turn(session, row, None))
    }
}

/// Returns which turn made each commit of a session's code.
fn code_of(repository: &Repository, rows: &[LogRow]) -> anyhow::Result<HashMap<CommitId, usize>> {
    let mut turns = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        let (Some(before), Some(mut commit)) = (row.before, row.after) else {
            continue;
        };
        // Commits that the plan's commands made are between the two.
        for _ in 0..MOST_COMMITS {
            if commit == before {
                break;
            }

            turns.insert(commit, at);
            match repository.commit(commit)?.parents.first() {
                Some(parent) => commit = *parent,
                None => break,
            }
        }
    }

    Ok(turns)
}

/// Returns whether a turn brought a line into a file.
fn brought(repository: &Repository, row: &LogRow, path: &str, line: &str) -> bool {
    let has = |commit: Option<CommitId>| {
        let file = commit.and_then(|commit| {
            let tree = repository.commit(commit).ok()?.tree;
            repository.file(tree, path).ok()?
        });
        file.is_some_and(|bytes| has_line(&bytes, line))
    };
    has(row.after) && !has(row.before)
}

/// Returns whether a file has a line.
fn has_line(file: &[u8], line: &str) -> bool {
    lossy(file).lines().any(|one| one == line)
}

/// Returns a turn as the source of a line.
fn turn(session: &SessionName, row: &LogRow, landed: Option<CommitId>) -> LineSource {
    LineSource::Turn {
        session: session.to_string(),
        turn: row.number,
        commit: Some(row.commit),
        title: Some(row.title.clone()),
        model: row.model.clone(),
        time: row.time.clone(),
        landed,
    }
}
