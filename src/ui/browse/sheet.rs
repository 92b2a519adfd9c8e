//! A turn as it is looked at: gathered and coloured once, where nobody waits for it.
//!
//! What looks like a key is left out here, as it is from everything that leaves the machine:
//! somebody may look over the shoulder.

use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::session::meta::MessageOrigin;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::diff::Counts;
use crate::text::redact::redact;
use crate::ui::diff::{FileVersions, ShownDifference, shown};
use crate::ui::style::{StyledLine, Tone, block};
use crate::ui::{markdown, turn_header};
use crate::workflow::project::Project;
use crate::workflow::view::turn_page::{ChangedFile, FileView, PathChange, TurnPage, turn_page};

/// So many lines of the difference of a file are shown.
const MAX_LINES: usize = 2000;
/// So many bytes of the files of a turn are compared.
const MAX_BYTES: usize = 8 << 20;

/// All that is shown of a turn.
#[derive(Debug, Clone, Default)]
pub struct TurnSheet {
    /// What it was.
    pub head: Vec<StyledLine>,
    /// The message that it began with.
    pub message: Vec<StyledLine>,
    /// Whose words that is.
    pub origin: MessageOrigin,
    /// What came: the plan, or the words of the model.
    pub answer: Vec<StyledLine>,
    /// What it changed.
    pub files: Vec<FileSheet>,
    /// What commands printed, and the report.
    pub outputs: Vec<StyledLine>,
    /// What the model was given: name, tokens, and why there are none.
    pub input: Vec<(String, Option<u64>, Option<String>)>,
    /// The facts.
    pub meta: Vec<StyledLine>,
    /// What cannot be read.
    pub ailing: Vec<String>,
}

/// A file that a turn changed.
#[derive(Debug, Clone)]
pub struct FileSheet {
    /// Its path.
    pub path: String,
    /// What happened to it.
    pub change: PathChange,
    /// What came and went.
    pub counts: Counts,
    /// The difference, or why there is none to be seen.
    pub lines: Vec<StyledLine>,
    /// The file itself, to be read anew.
    pub file: ChangedFile,
}

/// Gathers what is shown of a turn.
///
/// # Errors
/// It is no turn, or its tree cannot be listed.
pub fn sheet(
    project: &Project,
    session: &SessionName,
    commit: CommitId,
) -> anyhow::Result<TurnSheet> {
    let turn = Turn::read(&project.repository, session, commit)?;
    let page = turn_page(project, &turn)?;
    let mut sheet = TurnSheet {
        head: turn_header::lines(session.as_str(), &page.row, None),
        message: words(page.message.as_deref()),
        origin: page.origin,
        answer: answer(&page),
        outputs: outputs(&page),
        meta: meta(&page),
        ailing: page.ailing,
        ..TurnSheet::default()
    };
    let input = page.input.into_iter();
    sheet.input = input.map(|one| (one.name, one.tokens, one.note)).collect();
    sheet.files = files(&project.repository, page.files);
    if page.files_left_out > 0 {
        let left_out = page.files_left_out;
        sheet
            .ailing
            .push(format!("{left_out} more files are not listed here"));
    }

    Ok(sheet)
}

/// Returns a text that a person or a model wrote.
fn words(text: Option<&str>) -> Vec<StyledLine> {
    text.map_or(Vec::new(), |text| markdown::lines(&redact(text)))
}

/// Returns what came of the request.
fn answer(page: &TurnPage) -> Vec<StyledLine> {
    let text = page.plan.as_deref().or(page.answer.as_deref());
    let mut lines = words(text);
    if let Some(said) = &page.said {
        if !lines.is_empty() {
            lines.push(StyledLine::default());
        }
        lines.extend(markdown::quoted(&redact(said)));
    }

    lines
}

/// Returns what commands printed, and the report.
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

    lines.extend(words(page.report.as_deref()));
    lines
}

/// Returns the facts, and the names of the artifacts.
fn meta(page: &TurnPage) -> Vec<StyledLine> {
    let mut lines = block(Tone::Plain, &redact(&page.meta));
    lines.push(StyledLine::default());
    lines.push(StyledLine::of(Tone::Strong, "Artifacts"));
    let names = page.artifacts.iter();
    lines.extend(names.map(|name| StyledLine::plain(&format!("  {name}"))));
    lines
}

/// Compares files, as far as there is room for it.
fn files(repository: &Repository, changed: Vec<ChangedFile>) -> Vec<FileSheet> {
    let mut left = MAX_BYTES;
    let sheet = |file: ChangedFile| {
        let shown = match left {
            0 => note("not compared: the turn changed too much"),
            _ => difference(repository, &file, &mut left),
        };
        FileSheet {
            path: file.path.clone(),
            change: file.change,
            counts: shown.counts,
            lines: shown.lines,
            file,
        }
    };
    changed.into_iter().map(sheet).collect()
}

/// Compares a file with what it was.
pub fn difference(
    repository: &Repository,
    file: &ChangedFile,
    left: &mut usize,
) -> ShownDifference {
    let sides = [file.before(repository), file.after(repository)].map(side);
    let [Ok(before), Ok(after)] = sides else {
        let why = sides.into_iter().find_map(Result::err);
        return note(&why.unwrap_or_default());
    };
    let size = |side: &Option<String>| side.as_ref().map_or(0, String::len);
    *left = left.saturating_sub(size(&before) + size(&after));

    let mut shown = shown(
        &FileVersions {
            path: &file.path,
            before: before.as_deref().map(str::as_bytes),
            after: after.as_deref().map(str::as_bytes),
        },
        MAX_LINES,
    );
    if let Some((was, is)) = file.kinds() {
        let said = StyledLine::of(Tone::Faint, &format!("({was} became {is})"));
        shown.lines.insert(0, said);
    }
    if shown.left_out > 0 {
        let more = format!("… {} more lines", shown.left_out);
        shown.lines.push(StyledLine::of(Tone::Faint, &more));
    }

    shown
}

/// Returns one side of a file as text, or why there is none.
fn side(view: FileView) -> Result<Option<String>, String> {
    Ok(Some(match view {
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

/// Returns a sentence instead of a difference.
fn note(text: &str) -> ShownDifference {
    ShownDifference {
        lines: vec![StyledLine::of(Tone::Faint, text)],
        ..ShownDifference::default()
    }
}
