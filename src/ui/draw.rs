//! Draws full screens: lines, a list beside a preview, and the checklist of the review.

use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::widgets::Paragraph;
use ratatui::{Frame, text};

use super::checklist::{Checklist, ChecklistRow, Item, ItemPart};
use super::style::{Paint, StyledLine, StyledSpan, Tone};
use crate::text::counted;

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

/// Draws lines between a title and a last line.
pub fn page(
    frame: &mut Frame<'_>,
    title: &str,
    body: impl Iterator<Item = StyledLine>,
    footer: StyledLine,
    paint: Paint,
) {
    let area = frame.area();
    let mut lines = vec![StyledLine::of(Tone::Strong, title)];
    lines.extend(body);
    lines.resize(
        usize::from(area.height.saturating_sub(1)),
        StyledLine::default(),
    );
    lines.push(footer);
    put(frame, area, lines, paint);
}

/// Draws the checklist, the preview if it fits, the status and the keys.
pub fn checklist(
    frame: &mut Frame<'_>,
    list: &Checklist,
    title: &str,
    preview: &[StyledLine],
    paint: Paint,
) {
    let panes = split_panes(frame.area(), list.rows().len());
    panes.draw(frame, title, status(list), &KEYS, paint);
    let rows = visible_rows(list, usize::from(panes.list.width));
    put_rows(frame, panes.list, rows, paint);
    let visible = preview.get(list.preview.visible()).unwrap_or_default();
    put(frame, panes.side, visible.iter().cloned(), paint);
}

fn status(list: &Checklist) -> StyledLine {
    if let Some(status) = list.list.status() {
        return status;
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
        (!items.is_empty()).then(|| format!("{on} of {}", counted(items.len(), word)))
    };
    let counts = [
        count(|part| matches!(part, ItemPart::Action(_)), "action"),
        count(|part| matches!(part, ItemPart::Memo(_)), "memo"),
    ];
    let arrows = match list.list.has_more() {
        (true, true) => "↑↓ ",
        (true, false) => "↑ ",
        (false, true) => "↓ ",
        (false, false) => "",
    };

    let more = match list.preview.has_more() {
        (false, false) => "",
        _ => " · J/K scroll the preview",
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
fn key_line(keys: &[(&str, &str)], width: usize) -> StyledLine {
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
pub fn put(
    frame: &mut Frame<'_>,
    area: Rect,
    lines: impl IntoIterator<Item = StyledLine>,
    paint: Paint,
) {
    let rows = lines.into_iter().map(|line| (line, false));
    put_rows(frame, area, rows, paint);
}

/// Like [`put`]; a row with `true` is selected.
pub fn put_rows(
    frame: &mut Frame<'_>,
    area: Rect,
    rows: impl IntoIterator<Item = (StyledLine, bool)>,
    paint: Paint,
) {
    let width = usize::from(area.width);
    let span =
        |span: &StyledSpan| text::Span::styled(span.text().to_owned(), style(span.tone, paint));
    let render = |(line, is_selected): (StyledLine, bool)| {
        let line = line.cut(width);
        // The mark covers the whole row.
        let gap = if is_selected {
            width.saturating_sub(line.width())
        } else {
            0
        };
        let line = line.blanks(gap);
        let line: text::Line<'_> = line.spans().iter().map(span).collect();
        match is_selected {
            true => line.patch_style(Modifier::REVERSED),
            false => line,
        }
    };
    let rows = rows.into_iter().take(usize::from(area.height));
    let lines: Vec<text::Line<'_>> = rows.map(render).collect();
    frame.render_widget(Paragraph::new(lines), area);
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
        Paint::Weights | Paint::Bare => plain.add_modifier(modifier),
    }
}

fn visible_rows(list: &Checklist, width: usize) -> Vec<(StyledLine, bool)> {
    let rows = list.rows();
    let render_row = |at: usize| {
        let (row, selected) = (rows[at], at == list.list.cursor());
        // The row after the memos is a heading, so the last memo ends its branch.
        let last = !rows[at + 1..].iter().any(|&next| same_branch(row, next))
            || rows
                .get(at + 1)
                .is_some_and(|&next| next == ChecklistRow::Actions);
        (row_line(list, row, width, selected, last), selected)
    };
    list.list.visible().map(render_row).collect()
}

fn same_branch(row: ChecklistRow, next: ChecklistRow) -> bool {
    match (row, next) {
        (ChecklistRow::Item(_), ChecklistRow::Item(_)) => true,
        (ChecklistRow::Pair(one, _), ChecklistRow::Pair(other, _)) => one == other,
        _ => false,
    }
}

/// `is_last`: last row of its branch.
fn row_line(
    list: &Checklist,
    row: ChecklistRow,
    width: usize,
    selected: bool,
    is_last: bool,
) -> StyledLine {
    let cursor = StyledLine::of(Tone::Accent, if selected { "›" } else { " " });
    let (on, has_problem, label, marks, branches) = match row {
        ChecklistRow::Memos => return cursor.with(Tone::Strong, "Memos").cut(width),
        ChecklistRow::Actions => return cursor.with(Tone::Strong, "Action Plan").cut(width),
        ChecklistRow::Item(index) => {
            let item = &list.items[index];
            let has_problem = item.problem.is_some();
            (
                item.on,
                has_problem,
                &item.label,
                item_marks(item),
                ["├─", "└─"],
            )
        }
        ChecklistRow::Pair(index, pair) => {
            let pair = &list.items[index].pairs[pair];
            let has_problem = pair.problem.is_some();
            let mark = if has_problem && pair.on { " ✗" } else { "" };
            let mark = StyledLine::of(Tone::Removed, mark);
            (pair.on, has_problem, &pair.label, mark, ["│  ├─", "│  └─"])
        }
    };
    let start = cursor
        .with(Tone::Faint, branches[usize::from(is_last)])
        .append(switch_box(on, has_problem));
    fit_row(start, item_label(label, on), marks, width)
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

/// Minimum height to show a title.
const MIN_HEIGHT_TITLE: u16 = 9;

/// Areas of a screen with a list and a preview. An area that does not fit is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Panes {
    /// One line at the top.
    pub title: Rect,
    pub list: Rect,
    /// A column or line between list and preview.
    pub divider: Rect,
    /// Preview of the selected row.
    pub side: Rect,
    /// The line above the keys.
    pub status: Rect,
    /// The last line.
    pub keys: Rect,
}

impl Panes {
    /// Returns the areas of a screen without a side.
    pub fn new(area: Rect) -> Panes {
        let line = |y: u16| Rect::new(area.x, y, area.width, 1).intersection(area);
        let title = u16::from(area.height >= MIN_HEIGHT_TITLE);
        let body = area.height.saturating_sub(2 + title).max(1);
        Panes {
            title: Rect {
                height: title,
                ..area
            },
            list: Rect::new(area.x, area.y + title, area.width, body).intersection(area),
            status: line(area.bottom().saturating_sub(2).max(area.y + 1)),
            keys: line(area.bottom().saturating_sub(1).max(area.y + 2)),
            ..Panes::default()
        }
    }

    /// Gives the list a width; the side is right of it.
    #[must_use]
    pub fn beside(self, width: u16) -> Panes {
        let body = self.list;
        let at = |x: u16, width: u16| Rect { x, width, ..body }.intersection(body);
        Panes {
            list: Rect { width, ..body },
            divider: at(body.x + width, 1),
            side: at(body.x + width + 2, body.width.saturating_sub(width + 2)),
            ..self
        }
    }

    /// Gives the list a height; the side is below it.
    #[must_use]
    pub fn below(self, height: u16) -> Panes {
        let body = self.list;
        let at = |y: u16, height: u16| Rect { y, height, ..body }.intersection(body);
        Panes {
            list: Rect { height, ..body },
            divider: at(body.y + height, 1),
            side: at(body.y + height + 1, body.height.saturating_sub(height + 1)),
            ..self
        }
    }

    /// Draws everything but the list and the side.
    pub fn draw(
        &self,
        frame: &mut Frame<'_>,
        title: &str,
        status: StyledLine,
        keys: &[(&str, &str)],
        paint: Paint,
    ) {
        let title = StyledLine::of(Tone::Accent, "▶ ").with(Tone::Strong, title);
        put(frame, self.title, [title], paint);
        let line = match self.divider.width {
            1 => "│".to_owned(),
            width => "─".repeat(usize::from(width)),
        };
        let line = StyledLine::of(Tone::Faint, &line);
        let height = usize::from(self.divider.height);
        put(
            frame,
            self.divider,
            std::iter::repeat_n(line, height),
            paint,
        );
        put(frame, self.status, [status], paint);
        let keys = key_line(keys, usize::from(self.keys.width));
        put(frame, self.keys, [keys], paint);
    }
}

/// Minimum width to show the preview next to the list.
const MIN_WIDTH_COLUMNS: u16 = 100;

/// Minimum height to show it below the list on a narrower screen.
const MIN_HEIGHT_ROWS: u16 = 20;

const MAX_LIST_WIDTH: u16 = 80;

/// Divides the screen of a checklist with this many rows.
pub fn split_panes(area: Rect, rows: usize) -> Panes {
    let panes = Panes::new(area);
    let body = panes.list;
    let rows = u16::try_from(rows).unwrap_or(u16::MAX);
    match () {
        () if area.width >= MIN_WIDTH_COLUMNS => {
            panes.beside((body.width * 2 / 5).min(MAX_LIST_WIDTH))
        }
        // A short list leaves more lines to the preview.
        () if area.height >= MIN_HEIGHT_ROWS => panes.below(rows.clamp(1, body.height / 2)),
        () => panes,
    }
}

#[cfg(test)]
mod tests;
