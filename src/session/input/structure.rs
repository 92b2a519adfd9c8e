//! Renders the project's files as a tree with a bounded number of lines.

use super::line;
use crate::text::visible::visible;

/// Maximum number of lines. Larger trees show deep directories as file counts.
pub const MAX_STRUCTURE: usize = 3000;

#[derive(Default)]
struct StructureFolder<'a> {
    folders: Vec<(&'a str, StructureFolder<'a>)>,
    files: Vec<&'a str>,
}

impl<'a> StructureFolder<'a> {
    /// Builds the tree from sorted paths. The first `skip` bytes of each path are the directory's
    /// own.
    fn of(paths: &[&'a str], skip: usize) -> StructureFolder<'a> {
        let mut folder = StructureFolder::default();
        let mut at = 0;
        while at < paths.len() {
            let path = paths[at];
            let Some(end) = path[skip..].find('/') else {
                folder.files.push(&path[skip..]);
                at += 1;
                continue;
            };

            // Paths are sorted, so those below one directory are adjacent.
            let inside = &path[..=skip + end];
            let length = paths[at..].partition_point(|path| path.starts_with(inside));
            let inner = StructureFolder::of(&paths[at..at + length], inside.len());
            folder.folders.push((&path[skip..skip + end], inner));
            at += length;
        }

        folder.folders.sort_unstable_by_key(|(name, _)| *name);
        folder
    }

    fn depth(&self) -> usize {
        let below = self.folders.iter().map(|(_, inner)| 1 + inner.depth());
        below.max().unwrap_or(0)
    }
}

/// Returns an indented list of the files, directories first. Deep directories are shown as counts
/// if there would be more than [`MAX_STRUCTURE`] lines.
pub fn structure(paths: &[impl AsRef<str>]) -> String {
    let mut sorted: Vec<&str> = paths.iter().map(AsRef::as_ref).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let root = StructureFolder::of(&sorted, 0);
    let fits = |depth: &usize| lines(&root, *depth) <= MAX_STRUCTURE;
    let depth = (0..=root.depth()).rev().find(fits).unwrap_or(0);
    let mut text = String::new();

    write_folder(&mut text, &root, 0, depth);
    text
}

fn lines(folder: &StructureFolder<'_>, depth: usize) -> usize {
    let below = |inner: &StructureFolder<'_>| {
        if depth == 0 {
            0
        } else {
            lines(inner, depth - 1)
        }
    };
    folder.files.len()
        + folder
            .folders
            .iter()
            .map(|(_, inner)| 1 + below(inner))
            .sum::<usize>()
}

fn write_folder(text: &mut String, folder: &StructureFolder<'_>, indent: usize, depth: usize) {
    for (name, inner) in &folder.folders {
        let pad = "  ".repeat(indent);
        if depth == 0 {
            line(
                text,
                format_args!("{pad}{}/ ({} files)", visible(name), count(inner)),
            );
        } else {
            line(text, format_args!("{pad}{}/", visible(name)));
            write_folder(text, inner, indent + 1, depth - 1);
        }
    }

    for name in &folder.files {
        line(
            text,
            format_args!("{}{}", "  ".repeat(indent), visible(name)),
        );
    }
}

fn count(folder: &StructureFolder<'_>) -> usize {
    let folders = folder.folders.iter();
    folder.files.len() + folders.map(|(_, inner)| count(inner)).sum::<usize>()
}
