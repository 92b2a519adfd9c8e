//! Screen layout of the browser: tree and turn side by side, stacked, or one of them alone.

use ratatui::layout::Rect;

use super::browser::BrowseSide;

/// Minimum width to show tree and turn side by side.
const MIN_WIDTH_COLUMNS: u16 = 76;
/// Minimum height to stack them on a narrower screen.
const MIN_HEIGHT_ROWS: u16 = 14;
/// Minimum height to show a title.
const MIN_HEIGHT_TITLE: u16 = 9;
/// Minimum and maximum width of the tree next to a turn.
const TREE_WIDTH: (u16, u16) = (30, 64);

/// Areas of the screen. An area that does not fit is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BrowsePanes {
    /// One line at the top.
    pub title: Rect,
    /// The tree.
    pub tree: Rect,
    /// Column between tree and turn.
    pub divider: Rect,
    /// Names of the tabs.
    pub tabs: Rect,
    /// The selected turn.
    pub detail: Rect,
    /// The line above the keys.
    pub status: Rect,
    /// The last line.
    pub keys: Rect,
}

pub(super) fn split_panes(area: Rect, side: BrowseSide, is_zoomed: bool) -> BrowsePanes {
    let line = |y: u16| Rect::new(area.x, y, area.width, 1).intersection(area);
    let has_title = area.height >= MIN_HEIGHT_TITLE;
    let first = area.y + u16::from(has_title);
    let body = area.height.saturating_sub(2 + u16::from(has_title)).max(1);
    let body = Rect::new(area.x, first, area.width, body).intersection(area);

    let mut panes = BrowsePanes {
        title: if has_title {
            line(area.y)
        } else {
            Rect::default()
        },
        status: line(area.bottom().saturating_sub(2).max(area.y + 1)),
        keys: line(area.bottom().saturating_sub(1).max(area.y + 2)),
        ..BrowsePanes::default()
    };
    match (is_zoomed, side) {
        (false, _) if area.width >= MIN_WIDTH_COLUMNS => split_columns(&mut panes, body),
        (false, _) if body.height >= MIN_HEIGHT_ROWS => split_rows(&mut panes, body),
        (false, BrowseSide::Tree) => panes.tree = body,
        _ => split_detail(&mut panes, body),
    }
    panes
}

fn split_columns(panes: &mut BrowsePanes, body: Rect) {
    let width = (body.width * 2 / 5).clamp(TREE_WIDTH.0, TREE_WIDTH.1);
    panes.tree = Rect { width, ..body };
    panes.divider = Rect {
        x: body.x + width,
        width: 1,
        ..body
    };
    let detail_rect = Rect {
        x: body.x + width + 2,
        width: body.width - width - 2,
        ..body
    };
    split_detail(panes, detail_rect);
}

fn split_rows(panes: &mut BrowsePanes, body: Rect) {
    let height = body.height * 2 / 5;
    panes.tree = Rect { height, ..body };
    let lower = Rect {
        y: body.y + height,
        height: body.height - height,
        ..body
    };
    split_detail(panes, lower);
}

fn split_detail(panes: &mut BrowsePanes, area: Rect) {
    panes.tabs = Rect { height: 1, ..area }.intersection(area);
    panes.detail = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(size: (u16, u16), side: BrowseSide, expected: [(u16, u16); 2]) {
        let area = Rect::new(0, 0, size.0, size.1);
        let panes = split_panes(area, side, false);
        let sizes = [panes.tree, panes.detail].map(|pane| (pane.width, pane.height));
        assert_eq!(sizes, expected, "{size:?}");
        let all = [
            panes.title,
            panes.tree,
            panes.tabs,
            panes.detail,
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
