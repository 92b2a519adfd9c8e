//! Summarizes a session for reviewers: requests, changed files, turns, commands, decisions and cost
//! (`docs/formats/export.md`). Renders a summary as Markdown for a pull request.
//!
//! Untrusted text is only placed in code spans and fences that it cannot close. No forge interprets
//! mentions, issue links, images or HTML there.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::Context as _;
use serde::Serialize;

use crate::git::diff::{self, TreeChange};
use crate::git::object::{CommitId, TreeEntry, read};
use crate::git::repository::Repository;
use crate::plan;
use crate::project::Project;
use crate::query::sum::{LastTurn, sum};
use crate::session::meta::{MessageOrigin, Status};
use crate::session::name::SessionName;
use crate::session::turn::{Turn, in_next};
use crate::session::{artifact, comments, report};
use crate::text::diff::counts;
use crate::text::fence::{fence_for, longest_run};
use crate::text::path::lossy;
use crate::text::sanitize::{excerpt, sanitize_block, sanitize_line};
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
/// Also of answers that were replaced.
pub fn turn_cost(turn: &Turn) -> Option<f64> {
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

/// In characters. Forges accept comments of 65,536.
pub const MAX_CHARACTERS: usize = 60_000;
const MAX_LINE: usize = 160;
const MAX_REQUEST: (usize, usize) = (20, 400);
const MAX_FILES: usize = 30;
const MAX_TURNS: usize = 20;
const MAX_RUNS: usize = 10;
const MAX_DECISIONS: usize = 10;

pub fn render_markdown(summary: &SessionSummary) -> String {
    let mut text = format!("### Session {}\n", code(&summary.session));
    if let Some(first) = summary.requests.first() {
        text.push_str(&block(&first.text));
        let more = summary.requests.len() - 1;
        if more > 0 {
            writeln!(text, "\nand {}.", counted(more, "more request")).expect("a string");
        }
    }

    writeln!(text, "\n{}", render_facts(summary)).expect("a string");
    text.push_str(&render_files(&summary.files));
    text.push_str(&render_turns(&summary.turns));
    text.push_str(&render_runs(&summary.runs));
    text.push_str(&render_decisions(&summary.decisions));
    if let Some(question) = &summary.question {
        text.push_str("\n**Waits for an answer**\n");
        text.push_str(&block(question));
    }

    debug_assert!(text.chars().count() < MAX_CHARACTERS);
    text
}

fn render_facts(summary: &SessionSummary) -> String {
    let mut facts = vec![counted(summary.turns.len(), "turn")];
    let models: Vec<String> = summary
        .models
        .iter()
        .take(5)
        .map(|name| code(name))
        .collect();
    if !models.is_empty() {
        facts.push(models.join(", "));
    }

    if let (Some(read), Some(written)) = (summary.tokens_in, summary.tokens_out) {
        facts.push(format!("{} in, {written} out", counted(read, "token")));
    }
    facts.extend(summary.cost.map(|cost| format!("${cost:.2}")));
    facts.push(format!("commit {}", code(&summary.tip.to_string()[..12])));
    facts.join(" · ")
}

fn render_files(files: &[DifferingFile]) -> String {
    let sum = |part: fn(&DifferingFile) -> Option<usize>| files.iter().filter_map(part).sum();
    let (added, removed): (usize, usize) = (sum(|file| file.added), sum(|file| file.removed));
    let title = format!("{} (+{added} −{removed})", counted(files.len(), "file"));
    let line = |file: &DifferingFile| {
        let lines = match (file.added, file.removed) {
            (Some(added), Some(removed)) => format!("+{added} −{removed}"),
            _ => "binary".to_owned(),
        };
        let change = match file.change {
            PathChange::Modified => "",
            PathChange::Added => ", added",
            PathChange::Deleted => ", deleted",
        };
        format!("- {} {lines}{change}\n", code(&file.path))
    };
    render_list(&title, files.iter().map(line), MAX_FILES, files.len())
}

fn render_turns(turns: &[TurnInShort]) -> String {
    let earlier = turns.len().saturating_sub(MAX_TURNS);
    let mut text = String::new();
    if earlier > 0 {
        writeln!(text, "- {}", counted(earlier, "earlier turn")).expect("a string");
    }
    for turn in &turns[earlier..] {
        let (number, status) = (turn.number, turn.status.word());
        writeln!(text, "- {number}: {} {status}", code(&turn.title)).expect("a string");
    }

    match turns.is_empty() {
        true => text,
        false => format!("\n**Turns**\n\n{text}"),
    }
}

fn render_runs(runs: &[CommandRun]) -> String {
    let mut last: Vec<(&CommandRun, usize)> = Vec::new();
    for run in runs {
        match last
            .iter_mut()
            .find(|(other, _)| other.command == run.command)
        {
            Some(other) => *other = (run, other.1 + 1),
            None => last.push((run, 1)),
        }
    }

    let line = |(run, times): &(&CommandRun, usize)| {
        let mark = if run.exit_code == 0 { "✅" } else { "❌" };
        let often = match times {
            1 => String::new(),
            times => format!(", the last of {times} runs"),
        };
        let (command, code_, turn) = (code(&run.command), run.exit_code, run.turn);
        format!("- {mark} {command} exit code {code_} (turn {turn}{often})\n")
    };
    render_list("Commands", last.iter().map(line), MAX_RUNS, last.len())
}

fn render_decisions(decisions: &[UserDecision]) -> String {
    let line = |one: &UserDecision| {
        let (turn, about) = (one.turn, code(&one.about));
        let detail = match one.said.is_empty() {
            true => String::new(),
            false => format!(": {}", code(&one.said)),
        };
        let text = match one.kind {
            DecisionKind::Answered => format!("answered {about}{detail}"),
            DecisionKind::Declined => format!("declined {about}{detail}"),
            DecisionKind::Commented => format!("commented on {about}{detail}"),
            DecisionKind::Changed => format!("changed {about} in the review"),
            DecisionKind::LeftOut => format!("left out {} in the review", one.about),
        };
        format!("- turn {turn}: {text}\n")
    };
    let lines = decisions.iter().map(line);
    render_list("Decisions", lines, MAX_DECISIONS, decisions.len())
}

fn render_list(
    title: &str,
    lines: impl Iterator<Item = String>,
    most: usize,
    count: usize,
) -> String {
    if count == 0 {
        return String::new();
    }
    let mut text = format!("\n**{title}**\n\n");
    lines.take(most).for_each(|line| text.push_str(&line));
    if count > most {
        writeln!(text, "- and {} more", count - most).expect("a string");
    }
    text
}

fn code(text: &str) -> String {
    let tokens: Vec<&str> = text.split_whitespace().collect();
    let text = tokens.join(" ");
    let text = sanitize_line(&text);
    let line = excerpt(&text, MAX_LINE);
    if line.is_empty() {
        return "(nothing)".to_owned();
    }

    let longest = longest_run(&line, '`');
    let ticks = "`".repeat(longest + 1);
    match longest {
        0 => format!("{ticks}{line}{ticks}"),
        _ => format!("{ticks} {line} {ticks}"),
    }
}

/// The text cannot close the fence.
fn block(text: &str) -> String {
    let (most, width) = MAX_REQUEST;
    let visible_text = sanitize_block(text);
    let lines: Vec<_> = visible_text
        .lines()
        .map(|line| excerpt(line, width))
        .collect();
    let mut body = lines[..lines.len().min(most)].join("\n");
    if lines.len() > most {
        body.push_str("\n…");
    }

    let fence = fence_for(&body, 3);
    format!("\n{fence}text\n{body}\n{fence}\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::session::meta::Status;

    /// Text that would ping, link, show an image or escape from a span.
    const HOSTILE: &str =
        "@team #12 GH-3 </details><img src=x> [a](http://b) ``` ~~~ | **x** \u{202e}";

    /// A summary with `count` entries of each kind, all hostile.
    fn summary(count: usize) -> SessionSummary {
        let text = |number: usize| format!("{number} {}", HOSTILE.repeat(40));
        let many = 0..count;
        SessionSummary {
            schema: 1,
            session: "demo".to_owned(),
            tip: "1465b844761618fe5910618bbc86deda6df5f057".parse().unwrap(),
            requests: vec![AskedRequest {
                turn: 1,
                text: format!("{}\n", text(0)).repeat(200),
            }],
            files: many
                .clone()
                .map(|number| DifferingFile {
                    path: text(number),
                    change: PathChange::Modified,
                    added: Some(1),
                    removed: Some(2),
                })
                .collect(),
            turns: many
                .clone()
                .map(|number| TurnInShort {
                    number: number as u64 + 1,
                    commit: "1465b844761618fe5910618bbc86deda6df5f057".parse().unwrap(),
                    status: Status::Executed,
                    title: text(number),
                    agent: text(number),
                    model: None,
                    cost: None,
                })
                .collect(),
            runs: many
                .clone()
                .map(|number| CommandRun {
                    turn: 1,
                    about: text(number),
                    command: text(number),
                    exit_code: 1,
                })
                .collect(),
            decisions: many
                .map(|number| UserDecision {
                    turn: 1,
                    kind: DecisionKind::Answered,
                    about: text(number),
                    said: text(number),
                })
                .collect(),
            question: Some(text(0).repeat(100)),
            conclusion: None,
            models: vec![text(0); count],
            tokens_in: Some(1),
            tokens_out: Some(1),
            cost: Some(0.5),
        }
    }

    #[test]
    fn ex4_a_summary_is_bounded_whatever_a_session_is() {
        for count in [0, 1, 200, 5000] {
            let text = render_markdown(&summary(count));
            let characters = text.chars().count();
            assert!(characters < MAX_CHARACTERS, "{count}: {characters}");
        }
        let text = render_markdown(&summary(200));
        assert!(text.contains("- 180 earlier turns\n") && text.contains("- and 170 more\n"));
    }

    fn strip_fences(text: &str) -> String {
        let (mut remaining, mut fence) = (String::new(), None::<String>);
        for line in text.lines() {
            let ticks: String = line.chars().take_while(|c| *c == '`').collect();
            let begins = line[ticks.len()..].starts_with("text") && ticks.len() > 2;
            match &fence {
                Some(open) if line == open => fence = None,
                Some(_) => {}
                None if begins => fence = Some(ticks),
                None => remaining.push_str(&format!("{}\n", without_spans(line))),
            }
        }
        remaining
    }

    /// Removes code spans as CommonMark parses them.
    fn without_spans(line: &str) -> String {
        let (mut output, mut tail) = (String::new(), line);
        while let Some(start) = tail.find('`') {
            output.push_str(&tail[..start]);
            let run = tail[start..].bytes().take_while(|b| *b == b'`').count();
            let mut at = start + run;
            let end = loop {
                let next = at + tail[at..].find('`').expect("a span ends on its line");
                let length = tail[next..].bytes().take_while(|b| *b == b'`').count();
                at = next + length;
                if length == run {
                    break at;
                }
            };
            tail = &tail[end..];
        }
        output + tail
    }

    #[test]
    fn ex3_what_others_wrote_cannot_leave_its_place() {
        let text = strip_fences(&render_markdown(&summary(3)));
        for sign in ["@", "#1", "<", "](", "http", "GH-", "~~~", "|", "\u{202e}"] {
            assert!(!text.contains(sign), "{sign}: {text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_one_code_span(text in "(`|\\\\|\n|\r|[a-z@#<|]| |\u{202e}){0,40}") {
            let span = code(&text);
            prop_assert!(!span.contains(['\n', '\r']));
            prop_assert!(span == "(nothing)" || without_spans(&span).is_empty(), "{span}");
        }
    }

    #[test]
    fn a_text_is_in_as_many_backticks_as_it_takes() {
        let check = |text: &str, expected: &str| assert_eq!(code(text), expected);
        check("a b", "`a b`");
        check("a\n\n b", "`a b`");
        check("`", "`` ` ``");
        check("a ``` b", "```` a ``` b ````");
        check("\u{202e}x", "`\\u{202e}x`");
        check(" \n", "(nothing)");
    }
}
