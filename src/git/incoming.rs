//! Imports commits that commands made in a repository of their own, treating them like an untrusted
//! push.
//!
//! Nothing in that repository is trusted: no pack index, no alternates, and no object id before the
//! object was hashed. The new objects go into one pack. git checks it, and that no object is
//! missing below HEAD, before it is renamed into place. If a check fails, no commit is imported.

pub(in crate::git) mod collect;
mod quarantine;

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use gix::bstr::ByteSlice;
use gix::refs::FullName;

use collect::{Collected, ForeignStore};
use quarantine::{Quarantine, UnsoundCommit};

use crate::git::history;
use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::host::file::{FileKind, Root};

const MAX_NAMED_REFS: usize = 5;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// The newest commit, a descendant of the one that the commands started with.
    pub commit: Option<CommitId>,
    /// What was not imported, and why.
    pub remarks: Vec<String>,
}

pub(in crate::git) fn receive(
    repository: &Repository,
    git: &Root,
    before: CommitId,
) -> anyhow::Result<Received> {
    let mut received = Received {
        commit: None,
        remarks: refs_remark(git).into_iter().collect(),
    };
    let Some(head) = read_head(git, repository.gix.object_hash()) else {
        let message =
            "HEAD of the commands' repository names no commit; what they committed was not taken";
        received.remarks.push(message.to_owned());
        return Ok(received);
    };

    if head == before {
        return Ok(received);
    }

    match import_head(repository, git, head, before) {
        Ok(true) => received.commit = Some(head),
        Ok(false) => {}
        Err(error) => match error.downcast::<UnsoundCommit>() {
            Ok(why) => received.remarks.push(format!(
                "commit {head} of the commands was not taken: {why}"
            )),
            Err(error) => return Err(error),
        },
    }

    Ok(received)
}

/// Imports a commit and everything it reaches. `false` if it contains nothing new and does not
/// descend from `before`.
fn import_head(
    repository: &Repository,
    git: &Root,
    head: CommitId,
    before: CommitId,
) -> anyhow::Result<bool> {
    let quarantine = Quarantine::new(repository)?;
    let store = ForeignStore::new(repository, git, &quarantine);
    let Collected { new, edges, pack } = collect::collect_objects(repository, store, head)?;
    let follows = edges.iter().any(|&edge| {
        edge == before || history::is_ancestor(repository, before, edge).unwrap_or(false)
    });

    if !follows {
        anyhow::ensure!(
            new == 0,
            UnsoundCommit("it does not follow the commit that the plan began with".to_owned())
        );
        return Ok(false);
    }

    let sealed = pack.map(|pack| pack.seal(repository)).transpose()?;
    if let Some(sealed) = &sealed {
        quarantine.expose_pack(sealed)?;
        quarantine.check_rules(repository, sealed)?;
    }

    quarantine.check_links(repository, head, before)?;
    // The pack is kept until this process ends. By then a ref reaches it, or it is not needed.
    sealed.map(|sealed| sealed.finish(repository)).transpose()?;
    Ok(true)
}

/// Reports refs that commands created. They are lost with the repository.
fn refs_remark(git: &Root) -> Option<String> {
    let created = loose_refs(git);
    let listed: Vec<_> = created
        .iter()
        .take(MAX_NAMED_REFS)
        .map(|name| format!("`{}`", String::from_utf8_lossy(name)))
        .collect();
    let more = created.len().saturating_sub(MAX_NAMED_REFS);
    let more = if more > 0 {
        format!(" and {}", crate::text::counted(more, "more ref"))
    } else {
        String::new()
    };

    (!listed.is_empty()).then(|| {
        format!(
            "{}{more} made by the commands: refs of their own repository are not taken over",
            listed.join(", ")
        )
    })
}

const MAX_REF: u64 = 8 * 1024;
const MAX_PACKED_REFS: u64 = 64 << 20;

const MAX_SYMBOLIC_DEPTH: usize = 5;

const MAX_LISTED_ENTRIES: usize = 1000;

fn read_head(git: &Root, hash: gix::hash::Kind) -> Option<CommitId> {
    let mut name = FullName::try_from("HEAD").ok()?;
    for _ in 0..MAX_SYMBOLIC_DEPTH {
        let path = Path::new(OsStr::from_bytes(name.as_bstr()));
        let Ok(text) = git.read(path, MAX_REF) else {
            return read_packed_ref(git, &name, hash);
        };
        let text = text.trim();
        let Some(target) = text.strip_prefix(b"ref:") else {
            return parse_id(text, hash);
        };

        name = FullName::try_from(target.trim().as_bstr()).ok()?;
        // Another name would read any file of the untrusted directory.
        if !name.as_bstr().starts_with(b"refs/") {
            return None;
        }
    }

    None
}

fn read_packed_ref(git: &Root, name: &FullName, hash: gix::hash::Kind) -> Option<CommitId> {
    let text = git.read(Path::new("packed-refs"), MAX_PACKED_REFS).ok()?;
    let hex = text.lines().find_map(|line| {
        let (target, of) = line.split_once_str(" ")?;
        (of == name.as_bstr().as_bytes()).then_some(target)
    });
    parse_id(hex?, hash)
}

fn parse_id(text: &[u8], hash: gix::hash::Kind) -> Option<CommitId> {
    let text = text.to_str().ok()?;
    (text.len() == hash.len_in_hex()).then(|| text.parse().ok())?
}

/// Returns the names of loose refs that are not symbolic, sorted. All copied refs were packed, so
/// these are the ones that commands created or updated.
fn loose_refs(git: &Root) -> Vec<Vec<u8>> {
    let (mut loose, mut dirs, mut visited) = (Vec::new(), vec![PathBuf::from("refs")], 0);
    while let Some(dir) = dirs.pop() {
        let names = git.open_dir(&dir).and_then(|dir| dir.names());
        for name in names.unwrap_or_default() {
            visited += 1;
            if visited > MAX_LISTED_ENTRIES {
                dirs.clear();
                break;
            }

            let path = dir.join(name);
            match git.kind(&path) {
                Ok(Some(FileKind::Dir)) => dirs.push(path),
                Ok(Some(FileKind::File(_))) if is_direct_ref(git, &path) => {
                    loose.push(path.into_os_string().into_vec());
                }
                _ => {}
            }
        }
    }

    loose.sort();
    loose
}

fn is_direct_ref(git: &Root, path: &Path) -> bool {
    git.read(path, MAX_REF)
        .is_ok_and(|text| text.first().is_some_and(u8::is_ascii_hexdigit))
}
