//! Damage to files between two states of a project: what a program changed besides the text.
//!
//! The damage to one file is `text::damage`. Here are the changes that need both trees: the mode of
//! a file, and a file that is under another name now.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use serde::Serialize;

use crate::git::diff::{self, TreeChange};
use crate::git::object::{BlobId, EntryMode, TreeEntry, TreeId, read};
use crate::git::repository::Repository;
use crate::host::file::{FileKind, Root};
use crate::text::damage::{Damage, FileFacts, damage};
use crate::text::path::{RepoPath, lossy};
use crate::text::sanitize::sanitize_line;

/// Changed files that are read. Others are not checked.
const MAX_FILES: usize = 500;

/// Damage to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileDamage {
    pub path: String,
    /// What it is, as in JSON.
    pub kind: &'static str,
    /// The rest of the sentence that begins with the path.
    pub text: String,
}

/// Returns the damage to the files that differ between two trees, sorted by path.
///
/// `disk`: the files that `to` replaces. `None` if `to` is on disk already.
pub fn find_damage(
    repository: &Repository,
    from: TreeId,
    to: TreeId,
    disk: Option<&Root>,
) -> anyhow::Result<Vec<FileDamage>> {
    let changes = diff::changes(repository, from, to)?;
    let paths = changes
        .iter()
        .take(MAX_FILES)
        .map(|change| change.path.as_slice());
    // The attributes from before: a program can have changed them, too.
    let marked = read::marked_generated(repository, from, paths)?;
    let mut deleted: BTreeMap<_, &TreeChange> = BTreeMap::new();
    for change in &changes {
        if let (Some(old), None) = (&change.old, &change.new) {
            deleted.insert(old.id, change);
        }
    }

    let mut found = Vec::new();
    for change in changes.iter().take(MAX_FILES) {
        let mut add = |kind, text| {
            found.push(FileDamage {
                path: lossy(&change.path),
                kind,
                text,
            });
        };
        match (&change.old, &change.new) {
            (Some(old), Some(new)) => {
                if let Some(text) = mode_change(old.mode, new.mode) {
                    add("mode", text.to_owned());
                }
                let facts = FileFacts {
                    other_links: disk.map_or(0, |disk| {
                        other_links(disk, Path::new(OsStr::from_bytes(&change.path)))
                    }),
                    is_marked_generated: marked.contains(&change.path),
                };
                for damage in content_damage(repository, change, facts)? {
                    add(damage.kind(), damage.sentence());
                }
            }
            (None, Some(new)) if new.mode != EntryMode::Gitlink => {
                if let Some(old) = deleted.get(&new.id) {
                    let text = format!(
                        "it is `{}` under another name",
                        sanitize_line(&lossy(&old.path))
                    );
                    add("renamed", text);
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

fn mode_change(old: EntryMode, new: EntryMode) -> Option<&'static str> {
    match (old, new) {
        _ if old == new => None,
        (EntryMode::Link, _) => Some("the link becomes a file"),
        (_, EntryMode::Link) => Some("it becomes a link"),
        (EntryMode::File, EntryMode::Executable) => Some("it becomes executable"),
        (EntryMode::Executable, EntryMode::File) => Some("it is no longer executable"),
        _ => None,
    }
}

/// Returns the number of further hard links of a file. 0 if it does not exist.
pub fn other_links(disk: &Root, path: &Path) -> u64 {
    let info = disk.entry(path).ok().flatten();
    let file = info.filter(|info| matches!(info.kind, FileKind::File(_)));
    file.map_or(0, |info| info.links.saturating_sub(1))
}

fn content_damage(
    repository: &Repository,
    change: &TreeChange,
    facts: FileFacts,
) -> anyhow::Result<Vec<Damage>> {
    let (Some(old), Some(new)) = (&change.old, &change.new) else {
        return Ok(Vec::new());
    };
    let is_file = |entry: &TreeEntry| matches!(entry.mode, EntryMode::File | EntryMode::Executable);
    let path = RepoPath::parse(&lossy(&change.path));
    let (Ok(path), true) = (path, is_file(old) && is_file(new) && old.id != new.id) else {
        return Ok(Vec::new());
    };
    let [old, new] = [old, new].map(|entry| read::small_blob(repository, BlobId::of(entry.id)));
    Ok(match (old?, new?) {
        (Some(old), Some(new)) => damage(&path, &old, &new, facts),
        _ => Vec::new(),
    })
}
