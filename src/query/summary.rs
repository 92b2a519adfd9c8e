//! Summarizes a session for reviewers: requests, changed files, turns, commands, decisions and cost
//! (`docs/formats/export.md`).

pub mod markdown;

use std::collections::BTreeSet;

use anyhow::Context as _;
use serde::Serialize;

use crate::git::diff::{self, TreeChange};
use crate::git::object::{CommitId, TreeEntry, read};
use crate::git::repository::Repository;
use crate::plan;
use crate::project::Project;
use crate::query::sum::{LastTurn, sum};
use crate::session::artifact;
use crate::session::comments;
use crate::session::meta::{MessageOrigin, Status};
use crate::session::name::SessionName;
use crate::session::report;
use crate::session::turn::{Turn, in_next};
use crate::text::diff::counts;
use crate::text::path::lossy;
use crate::text::secret::redact;
use crate::text::{beginning, counted};
use crate::workspace::file_move::PathChange;

const SCHEMA: u32 = 1;
const MAX_TEXT: usize = 64 << 10;

/// In bytes. Turns of others can be larger; our own artifacts are much smaller.
const MAX_FILE: u64 = 64 << 20;

const MAX_COMPARED: usize = 2000;

#[derive(Debug, Serialize)]
pub struct SessionSummary {
    pub schema: u32,
    pub session: String,
    pub tip: CommitId,
    /// Oldest first.
    pub requests: Vec<AskedRequest>,
    /// Between the start and the newest turn.
    pub files: Vec<DifferingFile>,
    /// Oldest first, without turn 0.
    pub turns: Vec<TurnInShort>,
    /// Oldest first.
    pub runs: Vec<CommandRun>,
    /// Oldest first.
    pub decisions: Vec<UserDecision>,
    pub question: Option<String>,
    /// Set if the model concluded the work.
    pub conclusion: Option<String>,
    /// As requested, each once.
    pub models: Vec<String>,
    /// `None` if a model did not report them.
    pub tokens_in: Option<u64>,
    /// `None` if a model did not report them.
    pub tokens_out: Option<u64>,
    /// In dollars, with unused answers; `None` if unknown.
    pub cost: Option<f64>,
}

#[derive(Debug, Serialize)]
pub struct AskedRequest {
    /// Started by the request.
    pub turn: u64,
    pub text: String,
}

#[derive(Debug, Serialize)]
pub struct DifferingFile {
    pub path: String,
    pub change: PathChange,
    /// `None` if the file is binary or too large.
    pub added: Option<usize>,
    /// `None` like `added`.
    pub removed: Option<usize>,
}

#[derive(Debug, Serialize)]
pub struct TurnInShort {
    pub number: u64,
    pub commit: CommitId,
    pub status: Status,
    pub title: String,
    pub agent: String,
    pub model: Option<String>,
    /// In dollars.
    pub cost: Option<f64>,
}

pub fn summary(project: &Project, session: &SessionName) -> anyhow::Result<SessionSummary> {
    let (repository, store) = (&project.repository, project.store());
    let turns = store.turns(session)?;
    let tip = turns.last().context("a session has a turn")?;

    let mut requests = Vec::new();
    for turn in turns.iter().filter(|turn| is_users(turn)) {
        let text = text_of(repository, turn, artifact::USER_PROMPT)?;
        let text = text
            .map(|text| prepare_text(&text))
            .filter(|text| !text.is_empty());
        requests.extend(text.map(|text| AskedRequest {
            turn: turn.number(),
            text,
        }));
    }

    let next_text = |name: &str| {
        let text = text_of(repository, tip, &in_next(name))?;
        anyhow::Ok(text.map(|text| prepare_text(&text)))
    };
    let (tokens_in, tokens_out) = tokens(&turns).unzip();
    Ok(SessionSummary {
        schema: SCHEMA,
        session: session.to_string(),
        tip: tip.commit,
        requests,
        files: files(project, &turns)?,
        runs: collect_runs(repository, &turns)?,
        decisions: collect_decisions(repository, &turns)?,
        question: next_text(artifact::QUESTION)?,
        conclusion: next_text(artifact::CONCLUSION)?,
        models: models(&turns),
        tokens_in,
        tokens_out,
        cost: cost(&turns),
        turns: turns
            .iter()
            .filter(|it| it.number() > 0)
            .map(short)
            .collect(),
    })
}

fn is_users(turn: &Turn) -> bool {
    let meta = &turn.meta;
    meta.origin == MessageOrigin::User && meta.work.is_none() && meta.restored.is_none()
}

/// Fails if the artifact is larger than `MAX_FILE`.
fn text_of(repository: &Repository, turn: &Turn, name: &str) -> anyhow::Result<Option<String>> {
    let bytes = repository.file_up_to(turn.tree, name, MAX_FILE)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

fn prepare_text(text: &str) -> String {
    beginning(redact(text.trim()).as_ref(), MAX_TEXT).into_owned()
}

fn short(turn: &Turn) -> TurnInShort {
    let meta = &turn.meta;
    TurnInShort {
        number: turn.number(),
        commit: turn.commit,
        status: meta.status.shown(meta.showed_files),
        title: prepare_text(&turn.title),
        agent: meta.agent.clone(),
        model: meta.model.as_ref().map(|model| model.asked.clone()),
        cost: turn_cost(turn),
    }
}

/// With unused answers.
fn turn_cost(turn: &Turn) -> Option<f64> {
    let cost = turn.meta.model.as_ref().and_then(|model| model.cost);
    turn.meta.spent.or(cost)
}

pub fn models(turns: &[Turn]) -> Vec<String> {
    let uses = turns.iter().filter_map(|turn| turn.meta.model.as_ref());
    let mut names = BTreeSet::new();
    uses.map(|model| model.asked.clone())
        .filter(|name| names.insert(name.clone()))
        .collect()
}

/// `None` if a model did not report its tokens.
pub fn tokens(turns: &[Turn]) -> Option<(u64, u64)> {
    let uses = turns.iter().filter_map(|turn| turn.meta.model.as_ref());
    let counts: Option<Vec<(u64, u64)>> = uses.map(|model| model.tokens()).collect();
    let counts = counts.filter(|counts| !counts.is_empty())?;
    Some(counts.iter().fold((0, 0), |sum: (u64, u64), one| {
        (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1))
    }))
}

fn cost(turns: &[Turn]) -> Option<f64> {
    let costs: Vec<f64> = turns.iter().filter_map(turn_cost).collect();
    (!costs.is_empty()).then(|| costs.iter().sum())
}

/// Without the user's own edits.
fn files(project: &Project, turns: &[Turn]) -> anyhow::Result<Vec<DifferingFile>> {
    let repository = &project.repository;
    let Some(sum) = sum(repository, None, turns, LastTurn::AsItRan)? else {
        return Ok(Vec::new());
    };

    let changes = diff::changes(repository, sum.before, sum.after)?;
    let mut differing = Vec::with_capacity(changes.len());
    for (at, change) in changes.iter().enumerate() {
        let lines = match at < MAX_COMPARED {
            true => lines(repository, change)?,
            false => None,
        };
        let (added, removed) = lines.unzip();
        differing.push(DifferingFile {
            path: lossy(&change.path),
            change: PathChange::of(&change.old, &change.new),
            added,
            removed,
        });
    }

    Ok(differing)
}

/// Added and removed. `None` if the file is binary or too large.
pub fn lines(
    repository: &Repository,
    change: &TreeChange,
) -> anyhow::Result<Option<(usize, usize)>> {
    let text = |entry: &Option<TreeEntry>| read::text_of(repository, entry.as_ref());
    let texts = text(&change.old)?.zip(text(&change.new)?);
    let counted = texts.map(|(old, new)| counts(&old, &new));
    Ok(counted.map(|counts| (counts.added, counts.removed)))
}

// The user's decisions: answers, declined plans, changes and omissions in reviews.

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UserDecision {
    pub turn: u64,
    pub kind: DecisionKind,
    /// The question, the title of the plan, or an action.
    pub about: String,
    /// The user's words.
    pub said: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    Answered,
    Declined,
    /// On lines of the result of a declined plan.
    Commented,
    /// In the review.
    Changed,
    /// In the review.
    LeftOut,
}

/// Oldest first.
fn collect_decisions(repository: &Repository, turns: &[Turn]) -> anyhow::Result<Vec<UserDecision>> {
    let (mut decisions, mut open_question) = (Vec::new(), None);
    for turn in turns {
        let text = |name: &str| text_of(repository, turn, name);
        let prompt = text(artifact::USER_PROMPT)?.unwrap_or_default();
        if is_users(turn) && !prompt.trim().is_empty() {
            let question: Option<String> = open_question.take();
            decisions.extend(question.map(|about| UserDecision {
                turn: turn.number(),
                kind: DecisionKind::Answered,
                about,
                said: prepare_text(&prompt),
            }));
        }

        if let Some(why) = text(artifact::DECLINED)? {
            let comments = text(artifact::COMMENTS)?.and_then(|text| comments::parse(&text));
            let comments = comments.unwrap_or_default();
            let decision = |kind, about: &str, said: &str| UserDecision {
                turn: turn.number(),
                kind,
                about: prepare_text(about),
                said: prepare_text(said),
            };
            // With comments, the reason only repeats them.
            let why = if comments.is_empty() {
                why.as_str()
            } else {
                ""
            };
            decisions.push(decision(DecisionKind::Declined, &turn.title, why));
            decisions.extend(
                comments.iter().map(|comment| {
                    decision(DecisionKind::Commented, &comment.place(), &comment.text)
                }),
            );
        }

        if let Some(approved) = text(artifact::APPROVED)? {
            let proposed = text(artifact::PLAN)?.unwrap_or_default();
            let report = text(artifact::REPORT)?.unwrap_or_default();
            decisions.extend(review_changes(turn, &proposed, &approved, &report));
        }

        open_question = text(&in_next(artifact::QUESTION))?.map(|text| prepare_text(&text));
    }

    Ok(decisions)
}

fn review_changes(turn: &Turn, proposed: &str, approved: &str, report: &str) -> Vec<UserDecision> {
    let decision = |kind, about: String| UserDecision {
        turn: turn.number(),
        kind,
        about,
        said: String::new(),
    };
    let actions = report::read(report).unwrap_or_default();
    let modified = actions.iter().filter(|action| action.modified);
    let mut decisions: Vec<_> = modified
        .map(|action| {
            let location = action.field("File Path").or(action.field("Description"));
            let label = format!("{} {}", action.name, location.unwrap_or_default());
            decision(DecisionKind::Changed, prepare_text(&label))
        })
        .collect();

    let count = |text: &str| plan::parse(text).0.actions.len();
    let (before, after) = (count(proposed), count(approved));
    if before > after {
        let about = format!("{} of {}", before - after, counted(before, "action"));
        decisions.push(decision(DecisionKind::LeftOut, about));
    }

    decisions
}

const COMMAND_FIELD: &str = "Command:";

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandRun {
    pub turn: u64,
    /// In the plan.
    pub about: String,
    pub command: String,
    pub exit_code: i32,
}

/// Oldest first.
fn collect_runs(repository: &Repository, turns: &[Turn]) -> anyhow::Result<Vec<CommandRun>> {
    let mut runs = Vec::new();
    for turn in turns {
        let report = text_of(repository, turn, artifact::REPORT)?;
        let ran = report.as_deref().and_then(report::read).unwrap_or_default();
        runs.extend(ran.iter().filter_map(|it| parse_run(turn.number(), it)));
    }

    Ok(runs)
}

fn parse_run(turn: u64, action: &report::ReportAction) -> Option<CommandRun> {
    let exit_code = action.field("Exit Code")?.trim().parse().ok()?;
    let mut blocks = action.blocks.iter();
    let command = blocks.find(|block| block.caption == COMMAND_FIELD)?;
    Some(CommandRun {
        turn,
        about: prepare_text(action.field("Description").unwrap_or_default()),
        command: prepare_text(&command.contents),
        exit_code,
    })
}
