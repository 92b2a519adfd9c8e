//! Damage to files between two states of a project: what a program changed besides the text.
//!
//! [`text::damage`](crate::text::damage) compares the contents of one file. This module adds the
//! changes that need both trees: modes and renames.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::git::diff::{self, TreeChange};
use crate::git::object::{BlobId, EntryMode, TreeEntry, TreeId, read};
use crate::git::parallel::map_parallel;
use crate::git::repository::Repository;
use crate::host::file::Root;
use crate::text::damage::{Damage, FileDamage, FileFacts, damage};
use crate::text::path::{RepoPath, lossy};
use crate::workflow::validation::state_mode;

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
    let paths = changes.iter().map(|change| change.path.as_slice());
    // The attributes from before: a program can have changed them, too.
    let marked = read::marked_generated(repository, from, paths)?;
    let deleted = deleted_contents(&changes);
    let facts = changes.iter().map(|change| FileFacts {
        other_links: disk.map_or(0, |disk| other_links(disk, change)),
        is_marked_generated: marked.contains(&change.path),
    });
    let compared = map_parallel(
        repository,
        changes.iter().zip(facts).collect(),
        |repository, changes| {
            let compare = |(change, facts)| content_damage(repository, change, facts);
            changes.into_iter().map(compare).collect()
        },
    )?;
    let compared: Vec<Vec<_>> = compared;

    let mut found = Vec::new();
    for (change, content) in changes.iter().zip(compared.into_iter().flatten()) {
        let mut add = |damage: Damage| found.push(damage.to_file(&lossy(&change.path)));
        match (&change.old, &change.new) {
            (Some(old), Some(new)) => {
                let [was, becomes] = [old, new].map(|entry| state_mode(entry.mode));
                let mode = was.zip(becomes).and_then(|(was, new)| was.damage_by(new));
                mode.into_iter().for_each(&mut add);
                content.into_iter().for_each(add);
            }
            (None, Some(new)) if new.mode != EntryMode::Commit => {
                if let Some(old) = deleted.get(&BlobId::of(new.id)) {
                    let from = lossy(&old.path);
                    add(Damage::Renamed { from });
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Of a file that is replaced.
fn other_links(disk: &Root, change: &TreeChange) -> u64 {
    match (&change.old, &change.new) {
        (Some(_), Some(_)) => disk.other_links(Path::new(OsStr::from_bytes(&change.path))),
        _ => 0,
    }
}

fn deleted_contents(changes: &[TreeChange]) -> BTreeMap<BlobId, &TreeChange> {
    let mut deleted = BTreeMap::new();
    for change in changes {
        // All empty files have the same bytes.
        if let (Some(old), None) = (&change.old, &change.new)
            && !old.id.is_empty_blob()
        {
            deleted.insert(BlobId::of(old.id), change);
        }
    }
    deleted
}

fn content_damage(
    repository: &Repository,
    change: &TreeChange,
    facts: FileFacts,
) -> anyhow::Result<Vec<Damage>> {
    let (Some(old), Some(new)) = (&change.old, &change.new) else {
        return Ok(Vec::new());
    };
    let is_file = |entry: &TreeEntry| entry.is_file();
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
