//! Records single paths: a tree with only these paths read again.

use gix::ObjectId;
use gix::bstr::ByteSlice as _;
use gix::index::entry::Mode;
use gix::objs::tree::EntryKind;
use gix::objs::{Kind as ObjectKind, TreeRef, WriteTo as _};
use rustix::fs::OFlags;

use super::content::{ContentReader, ReadOutcome};
use super::context::ScanContext;
use super::entry::kind_of;
use super::limits::{Reason, SnapshotLimits, shown};
use super::{Snapshot, TreeId, embedded};
use crate::git::During;
use crate::git::object::absent;
use crate::git::object::writer::Sink;
use crate::git::object::{EntryMode, TreeEntry};
use crate::git::repository::Repository;
use crate::git::stat::{self, NameKind, is_absent};

/// A file whose content git refuses in a tree.
#[derive(Debug, thiserror::Error)]
#[error("cannot record `{path}`: {reason}")]
struct RefusedContent {
    path: String,
    reason: Reason,
}

/// Path, kind and object of a file or symlink on disk.
type FoundFile<'p> = (&'p [u8], (EntryKind, ObjectId));

/// Returns a copy of `base` in which these paths are as on disk: files and symlinks are recorded,
/// missing paths removed.
///
/// Ignore rules and limits do not apply. A directory on disk replaces a file only if `paths` also
/// contains a path below it. New objects are staged.
pub fn snapshot_paths(
    repository: &Repository,
    base: TreeId,
    paths: &[Vec<u8>],
) -> anyhow::Result<Snapshot> {
    let limits = SnapshotLimits::none();
    let scan = ScanContext::new(repository, &limits, &[])?;
    let sink = Sink::new(repository);
    let mut reader = ContentReader::new(&scan, &repository.gix, &sink);
    let known = repository.entries_at(base, &paths.iter().map(Vec::as_slice).collect())?;
    let (mut found, mut gone) = (Vec::new(), Vec::new());
    for path in paths {
        let before = known.get(path.as_slice());
        match read_path(&mut reader, &scan, path, before)? {
            Some(entry) => found.push((path.as_slice(), entry)),
            None => gone.push(path),
        }
    }

    // If no name is added or removed, large trees can be patched instead of decoded.
    if gone.is_empty()
        && let Some(tree) = replaced(repository, base.0, 0, &found, &sink)?
    {
        return Ok(Snapshot {
            tree: TreeId(tree),
            left_out: Vec::new(),
            keep: sink.stage(repository)?,
        });
    }

    let root = absent::find(|| repository.gix.find_tree(base.0)).during("reading a tree")?;
    let root = TreeRef::from_bytes(&root.data, repository.gix.object_hash())
        .during("reading a tree")?
        .into_owned();
    let mut editor =
        gix::objs::tree::Editor::new(root, &repository.gix.objects, repository.gix.object_hash());

    // Removals first: the name of a removed file can become a directory.
    for path in gone {
        let removed = editor.remove_if_leaf(parts(path));
        removed.during("editing a tree")?;
    }
    for (path, (kind, id)) in found {
        editor
            .upsert(parts(path), kind, id)
            .during("editing a tree")?;
    }

    let tree = editor.write(|tree| {
        let mut data = Vec::new();
        tree.write_to(&mut data)?;
        sink.add(ObjectKind::Tree, data)
    })?;
    Ok(Snapshot {
        tree: TreeId(tree),
        left_out: Vec::new(),
        keep: sink.stage(repository)?,
    })
}

/// Returns a copy of the tree `base` with these files replaced; `None` if one is not a file in it,
/// or `files` is not sorted. `start` is the length of the tree's own path with its slash.
fn replaced(
    repository: &Repository,
    base: ObjectId,
    start: usize,
    files: &[FoundFile<'_>],
    sink: &Sink,
) -> anyhow::Result<Option<ObjectId>> {
    if !files.is_sorted_by(|(a, _), (b, _)| a < b) {
        return Ok(None);
    }

    let tree = repository.stored_tree(base)?;
    let name_of = |path: &[u8]| {
        let rest = &path[start..];
        start..start + rest.find_byte(b'/').unwrap_or(rest.len())
    };
    let mut others = Vec::new();
    for group in files.chunk_by(|(a, _), (b, _)| a[name_of(a)] == b[name_of(b)]) {
        let (path, (kind, id)) = group[0];
        let name = name_of(path);
        let is_file = name.end == path.len();
        let found = tree.bisect(&path[name.clone()])?;
        let Some(before) = found.filter(|before| before.mode.is_tree() != is_file) else {
            return Ok(None);
        };
        let (mode, id) = match (is_file, group.len()) {
            (true, 1) => (kind.into(), id),
            (true, _) => return Ok(None),
            (false, _) => {
                let (mode, folder) = (before.mode, before.oid.to_owned());
                match replaced(repository, folder, name.end + 1, group, sink)? {
                    Some(tree) => (mode, tree),
                    None => return Ok(None),
                }
            }
        };
        others.push((&path[name], mode, id));
    }

    let made = tree.with(&others)?;
    let made = made.map(|tree| sink.add_tree(&repository.memory, Some(base), tree));
    made.transpose()
}

/// Returns whether the files at these paths equal the tree's. Does not descend into directories.
pub fn are_as_in(repository: &Repository, tree: TreeId, paths: &[Vec<u8>]) -> anyhow::Result<bool> {
    let limits = SnapshotLimits::none();
    let scan = ScanContext::new(repository, &limits, &[])?;
    // Its objects are dropped.
    let sink = Sink::new(repository);
    let mut reader = ContentReader::new(&scan, &repository.gix, &sink);
    let known = repository.entries_at(tree, &paths.iter().map(Vec::as_slice).collect())?;
    for path in paths {
        let before = known.get(path.as_slice());
        let now = match read_path(&mut reader, &scan, path, before) {
            // No tree has it.
            Err(error) if error.is::<RefusedContent>() => return Ok(false),
            now => now?,
        };
        let was = before.filter(|entry| entry.mode != EntryMode::Tree);
        let is_same = match (now, was) {
            (Some((kind, id)), Some(was)) => id == was.id && EntryMode::from(kind) == was.mode,
            (now, was) => now.is_none() && was.is_none(),
        };
        if !is_same {
            return Ok(false);
        }
    }

    Ok(true)
}

/// Returns the kind and object of a path on disk; `None` if it is not a file, symlink or
/// repository.
fn read_path(
    reader: &mut ContentReader<'_, '_>,
    scan: &ScanContext<'_>,
    path: &[u8],
    before: Option<&TreeEntry>,
) -> anyhow::Result<Option<(EntryKind, ObjectId)>> {
    let (folder, name) = path.rsplit_once_str(b"/").unwrap_or((b"", path));
    let seen = scan
        .open(folder, OFlags::RDONLY | OFlags::DIRECTORY)
        .and_then(|folder| stat::look(folder, name));
    let seen = match seen {
        Ok(seen) => seen,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => anyhow::bail!("cannot read `{}`: {}", shown(path), error.kind()),
    };

    match seen.kind {
        NameKind::Folder => Ok(embedded::commit(scan, path).map(|id| (EntryKind::Commit, id))),
        NameKind::Special => anyhow::bail!(
            "cannot record `{}`: it is not a file, directory or link",
            shown(path)
        ),
        NameKind::File | NameKind::Link => {
            let before = before.map(|entry| match entry.mode {
                EntryMode::Executable => Mode::FILE_EXECUTABLE,
                EntryMode::Link => Mode::SYMLINK,
                _ => Mode::FILE,
            });
            let kind = kind_of(scan, &seen, before);
            match reader.read(path, kind, true)? {
                ReadOutcome::Read(id, _) => Ok(Some((kind, id))),
                ReadOutcome::LeftOut(Reason::Unreadable(why)) => {
                    anyhow::bail!("cannot read `{}`: {why}", shown(path))
                }
                ReadOutcome::LeftOut(reason @ Reason::Refused(_)) => {
                    let path = shown(path);
                    Err(RefusedContent { path, reason }.into())
                }
                ReadOutcome::Gone | ReadOutcome::LeftOut(_) => Ok(None),
            }
        }
    }
}

fn parts(path: &[u8]) -> impl Iterator<Item = &gix::bstr::BStr> {
    path.split(|&byte| byte == b'/').map(|part| part.as_bstr())
}
