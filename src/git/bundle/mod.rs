//! Bundles: refs with everything they reach, in a file that git can read anywhere.
//!
//! git creates and unpacks them in a scratch repository next to the user's, so no ref of the user's
//! is needed. The contents of a bundle are checked there like an untrusted push. No object enters
//! the user's repository before all checks have passed.

mod borrowing;
mod header;
mod receive;

use std::fs::File;

use crate::git::During as _;
use crate::git::incoming::examine::run_check;
use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::host::temporary::temporary_dir;
use borrowing::BorrowingRepository;
pub use header::BundledRef;
pub use receive::{OpenedBundle, ReceivedBundle, SizeLimit, open};

/// Contents of a new bundle.
#[derive(Debug)]
pub struct BundleContents<'a> {
    /// Refs and their objects.
    pub refs: &'a [(String, CommitId)],
    /// Name of an additional ref, which points at a commit with one file.
    pub about: &'a str,
    /// Name of the file in that commit.
    pub file: &'a str,
    /// Content of the file.
    pub text: &'a str,
    /// Time of the commit in seconds since 1970.
    pub seconds: i64,
}

/// Reason why a bundle cannot be created or used.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// Not a bundle.
    #[error("it is not a git bundle")]
    NoBundle,
    /// The file is truncated.
    #[error("it is cut off")]
    Cut,
    /// The header is malformed.
    #[error("its head is malformed")]
    Malformed,
    /// A version or capability that this TeDDy doesn't know.
    #[error("it needs a newer TeDDy: it has {0}")]
    Newer(String),
    /// The bundle was created with an object filter.
    #[error("files are missing from it: it was made with a filter")]
    Filtered,
    /// Another hash function: the bundle's, and the repository's.
    #[error("its object ids are {0}, and those of this repository {1}")]
    OtherIds(String, String),
    /// Prerequisites are missing.
    #[error("it builds on {0}, which this repository does not have")]
    Lacks(String),
    /// Larger than this limit in GiB.
    #[error("it is larger than {0} GiB")]
    TooLarge(u64),
    /// An object is too large: id, size and limit in MiB.
    #[error("object {0} in it has {1} MiB, and at most {2} are accepted")]
    LargeObject(String, u64, u64),
    /// git's checks failed.
    #[error("it is damaged or not sound: {0}")]
    Unsound(String),
    /// The file is unreadable.
    #[error("{0}")]
    Unreadable(String),
    /// The repository is a shallow clone.
    #[error("this clone is shallow: the beginning of its history is missing")]
    Shallow,
    /// git could not create the bundle.
    #[error("git made no bundle: {0}")]
    NotMade(String),
}

impl BundleError {
    /// Returns a hint for the user.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            BundleError::Cut | BundleError::Unsound(_) => {
                Some("copy or download it again; `git bundle verify FILE` is git's own check")
            }
            BundleError::NoBundle | BundleError::Malformed => {
                Some("`teddy export --bundle FILE` makes one")
            }
            BundleError::Lacks(_) => Some("fetch what it builds on first, then try again"),
            BundleError::TooLarge(_) | BundleError::LargeObject(..) => {
                Some("`--large` accepts it if you know where it comes from")
            }
            BundleError::Filtered => Some("make it again without `--filter`"),
            BundleError::Shallow => Some("`git fetch --unshallow` gets the rest"),
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
