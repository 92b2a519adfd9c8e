//! Screen layout of the checklist: preview next to the list, below it, or absent.

use ratatui::layout::Rect;

/// Minimum width to show the preview next to the list.
const WIDE: u16 = 100;
/// Minimum height to show it below the list on a narrower screen.
const HIGH: u16 = 20;
const MAX_LIST: u16 = 80;
/// Lines for title, status and keys.
const FRAME: u16 = 3;

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
pub fn split(area: Rect, rows: usize) -> Panes {
    let body = area.height.saturating_sub(FRAME);
    let line = |y: u16| {
        Rect::new(
            area.x,
            y.min(area.bottom().saturating_sub(1)),
            area.width,
            1.min(area.height),
        )
    };

    let whole = Rect::new(area.x, area.y + 1, area.width, body).intersection(area);
    let (list, divider, side) = match () {
        () if area.width >= WIDE => beside(whole),
        () if area.height >= HIGH => below(whole, u16::try_from(rows).unwrap_or(u16::MAX)),
        () => (whole, None, None),
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

fn beside(body: Rect) -> (Rect, Option<Rect>, Option<Rect>) {
    let width = (body.width * 2 / 5).min(MAX_LIST);
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
fn below(body: Rect, rows: u16) -> (Rect, Option<Rect>, Option<Rect>) {
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
