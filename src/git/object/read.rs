//! Reads files of a tree: for display, as a checkout would write them, or for what git takes from
//! its own ones, `.gitattributes` and `.gitmodules`.

use std::collections::BTreeSet;

use crate::git::filter;
use crate::git::object::batch::read_blob_within;
use crate::git::object::large::LARGE;
use crate::git::object::{BlobId, EntryMode, TreeEntry, TreeId};
use crate::git::repository::Repository;
use crate::git::user_git::silent_git_for;
use crate::text::encoding::display_text;

/// Reads a blob for display or a line diff; `None` if it is too large.
pub fn small_blob(repository: &Repository, id: BlobId) -> anyhow::Result<Option<Vec<u8>>> {
    read_blob_within(repository, id, LARGE)
}

/// Returns the text of one side of a diff, as it is displayed: empty if there is no file, `None` if
/// it is binary or too large.
pub fn text_of(
    repository: &Repository,
    entry: Option<&TreeEntry>,
) -> anyhow::Result<Option<String>> {
    match entry {
        None => Ok(Some(String::new())),
        Some(TreeEntry {
            mode: EntryMode::Blob | EntryMode::BlobExecutable | EntryMode::Link,
            id,
        }) => {
            let bytes = small_blob(repository, BlobId::of(*id))?;
            let text = |bytes: Vec<u8>| Some(display_text(&bytes)?.text.into_owned());
            Ok(bytes.and_then(text))
        }
        Some(_) => Ok(None),
    }
}

/// Returns a file of a tree as a checkout would write it, with line endings and filters applied.
/// Empty if there is no file.
pub fn checked_out(repository: &Repository, tree: TreeId, path: &str) -> anyhow::Result<Vec<u8>> {
    let Some(blob) = repository.file(tree, path)? else {
        return Ok(Vec::new());
    };
    let path = path.as_bytes();
    filter::open_filter(repository, tree, std::iter::once(path))?.smudge(path, blob)
}

/// Returns those of `paths` that have `linguist-generated` in the attributes of a tree.
pub fn marked_generated<'p>(
    repository: &Repository,
    tree: TreeId,
    paths: impl Iterator<Item = &'p [u8]> + Clone,
) -> anyhow::Result<BTreeSet<Vec<u8>>> {
    let mut filter = filter::open_filter(repository, tree, paths.clone())?;
    let mut marked = BTreeSet::new();
    for path in paths {
        if filter.is_marked_generated(path)? {
            marked.insert(path.to_vec());
        }
    }
    Ok(marked)
}

/// Returns the paths of the submodules of a tree. A `.gitmodules` that git cannot read names none.
pub fn list_submodules(repository: &Repository, tree: TreeId) -> anyhow::Result<BTreeSet<Vec<u8>>> {
    let entry = repository.entry(tree, b".gitmodules")?;
    let Some(entry) = entry.filter(|entry| entry.is_file()) else {
        return Ok(BTreeSet::new());
    };

    let mut git = silent_git_for(repository)?;
    git.args(["config", "-z", "--blob", &entry.id.to_string()])
        .args(["--get-regexp", r"^submodule\..*\.path$"]);
    let listed = git.output()?.stdout;
    let lines = listed.split(|byte| *byte == 0);
    let path = |line: &[u8]| {
        let end = line.iter().position(|byte| *byte == b'\n')?;
        Some(line[end + 1..].to_vec())
    };
    Ok(lines.filter_map(path).collect())
}
