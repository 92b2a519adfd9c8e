//! Draws the full screens of the review: the text viewer and the checklist.

pub mod panes;
mod rows;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text;
use ratatui::widgets::Paragraph;

use panes::Panes;

use super::checklist::{Checklist, ItemPart};
use super::search::Search;
use super::style::{Paint, StyledLine, Tone};
use super::viewer::{self, Viewer};

/// Most important first: a narrow screen omits the rest.
const KEYS: [(&str, &str); 8] = [
    ("s", "run"),
    ("q", "back"),
    ("?", "help"),
    ("space", "toggle"),
    ("p", "preview/edit"),
    ("a", "all"),
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
    let panes = panes::split_panes(area, list.rows().len());
    put(
        frame,
        panes.title,
        &[StyledLine::of(Tone::Accent, "▶ ").with(Tone::Strong, pane.title)],
        pane.paint,
    );
    rows::draw_rows(frame, panes.list, list, pane.paint);
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

#[cfg(test)]
mod tests;
