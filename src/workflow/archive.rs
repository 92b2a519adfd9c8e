//! Exports and imports sessions as git bundles with a manifest (`docs/formats/bundle.md`).

pub mod import;

use std::fs::File;
use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::git::bundle::{self, BundleContents, BundleError};
use crate::git::object::CommitId;
use crate::git::refs;
use crate::git::repository::Repository;
use crate::host::clock;
use crate::host::file::{UnnamedFile, failure, sync_open_file};
use crate::project::Project;
use crate::session::name::SessionName;
use crate::text::hint::{error_with_hint, with_hint};
use crate::workflow::archive;

// The manifest lists the sessions of a bundle, so that a reader can check them before importing.

pub const MANIFEST_SCHEMA: u32 = 1;

/// Points at the commit with the manifest.
pub const MANIFEST_REF: &str = "refs/teddy/manifest";

pub const MANIFEST_FILE: &str = "manifest.json";

/// In bytes.
const MAX_MANIFEST: u64 = 64 << 20;

/// As declared, not verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub schema: u32,
    /// That wrote the bundle.
    pub teddy: String,
    /// In RFC 3339.
    pub made: String,
    /// Sorted by name.
    pub sessions: Vec<BundledSession>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundledSession {
    pub name: String,
    pub tip: CommitId,
    pub turns: u64,
    pub title: String,
    #[serde(default)]
    pub signed: bool,
    #[serde(default)]
    pub draft: bool,
}

impl BundledSession {
    /// Without signature and draft.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drafts {
    Included,
    LeftOut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    Stays,
    Replaced,
}

/// Read at one moment.
#[derive(Debug)]
pub struct SessionBundle {
    refs: Vec<(String, CommitId)>,
    pub manifest: Manifest,
}

pub fn collect_sessions(
    project: &Project,
    sessions: &[SessionName],
    drafts: Drafts,
) -> anyhow::Result<SessionBundle> {
    let mut bundle = SessionBundle {
        refs: Vec::new(),
        manifest: Manifest {
            schema: archive::MANIFEST_SCHEMA,
            teddy: env!("CARGO_PKG_VERSION").to_owned(),
            made: clock::stamp(),
            sessions: Vec::new(),
        },
    };

    for session in sessions {
        bundle.add(project, session, drafts)?;
    }
    Ok(bundle)
}

impl SessionBundle {
    fn add(
        &mut self,
        project: &Project,
        session: &SessionName,
        drafts: Drafts,
    ) -> anyhow::Result<()> {
        let (repository, store) = (&project.repository, project.store());
        session.writable()?;
        let tip = store.tip_id(session)?;
        let mut entry = BundledSession::of(repository, session, tip)?;
        self.refs.push((session.reference(), tip));

        let name = session.signed_reference();
        if refs::read_tag(repository, &name)?.is_some()
            && let Some(tag) = refs::read_unpeeled(repository, &name)?
        {
            entry.signed = true;
            self.refs.push((name, tag));
        }

        if drafts == Drafts::Included
            && let Some(draft) = store.saved_draft(&store.tip(session)?)?
        {
            entry.draft = true;
            self.refs.push((session.draft_reference(), draft.id));
        }

        self.manifest.sessions.push(entry);
        Ok(())
    }

    pub fn write(&self, project: &Project, out: File) -> anyhow::Result<()> {
        let contents = BundleContents {
            refs: &self.refs,
            about: archive::MANIFEST_REF,
            file: archive::MANIFEST_FILE,
            text: &format!("{}\n", serde_json::to_string_pretty(&self.manifest)?),
            seconds: clock::now().timestamp().as_second(),
        };
        bundle::write(&project.repository, &contents, out).map_err(add_bundle_hint)
    }

    /// Only the user can read the file. It gets its name once it is complete and flushed. Returns
    /// the size.
    pub fn save(&self, project: &Project, path: &Path, existing: Existing) -> anyhow::Result<u64> {
        let is_free = path.symlink_metadata().is_err();
        if !is_free && existing == Existing::Stays {
            return Err(file_exists_error(path));
        }
        anyhow::ensure!(!path.is_dir(), "`{}` is a directory", path.display());

        let dir = path.parent().filter(|it| !it.as_os_str().is_empty());
        let dir = dir.unwrap_or(Path::new("."));
        let during = |error: std::io::Error| failure("write", path, error);
        // Without a name until it is complete: a crash leaves no partial bundle.
        let unnamed = UnnamedFile::make(dir).map_err(during)?;
        self.write(project, unnamed.file().try_clone().map_err(during)?)?;
        sync_open_file(unnamed.file()).map_err(during)?;
        let size = unnamed.file().metadata().map_err(during)?.len();

        let linked = match existing {
            Existing::Replaced => unnamed.replace(path),
            Existing::Stays => unnamed.name(path),
        };
        if let Err(error) = linked {
            return Err(match error.kind() {
                std::io::ErrorKind::AlreadyExists => file_exists_error(path),
                _ => during(error).into(),
            });
        }

        // Without this, a power cut could take the name of a complete bundle.
        let synced = File::open(dir).and_then(|dir| sync_open_file(&dir));
        synced.with_context(|| format!("writing `{}`", path.display()))?;
        Ok(size)
    }
}

fn file_exists_error(path: &Path) -> anyhow::Error {
    error_with_hint(
        format!("`{}` already exists", path.display()),
        "`--force` replaces it",
    )
}

fn add_bundle_hint(error: anyhow::Error) -> anyhow::Error {
    let hint = error.downcast_ref().and_then(BundleError::hint);
    match hint {
        Some(hint) => with_hint(error, hint),
        None => error,
    }
}
