//! The rows of the checklist: branches, switches, marks. Only those on the screen are made.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::widgets::Paragraph;

use super::drawn;
use crate::ui::checklist::{Checklist, ChecklistRow, Item};
use crate::ui::style::{Paint, StyledLine, Tone};

/// Draws the rows that fit, from the first one on the screen.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, list: &Checklist, paint: Paint) {
    let rows = on_screen(list, usize::from(area.width), usize::from(area.height));
    let shown = |(line, selected): (StyledLine, bool)| {
        let drawn = drawn(line, paint);
        if selected {
            drawn.patch_style(Modifier::REVERSED)
        } else {
            drawn
        }
    };
    frame.render_widget(
        Paragraph::new(rows.into_iter().map(shown).collect::<Vec<_>>()),
        area,
    );
}

/// Returns the rows that are on a screen, and whether the cursor is on them; however long the list
/// is, no other is made.
pub(super) fn on_screen(list: &Checklist, width: usize, height: usize) -> Vec<(StyledLine, bool)> {
    let rows = list.rows();
    let made = |(at, &row): (usize, &ChecklistRow)| {
        let selected = at == list.cursor;
        let last = !rows[at + 1..].iter().any(|&next| same_branch(row, next))
            || rows
                .get(at + 1)
                .is_some_and(|&next| next == ChecklistRow::Actions);
        (
            line(list, row, width, RowPlace { selected, last }),
            selected,
        )
    };
    rows.iter()
        .enumerate()
        .skip(list.top)
        .take(height)
        .map(made)
        .collect()
}

/// Where a row stands.
#[derive(Clone, Copy)]
struct RowPlace {
    /// Under the cursor.
    selected: bool,
    /// The last of its branch.
    last: bool,
}

/// Tells whether the second row hangs on the same branch as the first.
fn same_branch(row: ChecklistRow, next: ChecklistRow) -> bool {
    match (row, next) {
        (ChecklistRow::Item(_), ChecklistRow::Item(_)) => true,
        (ChecklistRow::Pair(one, _), ChecklistRow::Pair(other, _)) => one == other,
        _ => false,
    }
}

/// Returns a row, cut to the width.
fn line(list: &Checklist, row: ChecklistRow, width: usize, place: RowPlace) -> StyledLine {
    let cursor = StyledLine::of(Tone::Accent, if place.selected { "›" } else { " " });
    match row {
        ChecklistRow::Memos => cursor.with(Tone::Strong, "Memos").cut(width),
        ChecklistRow::Actions => cursor.with(Tone::Strong, "Action Plan").cut(width),
        ChecklistRow::Item(index) => {
            let item = &list.items[index];
            let start = cursor
                .with(Tone::Faint, if place.last { "└─" } else { "├─" })
                .join(switch(item.on, item.problem.is_some()));
            fitted(start, toned(&item.label, item.on), marks(item), width)
        }
        ChecklistRow::Pair(index, pair) => {
            let pair = &list.items[index].pairs[pair];
            let start = cursor
                .with(
                    Tone::Faint,
                    if place.last {
                        "│  └─"
                    } else {
                        "│  ├─"
                    },
                )
                .join(switch(pair.on, pair.problem.is_some()));
            let mark = StyledLine::of(
                Tone::Removed,
                if pair.problem.is_some() && pair.on {
                    " ✗"
                } else {
                    ""
                },
            );

            fitted(start, toned(&pair.label, pair.on), mark, width)
        }
    }
}

/// Returns `[✓] `, `[ ] `, or `[✗] ` for what is switched on and cannot run.
fn switch(on: bool, problem: bool) -> StyledLine {
    match (on, problem) {
        (true, false) => StyledLine::of(Tone::Added, "[✓] "),
        (true, true) => StyledLine::of(Tone::Removed, "[✗] "),
        (false, _) => StyledLine::of(Tone::Faint, "[ ] "),
    }
}

/// Returns what stands behind an item's label.
fn marks(item: &Item) -> StyledLine {
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

/// Returns a label, faint where it is switched off.
fn toned(label: &StyledLine, on: bool) -> StyledLine {
    if on {
        label.clone()
    } else {
        StyledLine::of(Tone::Faint, &label.text())
    }
}

/// Joins start, label and marks; the label gives way where there is no room.
fn fitted(start: StyledLine, label: StyledLine, marks: StyledLine, width: usize) -> StyledLine {
    let room = width.saturating_sub(start.width() + marks.width()).max(1);
    start.join(label.cut(room)).join(marks).cut(width)
}
