//! Draws the browser with ratatui.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::browser::{BrowseSide, Browser};
use super::tree::{BrowseTree, TreeItem, TreeRow};
use crate::git::object::CommitId;
use crate::query::log::LogRow;
use crate::query::view::timeline::SessionLane;
use crate::session::meta::Status;
use crate::text::counted;
use crate::ui::browse::turn_view::BrowseTab;
use crate::ui::draw::{Panes, put, put_rows};
use crate::ui::list::Search;
use crate::ui::style::{Paint, StyledLine, Tone};
use crate::ui::turn_text::status_tone;

/// Most important first: a narrow screen omits the rest.
const KEYS: [(&str, &str); 15] = [
    ("q", "quit"),
    ("?", "help"),
    ("enter", "open"),
    ("tab", "next tab"),
    ("/", "search"),
    ("d", "diff"),
    ("r", "restore"),
    ("u", "undo to here"),
    ("b", "branch"),
    ("l", "land"),
    ("m", "mark"),
    ("c", "comment"),
    ("C", "compare"),
    ("e", "editor"),
    ("y", "copy id"),
];

/// Fits the state to a screen size.
pub fn fit(browser: &mut Browser, area: Rect) {
    if let Some(text) = &mut browser.text {
        text.fit(area);
    }
    let panes = split_panes(area, browser.side, browser.is_zoomed);
    browser.tree.fit(usize::from(panes.list.height));
    if panes.side.width > 0 {
        browser.refresh(usize::from(panes.side.width));
    }
    let height = usize::from(panes.side.height);
    browser.detail.fit(browser.lines.len(), height);
}

/// Draws the browser. The caller must [`fit`] it to the frame first.
pub fn draw(frame: &mut Frame<'_>, browser: &Browser, title: &str, paint: Paint) {
    if let Some(text) = &browser.text {
        return text.draw(frame, paint);
    }

    let panes = split_panes(frame.area(), browser.side, browser.is_zoomed);
    panes.draw(frame, title, status(browser, &panes), &KEYS, paint);
    put(frame, tab_line(&panes), [tabs(browser)], paint);
    let width = usize::from(panes.list.width.saturating_sub(1));
    let tree = browser.tree.list.visible().map(|at| {
        let is_here = at == browser.tree.list.cursor();
        let mark = StyledLine::of(Tone::Accent, if is_here { "›" } else { " " });
        let line = mark.append(tree_line(browser, &browser.tree.rows()[at], width));
        (line, is_here && browser.side == BrowseSide::Tree)
    });
    put_rows(frame, panes.list, tree, paint);
    let detail = browser.detail.visible().map(|at| {
        let is_here = browser.has_cursor() && at == browser.detail.cursor();
        (browser.lines[at].line.clone(), is_here)
    });
    put_rows(frame, panes.side, detail, paint);
}

fn tabs(browser: &Browser) -> StyledLine {
    let name = |line: StyledLine, tab: &BrowseTab| match *tab == browser.tab {
        true => {
            let tone = match browser.side {
                BrowseSide::Detail => Tone::Accent,
                BrowseSide::Tree => Tone::Strong,
            };
            line.with(tone, &format!("[{}] ", tab.name()))
        }
        false => line.with(Tone::Faint, &format!("{} ", tab.name())),
    };
    BrowseTab::ALL.iter().fold(StyledLine::default(), name)
}

fn status(browser: &Browser, panes: &Panes) -> StyledLine {
    if let Some(prompt) = browser.search.as_ref().and_then(Search::prompt) {
        return prompt;
    }
    if let Some(status) = browser.detail.status() {
        return status;
    }
    if let Some(why) = &browser.trouble {
        return StyledLine::of(Tone::Removed, &format!("✗ {why}"));
    }

    let count = browser.tree.rows().len();
    let at = (browser.tree.list.cursor() + 1).min(count);
    let mut line = StyledLine::of(Tone::Faint, &format!("{at}/{count}"));
    if !browser.is_whole {
        line = line.with(Tone::Faint, " reading…");
    }
    if let Some(address) = browser.address() {
        line = line.with(Tone::Faint, &format!(" · {address}"));
    }
    if panes.side.height > 0 {
        line = line.with(Tone::Faint, &format!(" · {}", browser.detail.position()));
    }
    if let [(_, one), others @ ..] = browser.marks.as_slice() {
        let other = others
            .first()
            .map_or("…".to_owned(), |(_, other)| other.to_string());
        line = line.with(Tone::Warning, &format!(" · C compares {one} and {other}"));
    }
    line
}

/// Minimum width to show tree and turn side by side.
const MIN_WIDTH_COLUMNS: u16 = 76;

/// Minimum height to stack them on a narrower screen.
const MIN_HEIGHT_ROWS: u16 = 14;

/// Minimum and maximum width of the tree next to a turn.
const TREE_WIDTH: (u16, u16) = (30, 64);

/// Divides the screen. The line above the turn is for the tabs.
pub(super) fn split_panes(area: Rect, side: BrowseSide, is_zoomed: bool) -> Panes {
    let panes = Panes::new(area);
    let body = panes.list;
    let stacked = |panes: Panes, height| Panes {
        divider: Rect::default(),
        ..panes.below(height)
    };
    match (is_zoomed, side) {
        (false, _) if area.width >= MIN_WIDTH_COLUMNS => {
            let panes = panes.beside((body.width * 2 / 5).clamp(TREE_WIDTH.0, TREE_WIDTH.1));
            let list = panes.side;
            let side = Panes { list, ..panes }.below(0).side;
            Panes { side, ..panes }
        }
        (false, _) if body.height >= MIN_HEIGHT_ROWS => stacked(panes, body.height * 2 / 5),
        (false, BrowseSide::Tree) => panes,
        _ => Panes {
            list: Rect::default(),
            ..stacked(panes, 0)
        },
    }
}

/// Returns the line above the turn.
fn tab_line(panes: &Panes) -> Rect {
    let side = panes.side;
    let y = side.y.saturating_sub(1);
    Rect {
        y,
        height: u16::from(side.width > 0),
        ..side
    }
}

/// Deeper branches are indented no further.
const MAX_INDENT: usize = 6;

/// Minimum width of the tree to show file counts.
const MIN_WIDTH_FILE_COUNT: usize = 44;

pub(super) fn tree_line(browser: &Browser, row: &TreeRow, width: usize) -> StyledLine {
    let tree = &browser.tree;
    let lane = tree.lane(row);
    let start = StyledLine::default().blanks(2 * row.depth.min(MAX_INDENT));
    let line = match row.item {
        TreeItem::Session => session_line(start, tree, row),
        TreeItem::Damaged => {
            let why = lane.ailing.as_deref().unwrap_or_default();
            start.with(Tone::Warning, &format!("  ! {why}"))
        }
        TreeItem::Restores(at, count) => {
            let text = format!(" {} ", lane.rows[at].number);
            start
                .with(Tone::Faint, &format!("{text:>6}"))
                .with(Tone::Faint, &format!("▸ ↶ {}", counted(count, "restore")))
        }
        TreeItem::Turn(at) => {
            let is_marked = |commit: CommitId| {
                let mut marks = browser.marks.iter();
                marks.any(|(other, _)| *other == commit)
            };
            let row = &lane.rows[at];
            turn_line(start, row, is_marked(row.commit), width)
        }
    };
    line.cut(width)
}

fn session_line(start: StyledLine, tree: &BrowseTree, row: &TreeRow) -> StyledLine {
    let lane = tree.lane(row);
    let is_open = tree.is_open(row.lane);
    let line = start
        .with(Tone::Accent, if is_open { "▾ " } else { "▸ " })
        .with(Tone::Strong, lane.name.as_str());
    let line = match lane.in_use {
        true => line.with(Tone::Added, " (in use)"),
        false => line,
    };
    line.with(Tone::Faint, &lane_summary(lane, is_open))
}

fn lane_summary(lane: &SessionLane, is_open: bool) -> String {
    let from = lane.parent.as_ref();
    let from = from.map_or(String::new(), |(name, turn)| format!(" from {name}:{turn}"));
    let count = lane.turns();
    match (is_open, lane.rows.first()) {
        (false, Some(row)) => format!(" {}{from}: {}", counted(count, "turn"), row.title),
        (_, None) => format!("{from}, no turns of its own"),
        _ => from,
    }
}

fn turn_line(start: StyledLine, row: &LogRow, is_marked: bool, width: usize) -> StyledLine {
    let mark = if is_marked { "*" } else { " " };
    let line = start
        .with(Tone::Warning, mark)
        .with(Tone::Strong, &format!("{:>4} ", row.number))
        .with(
            status_tone(row.shown_status()),
            &format!("{} ", status_sign(row.shown_status())),
        )
        .blanks(2 * row.depth.min(MAX_INDENT));
    let facts = match row.files.len() {
        0 if row.too_many_files && width >= MIN_WIDTH_FILE_COUNT => {
            " (too many files to list)".to_owned()
        }
        0 => String::new(),
        _ if width < MIN_WIDTH_FILE_COUNT => String::new(),
        count => format!(" ({})", counted(count, "file")),
    };

    let max_width = width.saturating_sub(line.width() + facts.len()).max(1);
    let tone = match row.shown_status() {
        Status::Restored => Tone::Faint,
        Status::Landed => Tone::Accent,
        _ => Tone::Plain,
    };
    let title = StyledLine::of(tone, &row.title).cut(max_width);
    line.append(title).with(Tone::Faint, &facts)
}

/// Status is shown by color and sign, so it can be read without colors.
fn status_sign(status: Status) -> &'static str {
    match status {
        Status::Executed => "✓",
        Status::Failed | Status::Rejected => "✗",
        Status::Interrupted => "!",
        Status::Declined => "-",
        Status::Restored => "↶",
        Status::Landed => "⚑",
        Status::Picked => "+",
        Status::Recorded => "●",
        Status::Started | Status::Ready | Status::Planned => "○",
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod panes_tests {
    use super::*;

    #[track_caller]
    fn check(size: (u16, u16), side: BrowseSide, expected: [(u16, u16); 2]) {
        let area = Rect::new(0, 0, size.0, size.1);
        let panes = split_panes(area, side, false);
        let sizes = [panes.list, panes.side].map(|pane| (pane.width, pane.height));
        assert_eq!(sizes, expected, "{size:?}");
        let all = [
            panes.title,
            panes.list,
            tab_line(&panes),
            panes.side,
            panes.status,
            panes.keys,
        ];
        for pane in all {
            assert_eq!(pane.intersection(area), pane, "{size:?}");
        }
    }

    #[test]
    fn a_screen_of_any_size_is_divided() {
        check((120, 40), BrowseSide::Tree, [(48, 37), (70, 36)]);
        check((80, 24), BrowseSide::Tree, [(32, 21), (46, 20)]);
        check((60, 20), BrowseSide::Tree, [(60, 6), (60, 10)]);
        check((60, 12), BrowseSide::Tree, [(60, 9), (0, 0)]);
        check((60, 12), BrowseSide::Detail, [(0, 0), (60, 8)]);
        check((20, 5), BrowseSide::Tree, [(20, 3), (0, 0)]);
        check((20, 5), BrowseSide::Detail, [(0, 0), (20, 2)]);
        for (width, height) in [(1, 1), (0, 0), (3, 2), (200, 1), (76, 3)] {
            let area = Rect::new(0, 0, width, height);
            for side in [BrowseSide::Tree, BrowseSide::Detail] {
                let panes = split_panes(area, side, false);
                assert_eq!(panes.keys.intersection(area), panes.keys);
            }
        }
    }
}
