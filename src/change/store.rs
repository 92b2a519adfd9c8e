//! Stores changes as refs, and their steps as commits.
//!
//! A fetched change is untrusted: sizes are bounded, and only known paths are documents. The specs
//! from the start of a change are in its own tree, so that a fetched ref is complete.

use std::collections::BTreeMap;

use anyhow::Context as _;

use super::document::Documents;
use super::id::{CHANGES, ChangeId};
use super::phase::{self, ChangePhase, ChangeStep};
use super::review::ReviewVerdict;
use super::shape::DocumentKind;
use super::state::{self, ChangeEntry, ChangeState};
use crate::git::object::{BlobId, CommitId, EntryMode, NewCommit, TreeEntry, TreeId, batch};
use crate::git::repository::Repository;
use crate::git::{diff, refs};
use crate::session::turn::{commit_subject, trailer};
use crate::text::counted;
use crate::text::hint::with_hint;
use crate::text::sanitize::sanitize_line;

/// The project's specs from the start of the change.
pub const BASE: &str = "base/specs";

/// In bytes.
const MAX_STATE: u64 = 16 << 20;

/// In bytes, all together.
const MAX_DOCUMENTS: u64 = 64 << 20;

/// In bytes.
const MAX_MESSAGE: u64 = 1 << 20;

pub struct ChangeStore<'a> {
    pub repository: &'a Repository,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub id: ChangeId,
    /// `None` before the first step.
    pub commit: Option<CommitId>,
    /// Before the first step, a tree with at most [`BASE`].
    pub tree: TreeId,
    pub state: ChangeState,
    pub documents: Documents,
    /// Turns of the session that are not in effect any more, so that their work is open again.
    pub undone: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct StepRow {
    pub commit: CommitId,
    pub title: String,
    /// From the trailers.
    pub step: String,
    /// After the step.
    pub phase: String,
    pub verdict: Option<String>,
    /// In RFC 3339. `None` if the commit time is out of range.
    pub time: Option<String>,
}

impl Change {
    /// What to do next, for the user.
    pub fn next_step(&self) -> String {
        match self.is_rejected_by_review() {
            true => rejected_by_review(&self.id),
            false => next_step(&self.id, self.state.phase),
        }
    }

    /// The last review rejects the implementation, and nothing was done or undone since.
    pub fn is_rejected_by_review(&self) -> bool {
        let (done, tasks) = self.documents.progress();
        let Some((review, entry)) = self.last(ChangeStep::Review) else {
            return false;
        };
        let is_since = |step| self.last(step).is_some_and(|(at, _)| at > review);
        self.state.phase == ChangePhase::Implementing
            && done == tasks
            && entry.verdict == Some(ReviewVerdict::Rejected)
            && !is_since(ChangeStep::Task)
            && !is_since(ChangeStep::Fix)
    }

    /// With its index. Skips work that was undone.
    pub fn last(&self, step: ChangeStep) -> Option<(usize, &ChangeEntry)> {
        let mut entries = self.state.history.iter().enumerate().rev();
        entries.find(|(_, entry)| {
            let is_undone = entry.turn.is_some_and(|turn| self.undone.contains(&turn));
            entry.step == step.word() && !is_undone
        })
    }
}

fn rejected_by_review(id: &ChangeId) -> String {
    format!(
        "`teddy change show {id} review` has the reasons; `teddy change impl {id} -m '<what to do>'` lets the implementer fix it, `teddy change review {id}` asks again, and `teddy change approve {id} --reason '<why>'` overrides the review"
    )
}

impl ChangeStore<'_> {
    /// Sorted by id. Skips refs with invalid ids.
    pub fn ids(&self) -> anyhow::Result<Vec<(ChangeId, CommitId)>> {
        let references = refs::list(self.repository, CHANGES)?;
        let parse_ref = |r: refs::Reference| {
            Some((
                ChangeId::parse(r.name.strip_prefix(CHANGES)?).ok()?,
                r.target,
            ))
        };
        Ok(references.into_iter().filter_map(parse_ref).collect())
    }

    /// Fails with [`ChangeError::ChangeNotFound`].
    pub fn read(&self, id: &ChangeId) -> anyhow::Result<Change> {
        match refs::read(self.repository, &id.reference())? {
            Some(commit) => self.at(id, commit).map_err(|error| {
                let name = id.reference();
                match error.is::<serde_yaml::Error>() {
                    true => with_hint(
                        error,
                        format!("`git update-ref {name} {name}~` goes back to the step before"),
                    ),
                    false => error,
                }
            }),
            None => Err(ChangeError::ChangeNotFound(id.clone()).into()),
        }
    }

    /// Fails if the commit is not a step.
    pub fn at(&self, id: &ChangeId, commit: CommitId) -> anyhow::Result<Change> {
        let tree = self.repository.commit(commit)?.tree;
        let text = self
            .repository
            .file_up_to(tree, state::FILE, MAX_STATE)?
            .with_context(|| format!("commit {commit} has no `{}`", state::FILE))?;
        let text = String::from_utf8_lossy(&text);
        let state =
            state::read(&text).with_context(|| format!("reading `{}` of `{id}`", state::FILE))?;
        let (mut documents, mut bytes) = (Documents::default(), 0);

        // A symbolic link or submodule is not a document.
        for leaf in self
            .repository
            .leaves(tree)?
            .iter()
            .filter(|it| it.is_file())
        {
            let path = std::str::from_utf8(&leaf.path).ok();
            let Some(path) = path.filter(|path| DocumentKind::of(path).is_some()) else {
                continue;
            };
            // Before the content is read: a small pack can expand to gigabytes.
            bytes += self.repository.blob_size(BlobId::of(leaf.id))?;
            anyhow::ensure!(
                bytes <= MAX_DOCUMENTS,
                "the documents of `{id}` have more than {MAX_DOCUMENTS} bytes"
            );
            let text = self.repository.blob(BlobId::of(leaf.id))?;
            documents.insert(path, String::from_utf8_lossy(&text));
        }
        Ok(Change {
            id: id.clone(),
            commit: Some(commit),
            tree,
            state,
            documents,
            undone: Vec::new(),
        })
    }

    /// The initial tree of a change, with a copy of the specs of `project`, whose tree is also
    /// returned.
    pub fn beginning(&self, project: TreeId) -> anyhow::Result<(TreeId, Option<TreeId>)> {
        let empty = self.repository.empty_tree();
        match self.repository.entry(project, b"specs")? {
            Some(specs) if specs.mode == EntryMode::Tree => {
                let id = specs.id.to_string().parse()?;
                let edits = BTreeMap::from([(BASE.as_bytes().to_vec(), Some(specs))]);
                let tree = diff::tree_with(self.repository, empty, &edits)?;
                Ok((tree, Some(id)))
            }
            _ => Ok((empty, None)),
        }
    }

    /// Moves no ref.
    pub fn write(&self, change: &Change, message: &str) -> anyhow::Result<(CommitId, TreeId)> {
        let mut edits: BTreeMap<Vec<u8>, Option<TreeEntry>> = BTreeMap::new();
        if change.commit.is_some() {
            // Remove all documents first, then add the current ones. Other files in the tree are
            // kept.
            let removed = self
                .repository
                .leaves(change.tree)?
                .into_iter()
                .map(|leaf| leaf.path);
            let removed =
                removed.filter(|path| DocumentKind::of(&String::from_utf8_lossy(path)).is_some());
            edits.extend(removed.map(|path| (path, None)));
        }

        let batch = batch::begin_batch(self.repository);
        let state = (state::FILE.to_owned(), state::write(&change.state));
        for (path, text) in change.documents.0.clone().into_iter().chain([state]) {
            let blob = batch.blob(text.as_bytes())?;
            edits.insert(
                path.into_bytes(),
                Some(TreeEntry {
                    mode: EntryMode::Blob,
                    id: blob.into(),
                }),
            );
        }

        let tree = batch.tree_with(change.tree, &edits)?;
        let parents: Vec<CommitId> = change.commit.into_iter().collect();
        let time = crate::host::clock::now();
        let commit = batch.commit(&NewCommit {
            tree,
            parents: &parents,
            message,
            time: &time,
        })?;

        batch.stage()?;
        Ok((commit, tree))
    }

    /// Newest first.
    pub fn steps(&self, newest: CommitId) -> anyhow::Result<Vec<StepRow>> {
        let (mut rows, mut at) = (Vec::new(), Some(newest));
        while let Some(id) = at {
            anyhow::ensure!(
                self.repository.commit_size(id)? <= MAX_MESSAGE,
                "commit {id} has more than {MAX_MESSAGE} bytes, so it is no step of a change"
            );
            let commit = self.repository.commit(id)?;
            let trailer = |key: &str| trailer(&commit.message, key).map(str::to_owned);
            rows.push(StepRow {
                commit: id,
                title: commit.message.lines().next().unwrap_or_default().to_owned(),
                // A commit without trailers is the user's own.
                step: trailer("Teddy-Step").unwrap_or_else(|| "edit".to_owned()),
                phase: trailer("Teddy-Phase").unwrap_or_default(),
                verdict: trailer("Teddy-Verdict").map(|verdict| verdict.to_lowercase()),
                time: crate::host::clock::of_seconds(commit.seconds),
            });
            at = commit.parents.first().copied();
        }

        Ok(rows)
    }
}

pub fn commit_message(title: &str, lines: &[String], state: &ChangeState) -> String {
    let mut text = format!("{}\n\n", commit_subject(title));
    for line in lines {
        text += &format!("{}\n", sanitize_line(line));
    }

    if !lines.is_empty() {
        text.push('\n');
    }

    let entry = state.history.last();
    let usage = entry.and_then(|entry| entry.usage.as_ref());
    let iteration = state.iteration.to_string();
    let turn = entry
        .and_then(|entry| entry.turn)
        .map(|turn| turn.to_string());
    for (name, value) in [
        ("Change", Some(state.change_id.as_str())),
        ("Step", Some(state.last_action.as_deref().unwrap_or("none"))),
        ("Phase", Some(state.phase.word())),
        ("Iteration", Some(&iteration)),
        (
            "Verdict",
            entry
                .and_then(|entry| entry.verdict)
                .map(ReviewVerdict::word),
        ),
        ("Turn", turn.as_deref()),
        ("Model", usage.map(|usage| usage.model.as_str())),
    ] {
        if let Some(value) = value {
            text += &format!("Teddy-{name}: {}\n", sanitize_line(value));
        }
    }

    text
}

/// Conditions that a user can resolve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    #[error("there is no change `{0}`")]
    ChangeNotFound(ChangeId),
    #[error("the change `{0}` is new and has no description")]
    MissingDescription(ChangeId),
    #[error("the proposal of `{0}` is rejected")]
    Rejected(ChangeId),
    #[error("the change `{id}` is {}, so `{wanted}` is not possible", phase.word())]
    ChangeNotReady {
        id: ChangeId,
        phase: ChangePhase,
        wanted: &'static str,
    },
    #[error("the change `{id}` is {}, not complete", phase.word())]
    ChangeNotComplete { id: ChangeId, phase: ChangePhase },
    #[error("the documents of `{id}` have {}", counted(*count, "mistake"))]
    Invalid {
        id: ChangeId,
        phase: ChangePhase,
        count: usize,
    },
    #[error("the change `{id}` has {}", counted(*open, "open task"))]
    OpenTasks { id: ChangeId, open: usize },
}

impl ChangeError {
    pub fn hint(&self) -> String {
        match self {
            ChangeError::ChangeNotFound(id) => {
                format!(
                    "`teddy change list` lists the changes; `teddy change plan {id} '<description>'` starts this one"
                )
            }
            ChangeError::MissingDescription(id) => {
                format!("say what it is for: `teddy change plan {id} '<description>'`")
            }
            ChangeError::Rejected(id) => format!(
                "`teddy change show {id} review` has the reasons; change the proposal with `teddy change reproposal {id} --from <file>` and run `teddy change challenge {id}`, or override it with `teddy change approve {id} --reason '<why>'`"
            ),
            ChangeError::ChangeNotReady { id, phase, .. } => next_step(id, *phase),
            ChangeError::ChangeNotComplete { id, phase } => next_step(id, *phase),
            ChangeError::Invalid { id, phase, .. } if phase::allows(*phase, ChangeStep::Edit) => {
                format!(
                    "`teddy change validate {id}` lists them; `teddy change reproposal {id} --from <file>` takes a better document"
                )
            }
            ChangeError::Invalid { id, .. } => {
                format!(
                    "`teddy change validate {id}` lists them; a commit on `{}` corrects them",
                    id.reference()
                )
            }
            ChangeError::OpenTasks { id, .. } => {
                format!("`teddy change impl {id}` continues them")
            }
        }
    }
}

pub fn next_step(id: &ChangeId, phase: ChangePhase) -> String {
    match phase {
        ChangePhase::Proposed => {
            format!(
                "`teddy change plan {id}` challenges it; `teddy change approve {id} --reason '<why>'` overrides the challenge"
            )
        }
        ChangePhase::Challenged => {
            format!("planning is complete; `teddy change impl {id}` implements it")
        }
        ChangePhase::Rejected => {
            format!(
                "`teddy change show {id} review` has the reasons; fix the proposal and run `teddy change challenge {id}`"
            )
        }
        ChangePhase::Implementing => format!("`teddy change impl {id}` continues it"),
        ChangePhase::Complete => {
            format!("`teddy change archive {id}` merges its specs into the project's")
        }
        ChangePhase::Archived => format!("it is archived; `teddy change show {id}` still reads it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_without_end_are_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let repository = Repository::init(dir.path(), None).unwrap();
        let store = ChangeStore {
            repository: &repository,
        };
        let id = ChangeId::parse("add-auth").unwrap();
        let check = |state: &str, document: usize, expected: &str| {
            let batch = batch::begin_batch(&repository);
            let files = [
                (state::FILE, state.to_owned()),
                ("proposal.md", " ".repeat(document)),
                ("tasks.md", " ".repeat(document)),
            ];
            let files = files.map(|(path, text)| {
                let blob = batch.blob(text.as_bytes()).unwrap();
                (path.to_owned(), blob)
            });
            let tree = batch.tree_of(&files).unwrap();
            let commit = batch
                .commit(&NewCommit {
                    tree,
                    parents: &[],
                    message: "One\n",
                    time: &crate::host::clock::now(),
                })
                .unwrap();
            batch.finish().unwrap();
            let error = format!("{:#}", store.at(&id, commit).unwrap_err());
            assert!(error.contains(expected), "{error}");
        };
        let state = "#".repeat(usize::try_from(MAX_STATE).unwrap() + 1);
        check(&state, 1, "and no more than 16777216 are read");
        let valid = "change_id: add-auth\nphase: proposed\n";
        check(valid, 33 << 20, "have more than 67108864 bytes");
    }
}

#[cfg(test)]
mod message_tests {
    use super::super::phase::ChangeStep;
    use super::super::state::read;
    use super::*;
    use crate::change::review::ReviewVerdict;
    use crate::change::state::ChangeEntry;

    #[test]
    fn the_message_reads_well_and_ends_with_trailers() {
        let mut state = read("change_id: greet\nphase: proposed\n").unwrap();
        let entry = ChangeEntry {
            verdict: Some(ReviewVerdict::Approved),
            ..ChangeEntry::default()
        };
        state.apply(ChangeStep::Challenge, entry).unwrap();
        assert_eq!(
            commit_message(
                "Challenge 1: approved\nTeddy-Phase: evil",
                &["No issues.\u{1b}[0m".to_owned()],
                &state
            ),
            "Challenge 1: approved\n\nNo issues.\\u{1b}[0m\n\nTeddy-Change: greet\nTeddy-Step: challenge\nTeddy-Phase: challenged\n\
             Teddy-Iteration: 1\nTeddy-Verdict: APPROVED\n"
        );
    }
}

#[cfg(test)]
mod error_tests {
    use super::*;

    #[test]
    fn every_error_says_what_to_do() {
        let id = ChangeId::parse("add-auth").unwrap();
        let error = ChangeError::ChangeNotReady {
            id: id.clone(),
            phase: ChangePhase::Proposed,
            wanted: "impl",
        };
        assert_eq!(
            error.to_string(),
            "the change `add-auth` is proposed, so `impl` is not possible"
        );
        assert!(
            error.hint().contains("`teddy change plan add-auth`"),
            "{}",
            error.hint()
        );
        let error = ChangeError::ChangeNotComplete {
            id,
            phase: ChangePhase::Implementing,
        };
        assert_eq!(
            (error.to_string().as_str(), error.hint().as_str()),
            (
                "the change `add-auth` is implementing, not complete",
                "`teddy change impl add-auth` continues it"
            )
        );
    }
}
