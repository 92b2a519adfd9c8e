//! `find`: searches everything that sessions recorded for a pattern.
//!
//! Reads each object once, however many turns contain it. Matches line by line, as `grep` does: a
//! match never spans lines.

use std::collections::{BTreeMap, HashMap, HashSet};

use globset::GlobMatcher;
use regex::bytes::{Regex, RegexBuilder};
use serde::Serialize;

use crate::git::object::leaves::TreeLimit;
use crate::git::object::{BlobId, CommitId, EntryMode};
use crate::git::parallel::map_parallel;
use crate::git::repository::Repository;
use crate::project::Project;
use crate::query::chains::{ChainTurn, chains};
use crate::session::artifact;
use crate::session::meta::MessageOrigin;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::counted;
use crate::text::path::lossy;
use crate::workspace::file_move::changes_of;

const MAX_BYTES: u64 = 64 << 20;
const MAX_PATTERN: usize = 16 << 20;
/// In bytes. A NUL within makes a file binary, as in git.
const FIRST: usize = 8_000;

const REPORTED_PLAN: &str = "- **Original Plan:** ";
const REPORTED_TITLE: &str = "# Execution Report: ";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TurnPart {
    /// The user's message, and their reply to a declined plan.
    Request,
    /// Raw reply, as proposed, and as it ran.
    Plan,
    /// With its diffs.
    Report,
    /// Of commands.
    Output,
    /// What the model received: files, prompts, web pages.
    Input,
    /// Files that the turn changed, after it.
    Code,
}

impl TurnPart {
    /// Searched by default: the user's and the model's texts, and the results. The input is left
    /// out because it repeats all of these.
    pub const DEFAULT: [TurnPart; 4] = [
        TurnPart::Request,
        TurnPart::Plan,
        TurnPart::Report,
        TurnPart::Output,
    ];
}

pub struct Query {
    pub pattern: LinePattern,
    pub parts: Vec<TurnPart>,
    pub path: Option<GlobMatcher>,
    pub session: Option<SessionName>,
}

pub struct LinePattern {
    line: Regex,
    /// Matches a whole file if it matches a line, to skip files quickly. `None` if the pattern has
    /// anchors that differ between the two.
    whole_text: Option<Regex>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Match {
    pub session: SessionName,
    pub turn: u64,
    pub commit: CommitId,
    pub part: TurnPart,
    /// Artifact name or path.
    pub file: String,
    /// From 1; `None` for a binary file.
    pub line: Option<usize>,
    /// `None` for a binary file.
    pub text: Option<String>,
}

#[derive(Debug, Default)]
pub struct FindResult {
    /// Newest turn first.
    pub matches: Vec<Match>,
    pub skipped: Vec<String>,
}

/// The first recorded file of a turn, by its index, that has a line.
type RecordedLines = HashMap<(usize, String), String>;

struct SearchedFile {
    turn: usize,
    part: TurnPart,
    name: String,
    blob: BlobId,
}

enum Searched {
    Lines(Vec<(usize, String)>),
    Binary,
    Skipped(&'static str),
}

impl Searched {
    fn is_match(&self) -> bool {
        match self {
            Searched::Lines(lines) => !lines.is_empty(),
            Searched::Binary => true,
            Searched::Skipped(_) => false,
        }
    }
}

impl LinePattern {
    pub fn new(text: &str, ignore_case: bool, fixed: bool) -> Result<LinePattern, regex::Error> {
        let text = if fixed {
            regex::escape(text)
        } else {
            text.to_owned()
        };

        let build = |multi_line: bool| {
            RegexBuilder::new(&text)
                .case_insensitive(ignore_case)
                .multi_line(multi_line)
                .crlf(multi_line)
                .size_limit(MAX_PATTERN)
                .build()
        };
        // These anchor to the text or change modes, so they mean something else in a whole file.
        let has_ends = ["\\A", "\\z", "(?-m", "(?R"]
            .iter()
            .any(|end| text.contains(end));
        Ok(LinePattern {
            line: build(false)?,
            whole_text: if has_ends { None } else { Some(build(true)?) },
        })
    }

    /// First match in a line, for highlighting.
    pub fn match_range(&self, line: &str) -> Option<std::ops::Range<usize>> {
        self.line.find(line.as_bytes()).map(|hit| hit.range())
    }

    fn search(&self, bytes: &[u8]) -> Searched {
        if self
            .whole_text
            .as_ref()
            .is_some_and(|pattern| !pattern.is_match(bytes))
        {
            return Searched::Lines(Vec::new());
        }
        let mut lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
        // No empty line after the last newline.
        if bytes.is_empty() || bytes.ends_with(b"\n") {
            lines.pop();
        }

        let lines = lines.into_iter().enumerate();
        let mut matches = lines
            .map(|(at, line)| (at + 1, line.strip_suffix(b"\r").unwrap_or(line)))
            .filter(|(_, line)| self.line.is_match(line))
            .peekable();
        if bytes[..bytes.len().min(FIRST)].contains(&0) && matches.peek().is_some() {
            return Searched::Binary;
        }

        Searched::Lines(
            matches
                .map(|(number, line)| (number, lossy(line)))
                .collect(),
        )
    }
}

pub fn find(project: &Project, query: &Query) -> anyhow::Result<FindResult> {
    let chains = chains(project, query.session.as_ref())?;
    let mut results = FindResult::default();
    for (session, why) in &chains.broken {
        results.skipped.push(format!("session `{session}`: {why}"));
    }

    if query.parts.contains(&TurnPart::Code) {
        results
            .skipped
            .extend(missing_code(project, &chains.turns)?);
    }

    let turns: Vec<(usize, &ChainTurn)> = chains.turns.iter().enumerate().collect();
    let files = map_parallel(&project.repository, turns, |repository, turns| {
        let listed = turns
            .into_iter()
            .map(|(at, turn)| files_of(repository, query, at, turn));
        listed.collect::<anyhow::Result<Vec<_>>>()
    })?;
    let files: Vec<SearchedFile> = files.into_iter().flatten().flatten().collect();

    let searched = search_blobs(&project.repository, &query.pattern, &files)?;
    // The same line is in several files of a turn: a plan is in the reply, too, and output in the
    // report.
    let mut seen = RecordedLines::new();
    for mut file in files {
        let (turn, searched) = (&chains.turns[file.turn], &searched[&file.blob]);
        // Reading the turn is slow, so only matches pay for it.
        if file.name == artifact::USER_PROMPT && searched.is_match() {
            file.part = part_of_message(&project.repository, turn)?;
            if !query.parts.contains(&file.part) {
                continue;
            }
        }
        results.add(turn, &file, searched, &mut seen);
    }

    Ok(results)
}

/// Searches each object once, however many turns contain it.
fn search_blobs(
    repository: &Repository,
    pattern: &LinePattern,
    files: &[SearchedFile],
) -> anyhow::Result<HashMap<BlobId, Searched>> {
    let mut visited = HashSet::new();
    let blobs = files.iter().map(|file| file.blob);
    let blobs: Vec<BlobId> = blobs.filter(|blob| visited.insert(*blob)).collect();
    let searched = map_parallel(repository, blobs, |repository, blobs| {
        let searched = blobs.into_iter().map(|blob| {
            let result = match repository.blob_size(blob)? > MAX_BYTES {
                true => Searched::Skipped("it is larger than 64 MiB"),
                false => pattern.search(&repository.blob(blob)?),
            };
            Ok((blob, result))
        });
        searched.collect::<anyhow::Result<Vec<_>>>()
    })?;
    Ok(searched.into_iter().flatten().collect())
}

/// Names the sessions with turns that were fetched without their files.
fn missing_code(project: &Project, turns: &[ChainTurn]) -> anyhow::Result<Vec<String>> {
    let mut counts: BTreeMap<&SessionName, usize> = BTreeMap::new();
    let fetched = turns.iter().filter(|turn| turn.session.remote().is_some());
    for turn in fetched.filter(|turn| turn.workspace.is_none()) {
        let read = Turn::read(&project.repository, &turn.session, turn.commit)?;
        if read.without_code {
            *counts.entry(&turn.session).or_default() += 1;
        }
    }

    let describe = |(session, count): (&SessionName, usize)| {
        let turns = counted(count, "turn");
        format!(
            "the files of {turns} of `{session}`, which were not pushed; `teddy push --code` on the other side sends them"
        )
    };
    Ok(counts.into_iter().map(describe).collect())
}

impl FindResult {
    /// Leaves out lines that another recorded file of the turn has, too.
    fn add(
        &mut self,
        turn: &ChainTurn,
        file: &SearchedFile,
        searched: &Searched,
        seen: &mut RecordedLines,
    ) {
        let matched = |line: Option<usize>, text: Option<String>| Match {
            session: turn.session.clone(),
            turn: turn.number,
            commit: turn.commit,
            part: file.part,
            file: file.name.clone(),
            line,
            text,
        };
        match searched {
            Searched::Lines(lines) => {
                let lines = lines.iter().filter(|(_, text)| {
                    // A report names its plan, with the session in each line, and repeats its title.
                    if file.part == TurnPart::Report && text.starts_with(REPORTED_PLAN) {
                        return false;
                    }
                    let title = text.strip_prefix(REPORTED_TITLE);
                    // A diff marks the lines of the plan.
                    let text = text.trim_start_matches(['+', '-', '#']);
                    let text = title.unwrap_or(text).trim();
                    let key = (file.turn, text.to_owned());
                    let first = seen.entry(key).or_insert_with(|| file.name.clone());
                    file.part == TurnPart::Code || *first == file.name
                });
                self.matches
                    .extend(lines.map(|(line, text)| matched(Some(*line), Some(text.clone()))));
            }
            Searched::Binary => self.matches.push(matched(None, None)),
            Searched::Skipped(why) => {
                let (session, number) = (&turn.session, turn.number);
                let name = &file.name;
                self.skipped
                    .push(format!("`{name}` of turn {session}:{number}: {why}"));
            }
        }
    }
}

fn files_of(
    repository: &Repository,
    query: &Query,
    at: usize,
    turn: &ChainTurn,
) -> anyhow::Result<Vec<SearchedFile>> {
    let is_wanted = |name: &str| query.path.as_ref().is_none_or(|path| path.is_match(name));
    let mut files = Vec::new();
    let add = |name: String, part: TurnPart, id, mode| {
        let is_file = matches!(mode, EntryMode::Blob | EntryMode::BlobExecutable);
        (is_file && is_wanted(&name)).then(|| SearchedFile {
            turn: at,
            part,
            name,
            blob: BlobId::of(id),
        })
    };

    if query.parts.iter().any(|part| *part != TurnPart::Code) {
        for leaf in repository.leaves_up_to(turn.tree, TreeLimit::SMALL)? {
            let name = lossy(&leaf.path);
            let part = part_of(&name).filter(|part| {
                let may_be_input = name == artifact::USER_PROMPT;
                query.parts.contains(part)
                    || (may_be_input && query.parts.contains(&TurnPart::Input))
            });
            files.extend(part.and_then(|part| add(name, part, leaf.id, leaf.mode)));
        }
    }

    // A plan can repeat its request, and a report the lines of all other files.
    files.sort_by_key(|file| match file.part {
        TurnPart::Request => 0,
        TurnPart::Report => 2,
        _ => 1,
    });

    if query.parts.contains(&TurnPart::Code) && turn.workspace.is_some() {
        let read = Turn::read(repository, &turn.session, turn.commit)?;
        if let Some(workspace) = &read.meta.workspace {
            for change in changes_of(repository, workspace.change())? {
                let name = lossy(&change.path);
                let new = change.new;
                files.extend(new.and_then(|new| add(name, TurnPart::Code, new.id, new.mode)));
            }
        }
    }

    Ok(files)
}

/// Feedback by TeDDy is input, not a request. Only called for turns with a match, because it reads
/// `meta.yaml`.
fn part_of_message(repository: &Repository, turn: &ChainTurn) -> anyhow::Result<TurnPart> {
    let turn = Turn::read(repository, &turn.session, turn.commit)?;
    Ok(match turn.meta.origin {
        MessageOrigin::User => TurnPart::Request,
        MessageOrigin::Validation | MessageOrigin::Loop => TurnPart::Input,
    })
}

/// `None` for metadata and for the initial state of the next turn, which is found there.
fn part_of(name: &str) -> Option<TurnPart> {
    if name.starts_with(artifact::NEXT) {
        return None;
    }

    if name.starts_with(artifact::OUTPUT) {
        return Some(TurnPart::Output);
    }

    if name.starts_with(artifact::CHANGES) {
        return Some(TurnPart::Report);
    }

    if name.starts_with(artifact::PAGES) {
        return Some(TurnPart::Input);
    }

    // Pipeline steps and replaced plans contain files of the same names in subdirectories.
    match name.rsplit('/').next().unwrap_or(name) {
        artifact::USER_PROMPT | artifact::DECLINED => Some(TurnPart::Request),
        artifact::PLAN | artifact::APPROVED | artifact::REPLY | "output.md" => Some(TurnPart::Plan),
        artifact::REPORT => Some(TurnPart::Report),
        artifact::INPUT
        | artifact::SYSTEM_PROMPT
        | artifact::TURN_CONTEXT
        | artifact::SESSION_CONTEXT => Some(TurnPart::Input),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, text: &str, expected: &[(usize, &str)]) {
        let pattern = LinePattern::new(pattern, false, false).unwrap();
        let Searched::Lines(lines) = pattern.search(text.as_bytes()) else {
            panic!("`{text}` is not text")
        };
        let actual: Vec<_> = lines
            .iter()
            .map(|(at, line)| (*at, line.as_str()))
            .collect();
        assert_eq!(actual, expected);
    }

    #[test]
    fn lines_are_searched_one_by_one() {
        check("b", "a\nb\r\ncb\n", &[(2, "b"), (3, "cb")]);
        check("^b$", "ab\nb\r\nb", &[(2, "b"), (3, "b")]);
        check("\\Ab\\z", "ab\nb\nb", &[(2, "b"), (3, "b")]);
        check("a\\sb", "a\nb\na b", &[(3, "a b")]);
        check("^$", "a\n\nb\n", &[(2, "")]);
        check("", "a\n", &[(1, "a")]);
        check("x*", "", &[]);
        check("é", "\u{e9}\n", &[(1, "é")]);
    }

    #[test]
    fn every_artifact_belongs_to_a_part_or_to_none() {
        let parts = [
            ("user_prompt.txt", Some(TurnPart::Request)),
            ("declined.txt", Some(TurnPart::Request)),
            ("plan.md", Some(TurnPart::Plan)),
            ("approved.md", Some(TurnPart::Plan)),
            ("reply.md", Some(TurnPart::Plan)),
            ("replaced/01/plan.md", Some(TurnPart::Plan)),
            ("steps/01-plan/output.md", Some(TurnPart::Plan)),
            ("steps/01-plan/input.md", Some(TurnPart::Input)),
            ("report.md", Some(TurnPart::Report)),
            ("changes/01.diff", Some(TurnPart::Report)),
            ("output/01.txt", Some(TurnPart::Output)),
            ("input.md", Some(TurnPart::Input)),
            ("pages/a.md", Some(TurnPart::Input)),
            ("turn.context", Some(TurnPart::Input)),
            ("meta.yaml", None),
            ("next/turn.context", None),
            ("requests.yaml", None),
        ];
        for (name, part) in parts {
            assert_eq!(part_of(name), part, "{name}");
        }
    }
}
