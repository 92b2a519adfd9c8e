//! The structure of a project: its files as a tree, cut where it grows too long.

use super::line;
use crate::text::visible::visible;

/// The project's structure is cut off to folders with counts above this many lines.
pub const MAX_STRUCTURE: usize = 3000;

/// A folder of the structure.
#[derive(Default)]
struct StructureFolder<'a> {
    /// Folders below, sorted by name.
    folders: Vec<(&'a str, StructureFolder<'a>)>,
    /// Files in it.
    files: Vec<&'a str>,
}

impl<'a> StructureFolder<'a> {
    /// Returns the folder of some paths, sorted; so much of each is the folder's own path.
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

            // What is in a folder stands together.
            let inside = &path[..=skip + end];
            let length = paths[at..].partition_point(|path| path.starts_with(inside));
            let inner = StructureFolder::of(&paths[at..at + length], inside.len());
            folder.folders.push((&path[skip..skip + end], inner));
            at += length;
        }

        folder.folders.sort_unstable_by_key(|(name, _)| *name);
        folder
    }

    /// Returns how many levels of folders are below it.
    fn depth(&self) -> usize {
        let below = self.folders.iter().map(|(_, inner)| 1 + inner.depth());
        below.max().unwrap_or(0)
    }
}

/// Returns the project's files as an indented list, folders first and each once; above [`MAX_STRUCTURE`]
/// lines the deepest folders are shown as counts.
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

/// Returns how many lines a folder takes when it is shown to this depth.
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

/// Writes what is in a folder.
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

/// Returns how many files are in and below a folder.
fn count(folder: &StructureFolder<'_>) -> usize {
    let folders = folder.folders.iter();
    folder.files.len() + folders.map(|(_, inner)| count(inner)).sum::<usize>()
}
