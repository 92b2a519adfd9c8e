//! Bundles: refs with all that they reach, in a file that git reads anywhere.
//!
//! git makes them and takes them apart, in a repository of our own beside the user's, so that no
//! ref of theirs is needed for one. What a bundle brings is looked at there, as what a stranger
//! pushes is: nothing of it is in the user's repository before all of it is sound.

mod borrowing;
mod header;
mod receive;

use std::fs::File;

use crate::git::During as _;
use crate::git::incoming::examine::examine;
use crate::git::object::CommitId;
use crate::git::repository::Repository;
use borrowing::BorrowingRepository;
pub use header::BundledRef;
pub use receive::{OpenedBundle, ReceivedBundle, SizeLimit, open};

/// What is to be in a bundle.
#[derive(Debug)]
pub struct BundleContents<'a> {
    /// The refs, each with what it points at.
    pub refs: &'a [(String, CommitId)],
    /// The ref of a commit that the bundle has besides.
    pub about: &'a str,
    /// The name of the only file in that commit.
    pub file: &'a str,
    /// What the file says.
    pub text: &'a str,
    /// When, seconds since 1970.
    pub seconds: i64,
}

/// Why a bundle cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// It is something else.
    #[error("it is not a git bundle")]
    NoBundle,
    /// Its end is missing.
    #[error("it is cut off")]
    Cut,
    /// Its head is none.
    #[error("its head is malformed")]
    Malformed,
    /// It has something that we do not know.
    #[error("it needs a newer TeDDy: it has {0}")]
    Newer(String),
    /// Some of its objects were left out.
    #[error("files are missing from it: it was made with a filter")]
    Filtered,
    /// Its ids are of another kind.
    #[error("its object ids are {0}, and those of this repository {1}")]
    OtherIds(String, String),
    /// It builds on commits that are not here.
    #[error("it builds on {0}, which this repository does not have")]
    Lacks(String),
    /// It is larger than is read.
    #[error("it is larger than {0} GiB")]
    TooLarge(u64),
    /// One of its objects is.
    #[error("object {0} in it has {1} MiB, and at most {2} are accepted")]
    LargeObject(String, u64, u64),
    /// git found something wrong.
    #[error("it is damaged or not sound: {0}")]
    Unsound(String),
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// The repository has not all of its history.
    #[error("this clone is shallow: the beginning of its history is missing")]
    Shallow,
    /// git could not make it.
    #[error("git made no bundle: {0}")]
    NotMade(String),
}

impl BundleError {
    /// Returns what the user can do about it.
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

/// Writes a bundle to an open file.
///
/// # Errors
/// [`BundleError`], or git cannot be run.
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
    let folder = tempfile::Builder::new().prefix("teddy-").tempdir()?;
    let scratch = BorrowingRepository::make(repository, folder)?;
    let about = about(&scratch, contents)?;
    let about = [(contents.about.to_owned(), about)];
    scratch.put_refs(&[contents.refs, &about].concat())?;

    // The refs are all that there are: nothing else was put there.
    let mut git = scratch.git()?;
    git.args(["bundle", "create", "--quiet", "-", "--all"]);
    match examine(git, out.into(), None)? {
        None => Ok(()),
        Some(why) => Err(BundleError::NotMade(why).into()),
    }
}

/// Writes a commit with one file.
fn about(scratch: &BorrowingRepository, contents: &BundleContents<'_>) -> anyhow::Result<CommitId> {
    let blob = scratch.write("blob", contents.text.as_bytes())?;
    let mut tree = format!("100644 {}\0", contents.file).into_bytes();
    tree.extend_from_slice(blob.0.as_slice());
    let tree = scratch.write("tree", &tree)?;

    let seconds = contents.seconds;
    let who = format!("TeDDy <teddy@localhost> {seconds} +0000");
    let commit = format!("tree {tree}\nauthor {who}\ncommitter {who}\n\nWhat this bundle has\n");
    scratch.write("commit", commit.as_bytes())
}
