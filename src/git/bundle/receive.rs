//! Imports a bundle. Its objects are checked in a scratch repository, then enter the user's
//! repository as packs together with the refs, or not at all.

use std::fs::File;
use std::io::{BufReader, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::Context as _;
use gix::objs::FindHeader as _;

use super::BundleError;
use super::borrowing::{BorrowingRepository, create_scratch_dir};
use super::header::{self, BundleHead, BundledRef};
use crate::git::During as _;
use crate::git::incoming::MAX_OBJECT;
use crate::git::incoming::examine::run_check;
use crate::git::incoming::quarantine::{in_list, incoming_dir};
use crate::git::keep::pack::Sealed;
use crate::git::keep::pack::keep;
use crate::git::object::CommitId;
use crate::git::refs::{self, Expected, RefMove};
use crate::git::repository::Repository;
use crate::host::fault;

/// Maximum size of a bundle, unless the user accepts a larger one.
const MAX_BUNDLE: u64 = 4 << 30;
/// git's object checks, except harmless ones that old histories fail.
const FSCK_RULES: &str = "--strict=zeroPaddedFilemode=ignore,missingSpaceBeforeEmail=ignore,\
                     missingNameBeforeEmail=ignore,badTimezone=ignore,missingSpaceBeforeDate=ignore";
const MAX_NAMED_MISSING: usize = 3;

/// Size limit for a bundle and its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeLimit {
    /// The usual limit.
    Usual,
    /// No limit.
    None,
}

/// A bundle with a parsed header.
#[derive(Debug)]
pub struct OpenedBundle {
    file: File,
    head: BundleHead,
    limit: SizeLimit,
}

/// A bundle whose objects passed all checks.
pub struct ReceivedBundle<'r> {
    repository: &'r Repository,
    scratch: BorrowingRepository,
    /// The scratch repository, open: sees the user's objects and the bundle's.
    pub combined: Repository,
}

/// Parses the header of a bundle and checks size and prerequisites. Fails with [`BundleError`].
pub fn open(
    repository: &Repository,
    mut file: File,
    limit: SizeLimit,
) -> anyhow::Result<OpenedBundle> {
    let hash = repository.gix.object_hash();
    let head = header::read_header(&mut BufReader::new(&mut file), hash)?;
    let length = file.metadata()?.len();
    anyhow::ensure!(
        limit == SizeLimit::None || length <= MAX_BUNDLE,
        BundleError::TooLarge(MAX_BUNDLE >> 30)
    );

    let lacks = |id: &&CommitId| repository.commit(**id).is_err();
    let lacking: Vec<String> = head
        .needs
        .iter()
        .filter(lacks)
        .map(|id| format!("commit {id}"))
        .collect();
    if let Some((first, others)) = lacking.split_first() {
        let listed = [
            std::slice::from_ref(first),
            &others[..others.len().min(MAX_NAMED_MISSING - 1)],
        ];
        let mut text = listed.concat().join(", ");
        if lacking.len() > MAX_NAMED_MISSING {
            text.push_str(&format!(" and {} more", lacking.len() - MAX_NAMED_MISSING));
        }
        anyhow::bail!(BundleError::Lacks(text));
    }

    Ok(OpenedBundle { file, head, limit })
}

impl OpenedBundle {
    /// Returns the refs of the bundle.
    pub fn refs(&self) -> &[BundledRef] {
        &self.head.refs
    }

    /// Unpacks the bundle into a scratch repository with some of its refs and checks it. Fails with
    /// [`BundleError`].
    pub fn receive<'r>(
        &self,
        repository: &'r Repository,
        targets: &[(String, CommitId)],
    ) -> anyhow::Result<ReceivedBundle<'r>> {
        let dir = create_scratch_dir(&incoming_dir(repository))?;
        let scratch = BorrowingRepository::make(repository, dir)?;
        self.unpack(&scratch)?;
        scratch
            .put_refs(targets)
            .map_err(|error| BundleError::Unsound(format!("{error:#}")))?;
        let received = ReceivedBundle {
            combined: scratch.open()?,
            scratch,
            repository,
        };

        received.check_sizes(self.limit)?;
        received.check_links(targets)?;
        Ok(received)
    }

    fn unpack(&self, scratch: &BorrowingRepository) -> anyhow::Result<()> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(self.head.length))?;
        let mut git = scratch.git()?;
        git.args(["-c", "pack.writeReverseIndex=false"])
            .args(["index-pack", "--stdin", "--fix-thin", FSCK_RULES])
            .stdin(Stdio::from(file));
        if self.limit == SizeLimit::Usual {
            git.arg(format!("--max-input-size={MAX_BUNDLE}"))
                // A few compressed bytes must not expand to all memory.
                .env("GIT_ALLOC_LIMIT", (2 * MAX_OBJECT).to_string());
        }

        match run_check(git, Stdio::null(), None)? {
            None => Ok(()),
            Some(why) if why.contains("early EOF") => Err(BundleError::Cut.into()),
            Some(why) => Err(BundleError::Unsound(why).into()),
        }
    }
}

impl ReceivedBundle<'_> {
    fn packs(&self) -> anyhow::Result<Vec<PathBuf>> {
        let dir = self.scratch.objects().join("pack");
        let files = std::fs::read_dir(dir).context("reading what came")?;
        let paths = files.filter_map(|file| Some(file.ok()?.path()));
        Ok(paths
            .filter(|path| path.extension().is_some_and(|ending| ending == "pack"))
            .collect())
    }

    fn check_sizes(&self, limit: SizeLimit) -> anyhow::Result<()> {
        if limit == SizeLimit::None {
            return Ok(());
        }

        let hash = self.repository.gix.object_hash();
        for pack in self.packs()? {
            let index = gix_pack::index::File::at(pack.with_extension("idx"), hash);
            for entry in index.during("reading the index of a pack")?.iter() {
                let result = self.combined.gix.objects.try_header(&entry.oid);
                let size = result.ok().flatten().map_or(0, |header| header.size);
                // The user already has it.
                anyhow::ensure!(
                    size <= MAX_OBJECT || self.repository.has(entry.oid),
                    BundleError::LargeObject(entry.oid.to_string(), size >> 20, MAX_OBJECT >> 20)
                );
            }
        }

        Ok(())
    }

    /// Lets git check that no object is missing below the refs, except those that the user's refs
    /// reach.
    fn check_links(&self, targets: &[(String, CommitId)]) -> anyhow::Result<()> {
        let mut git = self.repository.git()?;
        git.args(["rev-list", "--objects", "--quiet"]);
        if self.repository.is_partial() {
            git.arg("--exclude-promisor-objects");
        }

        let tips = targets.iter().map(|(_, to)| format!("{to}\n"));
        let tips = tips.collect::<String>();
        let mut input = tempfile::tempfile()?;
        std::io::Write::write_all(&mut input, tips.as_bytes())?;
        input.rewind()?;
        // A broken ref of the user's must not fail the check.
        git.args(["--ignore-missing", "--stdin", "--single-worktree"])
            .args(["--not", "--all"])
            .env(
                "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                in_list(&self.scratch.objects()),
            )
            .env("GIT_GRAFT_FILE", "/dev/null")
            .stdin(Stdio::from(input));

        match run_check(git, Stdio::null(), None)? {
            None => Ok(()),
            Some(why) => Err(BundleError::Unsound(why).into()),
        }
    }

    /// Copies the objects into the repository and creates refs for them, none of which can exist
    /// yet. All or nothing. Fails with [`MoveError`](refs::MoveError) if a ref exists.
    pub fn keep(self, targets: &[(String, CommitId)], log: &str) -> anyhow::Result<()> {
        let mut keeps = Vec::new();
        for pack in self.packs()? {
            keeps.push(Sealed::copied(self.repository, &pack)?.finish(self.repository)?);
        }

        let moves: Vec<_> = targets
            .iter()
            .map(|(name, to)| RefMove {
                name,
                expected: Expected::Absent,
                to: *to,
            })
            .collect();
        let moved = fault::point("before-snapshot-ref")
            .and_then(|()| Ok(refs::apply(self.repository, &moves, log)?));
        let holds = |(name, to): &(String, CommitId)| {
            // A ref that cannot be read may need the objects.
            refs::read_unpeeled(self.repository, name).map_or(true, |held| held == Some(*to))
        };
        if moved.is_err() && !targets.iter().any(holds) {
            for keep in &keeps {
                // The index goes first: git does not use a pack without one.
                let _ = std::fs::remove_file(keep.with_extension("idx"));
                let _ = std::fs::remove_file(keep.with_extension("pack"));
            }
        }

        // Also after a failure, so `git gc` can delete what no ref reaches.
        keeps.iter().try_for_each(|keep| keep::release(keep))?;
        moved?;
        targets
            .iter()
            .try_for_each(|(name, _)| refs::sync(self.repository, name))
    }
}
