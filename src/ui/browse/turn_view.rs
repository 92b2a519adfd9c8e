//! Contents of one turn, read and styled once in a reader thread.
//!
//! Anything that looks like a key is redacted here, as in everything that leaves the machine:
//! screens are shared more often than repositories.

use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::project::Project;
use crate::query::view::turn_page::{ChangedFile, FileView, TurnPage, turn_page};
use crate::session::input::ResourceTokens;
use crate::session::meta::MessageOrigin;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::diff::Counts;
use crate::text::secret::redact;
use crate::text::{counted, grouped, grouped_count};
use crate::ui::diff::{
    FileVersions, NOT_SHOWN, RenderedDifference, counted as counted_lines, kind_note, render,
};
use crate::ui::style::{StyledLine, Tone, block, wrap_all};
use crate::ui::turn_text::message_label;
use crate::ui::{markdown, turn_text};
use crate::workspace::file_move::PathChange;

/// Per file.
const MAX_LINES: usize = 2000;

/// Total size of the files of a turn that are compared.
const MAX_BYTES: usize = 8 << 20;

/// Everything that the browser shows of a turn.
#[derive(Debug, Clone, Default)]
pub struct TurnView {
    pub head: Vec<StyledLine>,
    /// The message that started the turn.
    pub message: Vec<StyledLine>,
    pub origin: MessageOrigin,
    /// The plan, or the reply if there is no plan.
    pub answer: Vec<StyledLine>,
    pub files: Vec<FileDiffView>,
    /// Output of commands, then the report.
    pub outputs: Vec<StyledLine>,
    /// Resources in the model's input.
    pub input: Vec<ResourceTokens>,
    /// Metadata and artifact names.
    pub meta: Vec<StyledLine>,
    /// Parts of the turn that can't be read.
    pub errors: Vec<String>,
}

/// A file that a turn changed.
#[derive(Debug, Clone)]
pub struct FileDiffView {
    /// Added and removed lines.
    pub counts: Counts,
    /// The diff, or the reason why it is omitted.
    pub lines: Vec<StyledLine>,
    /// Reference to both versions, to read them again.
    pub file: ChangedFile,
}

pub fn read_turn_view(
    project: &Project,
    session: &SessionName,
    commit: CommitId,
) -> anyhow::Result<TurnView> {
    let turn = Turn::read(&project.repository, session, commit)?;
    let mut page = turn_page(project, &turn)?;
    if page.files_left_out > 0 {
        let verb = if page.files_left_out == 1 {
            "is"
        } else {
            "are"
        };
        let left_out = counted(page.files_left_out, "more file");
        let omission = format!("{left_out} {verb} not listed here");
        page.errors.push(omission);
    }
    Ok(TurnView {
        head: turn_text::header_lines(session.as_str(), &page.row, None),
        message: markdown_lines(page.message.as_deref()),
        origin: page.origin,
        answer: answer(&page),
        outputs: outputs(&page),
        meta: meta(&page),
        files: files(&project.repository, page.files),
        input: page.input,
        errors: page.errors,
    })
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
        let size = format!(" ({}{cut})", counted(output.bytes, "byte"));
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
            0 => RenderedDifference::note("not compared: the turn changed too much"),
            _ => difference(repository, &file, &mut remaining),
        };
        FileDiffView {
            counts: rendered.counts,
            lines: rendered.rows.into_iter().map(|(line, _)| line).collect(),
            file,
        }
    };
    changed.into_iter().map(to_view).collect()
}

/// Returns the diff of a file. Subtracts the bytes compared from `remaining`.
pub fn difference(
    repository: &Repository,
    file: &ChangedFile,
    remaining: &mut usize,
) -> RenderedDifference {
    let views = [file.before(repository), file.after(repository)];
    let is_same = views[0] == views[1];
    let sides = views.map(side);
    let [Ok(before), Ok(after)] = sides else {
        let why = sides.into_iter().find_map(Result::err);
        return RenderedDifference::note(&why.unwrap_or_default());
    };
    let size = |side: &Option<String>| side.as_ref().map_or(0, String::len);
    *remaining = remaining.saturating_sub(size(&before) + size(&after));

    let mut rendered = match before == after {
        // Only the kind differs.
        true if is_same => RenderedDifference::default(),
        true => RenderedDifference::note(NOT_SHOWN),
        false => render(
            &FileVersions {
                path: &file.path,
                before: before.as_deref().map(str::as_bytes),
                after: after.as_deref().map(str::as_bytes),
            },
            MAX_LINES,
        ),
    };
    if let Some(line) = kind_note(file) {
        rendered.rows.insert(0, (line, None));
    }
    if rendered.left_out > 0 {
        let more = format!("… {}", counted(rendered.left_out, "more line"));
        let line = StyledLine::of(Tone::Faint, &more);
        rendered.rows.push((line, None));
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
        FileView::Binary { bytes } => return Err(format!("binary, {}", counted(bytes, "byte"))),
        FileView::TooLarge { bytes } => {
            return Err(format!("too large to be shown: {}", counted(bytes, "byte")));
        }
        FileView::Unreadable(why) => return Err(format!("cannot be read: {why}")),
    }))
}

/// Minimum width to show the request next to the answer.
const MIN_WIDTH_COLUMNS: usize = 76;

const MAX_BAR_WIDTH: usize = 24;

/// Up to this many files are unfolded at first.
const MAX_OPEN_FILES: usize = 3;

/// A part of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BrowseTab {
    /// The request and the answer.
    #[default]
    Conversation,
    /// Changed files.
    Difference,
    /// Output of commands, and the report.
    Outputs,
    Input,
    Meta,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TabLine {
    pub line: StyledLine,
    /// Index of the file that the line belongs to, in the diff tab.
    pub file: Option<usize>,
    /// Whether it is the header of that file.
    pub is_head: bool,
}

impl BrowseTab {
    /// All tabs, from left to right.
    pub const ALL: [BrowseTab; 5] = [
        BrowseTab::Conversation,
        BrowseTab::Difference,
        BrowseTab::Outputs,
        BrowseTab::Input,
        BrowseTab::Meta,
    ];

    pub fn name(self) -> &'static str {
        match self {
            BrowseTab::Conversation => "turn",
            BrowseTab::Difference => "diff",
            BrowseTab::Outputs => "outputs",
            BrowseTab::Input => "input",
            BrowseTab::Meta => "meta",
        }
    }

    /// Returns the tab `by` places to the right, wrapping around.
    #[must_use]
    pub fn neighbor(self, by: isize) -> BrowseTab {
        let count = BrowseTab::ALL.len() as isize;
        let at = (self as isize + by).rem_euclid(count);
        BrowseTab::ALL[at as usize]
    }
}

impl TabLine {
    /// Returns a line that belongs to no file.
    pub fn of(line: StyledLine) -> TabLine {
        TabLine {
            line,
            file: None,
            is_head: false,
        }
    }
}

/// Returns the lines of a tab, wrapped to `width`. `is_toggled` returns whether the user folded or
/// unfolded a file.
pub fn tab_lines(
    turn_view: &TurnView,
    tab: BrowseTab,
    width: usize,
    is_toggled: &dyn Fn(usize) -> bool,
) -> Vec<TabLine> {
    let lines = match tab {
        BrowseTab::Conversation => conversation_lines(turn_view, width),
        BrowseTab::Difference => return difference_lines(turn_view, width, is_toggled),
        BrowseTab::Outputs => or_placeholder(
            &turn_view.outputs,
            "no command printed anything, and there is no report",
        ),
        BrowseTab::Input => input_lines(turn_view, width),
        BrowseTab::Meta => turn_view.meta.clone(),
    };
    let mut all = error_lines(turn_view);
    all.extend(lines);
    let lines = wrap_all(all, width).into_iter();
    lines.map(TabLine::of).collect()
}

/// Returns whether the files of a turn are unfolded at first.
pub fn are_files_open(turn_view: &TurnView) -> bool {
    turn_view.files.len() <= MAX_OPEN_FILES
}

fn error_lines(turn_view: &TurnView) -> Vec<StyledLine> {
    let errors = turn_view.errors.iter();
    errors
        .map(|why| StyledLine::of(Tone::Warning, &format!("! {why}")))
        .collect()
}

fn or_placeholder(lines: &[StyledLine], none: &str) -> Vec<StyledLine> {
    match lines {
        [] => vec![StyledLine::of(Tone::Faint, none)],
        lines => lines.to_vec(),
    }
}

fn conversation_lines(turn_view: &TurnView, width: usize) -> Vec<StyledLine> {
    let message = or_placeholder(&turn_view.message, "no request");
    let answer = or_placeholder(&turn_view.answer, "no answer");
    let names = [message_label(turn_view.origin), "Answer"];
    let [asked, answered] = names.map(|name| StyledLine::of(Tone::Strong, name));

    let head = turn_view.head.iter();
    let mut lines: Vec<StyledLine> = head.map(|line| line.clone().cut(width)).collect();
    lines.push(StyledLine::default());
    if width < MIN_WIDTH_COLUMNS {
        lines.push(asked);
        lines.extend(message);
        lines.extend([StyledLine::default(), answered]);
        lines.extend(answer);
        return lines;
    }

    let left = [asked].into_iter().chain(message).collect();
    let right = [answered].into_iter().chain(answer).collect();
    lines.extend(side_by_side(left, right, width));
    lines
}

fn side_by_side(left: Vec<StyledLine>, right: Vec<StyledLine>, width: usize) -> Vec<StyledLine> {
    let first = (width - 3) * 2 / 5;
    let left = wrap_all(left, first);
    let right = wrap_all(right, width - 3 - first);
    let count = left.len().max(right.len());
    let (mut left, mut right) = (left.into_iter(), right.into_iter());

    let row = |_| {
        let left = left.next().unwrap_or_default();
        let gap = first - left.width().min(first);
        left.blanks(gap)
            .with(Tone::Faint, " │ ")
            .append(right.next().unwrap_or_default())
    };
    (0..count).map(row).collect()
}

fn difference_lines(
    turn_view: &TurnView,
    width: usize,
    is_toggled: &dyn Fn(usize) -> bool,
) -> Vec<TabLine> {
    let mut lines: Vec<TabLine> = error_lines(turn_view)
        .into_iter()
        .map(TabLine::of)
        .collect();
    if turn_view.files.is_empty() {
        let none = StyledLine::of(Tone::Faint, "no file was changed");
        lines.push(TabLine::of(none));
    }

    for (at, file) in turn_view.files.iter().enumerate() {
        let is_open = is_toggled(at) != are_files_open(turn_view);
        lines.push(TabLine {
            line: file_heading(file, is_open).cut(width),
            file: Some(at),
            is_head: true,
        });
        if is_open {
            let file_line = |line| TabLine {
                line,
                file: Some(at),
                is_head: false,
            };
            lines.extend(
                wrap_all(file.lines.clone(), width)
                    .into_iter()
                    .map(file_line),
            );
        }
    }

    lines
}

fn file_heading(file: &FileDiffView, is_open: bool) -> StyledLine {
    let (sign, tone) = match file.file.change {
        PathChange::Added => ("A", Tone::Added),
        PathChange::Deleted => ("D", Tone::Removed),
        PathChange::Modified => ("M", Tone::Warning),
    };
    StyledLine::of(Tone::Accent, if is_open { "▾ " } else { "▸ " })
        .with(tone, sign)
        .with(Tone::Strong, &format!(" {}  ", file.file.path))
        .append(counted_lines(file.counts))
}

fn input_lines(turn_view: &TurnView, width: usize) -> Vec<StyledLine> {
    if turn_view.input.is_empty() {
        return vec![StyledLine::of(Tone::Faint, "no input is recorded")];
    }

    let mut input: Vec<_> = turn_view.input.iter().collect();
    input.sort_by_key(|one| std::cmp::Reverse(one.tokens));
    let all: u64 = input.iter().filter_map(|one| one.tokens).sum();
    let most = input.first().and_then(|one| one.tokens).unwrap_or(0);
    let bar = (width / 4).min(MAX_BAR_WIDTH);

    let title = format!(
        "{}, {}",
        counted(input.len(), "resource"),
        grouped_count(all, "token")
    );
    let mut lines = vec![StyledLine::of(Tone::Strong, &title)];
    for ResourceTokens { name, tokens, note } in input {
        let length = tokens.unwrap_or(0) * bar as u64 / most.max(1);
        // At least one block for a resource that has tokens.
        let length = (length as usize).max(usize::from(tokens.is_some_and(|tokens| tokens > 0)));
        let number = tokens.map_or("-".to_owned(), grouped);
        let line = StyledLine::plain(&format!("{number:>9} "))
            .with(Tone::Accent, &"█".repeat(length.min(bar)))
            .blanks(bar - length.min(bar) + 1)
            .with(Tone::Plain, name);
        let note = note
            .as_ref()
            .map_or(String::new(), |note| format!(" ({note})"));
        lines.push(line.with(Tone::Faint, &note));
    }

    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::style::block;

    fn text(turn_view: &TurnView, tab: BrowseTab, width: usize) -> Vec<String> {
        let lines = tab_lines(turn_view, tab, width, &|_| false).into_iter();
        lines
            .map(|line| line.line.text().trim_end().to_owned())
            .collect()
    }

    #[test]
    fn the_request_stands_beside_the_answer_where_there_is_room() {
        let turn_view = TurnView {
            head: vec![StyledLine::plain("turn demo:1")],
            message: block(Tone::Plain, "Greet all users"),
            answer: block(Tone::Plain, "# Greet\nBy name"),
            ..TurnView::default()
        };
        assert_eq!(
            text(&turn_view, BrowseTab::Conversation, 79),
            [
                "turn demo:1",
                "",
                "Request                        │ Answer",
                "Greet all users                │ # Greet",
                "                               │ By name",
            ]
        );
        assert_eq!(
            text(&turn_view, BrowseTab::Conversation, 40),
            [
                "turn demo:1",
                "",
                "Request",
                "Greet all users",
                "",
                "Answer",
                "# Greet",
                "By name",
            ]
        );
    }

    #[test]
    fn tokens_are_bars() {
        let resource = |name: &str, tokens, note: Option<&str>| ResourceTokens {
            name: name.to_owned(),
            tokens,
            note: note.map(str::to_owned),
        };
        let turn_view = TurnView {
            input: vec![
                resource("a.rs", Some(10), None),
                resource("b.rs", Some(4000), None),
                resource("c.png", None, Some("binary")),
            ],
            ..TurnView::default()
        };
        assert_eq!(
            text(&turn_view, BrowseTab::Input, 40),
            [
                "3 resources, 4,010 tokens",
                "    4,000 ██████████ b.rs",
                "       10 █          a.rs",
                "        -            c.png (binary)",
            ]
        );
    }

    #[test]
    fn what_is_not_there_is_said_and_what_is_damaged_is_said_first() {
        let check = |tab, expected: &[&str]| {
            let turn_view = TurnView {
                errors: vec!["`plan.md`: gone".to_owned()],
                ..TurnView::default()
            };
            assert_eq!(text(&turn_view, tab, 40), expected);
        };
        check(
            BrowseTab::Difference,
            &["! `plan.md`: gone", "no file was changed"],
        );
        check(
            BrowseTab::Input,
            &["! `plan.md`: gone", "no input is recorded"],
        );
        check(BrowseTab::Meta, &["! `plan.md`: gone"]);
    }

    #[test]
    fn tabs_go_around() {
        assert_eq!(BrowseTab::Conversation.neighbor(-1), BrowseTab::Meta);
        assert_eq!(BrowseTab::Meta.neighbor(1), BrowseTab::Conversation);
        assert_eq!(BrowseTab::Conversation.neighbor(1), BrowseTab::Difference);
    }
}
