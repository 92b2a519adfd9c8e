//! The manifest of a bundle: which sessions it has, for whoever looks before they import.

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::session::name::SessionName;

/// The version of the format that we write.
pub const SCHEMA: u32 = 1;
/// The ref of the commit that has it.
pub const REFERENCE: &str = "refs/teddy/manifest";
/// The file in that commit.
pub const FILE: &str = "manifest.json";
/// A longer one is not read.
const MAX_BYTES: u64 = 64 << 20;

/// What a bundle says that it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the format.
    pub schema: u32,
    /// The version of TeDDy that made it.
    pub teddy: String,
    /// When, RFC 3339.
    pub made: String,
    /// The sessions, by name.
    pub sessions: Vec<BundledSession>,
}

/// A session in a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundledSession {
    /// Its name.
    pub name: String,
    /// Its newest turn.
    pub tip: CommitId,
    /// The number of that.
    pub turns: u64,
    /// The title of that.
    pub title: String,
    /// Whether its signature is in the bundle.
    #[serde(default)]
    pub signed: bool,
    /// Whether its turn in progress is in the bundle.
    #[serde(default)]
    pub draft: bool,
}

impl BundledSession {
    /// Describes a session.
    ///
    /// # Errors
    /// Where its newest turn cannot be read.
    pub fn of(
        repository: &Repository,
        session: &SessionName,
        tip: CommitId,
    ) -> anyhow::Result<BundledSession> {
        let turn = crate::session::turn::Turn::read(repository, session, tip)?;
        Ok(BundledSession {
            name: session.to_string(),
            tip,
            turns: turn.number(),
            title: turn.title,
            signed: false,
            draft: false,
        })
    }
}

/// Reads the manifest in a commit.
///
/// # Errors
/// There is none, it is malformed, or of a later version.
pub fn read(repository: &Repository, commit: CommitId) -> anyhow::Result<Manifest> {
    let tree = repository.commit(commit)?.tree;
    let entry = repository.entry(tree, FILE.as_bytes())?;
    let entry = entry.with_context(|| format!("it has no `{FILE}`"))?;
    let blob = crate::git::object::BlobId::of(entry.id);
    let size = repository.blob_size(blob)?;
    anyhow::ensure!(size <= MAX_BYTES, "`{FILE}` is too large");

    parse(&repository.blob(blob)?)
}

/// Reads the text of a manifest.
fn parse(text: &[u8]) -> anyhow::Result<Manifest> {
    #[derive(Deserialize)]
    struct Version {
        schema: u32,
    }

    let malformed = || format!("`{FILE}` is malformed");
    let Version { schema } = serde_json::from_slice(text).with_context(malformed)?;
    anyhow::ensure!(
        schema <= SCHEMA,
        "`{FILE}` has the version {schema}, and this TeDDy knows {SCHEMA}"
    );
    serde_json::from_slice(text).with_context(malformed)
}
