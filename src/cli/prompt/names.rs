//! Completion at the prompt: commands, files, models, agents.

use std::path::Path;

use super::line::{COMMANDS, PromptAct, command_names};
use crate::git::refs;
use crate::text::path::lossy;
use crate::text::sanitize::sanitize_line;
use crate::workflow::model::agents;
use crate::workflow::project::Project;

/// Names considered.
const MAX_NAMES: usize = 200;

/// Kind of completion for the last word.
#[derive(Debug, PartialEq, Eq)]
enum CompletionKind<'a> {
    /// Commands; the word starts with `/`.
    Commands(&'a str),
    /// Files: the mark before the path, and the incomplete path.
    Files(&'static str, &'a str),
    Models(&'a str),
    Agents(&'a str),
    Nothing,
}

/// Returns completions for the last word of a text.
pub(super) fn candidates(project: &Project, dir: &Path, before: &str) -> Vec<String> {
    let completions = match completion_kind(before) {
        CompletionKind::Commands(word) => {
            matching_names(command_names().map(|name| format!("/{name}")), word)
        }
        CompletionKind::Files(mark, path) => matching_files(project, dir, path)
            .into_iter()
            .map(|path| format!("{mark}{path}"))
            .collect(),
        CompletionKind::Models(word) => {
            matching_names(project.settings.models.keys().cloned(), word)
        }
        CompletionKind::Agents(word) => matching_names(agents::agents(project), word),
        CompletionKind::Nothing => Vec::new(),
    };

    // Names that a terminal cannot show verbatim are never offered.
    completions
        .into_iter()
        .filter(|name| sanitize_line(name) == *name && !name.contains(char::is_whitespace))
        .collect()
}

fn completion_kind(before: &str) -> CompletionKind<'_> {
    let word = before.rsplit(char::is_whitespace).next().unwrap_or(before);
    if let Some(path) = word.strip_prefix('@') {
        return CompletionKind::Files("@", path);
    }

    let Some(line) = before.strip_prefix('/') else {
        return CompletionKind::Nothing;
    };
    let Some((name, _)) = line.split_once(char::is_whitespace) else {
        return CompletionKind::Commands(before);
    };
    let command = COMMANDS.iter().find(|command| command.name == name);
    match command.map(|command| command.act) {
        Some(PromptAct::Run(["context", "add" | "rm"])) => CompletionKind::Files("", word),
        Some(PromptAct::Model) => CompletionKind::Models(word),
        Some(PromptAct::Agent) => CompletionKind::Agents(word),
        _ => CompletionKind::Nothing,
    }
}

fn matching_names(names: impl IntoIterator<Item = String>, word: &str) -> Vec<String> {
    names
        .into_iter()
        .filter(|name| name.starts_with(word))
        .collect()
}

/// Returns files and directories whose path starts with the typed text. If there are none, returns
/// files of the newest commit whose path contains it.
fn matching_files(project: &Project, dir: &Path, typed: &str) -> Vec<String> {
    let (above, start) = typed
        .rsplit_once('/')
        .map_or(("", typed), |(above, start)| {
            (&typed[..above.len() + 1], start)
        });
    let entries = std::fs::read_dir(dir.join(above)).into_iter().flatten();
    let mut paths: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let is_hidden = name.starts_with('.') && !start.starts_with('.');
            if !name.starts_with(start) || is_hidden || name == ".git" {
                return None;
            }
            let slash = if entry.path().is_dir() { "/" } else { "" };
            Some(format!("{above}{name}{slash}"))
        })
        .take(MAX_NAMES)
        .collect();
    paths.sort();
    if paths.is_empty() && !typed.is_empty() && dir == project.repository.workdir() {
        paths = committed_files(project, typed).unwrap_or_default();
    }

    paths
}

/// Returns files of the newest commit whose path contains a text.
fn committed_files(project: &Project, part: &str) -> Option<Vec<String>> {
    let tree = refs::head_tree(&project.repository).ok()?;
    let leaves = project.repository.leaves(tree).ok()?;
    let paths = leaves.iter().map(|leaf| lossy(&leaf.path));
    Some(
        paths
            .filter(|path| path.contains(part))
            .take(MAX_NAMES)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_completed_depends_on_what_stands_before() {
        let check = |before: &str, expected: CompletionKind<'_>| {
            assert_eq!(completion_kind(before), expected)
        };
        check("/un", CompletionKind::Commands("/un"));
        check("/add src/", CompletionKind::Files("", "src/"));
        check("/drop a b", CompletionKind::Files("", "b"));
        check("/model so", CompletionKind::Models("so"));
        check("/agent ", CompletionKind::Agents(""));
        check("/undo ", CompletionKind::Nothing);
        check("see @sr", CompletionKind::Files("@", "sr"));
        check("/plan see @sr", CompletionKind::Files("@", "sr"));
        check("see sr", CompletionKind::Nothing);
    }
}
