//! Renders the project's files as a tree with a bounded number of lines.

use super::write_line;
use crate::text::sanitize::sanitize_line;

/// Maximum number of lines. Larger trees show deep directories as file counts.
pub const MAX_STRUCTURE: usize = 3000;

#[derive(Default)]
struct StructureDir<'a> {
    dirs: Vec<(&'a str, StructureDir<'a>)>,
    files: Vec<&'a str>,
}

impl<'a> StructureDir<'a> {
    /// Builds the tree from sorted paths. The first `skip` bytes of each path are the directory's
    /// own.
    fn of(paths: &[&'a str], skip: usize) -> StructureDir<'a> {
        let mut dir = StructureDir::default();
        let mut at = 0;
        while at < paths.len() {
            let path = paths[at];
            let Some(end) = path[skip..].find('/') else {
                dir.files.push(&path[skip..]);
                at += 1;
                continue;
            };

            // Paths are sorted, so those below one directory are adjacent.
            let inside = &path[..=skip + end];
            let length = paths[at..].partition_point(|path| path.starts_with(inside));
            let inner = StructureDir::of(&paths[at..at + length], inside.len());
            dir.dirs.push((&path[skip..skip + end], inner));
            at += length;
        }

        dir.dirs.sort_unstable_by_key(|(name, _)| *name);
        dir
    }

    fn depth(&self) -> usize {
        let depths = self.dirs.iter().map(|(_, inner)| 1 + inner.depth());
        depths.max().unwrap_or(0)
    }
}

/// Returns an indented list of the files, directories first. Deep directories are shown as counts
/// if there would be more than [`MAX_STRUCTURE`] lines.
pub fn structure(paths: &[impl AsRef<str>]) -> String {
    let mut sorted: Vec<&str> = paths.iter().map(AsRef::as_ref).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let root = StructureDir::of(&sorted, 0);
    let fits = |depth: &usize| count_lines(&root, *depth) <= MAX_STRUCTURE;
    let depth = (0..=root.depth()).rev().find(fits).unwrap_or(0);
    let mut text = String::new();

    write_dir(&mut text, &root, 0, depth);
    text
}

fn count_lines(dir: &StructureDir<'_>, depth: usize) -> usize {
    let nested_lines = |inner: &StructureDir<'_>| {
        if depth == 0 {
            0
        } else {
            count_lines(inner, depth - 1)
        }
    };
    dir.files.len()
        + dir
            .dirs
            .iter()
            .map(|(_, inner)| 1 + nested_lines(inner))
            .sum::<usize>()
}

fn write_dir(text: &mut String, dir: &StructureDir<'_>, indent: usize, depth: usize) {
    for (name, inner) in &dir.dirs {
        let pad = "  ".repeat(indent);
        if depth == 0 {
            write_line(
                text,
                format_args!(
                    "{pad}{}/ ({} files)",
                    sanitize_line(name),
                    count_files(inner)
                ),
            );
        } else {
            write_line(text, format_args!("{pad}{}/", sanitize_line(name)));
            write_dir(text, inner, indent + 1, depth - 1);
        }
    }

    for name in &dir.files {
        write_line(
            text,
            format_args!("{}{}", "  ".repeat(indent), sanitize_line(name)),
        );
    }
}

fn count_files(dir: &StructureDir<'_>) -> usize {
    let dirs = dir.dirs.iter();
    dir.files.len() + dirs.map(|(_, inner)| count_files(inner)).sum::<usize>()
}
