//! Renders the input for the models of a change: project files and the documents of the change.

use crate::change::document::Documents;
use crate::change::proposal;
use crate::change::review;
use crate::change::spec;
use crate::change::store::Change;
use crate::git::object::{BlobId, EntryMode, TreeId};
use crate::git::repository::Repository;
use crate::session::input::{language, structure};
use crate::text::fence::fence_for;
use crate::text::redaction::redact;
use crate::text::sanitize::sanitize_line;

/// A larger file is only mentioned.
const MAX_INPUT_FILE: usize = 64 * 1024;
/// For all project files together.
const MAX_INPUT_FILES: usize = 400 * 1024;

/// Renders the input for a role, redacted.
pub(super) fn render_material(
    repository: &Repository,
    change: &Change,
    tree: TreeId,
) -> anyhow::Result<String> {
    let leaves = repository.leaves(tree)?;
    let paths: Vec<String> = leaves
        .iter()
        .filter_map(|leaf| String::from_utf8(leaf.path.clone()).ok())
        .collect();
    let mut text = format!("# Change `{}`\n\n## 1. Description\n\n", change.id);
    text.push_str(
        change
            .state
            .description
            .as_deref()
            .unwrap_or("(none)")
            .trim(),
    );
    text.push_str("\n\n## 2. Project Structure\n");
    push_block(&mut text, "", &structure(&paths));
    text.push_str("\n## 3. Files of the Project\n\n");

    let included = select_paths(&change.documents, &paths);
    let mut remaining = MAX_INPUT_FILES;
    for leaf in leaves
        .iter()
        .filter(|leaf| matches!(leaf.mode, EntryMode::File | EntryMode::Executable))
    {
        let Some(path) = std::str::from_utf8(&leaf.path)
            .ok()
            .filter(|path| included.iter().any(|other| other == path))
        else {
            continue;
        };
        let bytes = repository.blob(BlobId::of(leaf.id))?;

        push_file(&mut text, path, &bytes, &mut remaining);
    }

    text.push_str("## 4. Documents of the Change\n\n");
    for (path, contents) in &change.documents.0 {
        push_document(&mut text, path, contents);
    }

    Ok(redact(&text).into_owned())
}

fn select_paths(documents: &Documents, paths: &[String]) -> Vec<String> {
    let files = proposal::read(documents.text(proposal::FILE)).files;
    let is_included = |path: &&String| {
        spec::id_of(path).is_some() || path.as_str() == "README.md" || files.contains(path)
    };
    paths.iter().filter(is_included).cloned().collect()
}

fn push_file(text: &mut String, path: &str, bytes: &[u8], remaining: &mut usize) {
    text.push_str(&format!("### `{}`\n", sanitize_line(path)));
    match std::str::from_utf8(bytes) {
        Ok(contents) if bytes.len() <= MAX_INPUT_FILE.min(*remaining) => {
            *remaining -= bytes.len();
            push_block(text, language(path), contents);
        }
        Ok(_) => text.push_str(&format!("({} bytes, too large to be shown)\n", bytes.len())),
        Err(_) => text.push_str(&format!("({} bytes, no text)\n", bytes.len())),
    }

    text.push('\n');
}

pub(super) fn push_document(text: &mut String, path: &str, contents: &str) {
    text.push_str(&format!("### `{path}`\n"));
    push_block(text, "markdown", contents);
    text.push('\n');
}

pub(super) fn render_documents(documents: &Documents) -> String {
    let mut text = String::new();
    for (path, contents) in documents
        .0
        .iter()
        .filter(|(path, _)| *path != crate::change::document::REVIEW)
    {
        let (body, _) = review::split(contents);
        push_document(&mut text, path, body.trim_end());
    }

    text
}

/// Appends a text in a fence longer than any inside it.
pub(super) fn push_block(text: &mut String, language: &str, contents: &str) {
    let fence = fence_for(contents, 4);
    text.push_str(&format!("{fence}{language}\n{contents}"));
    if !contents.is_empty() && !contents.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!("{fence}\n"));
}
