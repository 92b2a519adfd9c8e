//! `bisect`: finds the turn after which a command fails, by binary search.
//!
//! The command runs in a temporary worktree, on the tree of each tested turn. Nothing that it
//! writes is kept.

use std::collections::HashMap;

use anyhow::Context as _;
use serde::Serialize;

use crate::git::diff;
use crate::git::object::{CommitId, TreeId};
use crate::project::Project;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::hint::error_with_hint;
use crate::text::path::lossy;
use crate::workflow::context::requests::asked_with;
use crate::workflow::trial::{Trial, Trials, cannot_test};
use crate::workflow::user::{Event, Notice, User};
use crate::workspace::file_move::changes_of;

/// "Cannot tell", as in `git bisect run`.
const SKIP: i32 = 125;
/// From here on, the search aborts: a signal ended the command.
const STOP: i32 = 128;

pub struct BisectOptions<'a> {
    pub command: &'a str,
    /// Default: the files before the first turn.
    pub good: Option<&'a str>,
    /// Default: the newest turn.
    pub bad: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TestVerdict {
    Good,
    Bad,
    /// Exit code 125.
    Skip,
}

#[derive(Debug, Clone, Serialize)]
pub struct BisectRun {
    /// 0 for the files before the first turn.
    pub turn: u64,
    pub tree: TreeId,
    pub exit_code: i32,
    pub verdict: TestVerdict,
}

/// Possibly introduced the failure.
#[derive(Debug, Clone, Serialize)]
pub struct Culprit {
    pub turn: u64,
    pub commit: CommitId,
    pub title: String,
    pub model: Option<String>,
    pub request: String,
    pub files: Vec<String>,
}

/// What the user, git or another session changed between two turns introduced the failure.
#[derive(Debug, Clone, Serialize)]
pub struct BreakingEdits {
    /// The turn that started from these files.
    pub before: u64,
    pub files: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Bisected {
    pub session: String,
    /// Several if skipped runs left them undistinguished. None if it was no turn.
    pub culprits: Vec<Culprit>,
    pub edits: Option<BreakingEdits>,
    pub runs: Vec<BisectRun>,
}

struct TestedState {
    /// For the files before the first turn, the first turn.
    turn: Turn,
    number: u64,
    commit: CommitId,
    tree: TreeId,
}

impl TestedState {
    fn position(&self) -> String {
        match (self.number, self.turn.number()) {
            (0, 1) => "before the first turn".to_owned(),
            (0, next) => format!("before turn {next}"),
            (number, _) => format!("after turn {number}"),
        }
    }

    /// Fails if the command could not run, or was ended by a signal.
    fn verdict(&self, trial: &Trial) -> anyhow::Result<TestVerdict> {
        let (code, position) = (trial.exit_code, self.position());
        let output = trial.tail.last().map_or("no output", String::as_str);
        anyhow::ensure!(
            !cannot_test(code),
            "the command cannot be run {position} (exit code {code}), so it says nothing about the files: {output}"
        );
        anyhow::ensure!(
            code < STOP,
            "the command ended with exit code {code} {position}, which stops the search: {output}"
        );
        Ok(match code {
            0 => TestVerdict::Good,
            SKIP => TestVerdict::Skip,
            _ => TestVerdict::Bad,
        })
    }
}

/// Searches the session of the bad turn, else that of the good turn, else the current session.
/// Fails with [`Unfit`] if an end of the range does not have the expected verdict.
pub fn bisect(
    project: &Project,
    options: &BisectOptions<'_>,
    user: &mut dyn User,
) -> anyhow::Result<Bisected> {
    let session = project.session_of(options.bad.or(options.good).unwrap_or("@"))?;
    let turns = project.store().turns(&session)?;
    let states = states(project, &turns)?;
    let position = |name: Option<&str>, default: usize| -> anyhow::Result<usize> {
        let Some(name) = name else {
            return Ok(default);
        };
        let number = number_of(project, &session, &turns, name)?;
        let at = states.iter().rposition(|state| state.number <= number);
        Ok(at.unwrap_or(default))
    };
    let good = position(options.good, 0)?;
    let bad = position(options.bad, states.len() - 1)?;
    anyhow::ensure!(
        good < bad,
        "turn {} is not before turn {}: name an older turn as good",
        states[good].number,
        states[bad].number
    );

    let trials = Trials::begin(project, "bisect")?;
    let (mut runs, mut verdicts) = (Vec::new(), HashMap::new());
    let mut test_state = |at: usize| -> anyhow::Result<TestVerdict> {
        let state = &states[at];
        // Turns without changes, and undos, share a tree. Each tree is tested once.
        if let Some(verdict) = verdicts.get(&state.tree) {
            return Ok(*verdict);
        }

        let trial = trials.run(&state.turn, state.commit, options.command, user)?;
        let code = trial.exit_code;
        let verdict = state.verdict(&trial)?;
        user.report(Event::Notice(Notice::TurnTried {
            turn: (state.number > 0).then(|| (state.number, state.turn.title.clone())),
            exit_code: code,
        }));
        runs.push(BisectRun {
            turn: state.number,
            tree: state.tree,
            exit_code: code,
            verdict,
        });

        verdicts.insert(state.tree, verdict);
        Ok(verdict)
    };

    // Test both ends first. Without a failure at one and a success at the other, the search would
    // blame an arbitrary turn.
    for (at, expected) in [(bad, TestVerdict::Bad), (good, TestVerdict::Good)] {
        let actual = test_state(at)?;
        anyhow::ensure!(actual == expected, Unfit::of(&states[at], actual));
    }

    let (first, last) = search(good, bad, test_state)?;
    let edits = match first == last {
        true => breaking_edits(
            project,
            &trials,
            options.command,
            &states[first - 1..=first],
            user,
        )?,
        false => None,
    };
    let culprits = states[first..=last]
        .iter()
        .filter(|_| edits.is_none())
        .map(|state| culprit(project, state));
    Ok(Bisected {
        session: session.to_string(),
        culprits: culprits.collect::<anyhow::Result<_>>()?,
        edits,
        runs,
    })
}

/// Tests the files from which the first bad turn started, if they are not those that the good turn
/// before it left.
fn breaking_edits(
    project: &Project,
    trials: &Trials<'_>,
    command: &str,
    pair: &[TestedState],
    user: &mut dyn User,
) -> anyhow::Result<Option<BreakingEdits>> {
    let [good, bad] = pair else { return Ok(None) };
    let Some(workspace) = &bad.turn.meta.workspace else {
        return Ok(None);
    };
    let (repository, commit) = (&project.repository, workspace.before);
    let start = TestedState {
        turn: bad.turn.clone(),
        number: 0,
        commit,
        tree: repository.commit(commit)?.tree,
    };
    if start.tree == good.tree {
        return Ok(None);
    }
    let trial = trials.run(&start.turn, commit, command, user)?;
    if start.verdict(&trial)? != TestVerdict::Bad {
        return Ok(None);
    }
    let changes = diff::changes(repository, good.tree, start.tree)?;
    Ok(Some(BreakingEdits {
        before: bad.number,
        files: changes.iter().map(|change| lossy(&change.path)).collect(),
    }))
}

/// An end of the range does not have the expected verdict.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    #[error("the command succeeds {0}: there is nothing to find")]
    Good(String),
    #[error("the command fails {0} already")]
    Bad(String),
    #[error("the command cannot tell {0} (exit code 125), where the search begins")]
    Unclear(String),
}

impl Unfit {
    fn of(state: &TestedState, verdict: TestVerdict) -> Unfit {
        let position = state.position();
        match verdict {
            TestVerdict::Good => Unfit::Good(position),
            TestVerdict::Bad => Unfit::Bad(position),
            TestVerdict::Skip => Unfit::Unclear(position),
        }
    }

    pub fn hint(&self) -> &'static str {
        match self {
            Unfit::Good(_) => "`--bad <turn>` names a turn after which it fails",
            Unfit::Bad(_) => "`--good <turn>` names a turn after which it succeeds",
            Unfit::Unclear(_) => "`--good <turn>` and `--bad <turn>` name other ends",
        }
    }
}

/// Range of positions that can be the first bad one, inclusive. It is one position, unless skips
/// remain in between.
fn search(
    mut good: usize,
    mut bad: usize,
    mut test_state: impl FnMut(usize) -> anyhow::Result<TestVerdict>,
) -> anyhow::Result<(usize, usize)> {
    let mut skipped = Vec::new();
    loop {
        let middle = good + (bad - good) / 2;
        let untested = (good + 1..bad).filter(|at| !skipped.contains(at));
        // The position nearest to the middle that has not been skipped.
        let Some(at) = untested.min_by_key(|at| at.abs_diff(middle)) else {
            return Ok((good + 1, bad));
        };

        match test_state(at)? {
            TestVerdict::Good => good = at,
            TestVerdict::Bad => bad = at,
            TestVerdict::Skip => skipped.push(at),
        }
    }
}

/// Fails if the turn does not belong to the session.
fn number_of(
    project: &Project,
    session: &SessionName,
    turns: &[Turn],
    name: &str,
) -> anyhow::Result<u64> {
    let target = project.store().turn(&project.session_of(name)?, name)?;
    // Compare commits: a branched session shares turns with the session that it came from.
    if turns.iter().any(|turn| turn.commit == target.commit) {
        return Ok(target.number());
    }

    Err(error_with_hint(
        format!("`{name}` is not a turn of session `{session}`"),
        "`--good <session>:<turn>` and `--bad <session>:<turn>` name turns of one session",
    ))
}

fn states(project: &Project, turns: &[Turn]) -> anyhow::Result<Vec<TestedState>> {
    let mut states = Vec::new();
    for turn in turns {
        let Some(workspace) = &turn.meta.workspace else {
            continue;
        };
        let tree = |commit| project.repository.commit(commit).map(|commit| commit.tree);
        let (before, after) = (workspace.before, workspace.after);

        if states.is_empty() {
            states.push(TestedState {
                number: 0,
                commit: before,
                tree: tree(before)?,
                turn: turn.clone(),
            });
        }

        states.push(TestedState {
            number: turn.number(),
            commit: after,
            tree: tree(after)?,
            turn: turn.clone(),
        });
    }

    anyhow::ensure!(!states.is_empty(), "the session has no turn yet");
    Ok(states)
}

fn culprit(project: &Project, state: &TestedState) -> anyhow::Result<Culprit> {
    let (repository, turn) = (&project.repository, &state.turn);
    let workspace = turn.meta.workspace.as_ref();
    let workspace = workspace.context("a turn that changed files has them recorded")?;
    let changes = changes_of(repository, workspace.change())?;
    let request = asked_with(project, turn)?;

    Ok(Culprit {
        turn: turn.number(),
        commit: turn.commit,
        title: turn.title.clone(),
        model: turn.meta.model.as_ref().map(|model| model.asked.clone()),
        request: request.unwrap_or_default(),
        files: changes.iter().map(|change| lossy(&change.path)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One letter for each position: good, bad, or `?` for skipped. `most` bounds the number of
    /// runs.
    #[track_caller]
    fn check(line: &str, expected: (usize, usize), most: usize) {
        let mut runs = 0;
        let range = search(0, line.len() - 1, |at| {
            runs += 1;
            Ok(match line.as_bytes()[at] {
                b'g' => TestVerdict::Good,
                b'b' => TestVerdict::Bad,
                _ => TestVerdict::Skip,
            })
        });
        assert_eq!(range.unwrap(), expected, "{line}");
        assert!(runs <= most, "{line}: {runs} runs");
    }

    #[test]
    fn the_first_bad_one_is_found_by_halving() {
        check("gb", (1, 1), 0);
        check("ggb", (2, 2), 1);
        check("gbb", (1, 1), 1);
        check("ggggggggbbbbbbbb", (8, 8), 4);
        check(&format!("g{}", "b".repeat(1000)), (1, 1), 10);
        check(&format!("{}b", "g".repeat(1000)), (1000, 1000), 10);
    }

    #[test]
    fn what_cannot_be_told_is_gone_around_or_named() {
        check("gg?bb", (2, 3), 3);
        check("g?gbb", (3, 3), 3);
        check("g???b", (1, 4), 3);
        check("gg??gbb", (5, 5), 4);
    }
}
