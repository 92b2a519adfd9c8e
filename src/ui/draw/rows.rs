//! Draws the rows of the checklist. Only visible rows are built, so long lists stay cheap.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::widgets::Paragraph;

use super::drawn;
use crate::ui::checklist::{Checklist, ChecklistRow, Item};
use crate::ui::style::{Paint, StyledLine, Tone};

pub(super) fn draw_rows(frame: &mut Frame<'_>, area: Rect, list: &Checklist, paint: Paint) {
    let rows = visible_rows(list, usize::from(area.width), usize::from(area.height));
    let render = |(line, selected): (StyledLine, bool)| {
        let drawn = drawn(line, paint);
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
pub(super) fn visible_rows(
    list: &Checklist,
    width: usize,
    height: usize,
) -> Vec<(StyledLine, bool)> {
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
