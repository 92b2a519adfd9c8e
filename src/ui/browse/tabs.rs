//! Renders the tabs of a turn for a width.

use super::turn_view::{FileDiffView, TurnView};
use crate::text::counted;
use crate::ui::diff::counted as counted_lines;
use crate::ui::progress::grouped;
use crate::ui::style::{StyledLine, Tone, wrap_all};
use crate::ui::turn_header::message_label;
use crate::workflow::view::turn_page::PathChange;

/// Minimum width to show the request next to the answer.
const MIN_WIDTH_COLUMNS: usize = 76;
const MAX_BAR_WIDTH: usize = 24;
/// Up to this many files are unfolded at first.
const MAX_OPEN_FILES: usize = 3;

/// A part of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BrowseTab {
    /// The request and the answer.
    #[default]
    Conversation,
    /// Changed files.
    Difference,
    /// Output of commands, and the report.
    Outputs,
    /// Input of the model.
    Input,
    /// Metadata.
    Meta,
}

/// A line of a tab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TabLine {
    /// The text.
    pub line: StyledLine,
    /// Index of the file that the line belongs to, in the diff tab.
    pub file: Option<usize>,
    /// Whether it is the header of that file.
    pub is_head: bool,
}

impl BrowseTab {
    /// All tabs, from left to right.
    pub const ALL: [BrowseTab; 5] = [
        BrowseTab::Conversation,
        BrowseTab::Difference,
        BrowseTab::Outputs,
        BrowseTab::Input,
        BrowseTab::Meta,
    ];

    /// Returns the displayed name.
    pub fn name(self) -> &'static str {
        match self {
            BrowseTab::Conversation => "turn",
            BrowseTab::Difference => "diff",
            BrowseTab::Outputs => "outputs",
            BrowseTab::Input => "input",
            BrowseTab::Meta => "meta",
        }
    }

    /// Returns the tab `by` places to the right, wrapping around.
    #[must_use]
    pub fn neighbor(self, by: isize) -> BrowseTab {
        let count = BrowseTab::ALL.len() as isize;
        let at = (self as isize + by).rem_euclid(count);
        BrowseTab::ALL[at as usize]
    }
}

impl TabLine {
    /// Returns a line that belongs to no file.
    pub fn of(line: StyledLine) -> TabLine {
        TabLine {
            line,
            file: None,
            is_head: false,
        }
    }
}

/// Returns the lines of a tab, wrapped to `width`. `is_toggled` returns whether the user folded or
/// unfolded a file.
pub fn tab_lines(
    turn_view: &TurnView,
    tab: BrowseTab,
    width: usize,
    is_toggled: &dyn Fn(usize) -> bool,
) -> Vec<TabLine> {
    let lines = match tab {
        BrowseTab::Conversation => conversation_lines(turn_view, width),
        BrowseTab::Difference => return difference_lines(turn_view, width, is_toggled),
        BrowseTab::Outputs => or_placeholder(
            &turn_view.outputs,
            "no command printed anything, and there is no report",
        ),
        BrowseTab::Input => input_lines(turn_view, width),
        BrowseTab::Meta => turn_view.meta.clone(),
    };
    let mut all = error_lines(turn_view);
    all.extend(lines);
    let lines = wrap_all(all, width).into_iter();
    lines.map(TabLine::of).collect()
}

/// Returns whether the files of a turn are unfolded at first.
pub fn are_files_open(turn_view: &TurnView) -> bool {
    turn_view.files.len() <= MAX_OPEN_FILES
}

fn error_lines(turn_view: &TurnView) -> Vec<StyledLine> {
    let errors = turn_view.errors.iter();
    errors
        .map(|why| StyledLine::of(Tone::Warning, &format!("! {why}")))
        .collect()
}

fn or_placeholder(lines: &[StyledLine], none: &str) -> Vec<StyledLine> {
    match lines {
        [] => vec![StyledLine::of(Tone::Faint, none)],
        lines => lines.to_vec(),
    }
}

fn conversation_lines(turn_view: &TurnView, width: usize) -> Vec<StyledLine> {
    let message = or_placeholder(&turn_view.message, "no request");
    let answer = or_placeholder(&turn_view.answer, "no answer");
    let names = [message_label(turn_view.origin), "Answer"];
    let [asked, answered] = names.map(|name| StyledLine::of(Tone::Strong, name));

    let head = turn_view.head.iter();
    let mut lines: Vec<StyledLine> = head.map(|line| line.clone().cut(width)).collect();
    lines.push(StyledLine::default());
    if width < MIN_WIDTH_COLUMNS {
        lines.push(asked);
        lines.extend(message);
        lines.extend([StyledLine::default(), answered]);
        lines.extend(answer);
        return lines;
    }

    let left = [asked].into_iter().chain(message).collect();
    let right = [answered].into_iter().chain(answer).collect();
    lines.extend(side_by_side(left, right, width));
    lines
}

fn side_by_side(left: Vec<StyledLine>, right: Vec<StyledLine>, width: usize) -> Vec<StyledLine> {
    let first = (width - 3) * 2 / 5;
    let left = wrap_all(left, first);
    let right = wrap_all(right, width - 3 - first);
    let count = left.len().max(right.len());
    let (mut left, mut right) = (left.into_iter(), right.into_iter());

    let row = |_| {
        let left = left.next().unwrap_or_default();
        let gap = first - left.width().min(first);
        left.blanks(gap)
            .with(Tone::Faint, " │ ")
            .append(right.next().unwrap_or_default())
    };
    (0..count).map(row).collect()
}

fn difference_lines(
    turn_view: &TurnView,
    width: usize,
    is_toggled: &dyn Fn(usize) -> bool,
) -> Vec<TabLine> {
    let mut lines: Vec<TabLine> = error_lines(turn_view)
        .into_iter()
        .map(TabLine::of)
        .collect();
    if turn_view.files.is_empty() {
        let none = StyledLine::of(Tone::Faint, "no file was changed");
        lines.push(TabLine::of(none));
    }

    for (at, file) in turn_view.files.iter().enumerate() {
        let is_open = is_toggled(at) != are_files_open(turn_view);
        lines.push(TabLine {
            line: file_heading(file, is_open).cut(width),
            file: Some(at),
            is_head: true,
        });
        if is_open {
            let file_line = |line| TabLine {
                line,
                file: Some(at),
                is_head: false,
            };
            lines.extend(
                wrap_all(file.lines.clone(), width)
                    .into_iter()
                    .map(file_line),
            );
        }
    }

    lines
}

fn file_heading(file: &FileDiffView, is_open: bool) -> StyledLine {
    let (sign, tone) = match file.change {
        PathChange::Added => ("A", Tone::Added),
        PathChange::Removed => ("D", Tone::Removed),
        PathChange::Modified => ("M", Tone::Warning),
    };
    StyledLine::of(Tone::Accent, if is_open { "▾ " } else { "▸ " })
        .with(tone, sign)
        .with(Tone::Strong, &format!(" {}  ", file.path))
        .append(counted_lines(file.counts))
}

fn input_lines(turn_view: &TurnView, width: usize) -> Vec<StyledLine> {
    if turn_view.input.is_empty() {
        return vec![StyledLine::of(Tone::Faint, "no input is recorded")];
    }

    let mut input: Vec<_> = turn_view.input.iter().collect();
    input.sort_by_key(|(_, tokens, _)| std::cmp::Reverse(*tokens));
    let all: u64 = input.iter().filter_map(|(_, tokens, _)| *tokens).sum();
    let most = input
        .first()
        .and_then(|(_, tokens, _)| *tokens)
        .unwrap_or(0);
    let bar = (width / 4).min(MAX_BAR_WIDTH);

    let title = format!(
        "{}, {} tokens",
        counted(input.len(), "resource"),
        grouped(all as usize)
    );
    let mut lines = vec![StyledLine::of(Tone::Strong, &title)];
    for (name, tokens, note) in input {
        let length = tokens.unwrap_or(0) * bar as u64 / most.max(1);
        // At least one block for a resource that has tokens.
        let length = (length as usize).max(usize::from(tokens.is_some_and(|tokens| tokens > 0)));
        let number = tokens.map_or("-".to_owned(), |tokens| grouped(tokens as usize));
        let line = StyledLine::plain(&format!("{number:>9} "))
            .with(Tone::Accent, &"█".repeat(length.min(bar)))
            .blanks(bar - length.min(bar) + 1)
            .with(Tone::Plain, name);
        let note = note
            .as_ref()
            .map_or(String::new(), |note| format!(" ({note})"));
        lines.push(line.with(Tone::Faint, &note));
    }

    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::style::block;

    fn text(turn_view: &TurnView, tab: BrowseTab, width: usize) -> Vec<String> {
        let lines = tab_lines(turn_view, tab, width, &|_| false).into_iter();
        lines
            .map(|line| line.line.text().trim_end().to_owned())
            .collect()
    }

    #[test]
    fn the_request_stands_beside_the_answer_where_there_is_room() {
        let turn_view = TurnView {
            head: vec![StyledLine::plain("turn demo:1")],
            message: block(Tone::Plain, "Greet everybody"),
            answer: block(Tone::Plain, "# Greet\nBy name"),
            ..TurnView::default()
        };
        assert_eq!(
            text(&turn_view, BrowseTab::Conversation, 79),
            [
                "turn demo:1",
                "",
                "Request                        │ Answer",
                "Greet everybody                │ # Greet",
                "                               │ By name",
            ]
        );
        assert_eq!(
            text(&turn_view, BrowseTab::Conversation, 40),
            [
                "turn demo:1",
                "",
                "Request",
                "Greet everybody",
                "",
                "Answer",
                "# Greet",
                "By name",
            ]
        );
    }

    #[test]
    fn tokens_are_bars() {
        let resource = |name: &str, tokens| (name.to_owned(), tokens, None);
        let turn_view = TurnView {
            input: vec![
                resource("a.rs", Some(10)),
                resource("b.rs", Some(4000)),
                ("c.png".to_owned(), None, Some("binary".to_owned())),
            ],
            ..TurnView::default()
        };
        assert_eq!(
            text(&turn_view, BrowseTab::Input, 40),
            [
                "3 resources, 4,010 tokens",
                "    4,000 ██████████ b.rs",
                "       10 █          a.rs",
                "        -            c.png (binary)",
            ]
        );
    }

    #[test]
    fn what_is_not_there_is_said_and_what_is_damaged_is_said_first() {
        let check = |tab, expected: &[&str]| {
            let turn_view = TurnView {
                errors: vec!["`plan.md`: gone".to_owned()],
                ..TurnView::default()
            };
            assert_eq!(text(&turn_view, tab, 40), expected);
        };
        check(
            BrowseTab::Difference,
            &["! `plan.md`: gone", "no file was changed"],
        );
        check(
            BrowseTab::Input,
            &["! `plan.md`: gone", "no input is recorded"],
        );
        check(BrowseTab::Meta, &["! `plan.md`: gone"]);
    }

    #[test]
    fn tabs_go_around() {
        assert_eq!(BrowseTab::Conversation.neighbor(-1), BrowseTab::Meta);
        assert_eq!(BrowseTab::Meta.neighbor(1), BrowseTab::Conversation);
        assert_eq!(BrowseTab::Conversation.neighbor(1), BrowseTab::Difference);
    }
}
