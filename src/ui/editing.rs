//! Edits an action or memo during the review, for the key `p`.
//!
//! All interaction goes through [`EditingPrompts`], so tests can script it. The result is the new
//! content, or `None` if nothing changed. The caller validates it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::ask::{self, Reply};
use super::editor::{self, Choices, EditorUse};
use super::style::{Paint, StyledLine, Tone, block};
use super::{preview, summary};
use crate::host::editor::{Editor, MAX_EDITED};
use crate::host::file::{read_regular_text, temporary_dir, temporary_parent};
use crate::plan::action::Action;
use crate::plan::action::behavior::{Editable, UserEdit};
use crate::plan::memo;
use crate::plan::validate::Step;
use crate::text::link;
use crate::text::path::RepoPath;

/// Keys for something that can't be edited.
pub const CLOSE: [(char, &str); 1] = [('c', "close it")];

const EDIT_OR_CLOSE: [(char, &str); 2] = [('e', "change it"), ('c', "close it; nothing changes")];

/// Prompts and editor, as the editing dialogs need them.
pub trait EditingPrompts {
    fn show(&mut self, lines: &[StyledLine]);
    /// Asks for one of `keys`, each with what it does. Leaving chooses the last one.
    fn key(&mut self, question: &str, keys: &[(char, &str)]) -> io::Result<char>;
    /// Asks for one line. Returns `None` if the user leaves.
    fn line(&mut self) -> io::Result<Option<String>>;
    /// Lets the user edit a text. Returns `None` if they leave.
    fn text(&mut self, start: &str) -> io::Result<Option<String>>;
    /// Opens a file in the user's editor. Returns `None` if none is configured or found.
    fn open(&mut self, path: &Path) -> io::Result<Option<EditorUse>>;

    fn warn(&mut self, text: &str) {
        self.show(&[StyledLine::of(Tone::Warning, text)]);
    }

    /// Waits until the user has read what is shown.
    fn close(&mut self) -> io::Result<()> {
        self.key("(c)lose › ", &CLOSE).map(drop)
    }
}

/// Shows an action and lets the user edit it. Returns the edited action, if it changed.
pub fn edit(
    prompts: &mut dyn EditingPrompts,
    action: &Action,
    step: &Step,
) -> anyhow::Result<Option<Action>> {
    prompts.show(&[StyledLine::default()]);
    match action.kind.editable() {
        Editable::NewFile {
            path,
            text: contents,
        } => new_content(prompts, action, step, path, contents),
        Editable::FinalVersion { path } => final_version(prompts, action, path, step),
        Editable::Text(text) => in_terminal(prompts, action, step, &text),
        Editable::Nothing => {
            prompts.show(&preview::action(action, step));
            prompts.close()?;
            Ok(None)
        }
    }
}

/// Shows a memo and lets the user edit it as the line that a plan contains.
pub fn edit_memo(
    prompts: &mut dyn EditingPrompts,
    change: &memo::MemoChange,
) -> anyhow::Result<Option<memo::MemoChange>> {
    prompts.show(&[
        StyledLine::default(),
        summary::memo(change),
        StyledLine::default(),
    ]);
    if prompts.key("(e)dit or (c)lose › ", &EDIT_OR_CLOSE)? == 'c' {
        return Ok(None);
    }

    let mut line = String::new();
    memo::write_change(change, &mut line);
    let mut text = line.trim_end().to_owned();
    loop {
        let Some(written) = prompts.text(&text)? else {
            return Ok(None);
        };
        match memo::parse_section(&written, change.line) {
            (changes, mistakes) if mistakes.is_empty() && changes.len() == 1 => {
                return Ok(changes.into_iter().next().filter(|new| new != change));
            }
            _ => prompts.warn(
                "one line: `[+] a fact to remember # why`, or `[-] the exact memo to forget # why`",
            ),
        }

        text = written;
    }
}

/// Asks for another path of a CREATE. Returns the changed action.
pub fn edit_path(
    prompts: &mut dyn EditingPrompts,
    action: &Action,
) -> anyhow::Result<Option<Action>> {
    let Editable::NewFile { path, text } = action.kind.editable() else {
        return Ok(None);
    };
    prompts.show(&[StyledLine::default()]);
    let Some(new) = new_path(prompts, path)?.filter(|new| new != path) else {
        return Ok(None);
    };

    // The header fields are shown and recorded, so they must agree with the new path.
    let mut changed = action.clone();
    for field in changed
        .fields
        .iter_mut()
        .filter(|field| field.key == "File Path")
    {
        field.value = link::write_path(new.as_str());
    }

    let edit = UserEdit::NewFile {
        path: new,
        text: text.to_owned(),
    };
    let kind = action.kind.edited(edit);
    Ok(kind.map(|kind| Action { kind, ..changed }))
}

/// CREATE: the editor gets the contents.
fn new_content(
    prompts: &mut dyn EditingPrompts,
    action: &Action,
    step: &Step,
    proposed: &RepoPath,
    contents: &str,
) -> anyhow::Result<Option<Action>> {
    let file = ProposedFile::write(proposed.file_name(), contents)?;
    let notice = "Your editor has been opened to preview the new file's content. You may edit it directly in this preview.";
    let question = "Have you finished editing and saved the file content?";
    let preview = preview::action(action, step);
    let Some(text) = file.edited(prompts, &preview, notice, question)? else {
        return Ok(None);
    };
    let edit = UserEdit::NewFile {
        path: proposed.clone(),
        text,
    };
    Ok(changed(action, edit))
}

/// Asks for a path until it is valid. Returns `None` if the user leaves.
fn new_path(prompts: &mut dyn EditingPrompts, path: &RepoPath) -> anyhow::Result<Option<RepoPath>> {
    loop {
        prompts.show(&[
            StyledLine::default(),
            StyledLine::plain("File path: [")
                .with(Tone::Strong, path.as_str())
                .with(Tone::Plain, "]"),
            StyledLine::of(Tone::Faint, "Press Enter to confirm, or type a new path"),
        ]);
        let Some(text) = prompts.line()? else {
            return Ok(None);
        };

        if text.trim().is_empty() {
            return Ok(Some(path.clone()));
        }

        match RepoPath::parse(text.trim()) {
            Ok(path) => return Ok(Some(path)),
            Err(error) => prompts.warn(&error.to_string()),
        }
    }
}

/// EDIT: the editor gets the resulting file. A change becomes one pair from the original file to
/// the edited one.
fn final_version<'a>(
    prompts: &mut dyn EditingPrompts,
    action: &Action,
    path: &RepoPath,
    step: &'a Step,
) -> anyhow::Result<Option<Action>> {
    let text = |bytes: &'a Option<Vec<u8>>| std::str::from_utf8(bytes.as_deref()?).ok();
    let (Some(before), Some(after)) = (text(&step.before), text(&step.after)) else {
        prompts.show(&preview::action(action, step));
        prompts.warn(
            "its result is not known or no text: it can be switched on or off, but not changed",
        );
        prompts.close()?;
        return Ok(None);
    };

    let file = ProposedFile::write(path.file_name(), after)?;
    prompts.show(&[
        StyledLine::plain("Editing: [")
            .with(Tone::Strong, path.as_str())
            .with(Tone::Plain, "]"),
        StyledLine::default(),
    ]);
    let notice = "Your editor has been opened to preview the proposed changes. You may edit the file directly in this preview to make final adjustments.";
    let question = "Have you finished editing and saved the file?";
    let preview = preview::action(action, step);
    let Some(contents) = file.edited(prompts, &preview, notice, question)? else {
        return Ok(None);
    };

    if contents == before {
        prompts.warn("That is the file as it was: switch the action off instead.");
        prompts.close()?;
        return Ok(None);
    }

    let edit = UserEdit::FinalVersion {
        before,
        after: contents,
    };
    Ok(changed(action, edit))
}

/// `None` if the edit changes nothing.
fn changed(action: &Action, edit: UserEdit<'_>) -> Option<Action> {
    let kind = action.kind.edited(edit)?;
    (kind != action.kind).then(|| Action {
        kind,
        ..action.clone()
    })
}

/// Any other action: shown in full, and edited at a prompt.
fn in_terminal(
    prompts: &mut dyn EditingPrompts,
    action: &Action,
    step: &Step,
    text: &str,
) -> anyhow::Result<Option<Action>> {
    prompts.show(&[StyledLine::of(Tone::Strong, action.kind.name())]);
    prompts.show(&preview::action(action, step));
    if prompts.key("(e)dit or (c)lose › ", &EDIT_OR_CLOSE)? == 'c' {
        return Ok(None);
    }

    let text = prompts.text(text.trim_end_matches('\n'))?;
    let text = text.filter(|text| !text.trim().is_empty());
    Ok(text.and_then(|text| changed(action, UserEdit::Text(&text))))
}

const NO_EDITOR: &str = "No editor is known: set `preview_command` or `EDITOR` to change it.";

/// For the question that waits for an editor in the background.
const FINISHED_KEYS: [(char, &str); 3] = [
    ('y', "it is saved: continue with it"),
    ('n', "not yet"),
    ('d', "drop your changes"),
];

/// A temporary file under its final name, in its own directory.
struct ProposedFile<'a> {
    /// Removed when it is dropped.
    _dir: tempfile::TempDir,
    path: PathBuf,
    text: &'a str,
}

/// Edits a text in the user's editor. Returns `None` if that fails or the user drops the changes.
pub fn edit_file(
    prompts: &mut dyn EditingPrompts,
    name: &str,
    text: &str,
) -> anyhow::Result<Option<String>> {
    let file = ProposedFile::write(name, text)?;
    match file.open(prompts, &[])? {
        Some(opened) => file.finished(prompts, opened, "Have you finished editing and saved it?"),
        None => Ok(None),
    }
}

impl ProposedFile<'_> {
    fn write<'a>(name: &str, text: &'a str) -> anyhow::Result<ProposedFile<'a>> {
        let dir = temporary_dir()?;
        let path = dir.path().join(name);
        std::fs::write(&path, text).context("writing the preview")?;

        Ok(ProposedFile {
            _dir: dir,
            path,
            text,
        })
    }

    /// Returns the text that the user made of the file. `None` if it is the same, if no editor opens
    /// or if the user drops the changes.
    fn edited(
        &self,
        prompts: &mut dyn EditingPrompts,
        preview: &[StyledLine],
        notice: &str,
        question: &str,
    ) -> anyhow::Result<Option<String>> {
        let Some(opened) = self.open(prompts, preview)? else {
            prompts.close()?;
            return Ok(None);
        };
        if opened == EditorUse::Window {
            prompts.show(&block(Tone::Plain, notice));
        }
        let text = self.finished(prompts, opened, question)?;
        Ok(text.filter(|text| text != self.text))
    }

    /// Opens the file. If that fails, shows `instead` in the terminal and returns `None`.
    fn open(
        &self,
        prompts: &mut dyn EditingPrompts,
        instead: &[StyledLine],
    ) -> anyhow::Result<Option<EditorUse>> {
        let problem = match prompts.open(&self.path) {
            Ok(Some(opened)) => return Ok(Some(opened)),
            Ok(None) => NO_EDITOR.to_owned(),
            Err(error) => error.to_string(),
        };
        prompts.show(instead);
        prompts.warn(&problem);

        Ok(None)
    }

    /// Returns the edited contents, or `None` if the user drops the changes. Asks only if the
    /// editor runs in the background.
    fn finished(
        &self,
        prompts: &mut dyn EditingPrompts,
        opened: EditorUse,
        question: &str,
    ) -> anyhow::Result<Option<String>> {
        let mut is_closed = opened == EditorUse::Ended;
        loop {
            let key = match is_closed {
                true => 'y',
                false => prompts.key(&format!("{question} (y/n) › "), &FINISHED_KEYS)?,
            };
            match key {
                'y' => {}
                'd' => return Ok(None),
                _ => {
                    prompts.show(&[StyledLine::of(
                        Tone::Faint,
                        "Take your time: y when it is saved, d to drop your changes.",
                    )]);
                    continue;
                }
            }

            match read_regular_text(&self.path, MAX_EDITED) {
                Ok(text) => return Ok(Some(text)),
                Err(error) => prompts.warn(&format!("the file cannot be read: {error}")),
            }
            // The file can't be read although the editor has ended: ask now, so the user can fix
            // it.
            is_closed = false;
        }
    }
}

/// The terminal in its normal mode.
#[derive(Debug, Clone)]
pub struct TerminalPrompts {
    /// Configured editors.
    pub choices: Choices,
    /// Whether to use colors.
    pub paint: Paint,
    /// Warnings so far, for a screen that comes next and would hide them.
    pub warnings: Vec<StyledLine>,
}

impl TerminalPrompts {
    /// Edits a text in the user's editor. Shows an error and returns the text unchanged if that
    /// fails.
    pub fn in_editor(&mut self, text: &str) -> String {
        match self
            .choices
            .message()
            .and_then(|editor| edit_text(&editor, text))
        {
            Ok(text) => text,
            Err(error) => {
                self.warn(&error.to_string());
                text.to_owned()
            }
        }
    }
}

impl EditingPrompts for TerminalPrompts {
    fn show(&mut self, lines: &[StyledLine]) {
        ask::show(lines, self.paint);
    }

    fn warn(&mut self, text: &str) {
        let line = StyledLine::of(Tone::Warning, text);
        self.show(std::slice::from_ref(&line));
        self.warnings.push(line);
    }

    fn key(&mut self, question: &str, keys: &[(char, &str)]) -> io::Result<char> {
        ask::key(question, keys)
    }

    fn line(&mut self) -> io::Result<Option<String>> {
        let mut text = String::new();
        loop {
            match ask::text(&text, None, self.paint)? {
                Reply::Quit(_) => return Ok(None),
                Reply::Text(text) => return Ok(Some(text)),
                // A single line needs no editor. Continue with the text.
                Reply::Editor(written) => text = written,
            }
        }
    }

    fn text(&mut self, start: &str) -> io::Result<Option<String>> {
        let mut text = if start.contains('\n') {
            self.in_editor(start)
        } else {
            start.to_owned()
        };

        self.show(&[ask::hint_for("enter saves", "ctrl-c goes back")]);
        loop {
            match ask::text(&text, None, self.paint)? {
                Reply::Quit(_) => return Ok(None),
                Reply::Text(text) => return Ok(Some(text)),
                Reply::Editor(written) => text = self.in_editor(&written),
            }
        }
    }

    fn open(&mut self, path: &Path) -> io::Result<Option<EditorUse>> {
        self.choices
            .preview()?
            .map(|editor| editor::open_to_change(&editor, path))
            .transpose()
    }
}

/// Edits a text in this editor, through a temporary file.
pub fn edit_text(editor: &Editor, text: &str) -> io::Result<String> {
    let mut file = tempfile::Builder::new()
        .prefix("teddy-")
        .suffix(".md")
        .tempfile_in(temporary_parent())?;
    writeln!(file, "{text}")?;
    if editor::open_to_change(editor, file.path())? == EditorUse::Window
        // The editor runs in the background, so only the user knows when it is done.
        && !ask::yes("Have you finished writing and saved the file?")?
    {
        return Ok(text.to_owned());
    }

    let text = read_regular_text(file.path(), MAX_EDITED)?;
    Ok(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests;
