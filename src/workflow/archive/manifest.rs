//! The manifest of a bundle, which lists its sessions, so that a reader can check them before
//! importing.

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::session::name::SessionName;

/// Current version of the format.
pub const MANIFEST_SCHEMA: u32 = 1;
/// Ref of the commit that contains the manifest.
pub const MANIFEST_REF: &str = "refs/teddy/manifest";
/// File name in that commit.
pub const MANIFEST_FILE: &str = "manifest.json";
/// A larger manifest is rejected.
const MAX_MANIFEST: u64 = 64 << 20;

/// The contents of a bundle, as declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the format.
    pub schema: u32,
    /// Version of TeDDy that wrote it.
    pub teddy: String,
    /// Creation time, RFC 3339.
    pub made: String,
    /// Sessions, sorted by name.
    pub sessions: Vec<BundledSession>,
}

/// A session in a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundledSession {
    /// Session name.
    pub name: String,
    /// Newest turn.
    pub tip: CommitId,
    /// Number of that turn.
    pub turns: u64,
    /// Title of that turn.
    pub title: String,
    /// The bundle contains a signature.
    #[serde(default)]
    pub signed: bool,
    /// The bundle contains a draft.
    #[serde(default)]
    pub draft: bool,
}

impl BundledSession {
    /// Describes a session, without signature and draft.
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

/// Reads the manifest from a commit.
pub fn read_manifest(repository: &Repository, commit: CommitId) -> anyhow::Result<Manifest> {
    let tree = repository.commit(commit)?.tree;
    let entry = repository.entry(tree, MANIFEST_FILE.as_bytes())?;
    let entry = entry.with_context(|| format!("it has no `{MANIFEST_FILE}`"))?;
    let blob = crate::git::object::BlobId::of(entry.id);
    let size = repository.blob_size(blob)?;
    anyhow::ensure!(size <= MAX_MANIFEST, "`{MANIFEST_FILE}` is too large");

    parse_manifest(&repository.blob(blob)?)
}

fn parse_manifest(text: &[u8]) -> anyhow::Result<Manifest> {
    #[derive(Deserialize)]
    struct Version {
        schema: u32,
    }

    let malformed = || format!("`{MANIFEST_FILE}` is malformed");
    let Version { schema } = serde_json::from_slice(text).with_context(malformed)?;
    anyhow::ensure!(
        schema <= MANIFEST_SCHEMA,
        "`{MANIFEST_FILE}` has the version {schema}, and this TeDDy knows {MANIFEST_SCHEMA}"
    );
    serde_json::from_slice(text).with_context(malformed)
}
