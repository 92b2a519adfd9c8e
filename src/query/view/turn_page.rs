//! Data of a turn page: messages, changes, outputs and input.
//!
//! Everything can come from someone else and have any size. Long texts are truncated. Unreadable
//! parts are named in [`TurnPage::errors`].

use crate::git::diff;
use crate::git::object::batch::read_blob_within;
use crate::git::object::leaves::TreeLimit;
use crate::git::object::{BlobId, EntryMode, Leaf, TreeEntry};
use crate::git::repository::Repository;
use crate::project::Project;
use crate::query::log::{self, LogRow};
use crate::session::artifact;
use crate::session::bare::Redaction;
use crate::session::input::{self, ResourceTokens};
use crate::session::meta::MessageOrigin;
use crate::session::turn::{Turn, in_next};
use crate::text::encoding::display_text;
use crate::text::path::lossy;
use crate::workspace::file_move::{PathChange, changes_of};

const MAX_TEXT: usize = 1 << 20;
const MAX_OUTPUT: usize = 256 << 10;
const MAX_OUTPUTS: usize = 4 << 20;
/// In bytes. Larger artifacts are not read.
const MAX_READ: u64 = 64 << 20;
/// In bytes. Larger files are not shown.
const MAX_FILE: u64 = 1 << 20;
/// In bytes. The list of resources comes before their contents.
const MAX_INPUT: u64 = 16 << 20;
const MAX_FILES: usize = 1000;

#[derive(Debug, Clone)]
pub struct TurnPage {
    pub row: LogRow,
    pub message: Option<String>,
    pub origin: MessageOrigin,
    /// If it differs from the plan.
    pub answer: Option<String>,
    /// As it ran, or as it was proposed.
    pub plan: Option<String>,
    pub report: Option<String>,
    /// Question or summary of the model.
    pub closing_text: Option<String>,
    pub outputs: Vec<OutputText>,
    pub input: Vec<ResourceTokens>,
    pub files: Vec<ChangedFile>,
    pub files_left_out: usize,
    pub artifacts: Vec<String>,
    /// `meta.yaml`
    pub meta: String,
    /// Of unreadable parts.
    pub errors: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputText {
    pub name: String,
    /// The beginning.
    pub text: String,
    /// In full.
    pub bytes: u64,
    pub is_cut: bool,
}

/// Its content is read on demand.
#[derive(Debug, Clone)]
pub struct ChangedFile {
    /// Lossily decoded.
    pub path: String,
    pub change: PathChange,
    old: Option<TreeEntry>,
    new: Option<TreeEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileView {
    Absent,
    /// As it is displayed.
    Text(String),
    Binary {
        bytes: u64,
    },
    TooLarge {
        bytes: u64,
    },
    Link(String),
    Submodule(String),
    Unreadable(String),
}

pub fn turn_page(project: &Project, turn: &Turn) -> anyhow::Result<TurnPage> {
    collect_page(project, turn, None)
}

/// The contents of files are redacted separately.
pub fn plain_turn_page(
    project: &Project,
    turn: &Turn,
    redaction: &Redaction,
) -> anyhow::Result<TurnPage> {
    let mut page = collect_page(project, turn, Some(redaction))?;
    redaction.turn(&mut page);
    Ok(page)
}

fn collect_page(
    project: &Project,
    turn: &Turn,
    redaction: Option<&Redaction>,
) -> anyhow::Result<TurnPage> {
    let mut parts = Parts {
        redaction,
        repository: &project.repository,
        leaves: project
            .repository
            .leaves_up_to(turn.tree, TreeLimit::SMALL)?,
        errors: Vec::new(),
    };
    let row = log::row(project, turn).unwrap_or_else(|error| {
        parts.errors.push(format!("{error:#}"));
        log::row_without_files(turn)
    });
    let (files, files_left_out) = parts.files(turn);
    let names = [artifact::QUESTION, artifact::CONCLUSION].map(in_next);

    Ok(TurnPage {
        row,
        message: parts.text(artifact::USER_PROMPT),
        origin: turn.meta.origin,
        answer: parts.text(artifact::REPLY),
        plan: parts
            .text(artifact::APPROVED)
            .or_else(|| parts.text(artifact::PLAN)),
        report: parts.text(artifact::REPORT),
        closing_text: names.iter().find_map(|name| parts.text(name)),
        outputs: parts.outputs(),
        input: parts.input(),
        files,
        files_left_out,
        artifacts: parts.names(),
        meta: parts.text(artifact::META).unwrap_or_default(),
        errors: parts.errors,
    })
}

struct Parts<'a> {
    /// Applied before truncation: a truncated key is not recognized.
    redaction: Option<&'a Redaction>,
    repository: &'a Repository,
    leaves: Vec<Leaf>,
    errors: Vec<String>,
}

impl Parts<'_> {
    fn names(&self) -> Vec<String> {
        self.leaves.iter().map(|leaf| lossy(&leaf.path)).collect()
    }

    /// `None` if the artifact is absent. If it is too large or unreadable, `errors` names it.
    fn bytes(&mut self, name: &str, most: u64) -> Option<Vec<u8>> {
        let mut leaves = self.leaves.iter();
        let leaf = leaves.find(|leaf| leaf.path == name.as_bytes() && leaf.is_file())?;
        match read_blob_within(self.repository, BlobId::of(leaf.id), most) {
            Ok(Some(bytes)) => return Some(self.plain(bytes)),
            Ok(None) => self
                .errors
                .push(format!("`{name}` is too large to be shown")),
            Err(error) => self.errors.push(format!("`{name}`: {error:#}")),
        }

        None
    }

    fn plain(&self, bytes: Vec<u8>) -> Vec<u8> {
        let redaction = self.redaction;
        let plain = redaction.and_then(|redaction| redaction.bytes(&bytes, false));
        plain.unwrap_or(bytes)
    }

    fn text(&mut self, name: &str) -> Option<String> {
        let bytes = self.bytes(name, MAX_READ)?;
        let (mut text, is_cut) = cut(&bytes, MAX_TEXT);
        if is_cut {
            text += &format!("\n(cut here; `{name}` has {} bytes)", bytes.len());
        }
        Some(text)
    }

    fn outputs(&mut self) -> Vec<OutputText> {
        let mut remaining = MAX_OUTPUTS;
        let mut names = self.names();
        names.retain(|name| name.starts_with(artifact::OUTPUT));

        let mut outputs = Vec::new();
        for name in names {
            let Some(bytes) = self.bytes(&name, MAX_READ) else {
                continue;
            };
            let (text, is_cut) = cut(&bytes, MAX_OUTPUT.min(remaining));
            remaining -= text.len().min(remaining);
            outputs.push(OutputText {
                name,
                text,
                bytes: bytes.len() as u64,
                is_cut,
            });
        }
        outputs
    }

    fn input(&mut self) -> Vec<ResourceTokens> {
        let input = self.bytes(artifact::INPUT, MAX_INPUT);
        let input = input.map(|bytes| input::read_summary(&String::from_utf8_lossy(&bytes)));
        input.unwrap_or_default()
    }

    fn files(&mut self, turn: &Turn) -> (Vec<ChangedFile>, usize) {
        let Some(workspace) = &turn.meta.workspace else {
            return (Vec::new(), 0);
        };
        let changes = changes_of(self.repository, workspace.change());
        let changes = changes.unwrap_or_else(|error| {
            self.errors.push(format!("the files: {error:#}"));
            Vec::new()
        });

        let left_out = changes.len().saturating_sub(MAX_FILES);
        let files = changes.into_iter().take(MAX_FILES).map(ChangedFile::of);
        (files.collect(), left_out)
    }
}

impl ChangedFile {
    pub fn of(change: diff::TreeChange) -> ChangedFile {
        ChangedFile {
            path: lossy(&change.path),
            change: PathChange::of(&change.old, &change.new),
            old: change.old,
            new: change.new,
        }
    }

    /// A file that a waiting plan changes. Its versions are in no tree.
    pub fn planned(path: &str, change: PathChange) -> ChangedFile {
        ChangedFile {
            path: path.to_owned(),
            change,
            old: None,
            new: None,
        }
    }

    pub fn before(&self, repository: &Repository) -> FileView {
        FileView::read(repository, self.old.as_ref())
    }

    pub fn after(&self, repository: &Repository) -> FileView {
        FileView::read(repository, self.new.as_ref())
    }

    /// `file`, `executable`, `link` or `repository`, if old and new kind differ.
    pub fn kinds(&self) -> Option<(&'static str, &'static str)> {
        let (old, new) = (self.old.as_ref()?, self.new.as_ref()?);
        (old.mode != new.mode).then(|| (kind(old.mode), kind(new.mode)))
    }

    /// Of an added or deleted file. `None` for a plain one.
    pub fn special_kind(&self) -> Option<&'static str> {
        let ((None, Some(entry)) | (Some(entry), None)) = (&self.old, &self.new) else {
            return None;
        };
        (entry.mode != EntryMode::Blob).then(|| kind(entry.mode))
    }
}

impl FileView {
    /// Empty for an absent file, `None` for other kinds.
    pub fn text(&self) -> Option<&str> {
        match self {
            FileView::Absent => Some(""),
            FileView::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a version that is in no tree.
    pub fn of_version(version: Option<&[u8]>) -> FileView {
        match version {
            None => FileView::Absent,
            Some(bytes) if bytes.len() as u64 > MAX_FILE => FileView::TooLarge {
                bytes: bytes.len() as u64,
            },
            Some(bytes) => FileView::of(bytes),
        }
    }

    fn read(repository: &Repository, entry: Option<&TreeEntry>) -> FileView {
        let Some(entry) = entry else {
            return FileView::Absent;
        };
        if entry.mode == EntryMode::Commit {
            return FileView::Submodule(entry.id.to_string());
        }

        let blob = BlobId::of(entry.id);
        let size = repository.blob_size(blob);
        let bytes = size.and_then(|size| Ok((size, read_blob_within(repository, blob, MAX_FILE)?)));
        match bytes {
            Err(error) => FileView::Unreadable(format!("{error:#}")),
            Ok((bytes, None)) => FileView::TooLarge { bytes },
            Ok((_, Some(bytes))) if entry.mode == EntryMode::Link => FileView::Link(lossy(&bytes)),
            Ok((_, Some(bytes))) => FileView::of(&bytes),
        }
    }

    fn of(bytes: &[u8]) -> FileView {
        match display_text(bytes) {
            Some(text) => FileView::Text(text.text.into_owned()),
            None => FileView::Binary {
                bytes: bytes.len() as u64,
            },
        }
    }
}

fn kind(mode: EntryMode) -> &'static str {
    match mode {
        EntryMode::Blob => "file",
        EntryMode::BlobExecutable => "executable",
        EntryMode::Link => "link",
        EntryMode::Tree => "folder",
        EntryMode::Commit => "repository",
    }
}

/// Up to a whole character. Also returns whether the text was truncated.
fn cut(bytes: &[u8], most: usize) -> (String, bool) {
    if bytes.len() <= most {
        return (lossy(bytes), false);
    }

    // A character has at most four bytes in UTF-8.
    let mut ends = (most.saturating_sub(3)..=most).rev();
    let is_start = |at: &usize| bytes[*at] & 0xC0 != 0x80;
    let end = ends.find(is_start).unwrap_or(most);
    (lossy(&bytes[..end]), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_behind_a_whole_character() {
        let check = |text: &str, most, expected: &str, is_cut| {
            let actual = cut(text.as_bytes(), most);
            assert_eq!(actual, (expected.to_owned(), is_cut), "{text} to {most}");
        };
        check("abc", 3, "abc", false);
        check("abcd", 3, "abc", true);
        check("a\u{e9}b", 2, "a", true);
        check("\u{1f600}\u{1f600}", 7, "\u{1f600}", true);
        check("abc", 0, "", true);
    }

    #[test]
    fn bytes_without_a_nul_are_text() {
        let check = |bytes: &[u8], expected: FileView| assert_eq!(FileView::of(bytes), expected);
        check(b"a\n", FileView::Text("a\n".to_owned()));
        check(b"caf\xe9", FileView::Text("caf\\xe9".to_owned()));
        check(b"a\0b", FileView::Binary { bytes: 3 });
        check(b"", FileView::Text(String::new()));
    }
}
