//! Verifies the chain of a session against the rules of `docs/formats/turn.md`, turn by turn.
//!
//! A chain can come from anywhere, so all of it is untrusted input. Problems are reported as
//! [`Fault`] and never as an error. An unreadable turn ends the check, because its parent is
//! unknown.

use std::collections::HashSet;
use std::fmt;

use serde::Serialize;
use uuid::Uuid;

use super::artifact;
use super::meta::{Status, Workspace};
use super::name::SessionName;
use super::publication::Publication;
use super::report;
use super::requests;
use super::turn::Turn;
use crate::git::check_objects::AcceptedTrees;
use crate::git::diff::{self, TooDifferent};
use crate::git::history;
use crate::git::object::leaves::TreeLimit;
use crate::git::object::{BlobId, Commit, CommitId, EntryMode, Leaf, TreeId};
use crate::git::repository::Repository;
use crate::plan::{self, Plan};
use crate::session::artifact::{MAX_MODEL_MESSAGE, MAX_REPORT};
use crate::session::turn::trailer;
use crate::text::path::lossy;
use crate::text::sanitize::{excerpt, sanitize_line, sanitize_text};
use crate::text::secret::redact;

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

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// `None` if it is unknown.
    pub turn: Option<u64>,
    pub commit: CommitId,
    pub rule: &'static str,
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
    pub commit: CommitId,
    pub number: u64,
    pub turn_id: Uuid,
    /// With the names of their fields.
    earlier: [(&'static str, Option<Uuid>); 2],
    pub code: Option<[CommitId; 2]>,
    pub publication: Option<CommitId>,
    pub without_code: bool,
    /// Independent of its position. Later moved to [`Checked::faults`].
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

#[derive(Debug, Default)]
pub struct Checked {
    /// Newest first, without unreadable ones.
    pub turns: Vec<CheckedTurn>,
    /// Oldest first.
    pub faults: Vec<Fault>,
}

/// Limit on the files and directories in which turns that are checked together differ. A pack of a
/// few KiB can have many turns with the limit of T9.
const MOST_COMPARED: usize = 20_000_000;

/// What the checks of several sessions share.
#[derive(Debug, Default)]
pub struct SharedChecks {
    trees: AcceptedTrees,
    compared: usize,
}

pub fn check(repository: &Repository, session: &SessionName, tip: CommitId) -> Checked {
    let shared = &mut SharedChecks::default();
    check_newest(repository, session, tip, usize::MAX, shared)
}

pub fn check_newest(
    repository: &Repository,
    session: &SessionName,
    tip: CommitId,
    most: usize,
    shared: &mut SharedChecks,
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
                    true => faults_of(repository, &turn, shared),
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

    check_order(&mut checked, most);
    checked
}

fn faults_of(repository: &Repository, turn: &Turn, shared: &mut SharedChecks) -> Vec<Fault> {
    let mut check = TurnCheck {
        repository,
        turn,
        shared,
        faults: Vec::new(),
    };
    check.turn();
    check.faults
}

struct TurnCheck<'a> {
    repository: &'a Repository,
    turn: &'a Turn,
    shared: &'a mut SharedChecks,
    faults: Vec<Fault>,
}

impl TurnCheck<'_> {
    fn fault(&mut self, rule: &'static str, problem: impl Into<String>) {
        // A hostile turn could have millions of faults.
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

        self.fields();
        // Sizes are checked before any file is read.
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

    fn fields(&mut self) {
        for (rule, problem) in self.turn.meta.faults() {
            self.fault(rule, problem);
        }
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
        let turn = self.turn.clone().with_current_files(self.repository);
        let is_its_own = |publication: &Publication| {
            let is_its_own = turn.is_published_by(self.repository, publication);
            is_its_own.unwrap_or_default()
        };
        match Publication::read(self.repository, id) {
            Ok(Some(publication)) if is_its_own(&publication) => {}
            Ok(Some(_)) => self.fault(
                "PB7",
                format!("its publication {id} names another turn, or other changes than its own"),
            ),
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
            match trailer(&commit.message, key) {
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

        let session = trailer(&commit.message, "Teddy-Session");
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

        let mut trees = [old, new].into_iter();
        let refused = trees.find_map(|tree| self.shared.trees.find_refused(self.repository, tree));
        if let Some(name) = refused {
            let name = lossy(&name);
            self.fault("T11", format!("git refuses a name of its files: `{name}`"));
        }

        self.compare(old, new);

        match history::is_ancestor(self.repository, before, after) {
            Ok(true) => {}
            Ok(false) => self.fault(
                "T9",
                format!("`after` {after} does not follow `before` {before}"),
            ),
            Err(error) => self.fault("T9", format!("{error:#}")),
        }

        self.files_of_status(workspace, old != new);
    }

    /// A difference that is too large is a fault. Trees that a partial clone lacks are not.
    fn compare(&mut self, old: TreeId, new: TreeId) {
        let left = MOST_COMPARED.saturating_sub(self.shared.compared);
        match diff::count_changes(self.repository, old, new, left) {
            Ok(count) => self.shared.compared += count,
            Err(error) if error.is::<TooDifferent>() => {
                self.shared.compared += left.min(diff::MOST_CHANGES);
                let problem = match left < diff::MOST_CHANGES {
                    true => format!(
                        "turns that are checked together differ in more than {MOST_COMPARED} files and directories"
                    ),
                    false => format!("`before` and `after`: {error:#}"),
                };
                self.fault("T9", problem);
            }
            Err(_) => {}
        }
    }

    fn files_of_status(&mut self, workspace: &Workspace, has_changes: bool) {
        let word = self.turn.meta.status.word();
        match self.turn.meta.status {
            // Nothing ran in these turns.
            Status::Rejected | Status::Declined if has_changes => {
                self.fault("T10", format!("it is {word}, and files changed"));
            }
            Status::Interrupted if workspace.synced && has_changes => {
                self.fault(
                    "T13",
                    "it was interrupted, and its result is said to be in the files",
                );
            }
            Status::Recorded if !workspace.is_whole() => {
                self.fault("T21", "it records files, and says that they are missing");
            }
            _ if self.turn.meta.question && has_changes => {
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
        let Some(report) = report.as_deref().and_then(report::read) else {
            return self.fault("R1", "it ran, and its report cannot be read");
        };
        let ran = plan::parse(&ran).0;
        if self.turn.meta.question && !is_informational(&ran) {
            self.fault(
                "T20",
                "it answers a question, and its plan does more than tell",
            );
        }

        let is_complete = self.turn.meta.status == Status::Executed;
        for problem in approval_differences(&ran, &report, is_complete) {
            self.fault("R2", problem);
        }

        // In a bare session, redaction can have removed these contents.
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

fn is_informational(plan: &Plan) -> bool {
    let mut actions = plan.actions.iter();
    plan.memos.is_empty() && actions.all(|action| action.kind.is_informational())
}

/// Compares a plan with the approved actions of its report. If an action failed, `is_complete` is
/// `false`, and the report can end early.
fn approval_differences(
    plan: &Plan,
    report: &[report::ReportAction],
    is_complete: bool,
) -> Vec<String> {
    let is_approved = |action: &&report::ReportAction| {
        let status = action.field("Status").unwrap_or_default();
        status.starts_with("Approved")
    };
    let reported: Vec<_> = report.iter().filter(is_approved).collect();
    let names = |names: Vec<&str>| match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    };

    let planned: Vec<&str> = plan
        .actions
        .iter()
        .map(|action| action.kind.name())
        .collect();
    let approved: Vec<&str> = reported.iter().map(|action| action.name.as_str()).collect();
    if !planned.starts_with(&approved) || (is_complete && planned.len() > approved.len()) {
        return vec![format!(
            "the plan that ran has the actions {}, and the report says that these were approved: {}",
            names(planned),
            names(approved)
        )];
    }

    let mut wrong = Vec::new();
    for (at, (action, reported)) in plan.actions.iter().zip(reported).enumerate() {
        let Some(execute) = action.kind.command() else {
            continue;
        };
        let command = reported
            .blocks
            .iter()
            .find(|block| block.caption == "Command:");
        if command
            .is_some_and(|block| reported_as(&block.contents) != reported_as(&execute.command))
        {
            wrong.push(format!(
                "the command of action {} in the report is not that of the plan that ran",
                at + 1
            ));
        }
    }

    wrong
}

fn reported_as(command: &str) -> String {
    // Redact both sides: an older report can contain keys that are recognized only now.
    redact(&sanitize_text(command)).trim_end().to_owned()
}

// In bytes, per file.
const MAX_ARTIFACT: u64 = 256 << 20;

// In bytes, for all files together.
const MAX_ARTIFACTS: u64 = 1 << 30;

// Maximum number of files that are reported for one kind of fault.
const MAX_NAMED_ARTIFACTS: usize = 10;

impl TurnCheck<'_> {
    /// Returns `false` if the files are too large to be read.
    fn artifacts(&mut self) -> bool {
        let are_readable = match self
            .repository
            .leaves_up_to(self.turn.tree, TreeLimit::SMALL)
        {
            Ok(leaves) => {
                // A link or submodule in a turn could lead anywhere once it is checked out.
                let odd = leaves.iter().filter(|leaf| leaf.mode != EntryMode::Blob);
                for leaf in odd.take(MAX_NAMED_ARTIFACTS) {
                    let name = lossy(&leaf.path);
                    self.fault("T5", format!("`{name}` is not a plain file"));
                }
                self.sizes(&leaves)
            }
            Err(error) => {
                self.fault("T5", format!("{error:#}"));
                return false;
            }
        };

        match self.turn.next(self.repository) {
            Ok(next)
                if self.turn.number() == 0 && next.parent_turn_id != self.turn.meta.turn_id =>
            {
                self.fault("T6", "`next/meta.yaml` continues another turn");
            }
            Ok(_) => {}
            Err(error) => self.fault("T6", format!("{error:#}")),
        }

        are_readable
    }

    fn sizes(&mut self, leaves: &[Leaf]) -> bool {
        let mut all: u64 = 0;
        let mut large = 0;
        for leaf in leaves.iter().filter(|leaf| leaf.mode == EntryMode::Blob) {
            // Compare sizes before reading any content: a small pack can expand to gigabytes.
            let size = match self.repository.blob_size(BlobId::of(leaf.id)) {
                Ok(size) => size,
                Err(error) => {
                    self.fault("T5", format!("{error:#}"));
                    return false;
                }
            };
            all = all.saturating_add(size);
            let name = lossy(&leaf.path);
            let most = max_artifact_size(&name);
            if size > most && large < MAX_NAMED_ARTIFACTS {
                large += 1;
                self.fault(
                    "T5",
                    format!("`{name}` has {size} bytes, and at most {most} are read of it"),
                );
            }
        }

        if all > MAX_ARTIFACTS {
            self.fault(
                "T5",
                format!("its files have {all} bytes, more than those of a turn can have"),
            );
        }

        large == 0 && all <= MAX_ARTIFACTS
    }
}

fn max_artifact_size(name: &str) -> u64 {
    let is_next = name.starts_with(artifact::NEXT);
    match name.strip_prefix(artifact::NEXT).unwrap_or(name) {
        artifact::REPORT if !is_next => MAX_REPORT as u64,
        artifact::QUESTION | artifact::CONCLUSION if is_next => MAX_MODEL_MESSAGE as u64,
        artifact::REQUESTS => requests::MAX_FILE as u64,
        _ => MAX_ARTIFACT,
    }
}

fn check_order(checked: &mut Checked, most: usize) {
    let mut known_ids = HashSet::new();
    let mut before = None;
    for (at, turn) in checked.turns.iter_mut().enumerate().rev() {
        if at < most {
            let wrong = number_fault(turn, before)
                .into_iter()
                .chain(id_faults(turn, &known_ids));
            checked
                .faults
                .extend(wrong.map(|(rule, problem)| order_fault(turn, rule, problem)));
        }
        checked.faults.append(&mut turn.faults);
        known_ids.insert(turn.turn_id);
        before = Some(turn.number);
    }
}

fn order_fault(turn: &CheckedTurn, rule: &'static str, problem: String) -> Fault {
    Fault {
        turn: Some(turn.number),
        commit: turn.commit,
        rule,
        what: problem,
    }
}

fn number_fault(turn: &CheckedTurn, before: Option<u64>) -> Option<(&'static str, String)> {
    let number = turn.number;
    let problem = match before {
        Some(before) if before + 1 != number => {
            format!("its number is {number}, and {before} before it")
        }
        None if number != 0 => format!("the chain begins with turn {number}"),
        _ => return None,
    };
    Some(("T4", problem))
}

fn id_faults(turn: &CheckedTurn, known_ids: &HashSet<Uuid>) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    let id = turn.turn_id;
    if known_ids.contains(&id) {
        wrong.push(format!("its `turn_id` {id} is that of an earlier turn"));
    }
    for (name, id) in turn.earlier {
        if let Some(id) = id.filter(|id| !known_ids.contains(id)) {
            wrong.push(format!("its `{name}` {id} is that of no earlier turn"));
        }
    }
    wrong.into_iter().map(|problem| ("T1", problem)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, reported: &str, is_same: bool) {
        let plan = format!(
            "# T\n## Rationale\n````text\nx\n````\n## Action Plan\n### `EXECUTE`\n````shell\n{command}\n````\n"
        );
        let status = report::ReportField {
            key: "Status".to_owned(),
            value: "Approved".to_owned(),
        };
        let block = report::CodeBlock {
            caption: "Command:".to_owned(),
            contents: format!("{reported}\n"),
        };
        let action = report::ReportAction {
            name: "EXECUTE".to_owned(),
            fields: vec![status],
            blocks: vec![block],
            ..report::ReportAction::default()
        };
        let actual = approval_differences(&crate::plan::parse(&plan).0, &[action], true);
        assert_eq!(actual.is_empty(), is_same, "{command:?}: {actual:?}");
    }

    #[test]
    fn r2_a_command_is_compared_as_a_report_shows_it() {
        check("echo a", "echo a", true);
        check("echo a", "echo b", false);
        check("echo \u{200d}", "echo \\u{200d}", true);
        check("echo \u{200d}", "echo \\u{200b}", false);
        let key = format!("ghp_{}", "aB3dE5fG7h".repeat(4));
        check(&key, &redact(&key), true);
        check(&key, &key, true);
        check(&key, "echo a", false);
    }
}
