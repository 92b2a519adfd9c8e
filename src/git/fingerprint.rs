//! Detects changes to the user's part of a repository: configuration, hooks, HEAD, refs, stash and
//! index.
//!
//! Unconfined commands can change these. A fingerprint before and after shows whether they did. It
//! covers contents only: packing refs or refreshing the index does not change it.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use gix::refs::Target;
use sha2::{Digest, Sha256};

use super::refs::store::TEDDY_PREFIX;
use super::repository::Repository;
use crate::host::file::read_regular;

/// Upper bound for a file; a larger one is an error.
const MAX_FILE: u64 = 1 << 30;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    parts: BTreeMap<String, [u8; 32]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryDifference {
    /// The part, for example `config`, `hooks/pre-commit` or `refs/heads/main`.
    pub part: String,
    pub kind: DifferenceKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DifferenceKind {
    Added,
    Changed,
    Removed,
}

impl std::fmt::Display for RepositoryDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verb = match self.kind {
            DifferenceKind::Added => "added",
            DifferenceKind::Changed => "changed",
            DifferenceKind::Removed => "removed",
        };
        write!(f, "{} {verb}", self.part)
    }
}

impl Fingerprint {
    pub fn differences(&self, later: &Fingerprint) -> Vec<RepositoryDifference> {
        let mut names: Vec<_> = self.parts.keys().chain(later.parts.keys()).collect();
        names.sort();
        names.dedup();
        let difference = |part: &String| {
            let kind = match (self.parts.get(part), later.parts.get(part)) {
                (before, after) if before == after => return None,
                (None, _) => DifferenceKind::Added,
                (_, None) => DifferenceKind::Removed,
                _ => DifferenceKind::Changed,
            };
            Some(RepositoryDifference {
                part: part.clone(),
                kind,
            })
        };

        names.into_iter().filter_map(difference).collect()
    }
}

pub fn take_fingerprint(repository: &Repository) -> anyhow::Result<Fingerprint> {
    let (common, own) = (repository.common_dir(), repository.git_dir().to_owned());
    let mut parts = BTreeMap::new();
    for name in [
        "config",
        "hooks",
        "info",
        "objects/info/alternates",
        "HEAD",
        "logs/refs/stash",
    ] {
        add(&mut parts, name, &common.join(name))?;
    }

    // A linked worktree has its own.
    for name in ["HEAD", "config.worktree", "info"] {
        let name_here = if own == common {
            name.to_owned()
        } else {
            format!("{}/{name}", repository.worktree_name())
        };
        add(&mut parts, &name_here, &own.join(name))?;
    }

    add_refs(repository, &mut parts)?;
    if let Some(digest) = index_digest(repository)? {
        parts.insert("index".to_owned(), digest);
    }

    Ok(Fingerprint { parts })
}

/// Adds every ref except TeDDy's, loose or packed.
fn add_refs(repository: &Repository, parts: &mut BTreeMap<String, [u8; 32]>) -> anyhow::Result<()> {
    let all = repository.refs.all("refs/")?;
    for (name, target) in all.refs {
        let name = name.as_bstr().to_string();
        if !name.starts_with(TEDDY_PREFIX) {
            let target = match target {
                Target::Object(id) => digest(id.as_bytes()),
                Target::Symbolic(name) => digest(name.as_bstr()),
            };
            parts.insert(name, target);
        }
    }

    for (name, bytes) in repository.refs.users()? {
        parts.insert(name, digest(&bytes));
    }

    if all.damaged > 0 {
        parts.insert("refs that are damaged".to_owned(), digest(&[all.damaged]));
    }

    Ok(())
}

/// Returns the digest of the index without its stats.
fn index_digest(repository: &Repository) -> anyhow::Result<Option<[u8; 32]>> {
    let path = repository.git_dir().join("index");
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        // Reading a pipe would block.
        return Ok(Some(digest(b"no file")));
    }

    let Ok(index) = gix::index::File::at(
        &path,
        repository.gix.object_hash(),
        true,
        gix::index::decode::Options::default(),
    ) else {
        return match read_regular(&path, MAX_FILE) {
            Ok(bytes) => Ok(Some(digest(&bytes))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        };
    };

    let mut hasher = Sha256::new();
    for entry in index.entries() {
        // The other flags change if git refreshes the index.
        let flags = entry.flags
            & (gix::index::entry::Flags::SKIP_WORKTREE | gix::index::entry::Flags::INTENT_TO_ADD);
        hasher.update(entry.path(&index));
        hasher.update([0]);
        hasher.update(entry.id.as_bytes());
        hasher.update(entry.mode.bits().to_be_bytes());
        hasher.update([u8::try_from(entry.stage_raw()).unwrap_or(u8::MAX)]);

        hasher.update(flags.bits().to_be_bytes());
    }

    Ok(Some(hasher.finalize().into()))
}

fn add(parts: &mut BTreeMap<String, [u8; 32]>, name: &str, path: &Path) -> anyhow::Result<()> {
    let metadata = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if metadata.is_symlink() {
        let target = std::fs::read_link(path)?;
        parts.insert(
            format!("{name} (link)"),
            digest(target.as_os_str().as_encoded_bytes()),
        );
    }

    // Follow a symlink one step as git does: its target counts too.
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() && !path.is_symlink() => {
            for entry in std::fs::read_dir(path)? {
                let entry = entry?;
                add(
                    parts,
                    &format!("{name}/{}", entry.file_name().to_string_lossy()),
                    &entry.path(),
                )?;
            }
        }
        Ok(metadata) if metadata.is_file() => {
            let mut bytes = read_regular(path, MAX_FILE)?;
            // git runs a hook only if it is executable.
            bytes.push(u8::from(metadata.permissions().mode() & 0o111 != 0));
            parts.insert(name.to_owned(), digest(&bytes));
        }
        _ => {}
    }

    Ok(())
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}
