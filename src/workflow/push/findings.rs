//! Finds keys and personal paths that a push would publish, in turns and in the code pushed with
//! them.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use crate::git::object::batch::{read_blob_within, read_message};
use crate::git::object::leaves::TreeLimit;
use crate::git::object::{BlobId, CommitId};
use crate::git::remote::missing_on_remote::{MissingCode, MissingFile};
use crate::git::repository::Repository;
use crate::session::artifact;
use crate::session::bare::MOST;
use crate::session::turn::Turn;
use crate::text::leak::{Leak, LeakKind, leaks, masked_excerpt, searched_texts};
use crate::text::path::lossy;

const MESSAGE: &str = "message";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LeakFindingKind {
    Keys,
    /// Contains a user name.
    Paths,
    /// Too large to scan.
    Unread,
}

impl LeakFindingKind {
    pub fn name(self) -> &'static str {
        match self {
            LeakFindingKind::Keys => LeakKind::Keys.name(),
            LeakFindingKind::Paths => LeakKind::Paths.name(),
            LeakFindingKind::Unread => "unread",
        }
    }
}

impl From<LeakKind> for LeakFindingKind {
    fn from(kind: LeakKind) -> LeakFindingKind {
        match kind {
            LeakKind::Keys => LeakFindingKind::Keys,
            LeakKind::Paths => LeakFindingKind::Paths,
        }
    }
}

/// The same content counts only once per session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeakFinding {
    /// `session:turn:artifact:line`
    pub name: String,
    pub kind: LeakFindingKind,
    pub what: String,
    /// Of the line, with keys masked.
    pub line: String,
    pub places: usize,
    pub allowed: bool,
    /// In a file or the message of a commit, so that redaction cannot remove it.
    #[serde(skip)]
    pub in_code: bool,
}

impl LeakFinding {
    /// `allowed` is its kind, its name, or a prefix of its name up to a colon.
    pub fn is_named(&self, allowed: &str) -> bool {
        let suffix = self.name.strip_prefix(allowed);
        self.kind.name() == allowed || suffix.is_some_and(|r| r.is_empty() || r.starts_with(':'))
    }
}

pub struct LeakSearch<'a> {
    repository: &'a Repository,
    home: Option<&'a str>,
    /// Index of each finding by content; `None` if the remote already has it.
    by_leak: HashMap<(LeakKind, String), Option<usize>>,
    /// Scanned files, and whether they were scanned for paths.
    visited: HashSet<(BlobId, bool)>,
    findings: Vec<LeakFinding>,
}

#[derive(Clone, Copy)]
struct Spot<'a> {
    /// `None` if the remote already has the turn.
    turn: Option<&'a Turn>,
    file: &'a str,
    kinds: &'a [LeakKind],
}

impl<'a> LeakSearch<'a> {
    pub fn new(repository: &'a Repository, home: Option<&'a str>) -> LeakSearch<'a> {
        LeakSearch {
            repository,
            home,
            by_leak: HashMap::new(),
            visited: HashSet::new(),
            findings: Vec::new(),
        }
    }

    pub fn findings(self) -> Vec<LeakFinding> {
        self.findings
    }

    /// Content of a turn that the remote has is not reported again.
    pub fn pass(&mut self, turn: &Turn) -> anyhow::Result<()> {
        self.artifacts(turn, None)
    }

    pub fn turn(&mut self, turn: &Turn) -> anyhow::Result<()> {
        self.artifacts(turn, Some(turn))
    }

    fn artifacts(&mut self, turn: &Turn, sent: Option<&Turn>) -> anyhow::Result<()> {
        let mut leaves = self.repository.leaves_up_to(turn.tree, TreeLimit::SMALL)?;
        // Scan what the user and the model wrote first; a finding is named after its first
        // occurrence.
        leaves.sort_by_key(|leaf| (order(&lossy(&leaf.path)), leaf.path.clone()));
        for leaf in leaves {
            let file = lossy(&leaf.path);
            // The input contains the project's directory and the previous report; its paths would
            // always be findings.
            let kinds: &[LeakKind] = match is_input(&file) {
                true => &[LeakKind::Keys],
                false => &LeakKind::ALL,
            };
            let (turn, file) = (sent, file.as_str());
            if leaf.is_file() {
                self.blob(BlobId::of(leaf.id), Spot { turn, file, kinds })?;
            }
        }

        let spot = Spot {
            turn: sent,
            file: MESSAGE,
            kinds: &LeakKind::ALL,
        };
        self.bytes(&read_message(self.repository, turn.commit)?, spot);
        Ok(())
    }

    pub fn code(&mut self, missing: &MissingCode, turns: &[Turn]) -> anyhow::Result<()> {
        for commit in &missing.commits {
            let before = self.findings.len();
            let id = commit.to_string();
            let is_of = |turn: &&Turn| [turn.workspace, turn.publication].contains(&Some(*commit));
            let spot = Spot {
                turn: turns.iter().find(is_of).or(turns.last()),
                file: &format!("commit {}", &id[..8]),
                kinds: &LeakKind::ALL,
            };
            self.bytes(&read_message(self.repository, *commit)?, spot);
            let new_findings = self.findings[before..].iter_mut();
            new_findings.for_each(|finding| finding.in_code = true);
        }
        for MissingFile { path, blob } in &missing.files {
            let before = self.findings.len();
            let file = lossy(path);
            let spot = Spot {
                turn: turns.last(),
                file: &file,
                kinds: &LeakKind::ALL,
            };
            self.blob(*blob, spot)?;
            if self.findings.len() == before {
                continue;
            }
            let new_findings = self.findings[before..].iter_mut();
            new_findings.for_each(|finding| finding.in_code = true);

            // Find the turn of a file only if the file has a finding, because that is slow.
            let first = turns.iter().find(|turn| self.has(turn, path, *blob));
            let Some((last, first)) = turns.last().zip(first) else {
                continue;
            };
            let [old, new] = [last, first].map(front);
            for finding in &mut self.findings[before..] {
                finding.name = finding.name.replacen(&old, &new, 1);
            }
        }
        Ok(())
    }

    fn has(&self, turn: &Turn, path: &[u8], blob: BlobId) -> bool {
        let workspace = turn.meta.workspace.as_ref();
        let before = workspace.map(|workspace| workspace.before);
        let commits = [before, turn.workspace, turn.publication];
        commits.into_iter().flatten().any(|id: CommitId| {
            let commit = self.repository.commit(id).ok();
            let entry =
                commit.and_then(|commit| self.repository.entry(commit.tree, path).ok().flatten());
            entry.is_some_and(|entry| BlobId::of(entry.id) == blob)
        })
    }

    fn blob(&mut self, blob: BlobId, spot: Spot<'_>) -> anyhow::Result<()> {
        if !self
            .visited
            .insert((blob, spot.kinds.contains(&LeakKind::Paths)))
        {
            return Ok(());
        }

        if let Some(bytes) = read_blob_within(self.repository, blob, MOST)? {
            self.bytes(&bytes, spot);
        } else if let Some(turn) = spot.turn {
            self.findings.push(LeakFinding {
                name: format!("{}{}:1", front(turn), spot.file),
                kind: LeakFindingKind::Unread,
                what: "too large to be looked at".to_owned(),
                line: String::new(),
                places: 1,
                allowed: false,
                in_code: false,
            });
        }
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8], spot: Spot<'_>) {
        for text in searched_texts(bytes) {
            let all = leaks(&text, self.home);
            for leak in all.iter().filter(|leak| spot.kinds.contains(&leak.kind)) {
                self.add_finding(&text, leak, &all, spot);
            }
        }
    }

    fn add_finding(&mut self, text: &str, leak: &Leak, all: &[Leak], spot: Spot<'_>) {
        let key = (leak.kind, text[leak.range.clone()].to_owned());
        let Some(turn) = spot.turn else {
            self.by_leak.insert(key, None);
            return;
        };
        match self.by_leak.get(&key) {
            Some(Some(at)) => self.findings[*at].places += 1,
            Some(None) => {}
            None => {
                let line = text[..leak.range.start].matches('\n').count() + 1;
                self.by_leak.insert(key, Some(self.findings.len()));
                self.findings.push(LeakFinding {
                    name: format!("{}{}:{line}", front(turn), spot.file),
                    kind: leak.kind.into(),
                    what: leak.label.to_owned(),
                    line: masked_excerpt(text, leak, all),
                    places: 1,
                    allowed: false,
                    in_code: false,
                });
            }
        }
    }
}

fn front(turn: &Turn) -> String {
    format!("{}:{}:", turn.session, turn.number())
}

fn is_input(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    name == artifact::INPUT || name == artifact::RESUMED_PROMPT
}

fn order(file: &str) -> usize {
    let first = [
        artifact::USER_PROMPT,
        artifact::REPLY,
        artifact::PLAN,
        artifact::APPROVED,
        artifact::OUTPUT,
        artifact::REPORT,
    ];
    let position = first.iter().position(|name| file.starts_with(name));
    position.unwrap_or(first.len() + usize::from(file.starts_with(artifact::NEXT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare9_a_finding_is_allowed_by_its_name_by_the_front_of_it_and_by_its_kind() {
        let finding = LeakFinding {
            name: "add-auth:3:report.md:12".to_owned(),
            kind: LeakFindingKind::Keys,
            what: "github token".to_owned(),
            line: String::new(),
            places: 1,
            allowed: false,
            in_code: false,
        };
        let check = |allowed: &str, expected: bool| {
            assert_eq!(finding.is_named(allowed), expected, "{allowed}");
        };
        check("add-auth:3:report.md:12", true);
        check("add-auth:3", true);
        check("add-auth", true);
        check("keys", true);
        check("paths", false);
        check("add-auth:3:report.md:1", false);
        check("add", false);
        check("", false);
    }
}
