//! The message of a commit on its way through the user's editor.

use std::path::Path;
use std::process::Command;

use crate::git::repository::Repository;
use crate::git::user_git::{in_checkout, run_checked, user_git};
use crate::host::file::read_regular_text;
use crate::text::shell_word::shell_word;

const EDITOR_SCRIPT: &str = "editor";
/// Trailers that do not count as a message, one per line.
const TRAILERS_FILE: &str = "trailers";
const MAX_TEMPLATE: u64 = 1 << 20;

/// The message of a commit, as git gets it.
#[derive(Debug, Clone, Default)]
pub struct CommitMessage {
    /// The text, with its trailers.
    pub text: String,
    /// The user's editor opens it first.
    pub edit: bool,
    /// The comment character, if the user's would remove a line of the draft.
    pub comment: Option<char>,
    /// Comments begin with this; `None` if git chooses it.
    pub comment_prefix: Option<String>,
    /// Whether git removes comments once the editor has ended.
    pub strips_comments: bool,
    /// Trailers of ours. A message of trailers alone is empty.
    pub trailers: Vec<String>,
}

/// Makes git take a message for empty from which the user removed everything but our trailers:
/// the first of them would become the subject.
pub(super) fn watch_editor(
    repository: &Repository,
    dir: &Path,
    git: &mut Command,
    message: &CommitMessage,
) -> anyhow::Result<()> {
    let Some(comment) = &message.comment_prefix else {
        return Ok(());
    };
    let mut ask = in_checkout(user_git(repository.workdir())?, repository);
    let editor = run_checked(ask.args(["var", "GIT_EDITOR"]), "name an editor")?;
    let editor = String::from_utf8_lossy(&editor).trim().to_owned();
    if editor == ":" {
        return Ok(());
    }

    let (script, trailers) = (dir.join(EDITOR_SCRIPT), dir.join(TRAILERS_FILE));
    std::fs::write(&trailers, message.trailers.join("\n") + "\n")?;
    let comment: String = comment.chars().map(escape_for_pattern).collect();
    let uncommented = match message.strips_comments {
        true => format!("grep -v '^{comment}'"),
        false => "cat".to_owned(),
    };
    let text = format!(
        "{editor} \"$@\" || exit\n\
         sed '/^{comment} -* >8 -*$/,$d' \"$1\" | {uncommented} |\n\
         grep -vxF -f {} | grep -v '^Signed-off-by: ' | grep -q '[^[:space:]]' || : >\"$1\"\n",
        shell_word(trailers.as_os_str().as_encoded_bytes()),
    );
    std::fs::write(&script, text)?;
    let script = shell_word(script.as_os_str().as_encoded_bytes());
    git.env("GIT_EDITOR", format!("sh {script}"));
    Ok(())
}

/// Returns the user's template of a message, if there is one.
pub fn message_template(repository: &Repository) -> Option<String> {
    let snapshot = repository.gix.config_snapshot();
    let path = snapshot.trusted_path("commit.template").ok().flatten()?;
    let path = repository.workdir().join(path);
    read_regular_text(&path, MAX_TEMPLATE).ok()
}

/// Returns a basic regular expression for a character, within single quotes and slashes.
fn escape_for_pattern(c: char) -> String {
    match c {
        '^' | '\\' | '/' | '$' | '*' | '.' | '[' => format!("\\{c}"),
        '\'' => "'\\''".to_owned(),
        c => c.to_string(),
    }
}
