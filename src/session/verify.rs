//! Whether a session's chain tells the truth: the rules of `docs/formats/turn.md`, turn by turn.
//!
//! A chain may come from anywhere, so everything is read as a stranger's. What is wrong is a
//! [`Fault`] and never an error; a turn that cannot be read ends what can be told of its chain.

mod approved;
mod files;
mod places;

use std::fmt;

use serde::Serialize;
use uuid::Uuid;

use super::artifact;
use super::meta::{Status, Workspace};
use super::name::SessionName;
use super::publication::Publication;
use super::report::read;
use super::turn::Turn;
use crate::git::diff::{self, TooDifferent};
use crate::git::object::{Commit, CommitId};
use crate::git::repository::Repository;
use crate::git::revision;
use crate::plan;
use crate::text::visible::{excerpt, visible};

/// A turn has no more parents: the turn before, the code, the publication.
const MOST_PARENTS: usize = 3;
/// More faults of a turn are not told.
const MOST_FAULTS: usize = 100;
/// A fault has at most so many characters.
const MOST_WORDS: usize = 1000;
/// Where it is one of several things that are said, it has at most so many.
const MOST_TOLD: usize = 400;
/// What is quoted of a turn in one has at most so many.
const MOST_QUOTED: usize = 200;

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

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(turn) = self.turn {
            write!(f, "turn {turn}: ")?;
        }
        let what = excerpt(&self.what, MOST_TOLD);
        write!(f, "{} ({})", visible(&what), self.rule)
    }
}

/// A turn that was checked. Nothing else of it is kept: a chain from elsewhere may have thousands of
/// turns that each say as much as one can.
#[derive(Debug)]
pub struct CheckedTurn {
    /// Its commit.
    pub commit: CommitId,
    /// Its number.
    pub number: u64,
    /// Its id.
    pub turn_id: Uuid,
    /// The turns that it continues, by the names of the fields that say so.
    earlier: [(&'static str, Option<Uuid>); 2],
    /// The commits before and after it.
    pub code: Option<[CommitId; 2]>,
    /// What it brought to the files, or was in them.
    pub publication: Option<CommitId>,
    /// Whether it came as a record.
    pub without_code: bool,
    /// What is wrong with it, wherever it stands; later moved to [`Checked::faults`].
    faults: Vec<Fault>,
}

impl CheckedTurn {
    /// Takes a turn of which this is wrong.
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

/// What was read of a chain.
#[derive(Debug, Default)]
pub struct Checked {
    /// The turns that could be read, newest first.
    pub turns: Vec<CheckedTurn>,
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

    places::check(&mut checked, most);
    checked
}

/// Returns what is wrong with a turn, wherever it stands in its chain.
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
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(Fault {
                turn: Some(self.turn.number()),
                commit: self.turn.commit,
                rule,
                what: excerpt(&what.into(), MOST_WORDS).into_owned(),
            });
        }
    }

    /// Looks at the turn.
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

        // What is larger than it can be is not read to look for more.
        if !are_readable {
            return;
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
        if meta.workspace.is_none() && !self.turn.without_code {
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

    /// What it brought to the files can be read.
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
                Some(found) => {
                    let [found, expected] =
                        [found, expected.as_str()].map(|it| excerpt(it, MOST_QUOTED));
                    self.fault(
                        "T7",
                        format!(
                            "`{key}` is `{found}` in its message, and `{expected}` in `meta.yaml`"
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
            if !self.turn.archives_change(self.repository) {
                self.fault("T5", "it ran, and has no plan");
            }
            return;
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

        // What was taken out of a record can have been in these.
        let actions = ran.actions.iter().filter(|_| !self.turn.without_code);
        for action in actions {
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
