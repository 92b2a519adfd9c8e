//! Taking a bundle in: its objects are looked at where nobody sees them, and come into the
//! repository as one pack together with the refs, or not at all.

use std::fs::File;
use std::io::{BufReader, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::Context as _;
use gix::objs::FindHeader as _;

use super::BundleError;
use super::borrowing::{BorrowingRepository, folder_in};
use super::header::{self, BundleHead, BundledRef};
use crate::git::During as _;
use crate::git::incoming::MAX_OBJECT;
use crate::git::incoming::examine::examine;
use crate::git::incoming::quarantine::{in_list, incoming_dir};
use crate::git::keep::pack::Sealed;
use crate::git::keep::pack::keep;
use crate::git::object::CommitId;
use crate::git::refs::{self, Expected, RefMove};
use crate::git::repository::Repository;
use crate::host::fault;

/// A larger bundle is read only if the user says so.
const MAX_BUNDLE: u64 = 4 << 30;
/// The rules of git for objects, without those that old histories break and that harm nobody.
const RULES: &str = "--strict=zeroPaddedFilemode=ignore,missingSpaceBeforeEmail=ignore,\
                     missingNameBeforeEmail=ignore,badTimezone=ignore,missingSpaceBeforeDate=ignore";
/// So many missing commits are named.
const MAX_NAMED: usize = 3;

/// How large a bundle and its objects may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeLimit {
    /// As large as sessions are.
    Usual,
    /// Anything.
    None,
}

/// A bundle whose head was read.
#[derive(Debug)]
pub struct OpenedBundle {
    /// The file.
    file: File,
    /// Its head.
    head: BundleHead,
    /// How large it may be.
    limit: SizeLimit,
}

/// A bundle whose objects were looked at, and are sound.
pub struct ReceivedBundle<'r> {
    /// The user's repository.
    repository: &'r Repository,
    /// Where the objects are.
    scratch: BorrowingRepository,
    /// The same, opened: the user's objects, and those of the bundle.
    pub seen: Repository,
}

/// Reads the head of a bundle for a repository.
///
/// # Errors
/// [`BundleError`].
pub fn open(
    repository: &Repository,
    mut file: File,
    limit: SizeLimit,
) -> anyhow::Result<OpenedBundle> {
    let hash = repository.gix.object_hash();
    let head = header::read(&mut BufReader::new(&mut file), hash)?;
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
    if let Some((first, rest)) = lacking.split_first() {
        let named = [
            std::slice::from_ref(first),
            &rest[..rest.len().min(MAX_NAMED - 1)],
        ];
        let mut words = named.concat().join(", ");
        if lacking.len() > MAX_NAMED {
            words.push_str(&format!(" and {} more", lacking.len() - MAX_NAMED));
        }
        anyhow::bail!(BundleError::Lacks(words));
    }

    Ok(OpenedBundle { file, head, limit })
}

impl OpenedBundle {
    /// Returns the refs that it has.
    pub fn refs(&self) -> &[BundledRef] {
        &self.head.refs
    }

    /// Looks at its objects, and returns them with some of its refs.
    ///
    /// # Errors
    /// [`BundleError`], or nothing can be written in the git directory.
    pub fn receive<'r>(
        &self,
        repository: &'r Repository,
        wanted: &[(String, CommitId)],
    ) -> anyhow::Result<ReceivedBundle<'r>> {
        let folder = folder_in(&incoming_dir(repository))?;
        let scratch = BorrowingRepository::make(repository, folder)?;
        self.unpack(&scratch)?;
        scratch
            .put_refs(wanted)
            .map_err(|error| BundleError::Unsound(format!("{error:#}")))?;
        let received = ReceivedBundle {
            seen: scratch.open()?,
            scratch,
            repository,
        };

        received.check_sizes(self.limit)?;
        received.check_links(wanted)?;
        Ok(received)
    }

    /// Has git put the objects into a pack and check each of them.
    fn unpack(&self, scratch: &BorrowingRepository) -> anyhow::Result<()> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(self.head.length))?;
        let mut git = scratch.git()?;
        git.args(["-c", "pack.writeReverseIndex=false"])
            .args(["index-pack", "--stdin", "--fix-thin", RULES])
            .stdin(Stdio::from(file));
        if self.limit == SizeLimit::Usual {
            git.arg(format!("--max-input-size={MAX_BUNDLE}"))
                // What a few bytes become must not take all memory.
                .env("GIT_ALLOC_LIMIT", (2 * MAX_OBJECT).to_string());
        }

        match examine(git, Stdio::null(), None)? {
            None => Ok(()),
            Some(why) if why.contains("early EOF") => Err(BundleError::Cut.into()),
            Some(why) => Err(BundleError::Unsound(why).into()),
        }
    }
}

impl ReceivedBundle<'_> {
    /// Returns the packs that came.
    fn packs(&self) -> anyhow::Result<Vec<PathBuf>> {
        let folder = self.scratch.objects().join("pack");
        let files = std::fs::read_dir(folder).context("reading what came")?;
        let paths = files.filter_map(|file| Some(file.ok()?.path()));
        Ok(paths
            .filter(|path| path.extension().is_some_and(|ending| ending == "pack"))
            .collect())
    }

    /// Refuses objects that are larger than any session has.
    fn check_sizes(&self, limit: SizeLimit) -> anyhow::Result<()> {
        if limit == SizeLimit::None {
            return Ok(());
        }

        let hash = self.repository.gix.object_hash();
        for pack in self.packs()? {
            let index = gix_pack::index::File::at(pack.with_extension("idx"), hash);
            for entry in index.during("reading the index of a pack")?.iter() {
                let found = self.seen.gix.objects.try_header(&entry.oid);
                let size = found.ok().flatten().map_or(0, |header| header.size);
                // What the user has already was accepted long ago.
                anyhow::ensure!(
                    size <= MAX_OBJECT || self.repository.has(entry.oid),
                    BundleError::LargeObject(entry.oid.to_string(), size >> 20, MAX_OBJECT >> 20)
                );
            }
        }

        Ok(())
    }

    /// Has git check that nothing is missing below the refs, as far as the user's do not reach it.
    fn check_links(&self, wanted: &[(String, CommitId)]) -> anyhow::Result<()> {
        let mut git = self.repository.git()?;
        git.args(["rev-list", "--objects", "--quiet"]);
        if self.repository.is_partial() {
            git.arg("--exclude-promisor-objects");
        }

        let tips = wanted.iter().map(|(_, to)| format!("{to}\n"));
        let tips = tips.collect::<String>();
        let mut input = tempfile::tempfile()?;
        std::io::Write::write_all(&mut input, tips.as_bytes())?;
        input.rewind()?;
        // A ref of the user's that is broken is not the fault of the bundle.
        git.args(["--ignore-missing", "--stdin", "--not", "--all"])
            .env(
                "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                in_list(&self.scratch.objects()),
            )
            .env("GIT_GRAFT_FILE", "/dev/null")
            .stdin(Stdio::from(input));

        match examine(git, Stdio::null(), None)? {
            None => Ok(()),
            Some(why) => Err(BundleError::Unsound(why).into()),
        }
    }

    /// Brings the objects into the repository and makes refs for them, none of which may be there;
    /// all of it or nothing.
    ///
    /// # Errors
    /// [`MoveError`](refs::MoveError), or the repository cannot be written.
    pub fn keep(self, made: &[(String, CommitId)], log: &str) -> anyhow::Result<()> {
        let mut keeps = Vec::new();
        for pack in self.packs()? {
            keeps.push(Sealed::copied(self.repository, &pack)?.finish(self.repository)?);
        }

        let moves: Vec<_> = made
            .iter()
            .map(|(name, to)| RefMove {
                name,
                expected: Expected::Absent,
                to: *to,
            })
            .collect();
        let moved = fault::point("before-snapshot-ref")
            .and_then(|()| Ok(refs::apply(self.repository, &moves, log)?));
        if moved.is_err() {
            for keep in &keeps {
                // Without its index a pack is not used any more.
                let _ = std::fs::remove_file(keep.with_extension("idx"));
                let _ = std::fs::remove_file(keep.with_extension("pack"));
            }
        }

        keeps.iter().try_for_each(|keep| keep::release(keep))?;
        moved?;
        made.iter()
            .try_for_each(|(name, _)| refs::sync(self.repository, name))
    }
}
