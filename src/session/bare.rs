//! Copies of a session to push: without the workspace commits, as a bare session
//! (`docs/formats/bare-session.md`), or redacted.
//!
//! Always derived from the session, without a local ref, so a copy cannot contain anything else.

use std::collections::{BTreeMap, HashMap};

use crate::git::object::batch::Batch;
use crate::git::object::batch::{
    CommitRewrite, RewrittenCommit, read_blob_within, read_message, rewrite_commit,
};
use crate::git::object::leaves::TreeLimit;
use crate::git::object::{BlobId, CommitId, TreeEntry, TreeId};
use crate::git::repository::Repository;
use crate::text::leak::{LeakKind, redact_leaks};
use crate::text::path::lossy;

use super::name::SessionName;
use super::turn::Turn;

/// Prefix of the refs of bare sessions on a remote.
pub const BARE_SESSIONS: &str = "refs/teddy/bare/";
/// In bytes. Larger artifacts are not scanned.
pub const MOST: u64 = 64 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redaction {
    pub kinds: Vec<LeakKind>,
    /// `None` if it is unknown.
    pub home: Option<String>,
    /// The contents of these commits are not redacted.
    pub keeps_code: bool,
}

impl Redaction {
    /// `None` if nothing is redacted.
    pub fn bytes(&self, bytes: &[u8], is_yaml: bool) -> Option<Vec<u8>> {
        redact_leaks(bytes, is_yaml, &self.kinds, self.home.as_deref())
    }
}

#[derive(Debug, Clone)]
pub struct SessionCopy {
    /// Oldest first.
    commits: Vec<RewrittenCommit>,
}

pub fn bare_reference(session: &SessionName) -> String {
    format!("{BARE_SESSIONS}{session}")
}

/// Oldest first. Fails if a turn is unreadable or the numbers are not consecutive.
pub fn turns_to(
    repository: &Repository,
    session: &SessionName,
    tip: CommitId,
) -> anyhow::Result<Vec<Turn>> {
    let mut turns = vec![Turn::read(repository, session, tip)?];
    while let Some(previous) = turns.last().and_then(|turn| turn.previous) {
        let turn = Turn::read(repository, session, previous)?;
        let number = turns.last().map_or(0, Turn::number);
        anyhow::ensure!(
            turn.number().checked_add(1) == Some(number),
            "the turn before turn {number} of `{session}` says that it is turn {}",
            turn.number()
        );
        turns.push(turn);
    }

    let first = turns.last().map_or(0, Turn::number);
    anyhow::ensure!(
        first == 0,
        "the first turn of `{session}` says that it is turn {first}"
    );
    turns.reverse();
    Ok(turns)
}

/// `turns` is oldest first. Writes no objects.
pub fn bare_copy(repository: &Repository, turns: &[Turn]) -> anyhow::Result<SessionCopy> {
    let mut commits: Vec<RewrittenCommit> = Vec::with_capacity(turns.len());
    for turn in turns {
        let target = CommitRewrite {
            tree: turn.tree,
            parent: commits.last().map(|commit| commit.id),
            others: &[],
            message: None,
        };
        commits.push(rewrite_commit(repository, turn.commit, &target)?);
    }
    Ok(SessionCopy { commits })
}

/// `turns` is oldest first. New blobs and trees go into `batch`.
pub fn redacted(
    repository: &Repository,
    turns: &[Turn],
    redaction: &Redaction,
    batch: &Batch<'_>,
) -> anyhow::Result<SessionCopy> {
    let mut redactor = Redactor {
        repository,
        redaction,
        batch,
        cache: HashMap::new(),
    };
    let mut commits: Vec<RewrittenCommit> = Vec::with_capacity(turns.len());
    for turn in turns {
        let message = read_message(repository, turn.commit)?;
        let message = redactor.redaction.bytes(&message, false);
        let others: Vec<CommitId> = match redaction.keeps_code {
            true => [turn.workspace, turn.publication]
                .into_iter()
                .flatten()
                .collect(),
            false => Vec::new(),
        };
        let target = CommitRewrite {
            tree: redactor.tree(turn.tree)?,
            parent: commits.last().map(|commit| commit.id),
            others: &others,
            message: message.as_deref(),
        };
        commits.push(rewrite_commit(repository, turn.commit, &target)?);
    }

    Ok(SessionCopy { commits })
}

impl SessionCopy {
    pub fn ids(&self) -> Vec<CommitId> {
        self.commits.iter().map(|commit| commit.id).collect()
    }

    pub fn number_of(&self, id: CommitId) -> Option<usize> {
        self.commits.iter().position(|commit| commit.id == id)
    }

    pub fn size_from(&self, number: usize) -> u64 {
        let sizes = self.commits.iter().skip(number).map(RewrittenCommit::size);
        sizes.sum::<usize>() as u64
    }

    pub fn write(self, batch: &Batch<'_>) -> anyhow::Result<()> {
        let mut commits = self.commits.into_iter();
        commits.try_for_each(|commit| batch.remade(commit))
    }
}

struct Redactor<'a> {
    repository: &'a Repository,
    redaction: &'a Redaction,
    batch: &'a Batch<'a>,
    /// By blob and whether it is YAML. `None` if the blob is unchanged.
    cache: HashMap<(BlobId, bool), Option<BlobId>>,
}

impl Redactor<'_> {
    fn tree(&mut self, tree: TreeId) -> anyhow::Result<TreeId> {
        let mut edits = BTreeMap::new();
        for leaf in self.repository.leaves_up_to(tree, TreeLimit::SMALL)? {
            let is_yaml = lossy(&leaf.path).ends_with(".yaml");
            if leaf.is_file()
                && let Some(blob) = self.blob(BlobId::of(leaf.id), is_yaml)?
            {
                let (mode, id) = (leaf.mode, blob.into());
                edits.insert(leaf.path, Some(TreeEntry { mode, id }));
            }
        }

        match edits.is_empty() {
            true => Ok(tree),
            false => self.batch.tree_with(tree, &edits),
        }
    }

    /// `None` if it is unchanged.
    fn blob(&mut self, blob: BlobId, is_yaml: bool) -> anyhow::Result<Option<BlobId>> {
        if let Some(cached) = self.cache.get(&(blob, is_yaml)) {
            return Ok(*cached);
        }

        // An artifact that is too large to scan is kept. `teddy push` reports it.
        let bytes = read_blob_within(self.repository, blob, MOST)?;
        let plain = bytes.and_then(|bytes| self.redaction.bytes(&bytes, is_yaml));
        let new = plain.map(|bytes| self.batch.blob(&bytes)).transpose()?;
        self.cache.insert((blob, is_yaml), new);
        Ok(new)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::git::command::init;
    use crate::git::object::NewCommit;
    use crate::git::object::batch::begin_batch;
    use crate::session::artifact;
    use crate::session::meta::{self, Meta, Status};

    const PARTS: [&str; 6] = [
        "plain words\n",
        "see /home/ada/x\n",
        concat!("text: gh", "p_a9Zk3Qx7Lm2Vt8Rb5Nw4Yc6Hd1Jf0Gs4x8Pq2\n"),
        "C:\\Users\\ada\\x",
        "https://example.org/home/ada/x\n",
        "\u{1}\u{ff}",
    ];
    const FILES: [&str; 4] = [
        "report.md",
        "output/01.txt",
        "requests.yaml",
        "next/requests.yaml",
    ];

    fn repository(dir: &tempfile::TempDir) -> Repository {
        init(dir.path()).unwrap();
        Repository::open(dir.path()).unwrap()
    }

    /// Creates a chain of turns, each with its own workspace commits.
    fn chain(repository: &Repository, turns: &[Vec<usize>], code: &str) -> Vec<Turn> {
        let session = SessionName::parse("demo").unwrap();
        let mut recorded: Vec<Turn> = Vec::new();
        for (number, parts) in turns.iter().enumerate() {
            let batch = begin_batch(repository);
            let blob = batch.blob(format!("{code} {number}").as_bytes()).unwrap();
            let tree = batch.tree_of(&[("secret.rs".to_owned(), blob)]).unwrap();
            // Equal timestamps, as two copies of a session can have.
            let time = "2026-01-02T03:04:05Z[UTC]".parse().unwrap();
            let commit = |tree, parents: &[CommitId], message: &str| {
                let time = &time;
                let new = NewCommit {
                    tree,
                    parents,
                    message,
                    time,
                };
                batch.commit(&new).unwrap()
            };
            let workspace = commit(tree, &[], code);

            let id = uuid::Uuid::from_u128(number as u128);
            let meta = Meta::of(id, number as u64, Status::Executed, "assistant");
            let mut files = vec![(artifact::META, meta::write(&meta))];
            for (at, part) in parts.iter().enumerate().take(FILES.len()) {
                files.push((FILES[at], PARTS[*part].to_owned()));
            }
            let blobs = files.iter().map(|(name, text)| {
                let blob = batch.blob(text.as_bytes()).unwrap();
                ((*name).to_owned(), blob)
            });
            let tree = batch.tree_of(&blobs.collect::<Vec<_>>()).unwrap();
            let previous = recorded.last().map(|turn| turn.commit).into_iter();
            let parents: Vec<_> = previous.chain((number > 0).then_some(workspace)).collect();
            let message = parts.first().map_or("none", |part| PARTS[*part]);
            let commit = commit(tree, &parents, message);
            batch.finish().unwrap();
            recorded.push(Turn::read(repository, &session, commit).unwrap());
        }
        recorded
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn bare2_copies_are_the_same_everywhere_and_grow_at_their_end(
            turns in proptest::collection::vec(proptest::collection::vec(0..PARTS.len(), 0..6), 1..6),
            cut in 0..6usize,
            keys: bool,
        ) {
            let (here, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let (here, other) = (repository(&here), repository(&other));
            let (mine, other_turns) = (chain(&here, &turns, "here"), chain(&other, &turns, "there"));
            let cut = cut.min(mine.len());
            let plain = bare_copy(&here, &mine).unwrap();
            prop_assert_eq!(plain.ids(), bare_copy(&other, &other_turns).unwrap().ids());
            prop_assert_eq!(&plain.ids()[..cut], bare_copy(&here, &mine[..cut]).unwrap().ids());

            let kinds = if keys {
                LeakKind::ALL.to_vec()
            } else {
                vec![LeakKind::Paths]
            };
            let redaction = Redaction {
                kinds: kinds.clone(),
                home: None,
                keeps_code: false,
            };
            let redacted_ids = |repository: &Repository, turns: &[Turn]| {
                let batch = begin_batch(repository);
                let copy = redacted(repository, turns, &redaction, &batch).unwrap();
                let ids = copy.ids();
                copy.write(&batch).unwrap();
                batch.finish().unwrap();
                ids
            };
            let ids = redacted_ids(&here, &mine);
            prop_assert_eq!(&ids, &redacted_ids(&other, &other_turns));
            prop_assert_eq!(&ids[..cut], redacted_ids(&here, &mine[..cut]));

            // Redaction has removed every leak and changed nothing else.
            for (id, turn) in ids.iter().zip(&mine) {
                let commit = here.commit(*id).unwrap();
                prop_assert!(!commit.message.contains("see /home/ada/x"));
                let (old, new) = (here.files(turn.tree).unwrap(), here.files(commit.tree).unwrap());
                prop_assert!(old.keys().eq(new.keys()));
                for (name, bytes) in new {
                    let expected = redact_leaks(&old[&name], name.ends_with(".yaml"), &kinds, None);
                    prop_assert_eq!(&bytes, &expected.unwrap_or_else(|| old[&name].clone()));
                    prop_assert_eq!(redact_leaks(&bytes, false, &kinds, None), None);
                }
            }
        }
    }
}
