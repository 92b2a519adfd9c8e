//! Finds conflict markers that a restore wrote and the user has not resolved.

use crate::git::object::{BlobId, EntryMode, TreeId};
use crate::git::repository::Repository;

/// The first and last line of a conflict. The labels are those that our merge uses, so markers of
/// other tools don't match.
const MARKERS: [&[u8]; 2] = [b"<<<<<<< yours", b">>>>>>> turn"];

/// Larger files are skipped: every `status` would read them whole.
const MAX_MARKED: u64 = 16 << 20;

/// Returns those of the paths that contain conflict markers.
pub fn marked(
    repository: &Repository,
    tree: TreeId,
    paths: &[Vec<u8>],
) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    for path in paths {
        let Some(entry) = repository.entry(tree, path)? else {
            continue;
        };
        let is_file = matches!(entry.mode, EntryMode::File | EntryMode::Executable);
        if !is_file || repository.blob_size(BlobId::of(entry.id))? > MAX_MARKED {
            continue;
        }

        if is_marked(&repository.blob(BlobId::of(entry.id))?) {
            found.push(path.clone());
        }
    }

    Ok(found)
}

fn is_marked(text: &[u8]) -> bool {
    let mut open = MARKERS.iter();
    let mut wanted = open.next();
    for line in text.split(|byte| *byte == b'\n') {
        if wanted.is_some_and(|marker| line.starts_with(marker)) {
            wanted = open.next();
        }
    }

    wanted.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_a_pair_of_lines() {
        let marked = "a\n<<<<<<< yours\nb\n=======\nc\n>>>>>>> turn\n";
        let found = [
            marked,
            "a\n<<<<<<< yours\nb\n",
            "a <<<<<<< yours\n>>>>>>> turn\n",
        ]
        .map(|text| is_marked(text.as_bytes()));
        assert_eq!(found, [true, false, false]);
    }
}
