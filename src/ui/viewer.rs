//! State of a text viewer on a full screen, without a terminal.

use super::key::Key;
use super::search::{Search, SearchDirection};
use super::style::{StyledLine, Tone, wrap_all};

/// A text with scroll position and search.
#[derive(Debug, Clone)]
pub struct Viewer {
    /// Title above the text.
    pub title: String,
    /// Unwrapped text, to wrap again after a resize.
    source: Vec<StyledLine>,
    /// Text wrapped to the width.
    pub lines: Vec<StyledLine>,
    /// Index of the first visible line.
    pub top: usize,
    width: usize,
    /// Number of visible lines.
    pub height: usize,
    search: Option<Search>,
    /// Whether the last search had no match.
    is_missing: bool,
}

/// Command that a key returns to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewerCommand {
    /// Close the text.
    Close,
    /// Show the keys.
    Help,
    /// Suspend the program.
    Suspend,
}

/// Returns keys and their descriptions as lines.
pub fn key_lines(keys: &[(&str, &str)]) -> Vec<StyledLine> {
    let line = |(keys, meaning): &(&str, &str)| {
        StyledLine::of(Tone::Accent, &format!("{keys:<16}")).with(Tone::Plain, meaning)
    };
    keys.iter().map(line).collect()
}

/// Returns the help of the viewer.
pub fn help() -> Viewer {
    Viewer::new("Keys", key_lines(&HELP))
}

const KEYS: &str = "j/k, space, PgUp/PgDn, g/G scroll · / search, n/N next · ? help · q back";
const HELP: [(&str, &str); 8] = [
    ("↑ ↓  k j, enter", "scroll by a line"),
    ("PgUp PgDn", "scroll by a page, as do b and space"),
    ("home end  g G", "to the start, to the end"),
    ("/", "search, upper and lower case alike"),
    ("n N", "to the next match, to the one before"),
    ("ctrl-z", "suspend; fg comes back here"),
    ("?", "this help"),
    ("q, esc", "back"),
];

impl Viewer {
    /// Returns a viewer at the start of a text.
    pub fn new(title: &str, source: Vec<StyledLine>) -> Viewer {
        Viewer {
            title: title.to_owned(),
            lines: source.clone(),
            source,
            top: 0,
            width: 0,
            height: 1,
            search: None,
            is_missing: false,
        }
    }

    /// Wraps the text for a screen size.
    #[must_use]
    pub fn fit(mut self, width: usize, height: usize) -> Viewer {
        if (width, height.max(1)) == (self.width, self.height) {
            return self;
        }

        // Keep the relative position: line numbers change when the text is wrapped again.
        let fraction = self.top as f64 / self.lines.len().max(1) as f64;
        self.lines = wrap_all(self.source.clone(), width);
        (self.width, self.height) = (width, height.max(1));
        self.top = (fraction * self.lines.len() as f64).round() as usize;
        self.scrolled(0)
    }

    /// Handles a key.
    pub fn press(mut self, key: &Key) -> (Viewer, Option<ViewerCommand>) {
        self.is_missing = false;
        if matches!(self.search, Some(Search::Open(_))) {
            return (self.searching(key), None);
        }

        let page = self.height.saturating_sub(1).max(1) as isize;
        let by = match key {
            Key::Char('q') | Key::Esc | Key::Ctrl('c' | 'd') | Key::Terminate => {
                return (self, Some(ViewerCommand::Close));
            }
            Key::Ctrl('z') => return (self, Some(ViewerCommand::Suspend)),
            Key::Char('?') => return (self, Some(ViewerCommand::Help)),
            Key::Char('/') => {
                self.search = Some(Search::begin());
                0
            }
            Key::Char('n') => return (self.find(SearchDirection::Next), None),
            Key::Char('N') => return (self.find(SearchDirection::Previous), None),
            Key::Char('j') | Key::Down | Key::Enter => 1,
            Key::Char('k') | Key::Up => -1,
            Key::Char(' ' | 'f') | Key::PageDown => page,
            Key::Char('b') | Key::PageUp => -page,
            Key::Char('g') | Key::Home => isize::MIN / 2,
            Key::Char('G') | Key::End => isize::MAX / 2,
            _ => 0,
        };
        (self.scrolled(by), None)
    }

    /// Returns the visible lines.
    pub fn visible_lines(&self) -> &[StyledLine] {
        let end = (self.top + self.height).min(self.lines.len());
        &self.lines[self.top.min(end)..end]
    }

    #[must_use]
    fn scrolled(mut self, by: isize) -> Viewer {
        let last = self.lines.len().saturating_sub(self.height);
        self.top = self.top.saturating_add_signed(by).min(last);
        self
    }

    #[must_use]
    fn searching(mut self, key: &Key) -> Viewer {
        self.search = self.search.and_then(|search| search.press(key));
        if matches!(self.search, Some(Search::Submitted(_))) {
            self.find(SearchDirection::Here)
        } else {
            self
        }
    }

    #[must_use]
    fn find(mut self, step: SearchDirection) -> Viewer {
        let Some(search) = &self.search else {
            return self;
        };
        match search.find(step, self.top, self.lines.len(), |at| self.lines[at].text()) {
            Some(at) => Viewer { top: at, ..self }.scrolled(0),
            None => {
                self.is_missing = true;
                self
            }
        }
    }
}

/// Returns the last line of the screen: the search, or position and keys.
pub fn footer(viewer: &Viewer) -> StyledLine {
    if let Some(prompt) = viewer.search.as_ref().and_then(Search::prompt) {
        return prompt;
    }

    if let Some(search) = viewer.search.as_ref().filter(|_| viewer.is_missing) {
        return StyledLine::of(
            Tone::Warning,
            &format!("`{}` is not in the text", search.text()),
        );
    }

    let end = (viewer.top + viewer.height).min(viewer.lines.len());
    StyledLine::of(Tone::Accent, &format!("{end}/{} ", viewer.lines.len())).with(Tone::Faint, KEYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Presses keys on ten lines, of which four are visible.
    fn check(keys: &str, expected: &str) {
        let lines = (0..10)
            .map(|n| StyledLine::plain(&format!("line {n}")))
            .collect();
        let mut viewer = Viewer::new("text", lines).fit(40, 4);
        for c in keys.chars() {
            let key = if c == '\n' { Key::Enter } else { Key::Char(c) };
            viewer = viewer.press(&key).0;
        }
        assert_eq!(viewer.visible_lines()[0].text(), expected, "after {keys:?}");
    }

    #[test]
    fn scrolling_stops_at_both_ends() {
        check("jjk", "line 1");
        check("kk", "line 0");
        check("G", "line 6");
        check("    ", "line 6");
        check("Ggj", "line 1");
    }

    #[test]
    fn a_search_finds_the_next_and_the_one_before() {
        check("/LINE 3\n", "line 3");
        check("/line\nnn", "line 2");
        check("/line\nnnN", "line 1");
        check("/nothing\n", "line 0");
    }

    #[test]
    fn what_is_found_nowhere_is_said_until_the_next_key() {
        let viewer = "/no\n".chars().fold(
            Viewer::new("text", vec![StyledLine::plain("line")]).fit(40, 4),
            |viewer, c| {
                viewer
                    .press(&if c == '\n' { Key::Enter } else { Key::Char(c) })
                    .0
            },
        );
        assert_eq!(footer(&viewer).text(), "`no` is not in the text");
        assert!(
            footer(&viewer.press(&Key::Down).0)
                .text()
                .starts_with("1/1 ")
        );
    }

    #[test]
    fn a_resize_wraps_anew_and_keeps_the_place() {
        let lines = (0..10)
            .map(|n| StyledLine::plain(&format!("{n}{}", "x".repeat(9))))
            .collect();
        let viewer = Viewer::new("text", lines).fit(10, 2);
        let viewer = (0..5)
            .fold(viewer, |viewer, _| viewer.press(&Key::Down).0)
            .fit(5, 2);
        assert_eq!(viewer.visible_lines()[0].text(), "5xxxx");
    }
}
