//! `export --bundle`: writes sessions, with all objects they need, to one file.

use std::fs::File;
use std::path::Path;

use anyhow::Context as _;

use super::manifest::{self, BundledSession, Manifest};
use crate::git::bundle::{self, BundleContents, BundleError};
use crate::git::object::CommitId;
use crate::git::refs::{self, signed};
use crate::host::clock;
use crate::host::file::{UnnamedFile, failure};
use crate::session::name::SessionName;
use crate::workflow::hint::{error_with_hint, with_hint};
use crate::workflow::project::Project;

/// Whether a bundle includes drafts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drafts {
    /// Drafts are included.
    Included,
    /// Drafts are left out.
    LeftOut,
}

/// What to do if the output file exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Refuse to write.
    Stays,
    /// Replace it atomically.
    Replaced,
}

/// Refs of the sessions to bundle, read at one moment.
#[derive(Debug)]
pub struct SessionBundle {
    refs: Vec<(String, CommitId)>,
    /// Manifest of the bundle.
    pub manifest: Manifest,
}

/// Reads the refs of the sessions to bundle.
pub fn collect_sessions(
    project: &Project,
    sessions: &[SessionName],
    drafts: Drafts,
) -> anyhow::Result<SessionBundle> {
    let mut bundle = SessionBundle {
        refs: Vec::new(),
        manifest: Manifest {
            schema: manifest::MANIFEST_SCHEMA,
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
        if signed::read_tag(repository, &name)?.is_some()
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

    /// Writes the bundle to an open file or pipe.
    pub fn write(&self, project: &Project, out: File) -> anyhow::Result<()> {
        let contents = BundleContents {
            refs: &self.refs,
            about: manifest::MANIFEST_REF,
            file: manifest::MANIFEST_FILE,
            text: &format!("{}\n", serde_json::to_string_pretty(&self.manifest)?),
            seconds: clock::now().timestamp().as_second(),
        };
        bundle::write(&project.repository, &contents, out).map_err(add_bundle_hint)
    }

    /// Writes the bundle to a file that only the user can read, and returns its size. The file gets
    /// its name once it is complete and flushed.
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
        unnamed.file().sync_all().map_err(during)?;
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

        let synced = File::open(dir).and_then(|dir| dir.sync_all());
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

pub(super) fn add_bundle_hint(error: anyhow::Error) -> anyhow::Error {
    let hint = error.downcast_ref().and_then(BundleError::hint);
    match hint {
        Some(hint) => with_hint(error, hint),
        None => error,
    }
}
