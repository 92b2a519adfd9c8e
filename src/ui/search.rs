//! Case-insensitive search in the rows of a screen.

use super::key::Key;
use super::style::{StyledLine, Tone};

/// A search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Search {
    /// The user is typing it.
    Open(String),
    /// Submitted; the user can go to further matches.
    Submitted(String),
}

/// Where to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchDirection {
    /// From the current row.
    Here,
    /// From the next row.
    Next,
    /// Backwards from the previous row.
    Previous,
}

impl Search {
    /// Returns an empty search prompt.
    pub fn begin() -> Search {
        Search::Open(String::new())
    }

    /// Handles a key at the prompt. Returns `None` if the user cancels.
    pub fn press(self, key: &Key) -> Option<Search> {
        let Search::Open(mut text) = self else {
            return Some(self);
        };
        match key {
            Key::Char(c) => text.push(*c),
            Key::Backspace => drop(text.pop()),
            Key::Enter => return (!text.is_empty()).then_some(Search::Submitted(text)),
            Key::Esc | Key::Ctrl('c') | Key::Terminate => return None,
            _ => {}
        }

        Some(Search::Open(text))
    }

    /// Returns the searched text.
    pub fn text(&self) -> &str {
        match self {
            Search::Open(text) | Search::Submitted(text) => text,
        }
    }

    /// Returns the prompt, while the user is typing.
    pub fn prompt(&self) -> Option<StyledLine> {
        let Search::Open(text) = self else {
            return None;
        };
        Some(StyledLine::of(Tone::Accent, &format!("/{text}█")))
    }

    /// Returns the next row that contains the text, wrapping around. `row` returns the text of a
    /// row.
    pub fn find(
        &self,
        step: SearchDirection,
        here: usize,
        rows: usize,
        row: impl Fn(usize) -> String,
    ) -> Option<usize> {
        let query = self.text().to_lowercase();
        let has = |at: &usize| row(*at).to_lowercase().contains(&query);
        match step {
            SearchDirection::Here => (here..rows).chain(0..here).find(has),
            SearchDirection::Next => (here + 1..rows).chain(0..rows.min(here + 1)).find(has),
            SearchDirection::Previous => (0..here).rev().chain((here..rows).rev()).find(has),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, from: (SearchDirection, usize), expected: Option<usize>) {
        let rows = ["One", "two", "one more", "last"];
        let mut written = text.chars().map(Key::Char).chain([Key::Enter]);
        let search = written.try_fold(Search::begin(), |search, key| search.press(&key));
        assert_eq!(
            search.and_then(
                |search| search.find(from.0, from.1, rows.len(), |at| rows[at].to_owned())
            ),
            expected,
            "{text} {from:?}"
        );
    }

    #[test]
    fn a_search_goes_around_in_both_directions() {
        check("ONE", (SearchDirection::Here, 0), Some(0));
        check("one", (SearchDirection::Next, 0), Some(2));
        check("one", (SearchDirection::Next, 2), Some(0));
        check("one", (SearchDirection::Previous, 0), Some(2));
        check("two", (SearchDirection::Next, 1), Some(1));
        check("none", (SearchDirection::Here, 1), None);
        check("", (SearchDirection::Here, 1), None);
    }

    #[test]
    fn what_is_written_can_be_taken_back_and_given_up() {
        let search = Search::begin()
            .press(&Key::Char('a'))
            .and_then(|search| search.press(&Key::Backspace));
        assert_eq!(search, Some(Search::begin()));
        assert_eq!(search.and_then(|search| search.press(&Key::Esc)), None);
    }
}
