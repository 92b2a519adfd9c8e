//! `blame`: finds the turn that each line of a file comes from, also through landed commits.
//!
//! `git blame` runs on the user's history and on the code of the session. A commit whose message
//! names turns is traced into the session, to the turn that added the line. Turns are named in the
//! message, so a rebase, amend or cherry-pick keeps the connection.

use std::collections::{HashMap, HashSet};
use std::io::Write as _;
use std::path::Path;
use std::rc::Rc;

use anyhow::Context as _;
use serde::Serialize;

use crate::git::blame::{Blame, BlameRequest, BlamedLine, blame_file};
use crate::git::object::CommitId;
use crate::git::refs;
use crate::git::repository::Repository;
use crate::host::clock;
use crate::host::file::{FileKind, Root, temporary_parent};
use crate::project::Project;
use crate::query::log::{LogRow, rows};
use crate::session::artifact;
use crate::session::meta::{MessageOrigin, Status};
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::path::lossy;

/// Made by commands of one plan.
const MOST_COMMITS: usize = 1000;
/// Trailers of one message. Its author can be anyone.
const MAX_TRAILERS: usize = 4096;
/// Sessions named by one message.
const MAX_SESSIONS: usize = 16;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Blamed {
    /// From 1.
    pub line: usize,
    pub text: String,
    #[serde(flatten)]
    pub source: LineSource,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum LineSource {
    Turn {
        session: String,
        /// `None` if it is unknown which of `turns` wrote the line.
        turn: Option<u64>,
        /// The turn, or all turns of the commit.
        turns: Vec<u64>,
        /// `None` if the session does not exist here.
        commit: Option<CommitId>,
        /// `None` if the session does not exist here.
        title: Option<String>,
        model: Option<String>,
        time: Option<String>,
        landed: Option<CommitId>,
    },
    Commit {
        commit: CommitId,
        /// First line of the message.
        title: String,
        author: String,
        /// Author date.
        time: Option<String>,
    },
    /// In no commit and no turn.
    Uncommitted,
}

/// `path` is relative to the project's root.
pub fn blamed(project: &Project, path: &str, range: Option<&str>) -> anyhow::Result<Vec<Blamed>> {
    let repository = &project.repository;
    ensure_file(repository, path)?;
    let session = project.session().ok();
    let tip = session
        .as_ref()
        .and_then(|name| project.store().tip(name).ok());
    let code = tip.and_then(|tip| tip.workspace);
    let history = blame_at(repository, refs::head(repository)?, path, range)?;
    let code = blame_at(repository, code, path, range)?;
    let lines = match (&history, &code) {
        (Some(attribution), _) | (None, Some(attribution)) => attribution.lines.clone(),
        (None, None) => {
            anyhow::ensure!(
                range.is_none(),
                "no commit and no turn has `{path}` yet, so it has no range to blame"
            );
            read_unattributed(&repository.workdir().join(path))?
        }
    };

    let mut tracer = Tracer::new(project);
    let of_code = code.as_ref().zip(session.as_ref());
    let sources = lines.iter().enumerate().map(|(at, line)| {
        let committed = history
            .as_ref()
            .and_then(|attribution| Some((attribution, attribution.lines.get(at)?.commit?)));
        // The user's history wins: a line that landed is shown with its commit.
        let source = match committed {
            Some((attribution, commit)) => tracer.committed(attribution, commit, line)?,
            None => match of_code {
                Some((attribution, session)) => tracer.in_session(attribution, session, at)?,
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

fn ensure_file(repository: &Repository, path: &str) -> anyhow::Result<()> {
    // Through no link: it could lead out of the project.
    let root = Root::open(repository.workdir())?;
    let kind = root.kind(Path::new(path)).ok().flatten();
    anyhow::ensure!(
        matches!(kind, Some(FileKind::File(_))),
        "`{}` is not a file of the project",
        if path.is_empty() { "." } else { path }
    );
    Ok(())
}

/// Blames the user's file from a commit on. `None` if the commit does not have the file.
fn blame_at(
    repository: &Repository,
    commit: Option<CommitId>,
    path: &str,
    range: Option<&str>,
) -> anyhow::Result<Option<Blame>> {
    let has_file = |commit: &CommitId| {
        let tree = repository.commit(*commit).map(|commit| commit.tree);
        tree.and_then(|tree| repository.entry(tree, path.as_bytes()))
            .is_ok_and(|entry| entry.is_some())
    };
    let Some(commit) = commit.filter(has_file) else {
        return Ok(None);
    };
    let request = BlameRequest {
        commit,
        path,
        contents: &repository.workdir().join(path),
        range,
        since: None,
    };
    blame_file(repository, &request).map(Some)
}

/// The turn's own message, or the last one before it.
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

fn read_unattributed(file: &Path) -> anyhow::Result<Vec<BlamedLine>> {
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

/// Sessions that are searched for the turns of a missing one.
const MAX_OTHERS: usize = 32;

type LineTurns = Rc<[Option<usize>]>;

/// Caches everything, because neighboring lines usually share a commit.
struct Tracer<'p> {
    project: &'p Project,
    rows: HashMap<SessionName, Vec<LogRow>>,
    /// By commit of the session's code.
    turns: HashMap<SessionName, Rc<HashMap<CommitId, usize>>>,
    landed: HashMap<(SessionName, CommitId, String), LineTurns>,
    named: HashMap<CommitId, Rc<NamedTurns>>,
}

/// The turns that the message of a commit names.
#[derive(Debug, Default)]
struct NamedTurns {
    /// Session, and indices into its rows. None is empty.
    found: Vec<(SessionName, Vec<usize>)>,
    /// The first session that has none of them here.
    missing: Option<SessionName>,
    numbers: Vec<u64>,
}

impl<'p> Tracer<'p> {
    fn new(project: &'p Project) -> Tracer<'p> {
        Tracer {
            project,
            rows: HashMap::new(),
            turns: HashMap::new(),
            landed: HashMap::new(),
            named: HashMap::new(),
        }
    }

    fn committed(
        &mut self,
        attribution: &Blame,
        commit: CommitId,
        line: &BlamedLine,
    ) -> anyhow::Result<LineSource> {
        let named = match self.named.get(&commit) {
            Some(named) => Rc::clone(named),
            None => {
                let named = Rc::new(self.named_by(commit)?);
                self.named.insert(commit, Rc::clone(&named));
                named
            }
        };
        let origin = attribution.commits.get(&commit).cloned();
        let origin = origin.unwrap_or_default();
        for (session, positions) in &named.found {
            if let Some(at) = self.landed(session, positions, commit, &origin.path, line)? {
                return Ok(turn(session, &self.rows[session][at], Some(commit)));
            }
        }

        if let Some(session) = &named.missing {
            return Ok(LineSource::Turn {
                session: session.to_string(),
                turn: match named.numbers.as_slice() {
                    [one] => Some(*one),
                    _ => None,
                },
                turns: named.numbers.clone(),
                commit: None,
                title: None,
                model: None,
                time: None,
                landed: Some(commit),
            });
        }

        Ok(LineSource::Commit {
            commit,
            title: origin.summary,
            author: origin.author,
            time: clock::of_seconds(origin.seconds),
        })
    }

    fn named_by(&mut self, commit: CommitId) -> anyhow::Result<NamedTurns> {
        let message = self.project.repository.commit(commit)?.message;
        let (sessions, trailers) = parse_trailers(&message);
        let mut named = NamedTurns {
            numbers: trailers.iter().map(|trailer| trailer.number).collect(),
            ..NamedTurns::default()
        };
        if trailers.is_empty() {
            return Ok(named);
        }
        for session in candidates(self.project, sessions)? {
            let positions = self.find_rows(&session, &trailers);
            match positions.is_empty() {
                false => named.found.push((session, positions)),
                true => named.missing = named.missing.or(Some(session)),
            }
        }
        if named.found.is_empty() {
            for session in other_candidates(self.project)? {
                let positions = self.find_rows(&session, &trailers);
                if !positions.is_empty() {
                    named.found.push((session, positions));
                }
            }
        }
        Ok(named)
    }

    /// Which of the named turns added a line. `None` if the line belongs to the commit itself.
    fn landed(
        &mut self,
        session: &SessionName,
        positions: &[usize],
        commit: CommitId,
        path: &str,
        line: &BlamedLine,
    ) -> anyhow::Result<Option<usize>> {
        let turns = self.turns_of(session)?;
        let file = LandedFile {
            repository: &self.project.repository,
            rows: &self.rows[session],
            turns: &turns,
            positions,
            commit,
            path,
        };

        let key = (session.clone(), commit, path.to_owned());
        let lines = match self.landed.get(&key) {
            Some(lines) => Rc::clone(lines),
            None => {
                // git fails if an object is missing; a search by content still works.
                let lines: LineTurns = file.lines().unwrap_or_default().into();
                self.landed.insert(key, Rc::clone(&lines));
                lines
            }
        };

        let position = lines.get(line.origin.saturating_sub(1)).copied().flatten();
        Ok(position.or_else(|| file.by_content(&line.text)))
    }

    fn turns_of(&mut self, session: &SessionName) -> anyhow::Result<Rc<HashMap<CommitId, usize>>> {
        if let Some(turns) = self.turns.get(session) {
            return Ok(Rc::clone(turns));
        }
        let turns = Rc::new(code_of(&self.project.repository, self.rows_of(session))?);
        self.turns.insert(session.clone(), Rc::clone(&turns));
        Ok(turns)
    }

    fn find_rows(&mut self, session: &SessionName, trailers: &[TurnTrailer]) -> Vec<usize> {
        let rows = self.rows_of(session).iter().enumerate();
        let ids: HashSet<&str> = trailers.iter().map(|trailer| trailer.id.as_str()).collect();
        rows.filter(|(_, row)| ids.contains(row.turn_id.to_string().as_str()))
            .map(|(at, _)| at)
            .collect()
    }

    fn rows_of(&mut self, session: &SessionName) -> &[LogRow] {
        let project = self.project;
        self.rows
            .entry(session.clone())
            .or_insert_with(|| rows(project, session).unwrap_or_default())
    }

    fn in_session(
        &mut self,
        attribution: &Blame,
        session: &SessionName,
        at: usize,
    ) -> anyhow::Result<LineSource> {
        let Some(commit) = attribution.lines.get(at).and_then(|line| line.commit) else {
            return Ok(LineSource::Uncommitted);
        };
        let Some(&position) = self.turns_of(session)?.get(&commit) else {
            // The commit is a snapshot of the user's files from when a turn began.
            return Ok(LineSource::Uncommitted);
        };

        let rows = &self.rows[session];
        let path = attribution
            .commits
            .get(&commit)
            .map_or("", |origin| &origin.path);
        let row = &rows[position];
        let line = &attribution.lines[at].text;
        let repository = &self.project.repository;
        // A restore only restores lines. Name the turn that wrote them.
        let writer = rows[position..].iter().find(|row| {
            row.status != Status::Restored && introduces_line(repository, row, path, line)
        });
        let is_users = |row: &LogRow| count_line(repository, row.before, path, line) > 0;
        Ok(match (row.status, writer) {
            (Status::Restored, Some(writer)) => turn(session, writer, None),
            // It was in the user's files before a turn, and no turn wrote it.
            (Status::Restored, None) if rows[position..].iter().any(is_users) => {
                LineSource::Uncommitted
            }
            _ => turn(session, row, None),
        })
    }
}

fn code_of(repository: &Repository, rows: &[LogRow]) -> anyhow::Result<HashMap<CommitId, usize>> {
    let mut turns = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        let (Some(before), Some(mut commit)) = (row.before, row.after) else {
            continue;
        };
        // In between are commits that the plan's commands made.
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

fn introduces_line(repository: &Repository, row: &LogRow, path: &str, line: &str) -> bool {
    // A brace, for example, was there before.
    let count = |commit| count_line(repository, commit, path, line);
    count(row.after) > count(row.before)
}

/// How often a file has a line.
fn count_line(repository: &Repository, commit: Option<CommitId>, path: &str, line: &str) -> usize {
    let file = commit.and_then(|commit| {
        let tree = repository.commit(commit).ok()?.tree;
        repository.file(tree, path).ok()?
    });
    let text = file.unwrap_or_default();
    lossy(&text).lines().filter(|one| *one == line).count()
}

fn turn(session: &SessionName, row: &LogRow, landed: Option<CommitId>) -> LineSource {
    LineSource::Turn {
        session: session.to_string(),
        turn: Some(row.number),
        turns: vec![row.number],
        commit: Some(row.commit),
        title: Some(row.title.clone()),
        model: row.model.clone(),
        time: row.time.clone(),
        landed,
    }
}

/// The local session of that name, otherwise fetched ones.
fn candidates(project: &Project, sessions: Vec<SessionName>) -> anyhow::Result<Vec<SessionName>> {
    let store = project.store();
    let mut candidates = Vec::new();
    for name in sessions {
        if store.tip_id(&name).is_err() {
            let remote = store.remote_sessions(None)?.into_iter();
            let remote = remote.filter(|(session, _)| session.own() == name);
            candidates.extend(remote.map(|(session, _)| session));
        }

        candidates.push(name);
    }

    Ok(candidates)
}

/// A session that was renamed since has the turns, by their ids.
fn other_candidates(project: &Project) -> anyhow::Result<Vec<SessionName>> {
    let store = project.store();
    let newest = store.newest(store.sessions()?)?.into_iter();
    Ok(newest.take(MAX_OTHERS).map(|row| row.session).collect())
}

/// Returns the turns that a commit of `land` names, oldest first. Empty if it names none, or if no
/// session has them.
pub fn landed_turns(project: &Project, commit: CommitId) -> anyhow::Result<Vec<Turn>> {
    let (sessions, trailers) = parse_trailers(&project.repository.commit(commit)?.message);
    if trailers.is_empty() {
        return Ok(Vec::new());
    }
    let store = project.store();
    let candidates = candidates(project, sessions)?;
    for session in candidates.into_iter().chain(other_candidates(project)?) {
        let Ok(tip) = store.tip(&session) else {
            continue;
        };
        let mut turns = Vec::new();
        for turn in store.history(tip) {
            let turn = turn?;
            let id = turn.meta.turn_id.to_string();
            if trailers.iter().any(|trailer| trailer.id == id) {
                turns.push(turn);
            }
            if turns.len() == trailers.len() {
                break;
            }
        }
        if !turns.is_empty() {
            turns.reverse();
            return Ok(turns);
        }
    }
    Ok(Vec::new())
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct TurnTrailer {
    number: u64,
    id: String,
}

/// Skips malformed trailers, because anyone can write a message.
fn parse_trailers(message: &str) -> (Vec<SessionName>, Vec<TurnTrailer>) {
    let (mut sessions, mut turns) = (Vec::new(), Vec::new());
    for line in message.lines() {
        if let Some(name) = line.strip_prefix("Teddy-Session: ") {
            if let Ok(name) = SessionName::from_ref(name.trim())
                && sessions.len() < MAX_SESSIONS
                && !sessions.contains(&name)
            {
                sessions.push(name);
            }
        } else if turns.len() == MAX_TRAILERS {
            continue;
        } else if let Some(turn) = line.strip_prefix("Teddy-Turn: ")
            && let Some((number, id)) = turn.trim().split_once(' ')
            && let Ok(number) = number.parse()
        {
            turns.push(TurnTrailer {
                number,
                id: id.to_owned(),
            });
        }
    }

    (sessions, turns)
}

// Assigns the lines of a landed commit to the turns that its message names. The message is not
// enough: a landing can contain several turns, hooks change what lands, and amending adds lines of
// the user's. So git blames the committed file against the code of the session, from before the
// first named turn to after the last.

struct LandedFile<'a> {
    pub repository: &'a Repository,
    /// Newest first.
    pub rows: &'a [LogRow],
    /// By commit of the session's code.
    pub turns: &'a HashMap<CommitId, usize>,
    /// Indices into `rows` of the named turns, newest first.
    pub positions: &'a [usize],
    pub commit: CommitId,
    pub path: &'a str,
}

impl LandedFile<'_> {
    /// One entry for each line; `None` if git cannot tell.
    fn lines(&self) -> anyhow::Result<Vec<Option<usize>>> {
        let Some(bytes) = self.file(self.commit)? else {
            return Ok(Vec::new());
        };
        let mut code = self.positions.iter().filter_map(|at| self.rows[*at].after);
        let Some(code) = code.find(|code| self.file(*code).is_ok_and(|file| file.is_some())) else {
            return Ok(Vec::new());
        };
        let mut contents = tempfile::NamedTempFile::new_in(temporary_parent())?;

        contents.write_all(&bytes)?;
        let oldest = self.positions.last();
        let attribution = blame_file(
            self.repository,
            &BlameRequest {
                commit: code,
                path: self.path,
                contents: contents.path(),
                range: None,
                since: oldest.and_then(|at| self.rows[*at].before),
            },
        )?;

        let turn = |commit: CommitId| self.turns.get(&commit).copied();
        let lines = attribution
            .lines
            .iter()
            .map(|line| line.commit.and_then(turn));
        Ok(lines
            .map(|position| position.filter(|at| self.positions.contains(at)))
            .collect())
    }

    /// Fallback by content: a turn that has the line after it and not before. A line that a hook
    /// wrote belongs to the newest turn that changed the file.
    fn by_content(&self, line: &str) -> Option<usize> {
        let has = |at: &&usize| introduces_line(self.repository, &self.rows[**at], self.path, line);
        // `named` is newest first: the last turn that added the line wins.
        if let Some(at) = self.positions.iter().find(has) {
            return Some(*at);
        }

        if !self.is_of_landing(line) {
            return None;
        }

        let touches = |at: &&usize| self.rows[**at].files.iter().any(|path| path == self.path);
        self.positions.iter().find(touches).copied()
    }

    /// `false` if the landed commit is gone.
    fn is_of_landing(&self, line: &str) -> bool {
        let is_named =
            |id: uuid::Uuid| self.positions.iter().any(|at| self.rows[*at].turn_id == id);
        let landings = self.rows.iter().filter_map(|row| row.landed.as_ref());
        let mut commits = landings.flat_map(|landed| &landed.commits);
        let committed = self.file(self.commit).ok().flatten();
        commits.any(|landed| {
            if !landed.turns.iter().any(|turn| is_named(turn.turn_id)) {
                return false;
            }

            // Compare content: a rebase changes the commit's id.
            if self.file(landed.commit).is_ok_and(|file| file == committed) {
                return true;
            }

            let has = |commit: CommitId| {
                let file = self.file(commit).ok().flatten().unwrap_or_default();
                lossy(&file).lines().any(|one| one == line)
            };
            let parent = self.repository.commit(landed.commit).ok();
            let parent = parent.and_then(|commit| commit.parents.first().copied());

            has(landed.commit) && !parent.is_some_and(has)
        })
    }

    fn file(&self, commit: CommitId) -> anyhow::Result<Option<Vec<u8>>> {
        let tree = self.repository.commit(commit)?.tree;
        self.repository.file(tree, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_sessions_and_turns() {
        let (sessions, turns) = parse_trailers(
            "Do it\n\nTeddy-Session: demo\nTeddy-Turn: 1 aa\nTeddy-Turn: 2 bb\n\n\
             Teddy-Session: ../x\nTeddy-Session: demo\nTeddy-Turn: x cc\nTeddy-Turn: 7\n",
        );
        let sessions: Vec<String> = sessions.iter().map(ToString::to_string).collect();
        assert_eq!(sessions, ["demo"]);
        let turns: Vec<_> = turns
            .iter()
            .map(|turn| (turn.number, turn.id.as_str()))
            .collect();
        assert_eq!(turns, [(1, "aa"), (2, "bb")]);
    }

    #[test]
    fn a_message_names_a_limited_number() {
        let mut message = String::new();
        for number in 0..=MAX_TRAILERS {
            message += &format!("Teddy-Session: s{number}\nTeddy-Turn: {number} id{number}\n");
        }
        let (sessions, turns) = parse_trailers(&message);
        assert_eq!(sessions.len(), MAX_SESSIONS);
        assert_eq!(turns.len(), MAX_TRAILERS);
    }
}
