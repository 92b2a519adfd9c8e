//! Renders the rows of the tree as lines.

use super::browser::Browser;
use super::tree::{BrowseTree, TreeItem, TreeRow};
use crate::git::object::CommitId;
use crate::session::meta::Status;
use crate::text::counted;
use crate::ui::style::{StyledLine, Tone};
use crate::ui::turn_text::status_tone;
use crate::workflow::log::LogRow;
use crate::workflow::view::timeline::SessionLane;

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
            turn_line(start, row, (is_marked(row.commit), width))
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

fn turn_line(start: StyledLine, row: &LogRow, (is_marked, width): (bool, usize)) -> StyledLine {
    let mark = if is_marked { "*" } else { " " };
    let line = start
        .with(Tone::Warning, mark)
        .with(Tone::Strong, &format!("{:>4} ", row.number))
        .with(
            status_tone(row.status),
            &format!("{} ", status_sign(row.status)),
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
    let tone = match row.status {
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
