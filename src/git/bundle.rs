//! Bundles: refs with everything they reach, in a file that git can read anywhere.
//!
//! git creates and unpacks them in a scratch repository next to the user's, so no ref of the user's
//! is needed. The contents of a bundle are checked there like an untrusted push. No object enters
//! the user's repository before all checks have passed.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::Context as _;
use gix::ObjectId;
use gix::objs::FindHeader as _;

use crate::git::intake::{self, CLOSED, MAX_OBJECT, run_check};
use crate::git::keep::pack::{Sealed, keep};
use crate::git::object::CommitId;
use crate::git::refs::{self, Expected, RefMove};
use crate::git::remote::error::is_disk_trouble;
use crate::git::repository::Repository;
use crate::git::scratch::BorrowingRepository;
use crate::git::{During as _, bundle};
use crate::host::fault;
use crate::host::file::temporary_dir;
use crate::text::first_names;

#[derive(Debug)]
pub struct BundleContents<'a> {
    pub refs: &'a [(String, CommitId)],
    /// Additional ref, which points at a commit with one file.
    pub about: &'a str,
    pub file: &'a str,
    pub text: &'a str,
    /// Time of the commit in seconds since 1970.
    pub seconds: i64,
}

#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    #[error("it is not a git bundle")]
    NoBundle,
    #[error("it is cut off")]
    Cut,
    #[error("its head is malformed")]
    Malformed,
    #[error("it needs a newer TeDDy: it has {0}")]
    Newer(String),
    #[error("files are missing from it: it was made with a filter")]
    Filtered,
    #[error("its object ids are {0}, and those of this repository {1}")]
    OtherIds(String, String),
    #[error("it builds on {0}, which this repository does not have")]
    Lacks(String),
    #[error("it is larger than {0} GiB")]
    TooLarge(u64),
    /// An object is too large: id, size and limit in MiB.
    #[error("object {0} in it has {1} MiB, and at most {2} are accepted")]
    LargeObject(String, u64, u64),
    #[error("it is damaged or not sound: {0}")]
    Unsound(String),
    #[error("it cannot be unpacked here: {0}")]
    NotWritten(String),
    #[error("{0}")]
    Unreadable(String),
    #[error("this clone is shallow: the beginning of its history is missing")]
    Shallow,
    #[error("git made no bundle: {0}")]
    NotMade(String),
}

impl BundleError {
    /// Why git did not take a bundle. It has no exit code for any of this.
    fn refused(why: String) -> BundleError {
        match () {
            () if is_disk_trouble(&why) => BundleError::NotWritten(why),
            () if why.contains("early EOF") => BundleError::Cut,
            () => BundleError::Unsound(why),
        }
    }

    pub fn hint(&self) -> Option<&'static str> {
        match self {
            BundleError::Cut | BundleError::Unsound(_) => {
                Some("copy or download it again; `git bundle verify FILE` is git's own check")
            }
            BundleError::NotWritten(_) => Some("free some disk space, then try again"),
            BundleError::NoBundle | BundleError::Malformed => {
                Some("`teddy export --bundle FILE` makes one")
            }
            BundleError::Lacks(_) => Some("fetch what it builds on first, then try again"),
            BundleError::TooLarge(_) | BundleError::LargeObject(..) => {
                Some("`--large` accepts it if you know where it comes from")
            }
            BundleError::Filtered => Some("make it again without `--filter`"),
            BundleError::Shallow => Some("`git fetch --unshallow` gets the rest"),
            BundleError::NotMade(why) if why == CLOSED => None,
            BundleError::NotMade(why) if is_disk_trouble(why) => {
                Some("free some disk space, then try again")
            }
            BundleError::NotMade(_) => {
                Some("in a partial clone, `git fetch --refetch --no-filter` gets what is missing")
            }
            _ => None,
        }
    }
}

/// Writes a bundle to an open file. Fails with [`BundleError`].
pub fn write(
    repository: &Repository,
    contents: &BundleContents<'_>,
    out: File,
) -> anyhow::Result<()> {
    let is_shallow = repository.gix.is_shallow();
    anyhow::ensure!(
        !is_shallow.during("reading `shallow`")?,
        BundleError::Shallow
    );
    let dir = temporary_dir()?;
    let scratch = BorrowingRepository::make(repository, dir)?;
    let about = write_about_commit(&scratch, contents)?;
    let about = [(contents.about.to_owned(), about)];
    scratch.put_refs(&[contents.refs, &about].concat())?;

    // `--all` is safe: the scratch repository has no other refs.
    let mut git = scratch.git()?;
    git.args(["bundle", "create", "--quiet", "-", "--all"]);
    match run_check(git, out.into(), None)? {
        None => Ok(()),
        Some(why) => Err(BundleError::NotMade(why).into()),
    }
}

fn write_about_commit(
    scratch: &BorrowingRepository,
    contents: &BundleContents<'_>,
) -> anyhow::Result<CommitId> {
    let blob = scratch.write("blob", contents.text.as_bytes())?;
    let mut tree = format!("100644 {}\0", contents.file).into_bytes();
    tree.extend_from_slice(blob.0.as_slice());
    let tree = scratch.write("tree", &tree)?;

    let seconds = contents.seconds;
    let identity = format!("TeDDy <teddy@localhost> {seconds} +0000");
    let commit =
        format!("tree {tree}\nauthor {identity}\ncommitter {identity}\n\nWhat this bundle has\n");
    scratch.write("commit", commit.as_bytes())
}

/// Upper bound for a header, enough for half a million refs.
const MAX_HEADER: u64 = 64 << 20;

const MAX_HEADER_LINE: usize = 8 << 10;
const HEADER_SIGNATURE: (&str, &str) = ("# v", " git bundle");

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundledRef {
    /// Name of the ref; not validated.
    pub name: Vec<u8>,
    /// Object of the ref, possibly a tag.
    pub target: CommitId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct BundleHead {
    /// Prerequisites: commits that the receiving repository must have.
    needs: Vec<CommitId>,
    refs: Vec<BundledRef>,
    length: u64,
}

fn read_header(
    source: &mut impl BufRead,
    hash: gix::hash::Kind,
) -> Result<BundleHead, BundleError> {
    let mut lines = HeadLines {
        source: source.take(MAX_HEADER),
        read: 0,
    };
    let version = lines.version()?;
    let mut head = BundleHead {
        needs: Vec::new(),
        refs: Vec::new(),
        length: 0,
    };

    // Version 2 has no capabilities and always uses SHA-1.
    let mut ids = gix::hash::Kind::Sha1;
    loop {
        let line = lines.next()?;
        match line.first() {
            None => break,
            Some(b'@') if version >= 3 => ids = parse_capability(&line, ids)?,
            Some(b'-') => {
                let id = line[1..].split(|&byte| byte == b' ').next();
                head.needs.push(parse_id(id.unwrap_or_default(), ids)?);
            }
            Some(_) => head.refs.push(parse_ref(&line, ids)?),
        }
    }

    if ids != hash {
        return Err(BundleError::OtherIds(ids.to_string(), hash.to_string()));
    }

    head.length = lines.read;
    Ok(head)
}

struct HeadLines<R> {
    source: std::io::Take<R>,
    read: u64,
}

impl<R: BufRead> HeadLines<R> {
    fn version(&mut self) -> Result<u32, BundleError> {
        let line = self.next().map_err(|_| BundleError::NoBundle)?;
        let text = String::from_utf8(line).map_err(|_| BundleError::NoBundle)?;
        let version = text
            .strip_prefix(HEADER_SIGNATURE.0)
            .and_then(|tail| tail.strip_suffix(HEADER_SIGNATURE.1))
            .and_then(|number| number.parse().ok())
            .ok_or(BundleError::NoBundle)?;

        match version {
            2 | 3 => Ok(version),
            _ => Err(BundleError::Newer(format!("version {version}"))),
        }
    }

    fn next(&mut self) -> Result<Vec<u8>, BundleError> {
        let mut line = Vec::new();
        let mut bounded = (&mut self.source).take(MAX_HEADER_LINE as u64);
        let read = bounded.read_until(b'\n', &mut line);

        self.read += read.map_err(|error| BundleError::Unreadable(error.to_string()))? as u64;
        match line.pop() {
            Some(b'\n') => Ok(line),
            Some(_) if line.len() + 1 >= MAX_HEADER_LINE || self.read >= MAX_HEADER => {
                Err(BundleError::Malformed)
            }
            _ => Err(BundleError::Cut),
        }
    }
}

fn parse_capability(line: &[u8], ids: gix::hash::Kind) -> Result<gix::hash::Kind, BundleError> {
    let text = String::from_utf8_lossy(&line[1..]).into_owned();
    match text.split_once('=') {
        Some(("object-format", "sha1")) => Ok(gix::hash::Kind::Sha1),
        Some(("object-format", "sha256")) => Ok(gix::hash::Kind::Sha256),
        Some(("filter", _)) => Err(BundleError::Filtered),
        _ if text.is_empty() => Ok(ids),
        _ => Err(BundleError::Newer(format!("`{text}`"))),
    }
}

fn parse_ref(line: &[u8], ids: gix::hash::Kind) -> Result<BundledRef, BundleError> {
    let at = line.iter().position(|&byte| byte == b' ');
    let (id, name) = line.split_at(at.ok_or(BundleError::Malformed)?);
    Ok(BundledRef {
        name: name[1..].to_vec(),
        target: parse_id(id, ids)?,
    })
}

fn parse_id(text: &[u8], ids: gix::hash::Kind) -> Result<CommitId, BundleError> {
    match ObjectId::from_hex(text) {
        Ok(id) if id.kind() == ids => Ok(CommitId(id)),
        _ => Err(BundleError::Malformed),
    }
}

// Imports a bundle. Its objects are checked in a scratch repository, then enter the user's
// repository as packs together with the refs, or not at all.

/// Maximum size of a bundle, unless the user accepts a larger one.
const MAX_BUNDLE: u64 = 4 << 30;

/// git's object checks, except harmless ones that old histories fail.
const FSCK_RULES: &str = "--strict=zeroPaddedFilemode=ignore,missingSpaceBeforeEmail=ignore,\
                     missingNameBeforeEmail=ignore,badTimezone=ignore,missingSpaceBeforeDate=ignore";

const MAX_NAMED_MISSING: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeLimit {
    Usual,
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
    let head = bundle::read_header(&mut BufReader::new(&mut file), hash)?;
    let length = file.metadata()?.len();
    anyhow::ensure!(
        limit == SizeLimit::None || length <= MAX_BUNDLE,
        BundleError::TooLarge(MAX_BUNDLE >> 30)
    );

    let lacks = |id: &&CommitId| repository.commit(**id).is_err();
    let lacking = head.needs.iter().filter(lacks);
    let lacking = first_names(lacking.map(|id| format!("commit {id}")), MAX_NAMED_MISSING);
    anyhow::ensure!(lacking.is_empty(), BundleError::Lacks(lacking));

    Ok(OpenedBundle { file, head, limit })
}

impl OpenedBundle {
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
        let dir = intake::scratch_dir(&intake::incoming_dir(repository))?;
        let scratch = BorrowingRepository::make(repository, dir)?;
        self.unpack(&scratch)?;
        scratch
            .put_refs(targets)
            .map_err(|error| BundleError::refused(format!("{error:#}")))?;
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
        // We copy only the pack and its index from here.
        git.args(["-c", "pack.writeReverseIndex=false"])
            .args(["index-pack", "--stdin", "--fix-thin", FSCK_RULES])
            .stdin(Stdio::from(file));
        if self.limit == SizeLimit::Usual {
            git.arg(format!("--max-input-size={MAX_BUNDLE}"));
            intake::limit_memory(&mut git);
        }

        match run_check(git, Stdio::null(), None)? {
            None => Ok(()),
            Some(why) => Err(BundleError::refused(why).into()),
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
        let git = intake::checking_git(self.repository, &self.scratch.objects())?;
        let tips = targets.iter().map(|(_, to)| *to);
        match intake::check_links(git, self.repository, tips, None, None)? {
            None => Ok(()),
            Some(why) => Err(BundleError::refused(why).into()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::process;

    const ONE: &str = "1465b844761618fe5910618bbc86deda6df5f057";
    const TWO: &str = "d5469a7a606e61c2b795d0131e4ce3a8c527500a";

    type ExpectedHead<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)]);

    #[track_caller]
    fn check(text: &str, expected: Result<ExpectedHead<'_>, &str>) {
        let actual = read_header(&mut text.as_bytes(), gix::hash::Kind::Sha1);
        let actual = actual.map_err(|error| error.to_string());
        let actual = actual.map(|head| {
            assert_eq!(&text.as_bytes()[head.length as usize..], b"PACK");
            let needs: Vec<String> = head.needs.iter().map(ToString::to_string).collect();
            let refs = head.refs.into_iter();
            let refs: Vec<_> = refs
                .map(|it| (String::from_utf8(it.name).unwrap(), it.target.to_string()))
                .collect();
            (needs, refs)
        });

        let own = |text: &&str| (*text).to_owned();
        let expected = expected.map_err(str::to_owned).map(|(needs, refs)| {
            let refs = refs.iter().map(|(name, id)| (own(name), own(id)));
            (needs.iter().map(own).collect(), refs.collect())
        });
        assert_eq!(actual, expected, "{text:?}");
    }

    #[test]
    fn a_head_names_refs_and_what_the_bundle_builds_on() {
        check(
            &format!("# v2 git bundle\n{ONE} refs/teddy/sessions/a\n\nPACK"),
            Ok((&[], &[("refs/teddy/sessions/a", ONE)])),
        );
        check(
            &format!("# v3 git bundle\n@object-format=sha1\n-{ONE} On top\n{TWO} a b\n\nPACK"),
            Ok((&[ONE], &[("a b", TWO)])),
        );
        check("# v2 git bundle\n\nPACK", Ok((&[], &[])));
    }

    /// Bug: the hint was about partial clones.
    #[test]
    fn a_bundle_that_cannot_be_written_says_why() {
        let mut ended = process::command("sh");
        ended.args(["-c", "kill -PIPE $$"]);
        let why = run_check(ended, Stdio::null(), None).unwrap().unwrap();
        let closed = BundleError::NotMade(why);
        assert_eq!(
            closed.to_string(),
            "git made no bundle: its output was closed"
        );
        assert_eq!(closed.hint(), None);
        let full = "git says: fatal: write error: No space left on device";
        assert_eq!(
            BundleError::NotMade(full.to_owned()).hint(),
            Some("free some disk space, then try again")
        );
    }

    #[test]
    fn a_full_disk_is_no_fault_of_the_bundle() {
        let check = |why: &str, expected: &str| {
            let error = BundleError::refused(format!("git says: {why}"));
            assert_eq!(error.to_string(), expected);
        };
        check(
            "fatal: write error: No space left on device",
            "it cannot be unpacked here: git says: fatal: write error: No space left on device",
        );
        check("fatal: early EOF", "it is cut off");
        check(
            "fatal: pack is corrupted (SHA1 mismatch)",
            "it is damaged or not sound: git says: fatal: pack is corrupted (SHA1 mismatch)",
        );
    }

    #[test]
    fn what_is_no_head_is_refused() {
        for text in ["", "PACK", "# v2 git bundle", "# vx git bundle\n", "\n"] {
            check(text, Err("it is not a git bundle"));
        }
        check(
            "# v4 git bundle\n",
            Err("it needs a newer TeDDy: it has version 4"),
        );
        check(
            "# v3 git bundle\n@new=1\n\n",
            Err("it needs a newer TeDDy: it has `new=1`"),
        );
        check(
            "# v3 git bundle\n@filter=blob:none\n\n",
            Err("files are missing from it: it was made with a filter"),
        );
        check(
            "# v3 git bundle\n@object-format=sha256\n\n",
            Err("its object ids are sha256, and those of this repository sha1"),
        );
        for line in ["zzz refs/x", ONE, "-12", &"x".repeat(MAX_HEADER_LINE + 1)] {
            check(
                &format!("# v2 git bundle\n{line}\n\n"),
                Err("its head is malformed"),
            );
        }
        for end in ["", ONE, &format!("{ONE} refs/x\n")] {
            check(&format!("# v2 git bundle\n{end}"), Err("it is cut off"));
        }
    }
}
