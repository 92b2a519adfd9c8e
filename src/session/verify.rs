//! Verifies the chain of a session against the rules of `docs/formats/turn.md`, turn by turn.
//!
//! A chain can come from anywhere, so all of it is untrusted input. Problems are reported as
//! [`Fault`] and never as an error. An unreadable turn ends the check, because its parent is
//! unknown.

mod approved;
mod files;
mod order;

use std::fmt;

use serde::Serialize;
use uuid::Uuid;

use super::artifact;
use super::meta::{Status, Workspace};
use super::name::SessionName;
use super::publication::Publication;
use super::report::reading;
use super::turn::Turn;
use crate::git::diff::{self, TooDifferent};
use crate::git::object::{Commit, CommitId};
use crate::git::repository::Repository;
use crate::git::revision;
use crate::plan;
use crate::text::sanitize::{excerpt, sanitize_line};

// The previous turn, the workspace commit and the publication.
const MOST_PARENTS: usize = 3;
// Per turn.
const MOST_FAULTS: usize = 100;
// In characters, per fault.
const MOST_WORDS: usize = 1000;
// In characters, for a fault in a list.
const MOST_TOLD: usize = 400;
// In characters, for each quotation in a fault.
const MOST_QUOTED: usize = 200;

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Number of the turn, if it is known.
    pub turn: Option<u64>,
    /// Its commit.
    pub commit: CommitId,
    /// The rule in `docs/formats/turn.md` or another page.
    pub rule: &'static str,
    /// Description of the problem.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(turn) = self.turn {
            write!(f, "turn {turn}: ")?;
        }
        let problem = excerpt(&self.what, MOST_TOLD);
        write!(f, "{} ({})", sanitize_line(&problem), self.rule)
    }
}

/// The facts about a checked turn that later checks need.
///
/// Nothing else is kept, because a chain from elsewhere can have thousands of turns of maximum
/// size.
#[derive(Debug)]
pub struct CheckedTurn {
    /// Its commit.
    pub commit: CommitId,
    /// Its number.
    pub number: u64,
    /// Its id.
    pub turn_id: Uuid,
    /// Ids of earlier turns, with the names of their fields.
    earlier: [(&'static str, Option<Uuid>); 2],
    /// The workspace commits before and after it.
    pub code: Option<[CommitId; 2]>,
    /// Its publication.
    pub publication: Option<CommitId>,
    /// `true` for a turn of a record.
    pub without_code: bool,
    /// Faults that don't depend on its position. Later moved to [`Checked::faults`].
    faults: Vec<Fault>,
}

impl CheckedTurn {
    fn of(turn: &Turn, faults: Vec<Fault>) -> CheckedTurn {
        let code = turn.meta.workspace.as_ref();
        CheckedTurn {
            commit: turn.commit,
            number: turn.number(),
            turn_id: turn.meta.turn_id,
            earlier: [
                ("parent_turn_id", turn.meta.parent_turn_id),
                ("caller_turn_id", turn.meta.caller_turn_id),
            ],
            code: code.map(|code| [code.before, code.after]),
            publication: turn.publication,
            without_code: turn.without_code,
            faults,
        }
    }
}

/// The result of a check.
#[derive(Debug, Default)]
pub struct Checked {
    /// The readable turns, newest first.
    pub turns: Vec<CheckedTurn>,
    /// The faults, oldest first.
    pub faults: Vec<Fault>,
}

/// Checks the whole chain of a session.
pub fn check(repository: &Repository, session: &SessionName, tip: CommitId) -> Checked {
    check_newest(repository, session, tip, usize::MAX)
}

/// Checks the newest `most` turns of a session.
pub fn check_newest(
    repository: &Repository,
    session: &SessionName,
    tip: CommitId,
    most: usize,
) -> Checked {
    let mut checked = Checked::default();
    let mut next = Some(tip);
    // Read one more turn, to check what the oldest one says about its predecessor.
    while let Some(id) = next.filter(|_| checked.turns.len() <= most) {
        match Turn::read_as_recorded(repository, session, id) {
            Ok(turn) => {
                next = turn.previous;
                let is_wanted = checked.turns.len() < most;
                let faults = match is_wanted {
                    true => faults_of(repository, &turn),
                    false => Vec::new(),
                };
                checked.turns.push(CheckedTurn::of(&turn, faults));
            }
            Err(error) => {
                checked.faults.push(Fault {
                    turn: None,
                    commit: id,
                    rule: "T8",
                    what: excerpt(&format!("{error:#}"), MOST_WORDS).into_owned(),
                });
                break;
            }
        }
    }

    order::check_order(&mut checked, most);
    checked
}

fn faults_of(repository: &Repository, turn: &Turn) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut check = TurnCheck {
        repository,
        turn,
        faults: &mut faults,
    };
    check.turn();
    faults
}

struct TurnCheck<'a> {
    repository: &'a Repository,
    turn: &'a Turn,
    faults: &'a mut Vec<Fault>,
}

impl TurnCheck<'_> {
    fn fault(&mut self, rule: &'static str, problem: impl Into<String>) {
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(Fault {
                turn: Some(self.turn.number()),
                commit: self.turn.commit,
                rule,
                what: excerpt(&problem.into(), MOST_WORDS).into_owned(),
            });
        }
    }

    fn turn(&mut self) {
        match self.repository.commit(self.turn.commit) {
            Ok(commit) => {
                self.parents(&commit);
                self.trailers(&commit);
            }
            Err(error) => self.fault("T3", format!("{error:#}")),
        }

        self.publication();
        let are_readable = self.artifacts();
        if let Some(workspace) = &self.turn.meta.workspace {
            self.workspace(workspace);
        }

        // Do not read files that are too large.
        if !are_readable {
            return;
        }

        if matches!(self.turn.meta.status, Status::Executed | Status::Failed) {
            self.approval();
        }

        self.recorded();
    }

    fn recorded(&mut self) {
        let meta = &self.turn.meta;
        if (meta.status == Status::Recorded) != meta.recorded.is_some() {
            let word = meta.status.word();
            return self.fault(
                "T21",
                format!("it is {word}, and `recorded` says otherwise"),
            );
        }

        if meta.recorded.is_none() {
            return;
        }
        if meta.workspace.is_none() && !self.turn.without_code {
            self.fault("T21", "it is recorded, and says nothing of the files");
        }
        if !matches!(self.turn.text(self.repository, artifact::PLAN), Ok(None)) {
            self.fault("T21", "it is recorded, and has a plan");
        }
    }

    fn parents(&mut self, commit: &Commit) {
        let count = commit.parents.len();
        let status = self.turn.meta.status;
        if self.turn.number() == 0 {
            if count > 0 {
                self.fault("T2", format!("turn 0 has {count} parents"));
            }

            if status != Status::Started {
                let word = status.word();
                self.fault("T2", format!("the status of turn 0 is `{word}`"));
            }
            return;
        }

        if self.turn.is_draft() {
            let word = status.word();
            self.fault(
                "T10",
                format!("a turn of the chain has the status `{word}` of a draft"),
            );
        }

        if count == 0 || count > MOST_PARENTS {
            self.fault("T3", format!("it has {count} parents"));
        }

        let after = self.turn.meta.workspace.as_ref().map(|it| it.after);
        if let (Some(after), Some(code)) = (after, self.turn.workspace)
            && after != code
        {
            self.fault(
                "T3",
                format!("its second parent is {code}, and `after` is {after}"),
            );
        }

        if let (Some(after), None) = (after, self.turn.workspace) {
            self.fault(
                "T3",
                format!("it has no second parent, and `after` is {after}"),
            );
        }
    }

    fn publication(&mut self) {
        let Some(id) = self.turn.publication else {
            return;
        };
        match Publication::read(self.repository, id) {
            Ok(Some(_)) => {}
            Ok(None) => self.fault("T3", format!("its third parent {id} is not a publication")),
            Err(error) => self.fault("T3", format!("its third parent: {error:#}")),
        }
    }

    fn trailers(&mut self, commit: &Commit) {
        let meta = &self.turn.meta;
        let mut trailers = vec![
            ("Teddy-Turn", meta.number.to_string()),
            ("Teddy-Status", meta.status.word().to_owned()),
            ("Teddy-Agent", sanitize_line(&meta.agent).into_owned()),
        ];
        if let Some(model) = &meta.model {
            trailers.push(("Teddy-Model", sanitize_line(&model.asked).into_owned()));
        }

        for (key, expected) in trailers {
            match trailer(commit, key) {
                Some(actual) if actual == expected => {}
                Some(actual) => {
                    let [actual, expected] =
                        [actual, expected.as_str()].map(|it| excerpt(it, MOST_QUOTED));
                    self.fault(
                        "T7",
                        format!(
                            "`{key}` is `{actual}` in its message, and `{expected}` in `meta.yaml`"
                        ),
                    );
                }
                None => self.fault("T7", format!("its message has no `{key}`")),
            }
        }

        let session = trailer(commit, "Teddy-Session");
        if session.is_none_or(|name| SessionName::from_ref(name).is_err()) {
            self.fault("T7", "its message names no session");
        }
    }

    fn workspace(&mut self, workspace: &Workspace) {
        let (before, after) = (workspace.before, workspace.after);
        let read = |id: CommitId| self.repository.commit(id).map(|commit| commit.tree);
        let (old, new) = match (read(before), read(after)) {
            (Ok(old), Ok(new)) => (old, new),
            (Err(error), _) | (_, Err(error)) => return self.fault("T9", format!("{error:#}")),
        };

        // A diff that is too large is a fault. Trees that are missing in a partial clone are not.
        let changes = diff::changes(self.repository, old, new);
        if let Some(error) = changes.err().filter(|error| error.is::<TooDifferent>()) {
            self.fault("T9", format!("`before` and `after`: {error:#}"));
        }

        match revision::is_ancestor(self.repository, before, after) {
            Ok(true) => {}
            Ok(false) => self.fault(
                "T9",
                format!("`after` {after} does not follow `before` {before}"),
            ),
            Err(error) => self.fault("T9", format!("{error:#}")),
        }

        let word = self.turn.meta.status.word();
        match self.turn.meta.status {
            Status::Rejected | Status::Declined if old != new => {
                self.fault("T10", format!("it is {word}, and files changed"));
            }
            Status::Interrupted if workspace.synced && old != new => {
                self.fault(
                    "T13",
                    "it was interrupted, and its result is said to be in the files",
                );
            }
            Status::Recorded if !workspace.is_whole() => {
                self.fault("T21", "it records files, and says that they are missing");
            }
            _ if self.turn.meta.question && old != new => {
                self.fault("T20", "it answers a question, and files changed");
            }
            _ => {}
        }
    }

    /// Checks the report's actions against the plan that ran.
    fn approval(&mut self) {
        let text = |name: &str| self.turn.text(self.repository, name);
        let (plan, approved, report) = match (
            text(artifact::PLAN),
            text(artifact::APPROVED),
            text(artifact::REPORT),
        ) {
            (Ok(plan), Ok(approved), Ok(report)) => (plan, approved, report),
            (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => {
                return self.fault("T5", format!("{error:#}"));
            }
        };

        let Some(ran) = approved.or(plan) else {
            // Only the turn that archives a change runs without a plan (T23).
            if !self.turn.archives_change(self.repository) {
                self.fault("T5", "it ran, and has no plan");
            }
            return;
        };
        let Some(report) = report.as_deref().and_then(reading::read) else {
            return self.fault("R1", "it ran, and its report cannot be read");
        };
        let ran = plan::parse(&ran).0;
        if self.turn.meta.question && !approved::is_informational(&ran) {
            self.fault(
                "T20",
                "it answers a question, and its plan does more than tell",
            );
        }

        let is_complete = self.turn.meta.status == Status::Executed;
        for problem in approved::approval_differences(&ran, &report, is_complete) {
            self.fault("R2", problem);
        }

        // In a record, redaction can have removed these contents.
        let actions = ran.actions.iter().filter(|_| !self.turn.without_code);
        for action in actions {
            let read_artifact = |name: &str| self.repository.file(self.turn.tree, name);
            if let Some(problem) = action
                .kind
                .check_artifact(&|name| read_artifact(name).ok().flatten())
            {
                self.fault("P39", problem);
            }
        }
    }
}

fn trailer<'c>(commit: &'c Commit, key: &str) -> Option<&'c str> {
    let mut lines = commit.message.lines().rev();
    lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
}
