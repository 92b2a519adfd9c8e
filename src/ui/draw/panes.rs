//! Screen layout of the checklist: preview next to the list, below it, or absent.

use ratatui::layout::Rect;

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
    /// The list.
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
