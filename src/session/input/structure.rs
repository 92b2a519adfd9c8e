//! The structure of a project: its files as a tree, cut where it grows too long.

use std::collections::BTreeMap;

use super::line;
use crate::text::visible::visible;

/// The project's structure is cut off to folders with counts above this many lines.
pub const MAX_STRUCTURE: usize = 3000;

/// A folder of the structure.
#[derive(Default)]
struct StructureFolder<'a> {
    /// Folders below, by name.
    folders: BTreeMap<&'a str, StructureFolder<'a>>,
    /// Files in it.
    files: Vec<&'a str>,
}

/// Returns the project's files as an indented list, folders first; above [`MAX_STRUCTURE`]
/// lines the deepest folders are shown as counts.
pub fn structure(paths: &[String]) -> String {
    let mut root = StructureFolder::default();
    for path in paths {
        let mut folder = &mut root;
        let mut components = path.split('/').peekable();
        while let Some(component) = components.next() {
            if components.peek().is_none() {
                folder.files.push(component);
            } else {
                folder = folder.folders.entry(component).or_default();
            }
        }
    }

    let deepest = paths
        .iter()
        .map(|path| path.matches('/').count())
        .max()
        .unwrap_or(0);
    let fits = |depth: &usize| lines(&root, *depth) <= MAX_STRUCTURE;
    let depth = (0..=deepest).rev().find(fits).unwrap_or(0);
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
            .values()
            .map(|inner| 1 + below(inner))
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
    folder.files.len() + folder.folders.values().map(count).sum::<usize>()
}
