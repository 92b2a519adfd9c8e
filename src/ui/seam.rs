//! A stand-in for `text::diff` until it is there; the names are the same.

/// What happens to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It stays.
    Kept,
    /// It goes.
    Removed,
    /// It comes.
    Added,
}

/// One line of a preview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What happens to it.
    pub change: Change,
    /// Its number in the old text, from 1.
    pub old: Option<usize>,
    /// Its number in the new text, from 1.
    pub new: Option<usize>,
    /// Its text in pieces, without the line feed; `true` marks what differs within the line.
    pub pieces: Vec<(bool, String)>,
    /// It is the last line and has no line end.
    pub unended: bool,
}

/// How many lines come and go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Counts {
    /// Lines that only the new text has.
    pub added: usize,
    /// Lines that only the old text has.
    pub removed: usize,
}

/// Returns how many lines come and go.
pub fn counts(old: &str, new: &str) -> Counts {
    let hunks = hunks(old, new);
    let count = |change| hunks.iter().flatten().filter(|line| line.change == change).count();
    Counts { added: count(Change::Added), removed: count(Change::Removed) }
}

/// Returns the hunks for a preview.
pub fn hunks(old: &str, new: &str) -> Vec<Vec<Line>> {
    let diff = similar::TextDiff::from_lines(old, new);
    let line = |c: similar::Change<&str>| Line {
        change: match c.tag() {
            similar::ChangeTag::Equal => Change::Kept,
            similar::ChangeTag::Delete => Change::Removed,
            similar::ChangeTag::Insert => Change::Added,
        },
        old: c.old_index().map(|n| n + 1),
        new: c.new_index().map(|n| n + 1),
        pieces: vec![(false, c.value().trim_end_matches('\n').to_owned())],
        unended: !c.value().ends_with('\n'),
    };
    diff.grouped_ops(3)
        .iter()
        .map(|group| group.iter().flat_map(|op| diff.iter_changes(op).map(line).collect::<Vec<_>>()).collect())
        .collect()
}
