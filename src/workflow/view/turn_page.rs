//! A turn as somebody looks at it: its words, what it changed, its outputs and what it was given.
//!
//! Everything here may come from elsewhere and be of any size. Texts are cut where nobody reads on,
//! and a part that cannot be read is named among [`TurnPage::ailing`]; the others are there.

use crate::git::diff;
use crate::git::object::leaves::TreeLimit;
use crate::git::object::remade::blob_within;
use crate::git::object::{BlobId, EntryMode, Leaf, TreeEntry};
use crate::git::repository::Repository;
use crate::session::artifact;
use crate::session::input::summary::{self, ResourceTokens};
use crate::session::meta::MessageOrigin;
use crate::session::record::Redaction;
use crate::session::turn::{Turn, in_next};
use crate::text::leak::without;
use crate::text::path::lossy;
use crate::workflow::log::{self, LogRow};
use crate::workflow::project::Project;

/// So much of a text is shown.
const MAX_TEXT: usize = 1 << 20;
/// So much of the output of a command is shown.
const MAX_OUTPUT: usize = 256 << 10;
/// So much of all outputs of a turn is shown.
const MAX_OUTPUTS: usize = 4 << 20;
/// A larger artifact is not read.
const MAX_READ: u64 = 64 << 20;
/// A larger file is not shown.
const MAX_FILE: u64 = 1 << 20;
/// So much of `input.md` is looked through for its resources, which stand before their contents.
const MAX_INPUT: u64 = 16 << 20;
/// More changed files are not listed.
const MAX_FILES: usize = 1000;
/// A file with a NUL among so many first bytes is binary, as for git.
const FIRST: usize = 8_000;

/// All that is shown of a turn.
#[derive(Debug, Clone)]
pub struct TurnPage {
    /// What `log` tells of it.
    pub row: LogRow,
    /// The message that it began with.
    pub message: Option<String>,
    /// Whose words that is.
    pub origin: MessageOrigin,
    /// The raw answer, where it differs from the plan.
    pub answer: Option<String>,
    /// The plan as it ran; the one that was proposed where that did not run.
    pub plan: Option<String>,
    /// What happened.
    pub report: Option<String>,
    /// What the model said when it called the work done, or asks.
    pub said: Option<String>,
    /// The output of commands.
    pub outputs: Vec<OutputText>,
    /// What the model was given, with the tokens that it took.
    pub input: Vec<ResourceTokens>,
    /// The files that it changed.
    pub files: Vec<ChangedFile>,
    /// How many more files it changed than are listed.
    pub files_left_out: usize,
    /// The names of all artifacts.
    pub artifacts: Vec<String>,
    /// `meta.yaml`
    pub meta: String,
    /// What of it cannot be read, and why.
    pub ailing: Vec<String>,
}

/// The output of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputText {
    /// The artifact.
    pub name: String,
    /// Its beginning.
    pub text: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// Whether that is more than the text shows.
    pub is_cut: bool,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathChange {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// Its content, or what it is, is another one.
    Modified,
}

/// A file that a turn changed. Its content is read when it is asked for.
#[derive(Debug, Clone)]
pub struct ChangedFile {
    /// Its path; bytes that are no UTF-8 replaced.
    pub path: String,
    /// What happened to it.
    pub change: PathChange,
    /// What was there before.
    old: Option<TreeEntry>,
    /// What is there after it.
    new: Option<TreeEntry>,
}

/// What there is to show of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileView {
    /// There is none.
    Absent,
    /// Its text; bytes that are no UTF-8 replaced.
    Text(String),
    /// It is no text.
    Binary {
        /// Its size in bytes.
        bytes: u64,
    },
    /// It is too large to be shown.
    TooLarge {
        /// Its size in bytes.
        bytes: u64,
    },
    /// A link, and where it leads.
    Link(String),
    /// A repository of its own, at a commit.
    Submodule(String),
    /// It cannot be read, and why.
    Unreadable(String),
}

/// Reads all that is shown of a turn.
///
/// # Errors
/// Its tree cannot be listed. What is wrong with a part of it is no error.
pub fn turn_page(project: &Project, turn: &Turn) -> anyhow::Result<TurnPage> {
    gathered(project, turn, None)
}

/// As [`turn_page`], without keys and names in paths; the contents of files are taken for
/// themselves.
///
/// # Errors
/// As for [`turn_page`].
pub fn plain_turn_page(
    project: &Project,
    turn: &Turn,
    redaction: &Redaction,
) -> anyhow::Result<TurnPage> {
    let mut page = gathered(project, turn, Some(redaction))?;
    redaction.turn(&mut page);
    Ok(page)
}

/// Gathers it.
fn gathered(
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
        ailing: Vec::new(),
    };
    let row = log::row(project, turn).unwrap_or_else(|error| {
        parts.ailing.push(format!("{error:#}"));
        log::row_without_files(turn)
    });
    let (files, files_left_out) = parts.files(turn);
    let said = [artifact::QUESTION, artifact::CONCLUSION].map(in_next);

    Ok(TurnPage {
        row,
        message: parts.text(artifact::USER_PROMPT),
        origin: turn.meta.origin,
        answer: parts.text(artifact::REPLY),
        plan: parts
            .text(artifact::APPROVED)
            .or_else(|| parts.text(artifact::PLAN)),
        report: parts.text(artifact::REPORT),
        said: said.iter().find_map(|name| parts.text(name)),
        outputs: parts.outputs(),
        input: parts.input(),
        files,
        files_left_out,
        artifacts: parts.names(),
        meta: parts.text(artifact::META).unwrap_or_default(),
        ailing: parts.ailing,
    })
}

/// The parts of a turn, being read.
struct Parts<'a> {
    /// What is taken out, before anything is cut: a part of a key is not known as one.
    redaction: Option<&'a Redaction>,
    /// The repository.
    repository: &'a Repository,
    /// The files of its tree.
    leaves: Vec<Leaf>,
    /// What cannot be read.
    ailing: Vec<String>,
}

impl Parts<'_> {
    /// Returns the names of the artifacts.
    fn names(&self) -> Vec<String> {
        self.leaves.iter().map(|leaf| lossy(&leaf.path)).collect()
    }

    /// Reads an artifact, if there is one of that name; larger ones than this are named instead.
    fn bytes(&mut self, name: &str, most: u64) -> Option<Vec<u8>> {
        let is_file = |mode| matches!(mode, EntryMode::File | EntryMode::Executable);
        let mut leaves = self.leaves.iter();
        let leaf = leaves.find(|leaf| leaf.path == name.as_bytes() && is_file(leaf.mode))?;
        match blob_within(self.repository, BlobId::of(leaf.id), most) {
            Ok(Some(bytes)) => return Some(self.plain(bytes)),
            Ok(None) => self
                .ailing
                .push(format!("`{name}` is too large to be shown")),
            Err(error) => self.ailing.push(format!("`{name}`: {error:#}")),
        }

        None
    }

    /// Takes out of an artifact what is to be taken out.
    fn plain(&self, bytes: Vec<u8>) -> Vec<u8> {
        let plain = self.redaction.and_then(|redaction| {
            let Redaction { kinds, home } = redaction;
            without(&bytes, false, *kinds, home.as_deref())
        });
        plain.unwrap_or(bytes)
    }

    /// Returns an artifact as text, cut where nobody reads on.
    fn text(&mut self, name: &str) -> Option<String> {
        let bytes = self.bytes(name, MAX_READ)?;
        let (mut text, is_cut) = cut(&bytes, MAX_TEXT);
        if is_cut {
            text += &format!("\n(cut here; `{name}` has {} bytes)", bytes.len());
        }
        Some(text)
    }

    /// Returns the outputs of commands.
    fn outputs(&mut self) -> Vec<OutputText> {
        let mut left = MAX_OUTPUTS;
        let mut names = self.names();
        names.retain(|name| name.starts_with(artifact::OUTPUT));

        let mut outputs = Vec::new();
        for name in names {
            let Some(bytes) = self.bytes(&name, MAX_READ) else {
                continue;
            };
            let (text, is_cut) = cut(&bytes, MAX_OUTPUT.min(left));
            left -= text.len().min(left);
            outputs.push(OutputText {
                name,
                text,
                bytes: bytes.len() as u64,
                is_cut,
            });
        }
        outputs
    }

    /// Returns what the model was given.
    fn input(&mut self) -> Vec<ResourceTokens> {
        let input = self.bytes(artifact::INPUT, MAX_INPUT);
        let input = input.map(|bytes| summary::resources(&String::from_utf8_lossy(&bytes)));
        input.unwrap_or_default()
    }

    /// Returns the files that the turn changed, and how many more there are.
    fn files(&mut self, turn: &Turn) -> (Vec<ChangedFile>, usize) {
        let Some(workspace) = &turn.meta.workspace else {
            return (Vec::new(), 0);
        };
        let tree = |commit| Ok(self.repository.commit(commit)?.tree);
        let changes = tree(workspace.before)
            .and_then(|before| diff::changes(self.repository, before, tree(workspace.after)?));
        let changes = changes.unwrap_or_else(|error: anyhow::Error| {
            self.ailing.push(format!("the files: {error:#}"));
            Vec::new()
        });

        let left_out = changes.len().saturating_sub(MAX_FILES);
        let files = changes.into_iter().take(MAX_FILES).map(ChangedFile::of);
        (files.collect(), left_out)
    }
}

impl ChangedFile {
    /// Takes a path that two trees do not agree about.
    pub fn of(change: diff::TreeChange) -> ChangedFile {
        ChangedFile {
            path: lossy(&change.path),
            change: match (&change.old, &change.new) {
                (None, _) => PathChange::Added,
                (_, None) => PathChange::Removed,
                _ => PathChange::Modified,
            },
            old: change.old,
            new: change.new,
        }
    }

    /// Reads what was there before.
    pub fn before(&self, repository: &Repository) -> FileView {
        FileView::read(repository, self.old.as_ref())
    }

    /// Reads what is there after it.
    pub fn after(&self, repository: &Repository) -> FileView {
        FileView::read(repository, self.new.as_ref())
    }

    /// Returns what it was and what it is, where only that tells the difference: `file`,
    /// `executable`, `link`, `repository`.
    pub fn kinds(&self) -> Option<(&'static str, &'static str)> {
        let (old, new) = (self.old.as_ref()?, self.new.as_ref()?);
        (old.mode != new.mode).then(|| (kind(old.mode), kind(new.mode)))
    }
}

impl FileView {
    /// Returns its lines, if it has any: none where there is no file.
    pub fn text(&self) -> Option<&str> {
        match self {
            FileView::Absent => Some(""),
            FileView::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Reads an entry of a tree.
    fn read(repository: &Repository, entry: Option<&TreeEntry>) -> FileView {
        let Some(entry) = entry else {
            return FileView::Absent;
        };
        if entry.mode == EntryMode::Gitlink {
            return FileView::Submodule(entry.id.to_string());
        }

        let blob = BlobId::of(entry.id);
        let size = repository.blob_size(blob);
        let bytes = size.and_then(|size| Ok((size, blob_within(repository, blob, MAX_FILE)?)));
        match bytes {
            Err(error) => FileView::Unreadable(format!("{error:#}")),
            Ok((bytes, None)) => FileView::TooLarge { bytes },
            Ok((_, Some(bytes))) if entry.mode == EntryMode::Link => FileView::Link(lossy(&bytes)),
            Ok((_, Some(bytes))) => FileView::of(&bytes),
        }
    }

    /// Judges the bytes of a file.
    fn of(bytes: &[u8]) -> FileView {
        if bytes[..bytes.len().min(FIRST)].contains(&0) {
            let bytes = bytes.len() as u64;
            return FileView::Binary { bytes };
        }

        FileView::Text(lossy(bytes))
    }
}

/// Returns the word for what an entry is.
fn kind(mode: EntryMode) -> &'static str {
    match mode {
        EntryMode::File => "file",
        EntryMode::Executable => "executable",
        EntryMode::Link => "link",
        EntryMode::Tree => "folder",
        EntryMode::Gitlink => "repository",
    }
}

/// Returns the beginning of a text that ends with a whole character, and whether that is not all.
fn cut(bytes: &[u8], most: usize) -> (String, bool) {
    if bytes.len() <= most {
        return (lossy(bytes), false);
    }

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
            let found = cut(text.as_bytes(), most);
            assert_eq!(found, (expected.to_owned(), is_cut), "{text} to {most}");
        };
        check("abc", 3, "abc", false);
        check("abcd", 3, "abc", true);
        check("a\u{e9}b", 2, "a", true);
        check("\u{1f600}\u{1f600}", 7, "\u{1f600}", true);
        check("abc", 0, "", true);
    }

    #[test]
    fn bytes_are_text_unless_a_nul_is_near_the_beginning() {
        let check = |bytes: &[u8], expected: FileView| assert_eq!(FileView::of(bytes), expected);
        check(b"a\n", FileView::Text("a\n".to_owned()));
        check(b"caf\xe9", FileView::Text("caf\u{fffd}".to_owned()));
        check(b"a\0b", FileView::Binary { bytes: 3 });
        check(b"", FileView::Text(String::new()));
    }
}
