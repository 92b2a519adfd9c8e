//! Whether a session's chain says the truth: the rules of `docs/formats/turn.md`, turn by turn.
//!
//! A chain may come from anywhere, so everything is read as a stranger's. What is wrong is a
//! [`Fault`] and never an error; a turn that cannot be read ends what can be told of its chain.

mod approved;
mod files;

use std::collections::HashSet;

use serde::Serialize;
use uuid::Uuid;

use super::artifact;
use super::meta::{Meta, Status, Workspace};
use super::name::SessionName;
use super::report::read;
use super::turn::Turn;
use crate::git::diff::{self, TooDifferent};
use crate::git::object::{Commit, CommitId};
use crate::git::repository::Repository;
use crate::git::revision;
use crate::plan;
use crate::text::visible::visible;

/// A turn has no more parents: the turn before, the code, the publication.
const MOST_PARENTS: usize = 3;

/// Something that a chain says and that is not so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The turn, if its number is known.
    pub turn: Option<u64>,
    /// Its commit.
    pub commit: CommitId,
    /// The rule of `docs/formats/turn.md`, or of another page.
    pub rule: &'static str,
    /// What is wrong.
    pub what: String,
}

/// What was read of a chain.
#[derive(Debug, Default)]
pub struct Checked {
    /// The turns that could be read, newest first.
    pub turns: Vec<Turn>,
    /// What is wrong, oldest first.
    pub faults: Vec<Fault>,
}

/// Checks the chain of a session.
pub fn check(repository: &Repository, session: &SessionName, tip: CommitId) -> Checked {
    check_newest(repository, session, tip, usize::MAX)
}

/// Checks at most so many turns of the chain of a session, the newest.
pub fn check_newest(
    repository: &Repository,
    session: &SessionName,
    tip: CommitId,
    most: usize,
) -> Checked {
    let mut checked = Checked::default();
    let mut next = Some(tip);
    // One more, which says what its successor must be.
    while let Some(id) = next.filter(|_| checked.turns.len() <= most) {
        match Turn::read(repository, session, id) {
            Ok(turn) => {
                next = turn.previous;
                checked.turns.push(turn);
            }
            Err(error) => {
                checked.faults.push(Fault {
                    turn: None,
                    commit: id,
                    rule: "T8",
                    what: format!("{error:#}"),
                });
                break;
            }
        }
    }

    let mut known = HashSet::new();
    let mut number = None;
    for (at, turn) in checked.turns.iter().enumerate().rev() {
        let mut look = TurnCheck {
            repository,
            turn,
            faults: &mut checked.faults,
        };
        if at < most {
            look.turn(number, &known);
        }
        known.insert(turn.meta.turn_id);

        number = Some(turn.number());
    }

    checked
}

/// A look at one turn.
struct TurnCheck<'a> {
    /// The repository.
    repository: &'a Repository,
    /// The turn.
    turn: &'a Turn,
    /// What was found wrong.
    faults: &'a mut Vec<Fault>,
}

impl TurnCheck<'_> {
    /// Notes a fault.
    fn fault(&mut self, rule: &'static str, what: impl Into<String>) {
        self.faults.push(Fault {
            turn: Some(self.turn.number()),
            commit: self.turn.commit,
            rule,
            what: what.into(),
        });
    }

    /// Looks at the turn; `before` is the number of the one before it, `known` are the ids of all
    /// before it.
    fn turn(&mut self, before: Option<u64>, known: &HashSet<Uuid>) {
        match self.repository.commit(self.turn.commit) {
            Ok(commit) => {
                self.parents(&commit);
                self.trailers(&commit);
            }
            Err(error) => self.fault("T3", format!("{error:#}")),
        }

        self.number(before);
        self.ids(known);
        self.artifacts();
        if let Some(workspace) = &self.turn.meta.workspace {
            self.workspace(workspace);
        }

        if matches!(self.turn.meta.status, Status::Executed | Status::Failed) {
            self.approval();
        }

        self.recorded();
    }

    /// A recorded turn says so twice, has files, and no plan.
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
        if meta.workspace.is_none() {
            self.fault("T21", "it is recorded, and says nothing of the files");
        }
        if !matches!(self.turn.text(self.repository, artifact::PLAN), Ok(None)) {
            self.fault("T21", "it is recorded, and has a plan");
        }
    }

    /// The parents are the turn before, the code after it, and what is said to be in the files.
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

    /// The number is how far it is from the start.
    fn number(&mut self, before: Option<u64>) {
        let number = self.turn.number();
        match before {
            Some(before) if before + 1 != number => {
                self.fault(
                    "T4",
                    format!("its number is {number}, and {before} before it"),
                );
            }
            None if number != 0 => {
                self.fault("T4", format!("the chain begins with turn {number}"));
            }
            _ => {}
        }
    }

    /// No two turns have one id; it continues a turn that is there.
    fn ids(&mut self, known: &HashSet<Uuid>) {
        let Meta {
            turn_id,
            parent_turn_id,
            caller_turn_id,
            ..
        } = self.turn.meta;
        if known.contains(&turn_id) {
            self.fault(
                "T1",
                format!("its `turn_id` {turn_id} is that of an earlier turn"),
            );
        }

        for (name, id) in [
            ("parent_turn_id", parent_turn_id),
            ("caller_turn_id", caller_turn_id),
        ] {
            if let Some(id) = id.filter(|id| !known.contains(id)) {
                self.fault(
                    "T1",
                    format!("its `{name}` {id} is that of no earlier turn"),
                );
            }
        }
    }

    /// The message says what `meta.yaml` says.
    fn trailers(&mut self, commit: &Commit) {
        let meta = &self.turn.meta;
        let mut said = vec![
            ("Teddy-Turn", meta.number.to_string()),
            ("Teddy-Status", meta.status.word().to_owned()),
            ("Teddy-Agent", visible(&meta.agent).into_owned()),
        ];
        if let Some(model) = &meta.model {
            said.push(("Teddy-Model", visible(&model.asked).into_owned()));
        }

        for (key, expected) in said {
            match trailer(commit, key) {
                Some(found) if found == expected => {}
                Some(found) => self.fault(
                    "T7",
                    format!("`{key}` is `{found}` in its message, and `{expected}` in `meta.yaml`"),
                ),
                None => self.fault("T7", format!("its message has no `{key}`")),
            }
        }

        let session = trailer(commit, "Teddy-Session");
        if session.is_none_or(|name| SessionName::from_ref(name).is_err()) {
            self.fault("T7", "its message names no session");
        }
    }

    /// The code after it follows the code before it, and is the same where nothing may have
    /// changed.
    fn workspace(&mut self, workspace: &Workspace) {
        let (before, after) = (workspace.before, workspace.after);
        let read = |id: CommitId| self.repository.commit(id).map(|commit| commit.tree);
        let (old, new) = match (read(before), read(after)) {
            (Ok(old), Ok(new)) => (old, new),
            (Err(error), _) | (_, Err(error)) => return self.fault("T9", format!("{error:#}")),
        };

        // What cannot be compared cannot be looked at. Folders that only the server of a partial
        // clone has are no fault.
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
                self.fault("T21", "it records files, and says that they are not there");
            }
            _ if self.turn.meta.question && old != new => {
                self.fault("T20", "it answers a question, and files changed");
            }
            _ => {}
        }
    }

    /// What ran is what was approved: the report has the actions of the plan that ran.
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
            return self.fault("T5", "it ran, and has no plan");
        };
        let Some(report) = report.as_deref().and_then(read::read) else {
            return self.fault("R1", "it ran, and its report cannot be read");
        };
        let ran = plan::parse(&ran).0;
        if self.turn.meta.question && !approved::only_tells(&ran) {
            self.fault(
                "T20",
                "it answers a question, and its plan does more than tell",
            );
        }

        let whole = self.turn.meta.status == Status::Executed;
        for what in approved::differences(&ran, &report, whole) {
            self.fault("R2", what);
        }

        for action in &ran.actions {
            let taken = |name: &str| self.repository.file(self.turn.tree, name);
            if let Some(what) = action.kind.lacks(&|name| taken(name).ok().flatten()) {
                self.fault("P39", what);
            }
        }
    }
}

/// Returns the value of a trailer.
fn trailer<'c>(commit: &'c Commit, key: &str) -> Option<&'c str> {
    let mut lines = commit.message.lines().rev();
    lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
}
