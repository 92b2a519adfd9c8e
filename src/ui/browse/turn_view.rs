//! Contents of one turn, read and styled once in a reader thread.
//!
//! Anything that looks like a key is redacted here, as in everything that leaves the machine:
//! screens are shared more often than repositories.

use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::session::meta::MessageOrigin;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::diff::Counts;
use crate::text::redaction::redact;
use crate::ui::diff::{FileVersions, RenderedDifference, render};
use crate::ui::style::{StyledLine, Tone, block};
use crate::ui::{markdown, turn_header};
use crate::workflow::project::Project;
use crate::workflow::view::turn_page::{ChangedFile, FileView, PathChange, TurnPage, turn_page};

/// Per file.
const MAX_LINES: usize = 2000;
/// Total size of the files of a turn that are compared.
const MAX_BYTES: usize = 8 << 20;

/// Everything that the browser shows of a turn.
#[derive(Debug, Clone, Default)]
pub struct TurnView {
    /// Header lines.
    pub head: Vec<StyledLine>,
    /// The message that started the turn.
    pub message: Vec<StyledLine>,
    /// Author of the message.
    pub origin: MessageOrigin,
    /// The plan, or the reply if there is no plan.
    pub answer: Vec<StyledLine>,
    /// Files that it changed.
    pub files: Vec<FileDiffView>,
    /// Output of commands, then the report.
    pub outputs: Vec<StyledLine>,
    /// Resources in the model's input: name, tokens, and a note, for example why tokens are
    /// unknown.
    pub input: Vec<(String, Option<u64>, Option<String>)>,
    /// Metadata and artifact names.
    pub meta: Vec<StyledLine>,
    /// Parts of the turn that can't be read.
    pub errors: Vec<String>,
}

/// A file that a turn changed.
#[derive(Debug, Clone)]
pub struct FileDiffView {
    /// Path in the repository.
    pub path: String,
    /// Kind of change.
    pub change: PathChange,
    /// Added and removed lines.
    pub counts: Counts,
    /// The diff, or the reason why it is omitted.
    pub lines: Vec<StyledLine>,
    /// Reference to both versions, to read them again.
    pub file: ChangedFile,
}

/// Reads a turn.
pub fn read_turn_view(
    project: &Project,
    session: &SessionName,
    commit: CommitId,
) -> anyhow::Result<TurnView> {
    let turn = Turn::read(&project.repository, session, commit)?;
    let page = turn_page(project, &turn)?;
    let mut turn_view = TurnView {
        head: turn_header::header_lines(session.as_str(), &page.row, None),
        message: markdown_lines(page.message.as_deref()),
        origin: page.origin,
        answer: answer(&page),
        outputs: outputs(&page),
        meta: meta(&page),
        errors: page.errors,
        ..TurnView::default()
    };
    let input = page.input.into_iter();
    turn_view.input = input.map(|one| (one.name, one.tokens, one.note)).collect();
    turn_view.files = files(&project.repository, page.files);
    if page.files_left_out > 0 {
        let left_out = page.files_left_out;
        turn_view
            .errors
            .push(format!("{left_out} more files are not listed here"));
    }

    Ok(turn_view)
}

fn markdown_lines(text: Option<&str>) -> Vec<StyledLine> {
    text.map_or(Vec::new(), |text| markdown::lines(&redact(text)))
}

fn answer(page: &TurnPage) -> Vec<StyledLine> {
    let text = page.plan.as_deref().or(page.answer.as_deref());
    let mut lines = markdown_lines(text);
    if let Some(reply) = &page.closing_text {
        if !lines.is_empty() {
            lines.push(StyledLine::default());
        }
        lines.extend(markdown::quoted(&redact(reply)));
    }

    lines
}

fn outputs(page: &TurnPage) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    for output in &page.outputs {
        let cut = if output.is_cut { ", cut here" } else { "" };
        let name = StyledLine::of(Tone::Strong, &output.name);
        let size = format!(" ({} bytes{cut})", output.bytes);
        lines.push(name.with(Tone::Faint, &size));
        lines.extend(block(Tone::Plain, &redact(&output.text)));
        lines.push(StyledLine::default());
    }

    lines.extend(markdown_lines(page.report.as_deref()));
    lines
}

fn meta(page: &TurnPage) -> Vec<StyledLine> {
    let mut lines = block(Tone::Plain, &redact(&page.meta));
    lines.push(StyledLine::default());
    lines.push(StyledLine::of(Tone::Strong, "Artifacts"));
    let names = page.artifacts.iter();
    lines.extend(names.map(|name| StyledLine::plain(&format!("  {name}"))));
    lines
}

/// Files beyond `MAX_BYTES` in total are listed but not compared.
fn files(repository: &Repository, changed: Vec<ChangedFile>) -> Vec<FileDiffView> {
    let mut remaining = MAX_BYTES;
    let to_view = |file: ChangedFile| {
        let rendered = match remaining {
            0 => note("not compared: the turn changed too much"),
            _ => difference(repository, &file, &mut remaining),
        };
        FileDiffView {
            path: file.path.clone(),
            change: file.change,
            counts: rendered.counts,
            lines: rendered.lines,
            file,
        }
    };
    changed.into_iter().map(to_view).collect()
}

/// Returns the diff of a file. Subtracts the bytes compared from `left`.
pub fn difference(
    repository: &Repository,
    file: &ChangedFile,
    remaining: &mut usize,
) -> RenderedDifference {
    let sides = [file.before(repository), file.after(repository)].map(side);
    let [Ok(before), Ok(after)] = sides else {
        let why = sides.into_iter().find_map(Result::err);
        return note(&why.unwrap_or_default());
    };
    let size = |side: &Option<String>| side.as_ref().map_or(0, String::len);
    *remaining = remaining.saturating_sub(size(&before) + size(&after));

    let mut rendered = render(
        &FileVersions {
            path: &file.path,
            before: before.as_deref().map(str::as_bytes),
            after: after.as_deref().map(str::as_bytes),
        },
        MAX_LINES,
    );
    if let Some((old_kind, is)) = file.kinds() {
        let line = StyledLine::of(Tone::Faint, &format!("({old_kind} became {is})"));
        rendered.lines.insert(0, line);
    }
    if rendered.left_out > 0 {
        let more = format!("… {} more lines", rendered.left_out);
        rendered.lines.push(StyledLine::of(Tone::Faint, &more));
    }

    rendered
}

/// `Ok(None)` if the file does not exist on this side; an error says why it can't be shown.
fn side(version: FileView) -> Result<Option<String>, String> {
    Ok(Some(match version {
        FileView::Absent => return Ok(None),
        FileView::Text(text) => redact(&text).into_owned(),
        FileView::Link(to) => format!("link to {to}\n"),
        FileView::Submodule(id) => format!("repository at {id}\n"),
        FileView::Binary { bytes } => return Err(format!("binary, {bytes} bytes")),
        FileView::TooLarge { bytes } => {
            return Err(format!("too large to be shown: {bytes} bytes"));
        }
        FileView::Unreadable(why) => return Err(format!("cannot be read: {why}")),
    }))
}

fn note(text: &str) -> RenderedDifference {
    RenderedDifference {
        lines: vec![StyledLine::of(Tone::Faint, text)],
        ..RenderedDifference::default()
    }
}
