//! Draws the full screens of the review: the text viewer and the checklist.

use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::widgets::Paragraph;
use ratatui::{Frame, text};

use super::checklist::{Checklist, ItemPart};
use super::search::Search;
use super::style::{Paint, StyledLine, Tone};
use super::viewer::{self, Viewer};
use crate::ui::checklist::{ChecklistRow, Item};

/// Most important first: a narrow screen omits the rest.
const KEYS: [(&str, &str); 10] = [
    ("a", "approve"),
    ("esc", "back"),
    ("?", "help"),
    ("space", "toggle"),
    ("e", "edit"),
    ("s", "skip"),
    ("q", "quit"),
    ("*", "all"),
    ("v", "view"),
    ("↑/↓", "move"),
];

/// Draws a text with a title and a key line.
pub fn text(frame: &mut Frame<'_>, viewer: &Viewer, paint: Paint) {
    let area = frame.area();
    let mut lines = vec![StyledLine::of(Tone::Strong, &viewer.title)];
    lines.extend(viewer.visible_lines().iter().cloned());
    lines.resize(
        usize::from(area.height.saturating_sub(1)),
        StyledLine::default(),
    );
    lines.push(viewer::footer(viewer));

    put(frame, area, &lines, paint);
}

/// What surrounds the list.
pub struct PreviewPane<'a> {
    /// Title of the screen.
    pub title: &'a str,
    /// Preview of the selected row, wrapped to its pane.
    pub preview: &'a [StyledLine],
    /// Whether to use colors.
    pub paint: Paint,
}

/// Draws the checklist, the preview if it fits, the status and the keys.
pub fn checklist(frame: &mut Frame<'_>, list: &Checklist, pane: &PreviewPane<'_>) {
    let area = frame.area();
    let panes = split_panes(area, list.rows().len());
    put(
        frame,
        panes.title,
        &[StyledLine::of(Tone::Accent, "▶ ").with(Tone::Strong, pane.title)],
        pane.paint,
    );
    draw_rows(frame, panes.list, list, pane.paint);
    preview(frame, &panes, list, pane);
    put(frame, panes.status, &[status(list)], pane.paint);

    put(
        frame,
        panes.keys,
        &[key_line(&KEYS, usize::from(area.width))],
        pane.paint,
    );
}

fn preview(frame: &mut Frame<'_>, panes: &Panes, list: &Checklist, pane: &PreviewPane<'_>) {
    let (Some(side), Some(divider)) = (panes.side, panes.divider) else {
        return;
    };
    // The divider is vertical if the preview is next to the list.
    let lines = if divider.width == 1 {
        vec![StyledLine::of(Tone::Faint, "│"); usize::from(divider.height)]
    } else {
        vec![StyledLine::of(
            Tone::Faint,
            &"─".repeat(usize::from(divider.width)),
        )]
    };

    put(frame, divider, &lines, pane.paint);
    let from = list.scroll.min(pane.preview.len());
    put(frame, side, &pane.preview[from..], pane.paint);
}

fn status(list: &Checklist) -> StyledLine {
    if let Some(prompt) = list.search.as_ref().and_then(Search::prompt) {
        return prompt;
    }

    if let Some(notice) = list.notice.as_deref() {
        return StyledLine::of(Tone::Warning, notice);
    }

    if let Some(problem) = list.problem() {
        return StyledLine::of(Tone::Removed, &format!("✗ {problem}"));
    }

    let count = |is_kind: fn(ItemPart) -> bool, word: &str| {
        let items: Vec<bool> = list
            .items
            .iter()
            .filter(|item| is_kind(item.part))
            .map(|item| item.on)
            .collect();
        let on = items.iter().filter(|&&on| on).count();
        (!items.is_empty()).then(|| format!("{on} of {} {word}", items.len()))
    };
    let counts = [
        count(|part| matches!(part, ItemPart::Action(_)), "actions"),
        count(|part| matches!(part, ItemPart::Memo(_)), "memos"),
    ];
    let arrows = match (list.top > 0, list.top + list.height < list.rows().len()) {
        (true, true) => "↑↓ ",
        (true, false) => "↑ ",
        (false, true) => "↓ ",
        (false, false) => "",
    };

    let more = if list.max_scroll > 0 {
        " · J/K scroll the preview"
    } else {
        ""
    };
    StyledLine::of(
        Tone::Faint,
        &format!(
            "{arrows}{} will run{more}",
            counts
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(" and ")
        ),
    )
}

/// Returns as many keys as fit, in order.
pub(super) fn key_line(keys: &[(&str, &str)], width: usize) -> StyledLine {
    let mut line = StyledLine::default();
    for (key, meaning) in keys {
        let gap = if line.spans().is_empty() { "" } else { "  " };
        let longer = line
            .clone()
            .with(Tone::Plain, gap)
            .with(Tone::Accent, key)
            .with(Tone::Faint, &format!(" {meaning}"));
        if longer.width() > width {
            break;
        }

        line = longer;
    }

    line
}

/// Draws lines into an area, cut to its width.
pub fn put(frame: &mut Frame<'_>, area: Rect, lines: &[StyledLine], paint: Paint) {
    let width = usize::from(area.width);
    let lines: Vec<text::Line<'_>> = lines
        .iter()
        .take(usize::from(area.height))
        .map(|line| drawn(line.clone().cut(width), paint))
        .collect();
    frame.render_widget(Paragraph::new(lines), area);
}

/// Converts a line for ratatui.
pub fn drawn(line: StyledLine, paint: Paint) -> text::Line<'static> {
    let span = |span: &super::style::StyledSpan| {
        text::Span::styled(span.text().to_owned(), style(span.tone, paint))
    };
    text::Line::from(line.spans().iter().map(span).collect::<Vec<_>>())
}

/// Without colors, a tone differs only in weight.
fn style(tone: Tone, paint: Paint) -> Style {
    let plain = Style::new();
    let (color, modifier) = match tone {
        Tone::Plain => return plain,
        Tone::Strong => return plain.add_modifier(Modifier::BOLD),
        Tone::Faint => return plain.add_modifier(Modifier::DIM),
        Tone::Question => return plain.add_modifier(Modifier::BOLD.union(Modifier::REVERSED)),
        Tone::Added => (Color::Green, Modifier::empty()),
        Tone::Removed => (Color::Red, Modifier::empty()),
        Tone::AddedPart => (Color::Green, Modifier::BOLD.union(Modifier::UNDERLINED)),
        Tone::RemovedPart => (Color::Red, Modifier::BOLD.union(Modifier::UNDERLINED)),
        Tone::Warning => (Color::Yellow, Modifier::empty()),
        Tone::Accent => (Color::Cyan, Modifier::empty()),
    };
    match paint {
        Paint::Colors => plain.fg(color).add_modifier(modifier),
        Paint::Bare => plain.add_modifier(modifier),
    }
}

fn draw_rows(frame: &mut Frame<'_>, area: Rect, list: &Checklist, paint: Paint) {
    let rows = visible_rows(list, usize::from(area.width), usize::from(area.height));
    let width = usize::from(area.width);
    let render = |(line, selected): (StyledLine, bool)| {
        // The mark covers the whole row.
        let gap = width.saturating_sub(line.width());
        let drawn = drawn(if selected { line.blanks(gap) } else { line }, paint);
        if selected {
            drawn.patch_style(Modifier::REVERSED)
        } else {
            drawn
        }
    };
    frame.render_widget(
        Paragraph::new(rows.into_iter().map(render).collect::<Vec<_>>()),
        area,
    );
}

/// Returns the visible rows, and whether each is selected.
fn visible_rows(list: &Checklist, width: usize, height: usize) -> Vec<(StyledLine, bool)> {
    let rows = list.rows();
    let render_row = |(at, &row): (usize, &ChecklistRow)| {
        let selected = at == list.cursor;
        // The row after the memos is a heading, so the last memo ends its branch.
        let last = !rows[at + 1..].iter().any(|&next| same_branch(row, next))
            || rows
                .get(at + 1)
                .is_some_and(|&next| next == ChecklistRow::Actions);
        (
            row_line(list, row, width, RowPosition { selected, last }),
            selected,
        )
    };
    rows.iter()
        .enumerate()
        .skip(list.top)
        .take(height)
        .map(render_row)
        .collect()
}

#[derive(Clone, Copy)]
struct RowPosition {
    selected: bool,
    /// Last row of its branch.
    last: bool,
}

fn same_branch(row: ChecklistRow, next: ChecklistRow) -> bool {
    match (row, next) {
        (ChecklistRow::Item(_), ChecklistRow::Item(_)) => true,
        (ChecklistRow::Pair(one, _), ChecklistRow::Pair(other, _)) => one == other,
        _ => false,
    }
}

fn row_line(
    list: &Checklist,
    row: ChecklistRow,
    width: usize,
    position: RowPosition,
) -> StyledLine {
    let cursor = StyledLine::of(Tone::Accent, if position.selected { "›" } else { " " });
    match row {
        ChecklistRow::Memos => cursor.with(Tone::Strong, "Memos").cut(width),
        ChecklistRow::Actions => cursor.with(Tone::Strong, "Action Plan").cut(width),
        ChecklistRow::Item(index) => {
            let item = &list.items[index];
            let start = cursor
                .with(Tone::Faint, if position.last { "└─" } else { "├─" })
                .append(switch_box(item.on, item.problem.is_some()));
            fit_row(
                start,
                item_label(&item.label, item.on),
                item_marks(item),
                width,
            )
        }
        ChecklistRow::Pair(index, pair) => {
            let pair = &list.items[index].pairs[pair];
            let start = cursor
                .with(
                    Tone::Faint,
                    if position.last {
                        "│  └─"
                    } else {
                        "│  ├─"
                    },
                )
                .append(switch_box(pair.on, pair.problem.is_some()));
            let mark = StyledLine::of(
                Tone::Removed,
                if pair.problem.is_some() && pair.on {
                    " ✗"
                } else {
                    ""
                },
            );

            fit_row(start, item_label(&pair.label, pair.on), mark, width)
        }
    }
}

fn switch_box(on: bool, problem: bool) -> StyledLine {
    match (on, problem) {
        (true, false) => StyledLine::of(Tone::Added, "[✓] "),
        (true, true) => StyledLine::of(Tone::Removed, "[✗] "),
        (false, _) => StyledLine::of(Tone::Faint, "[ ] "),
    }
}

/// Returns pair counts and flags, shown after the label.
fn item_marks(item: &Item) -> StyledLine {
    let on = item.pairs.iter().filter(|pair| pair.on).count();
    let sign = if item.open { "▾" } else { "▸" };
    let pairs = if item.pairs.is_empty() {
        String::new()
    } else {
        format!("  {sign} {on}/{} pairs", item.pairs.len())
    };

    let broken = item.on
        && item
            .pairs
            .iter()
            .any(|pair| pair.on && pair.problem.is_some());
    StyledLine::of(Tone::Faint, &pairs)
        .with(Tone::Removed, if broken { " ✗" } else { "" })
        .with(
            Tone::Warning,
            if item.modified { "  *modified" } else { "" },
        )
}

fn item_label(label: &StyledLine, on: bool) -> StyledLine {
    if on {
        label.clone()
    } else {
        StyledLine::of(Tone::Faint, &label.text())
    }
}

/// Cuts the label if the parts do not fit.
fn fit_row(start: StyledLine, label: StyledLine, marks: StyledLine, width: usize) -> StyledLine {
    let label_width = width.saturating_sub(start.width() + marks.width()).max(1);
    start
        .append(label.cut(label_width))
        .append(marks)
        .cut(width)
}

/// Minimum width to show the preview next to the list.
const MIN_WIDTH_COLUMNS: u16 = 100;

/// Minimum height to show it below the list on a narrower screen.
const MIN_HEIGHT_ROWS: u16 = 20;

const MAX_LIST_WIDTH: u16 = 80;

/// Lines for title, status and keys.
const FRAME_LINES: u16 = 3;

/// Areas of the checklist's screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panes {
    /// One line at the top.
    pub title: Rect,
    pub list: Rect,
    /// A column or line between list and preview.
    pub divider: Option<Rect>,
    /// The preview.
    pub side: Option<Rect>,
    /// The line above the keys.
    pub status: Rect,
    /// The last line.
    pub keys: Rect,
}

/// Divides the screen for a list with this many rows.
pub fn split_panes(area: Rect, rows: usize) -> Panes {
    let body = area.height.saturating_sub(FRAME_LINES);
    let line = |y: u16| {
        Rect::new(
            area.x,
            y.min(area.bottom().saturating_sub(1)),
            area.width,
            1.min(area.height),
        )
    };

    let full = Rect::new(area.x, area.y + 1, area.width, body).intersection(area);
    let (list, divider, side) = match () {
        () if area.width >= MIN_WIDTH_COLUMNS => split_columns(full),
        () if area.height >= MIN_HEIGHT_ROWS => {
            split_rows(full, u16::try_from(rows).unwrap_or(u16::MAX))
        }
        () => (full, None, None),
    };
    Panes {
        title: line(area.y),
        list,
        divider,
        side,
        status: line(area.bottom().saturating_sub(2)),
        keys: line(area.bottom().saturating_sub(1)),
    }
}

fn split_columns(body: Rect) -> (Rect, Option<Rect>, Option<Rect>) {
    let width = (body.width * 2 / 5).min(MAX_LIST_WIDTH);
    let list = Rect { width, ..body };
    let divider = Rect {
        x: body.x + width,
        width: 1,
        ..body
    };
    let side = Rect {
        x: body.x + width + 2,
        width: body.width - width - 2,
        ..body
    };

    (list, Some(divider), Some(side))
}

/// A short list leaves more lines to the preview.
fn split_rows(body: Rect, rows: u16) -> (Rect, Option<Rect>, Option<Rect>) {
    let height = rows.clamp(1, body.height / 2);
    let list = Rect { height, ..body };
    let divider = Rect {
        y: body.y + height,
        height: 1,
        ..body
    };
    let side = Rect {
        y: body.y + height + 1,
        height: body.height - height - 1,
        ..body
    };

    (list, Some(divider), Some(side))
}

#[cfg(test)]
mod tests;
