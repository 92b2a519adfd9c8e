//! Parses a request on the command line: message, and files for the model.

use super::app::App;
use super::failure::InvalidArgument;
use super::source;
use crate::project::Project;
use crate::query::paths;
use crate::session::input::ListScope;
use crate::text::resource::is_url;
use crate::text::sanitize::sanitize_line;
use crate::workflow::context::edit::{self, ListEdit};

/// What a plan is asked for with.
#[derive(clap::Args)]
pub(super) struct RequestFlags {
    /// What you want; `-` reads standard input
    #[arg(short, long, value_name = "TEXT")]
    pub(super) message: Option<String>,
    /// Show the model this file, directory, pattern or URL in every turn of the session
    #[arg(short, long = "file", value_name = "FILE", value_hint = clap::ValueHint::AnyPath)]
    pub(super) files: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Request {
    pub(super) message: Option<String>,
    /// Resources to add to the context.
    pub(super) files: Vec<String>,
}

impl RequestFlags {
    /// Classifies arguments, and reads the message from stdin if requested.
    pub(super) fn read(
        self,
        app: &App,
        project: &Project,
        args: Vec<String>,
    ) -> anyhow::Result<Request> {
        // A `?` is a pattern in a context list but also ends a question: `why?`.
        let is_there = |word: &str| word.contains('*') || is_resource(app, project, word);
        let mut request =
            sort(args, self.message.is_some(), &is_there).map_err(|word| unquoted(app, &word))?;
        if let Some(word) = request.message.as_deref()
            && looks_like_file(word)
        {
            return Err(mistyped_file(app, word));
        }
        request.message = request
            .message
            .or(self.message)
            .map(source::message)
            .transpose()?;

        if let Some(missing) = self
            .files
            .iter()
            .find(|file| !is_listed(app, project, file))
        {
            return Err(not_there(app, missing));
        }
        request.files.extend(self.files);
        Ok(request)
    }
}

impl Request {
    /// Adds the files to the session's context and reports them.
    pub(super) fn show_files(&self, app: &App, project: &Project) -> anyhow::Result<()> {
        if self.files.is_empty() {
            return Ok(());
        }
        add_files(app, project, &self.files, ListScope::Session)
    }
}

/// Adds files to a context list and reports the new entries.
pub(super) fn add_files(
    app: &App,
    project: &Project,
    files: &[String],
    scope: ListScope,
) -> anyhow::Result<()> {
    let entries = paths::entries(&project.repository, &app.dir()?, files)?;
    let mut user = app.user(project, false);
    let edited = edit::edit_context(project, scope, ListEdit::Add, &entries, user.as_mut())?;
    let list = scope.title().to_lowercase();
    for entry in edited {
        if entry.is_hidden {
            warn_hidden(app, &entry.name);
        } else if entry.changed {
            app.note(&format!("Added {} ({list})", sanitize_line(&entry.name)));
            if entry.is_secret {
                warn_secret(app, &entry.name);
            }
        }
    }

    Ok(())
}

/// Says that the model gets a file that no snapshot would show it.
pub(super) fn warn_secret(app: &App, name: &str) {
    let name = sanitize_line(name);
    app.warn(&format!(
        "`{name}` is named like a secret, and the model gets its text"
    ));
}

/// Says that the turn's list does not show a file.
pub(super) fn warn_hidden(app: &App, name: &str) {
    let name = sanitize_line(name);
    app.warn(&format!(
        "snapshots leave out `{name}` (ignored, large or secret), so the model sees it only if you list it for the session: `teddy context add {name}`"
    ));
}

/// Classifies words: the message unless given by an option, then files. A word that names a file is
/// never the message. The error is a word that is neither.
fn sort(
    args: Vec<String>,
    mut has_message: bool,
    is_there: &dyn Fn(&str) -> bool,
) -> Result<Request, String> {
    let mut request = Request::default();
    for word in args {
        if is_there(&word) && !word.contains(char::is_whitespace) {
            request.files.push(word);
        } else if !has_message && request.files.is_empty() {
            has_message = true;
            request.message = Some(word);
        } else {
            return Err(word);
        }
    }

    Ok(request)
}

/// Returns whether a word can be an entry of a context list: an existing file, a page or a pattern.
fn is_listed(app: &App, project: &Project, word: &str) -> bool {
    word.contains(['*', '?', '[']) || is_resource(app, project, word)
}

/// Returns whether a word names an existing file or a page.
fn is_resource(app: &App, project: &Project, word: &str) -> bool {
    is_url(word) || is_file(app, project, word)
}

/// Returns whether a word names an existing file or directory. A leading `/` means the project
/// root.
pub(super) fn is_file(app: &App, project: &Project, word: &str) -> bool {
    let path = match word.strip_prefix('/') {
        Some(rel_path) => project.repository.workdir().join(rel_path),
        None => match app.dir() {
            Ok(dir) => dir.join(word),
            Err(_) => return false,
        },
    };
    !word.is_empty() && word != source::STDIN && path.symlink_metadata().is_ok()
}

/// Returns whether a word looks like a file path: it has an extension or a directory.
fn looks_like_file(word: &str) -> bool {
    let ending = word.rsplit_once('.').map_or("", |(_, ending)| ending);
    let has_ending = !ending.is_empty() && ending.chars().all(char::is_alphanumeric);
    !word.contains(char::is_whitespace) && (has_ending || word.contains('/'))
}

/// Returns the error for a message that is probably a mistyped file.
fn mistyped_file(app: &App, word: &str) -> anyhow::Error {
    let near = source::near(app, word).map(|near| format!("did you mean `{near}`? "));
    let (near, word) = (near.unwrap_or_default(), sanitize_line(word));
    InvalidArgument::error(
        format!("there is no file `{word}`"),
        format!("{near}`-m '{word}'` makes it the message"),
    )
}

/// Returns the error for an extra word, probably from an unquoted message.
fn unquoted(app: &App, word: &str) -> anyhow::Error {
    let quotes = "a message of several words needs quotes, as in `\"add a form\"`";
    let hint = match source::near(app, word) {
        Some(near) => format!("did you mean `{near}`? Otherwise, {quotes}"),
        None => quotes.to_owned(),
    };
    InvalidArgument::error(format!("there is no file `{}`", sanitize_line(word)), hint)
}

fn not_there(app: &App, file: &str) -> anyhow::Error {
    let usual = || "`-f` takes a file, a directory, a pattern or a URL".to_owned();
    let near = source::near(app, file).map(|near| format!("did you mean `{near}`?"));
    InvalidArgument::error(
        format!("there is no file `{}`", sanitize_line(file)),
        near.unwrap_or_else(usual),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares message and files for some words, with `src` and `a.rs` existing.
    fn check(line: &[&str], has_message: bool, expected: &str) {
        let args = line.iter().map(|word| (*word).to_owned()).collect();
        let is_there = |word: &str| ["src", "a.rs"].contains(&word);
        let parsed = match sort(args, has_message, &is_there) {
            Ok(Request { message, files }) => {
                format!("{}|{}", message.unwrap_or_default(), files.join(" "))
            }
            Err(word) => format!("stray {word}"),
        };
        assert_eq!(parsed, expected, "{line:?}");
    }

    #[test]
    fn the_first_word_that_is_no_file_is_the_message() {
        check(&["fix"], false, "fix|");
        check(&["add-form"], false, "add-form|");
        check(&["add a form", "a.rs", "src"], false, "add a form|a.rs src");
        check(&["a.rs"], false, "|a.rs");
        check(&["src", "a.rs"], true, "|src a.rs");
        check(&[], false, "|");
    }

    #[test]
    fn a_word_looks_like_a_file_by_its_ending_or_its_folder() {
        let check = |word: &str, expected: bool| {
            assert_eq!(looks_like_file(word), expected, "{word}");
        };
        check("requirements.md", true);
        check("docs/spec", true);
        check("why?", false);
        check("done.", false);
        check("slowly", false);
        check("read docs/spec.md", false);
    }

    #[test]
    fn a_message_without_quotes_is_no_message() {
        check(&["add", "a", "form"], false, "stray a");
        check(&["fix", "the"], false, "stray the");
        check(&["fix"], true, "stray fix");
        check(&["a.rs", "fix it"], false, "stray fix it");
    }
}
