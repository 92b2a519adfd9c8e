//! Searches for a FIND in linear time. Matches can overlap.

use memchr::memchr_iter;
use memchr::memmem::Finder;

use super::{MAX_HITS, MatchError, MatchPlace, Tier, core};

// Limits the bytes that are compared in all matches of a long FIND.
const MAX_SEARCHED: usize = 64 << 20;
// The byte order mark of some editors.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Returns the unique match of a FIND. Fails with [`MatchError::Blank`], [`MatchError::Absent`] or
/// [`MatchError::Ambiguous`].
pub fn find_match(text: &str, find: &str) -> Result<MatchPlace, MatchError> {
    if find.trim().is_empty() {
        return Err(MatchError::Blank);
    }

    let lines = whole_line_matches(text, find);
    if !lines.is_empty() {
        return single_match(text, Tier::Lines, lines);
    }

    // A FIND with a CR is meant byte for byte.
    let tolerant = if find.contains('\r') {
        None
    } else {
        UnixText::of(text)
    };

    if let Some(unix) = &tolerant {
        let hits = whole_line_matches(&unix.text, find);
        if !hits.is_empty() {
            return single_match(text, Tier::LineEnds, unix.back(hits));
        }
    }

    let hits = match &tolerant {
        Some(unix) => unix.back(inline_matches(&unix.text, find)),
        None => inline_matches(text, find),
    };
    single_match(text, Tier::Inline, hits)
}

fn single_match(
    text: &str,
    tier: Tier,
    hits: Vec<(usize, usize)>,
) -> Result<MatchPlace, MatchError> {
    let mut places: Vec<MatchPlace> = Vec::with_capacity(hits.len());
    let (mut line, mut counted) = (1, 0);
    for (start, end) in hits {
        line += memchr_iter(b'\n', &text.as_bytes()[counted..start]).count();
        counted = start;
        places.push(MatchPlace {
            tier,
            line,
            start,
            end,
        });
    }

    match places.as_slice() {
        [] => Err(MatchError::Absent),
        [matched] => Ok(*matched),
        _ => Err(MatchError::Ambiguous { places }),
    }
}

/// Returns the matches as whole lines, including the last line end.
///
/// The needle includes the line feeds around FIND, so that a match inside a line costs no extra
/// check.
fn whole_line_matches(text: &str, find: &str) -> Vec<(usize, usize)> {
    let core = core(find);
    // A byte order mark is not part of the first line.
    let first = if text.starts_with(BYTE_ORDER_MARK) && !core.starts_with(BYTE_ORDER_MARK) {
        BYTE_ORDER_MARK.len()
    } else {
        0
    };

    let head = &text[first..];
    let mut hits = Vec::new();
    if head.starts_with(core) && head[core.len()..].starts_with('\n') {
        hits.push((first, first + core.len() + 1));
    }

    let needle = format!("\n{core}\n");
    hits.extend(occurrences(text, &needle).map(|at| (at + 1, at + needle.len())));
    hits.extend(last_line_match(text, find, first));
    hits
}

/// Matches FIND as the last lines of a text without a final line end.
fn last_line_match(text: &str, find: &str, first: usize) -> Option<(usize, usize)> {
    let core = core(find);
    let start = text
        .strip_suffix(core)
        .or_else(|| text.strip_suffix(core.strip_suffix('\r')?))?
        .len();
    let is_line_start = start == first || text[..start].ends_with('\n');
    (is_line_start && !text.ends_with('\n')).then_some((start, text.len()))
}

/// Returns the matches inside lines. A FIND with a blank line at an edge only matches whole lines,
/// which were searched before.
fn inline_matches(text: &str, find: &str) -> Vec<(usize, usize)> {
    let core = core(find);
    if core.starts_with(['\n', '\r']) || core.ends_with(['\n', '\r']) {
        return Vec::new();
    }
    occurrences(text, core)
        .map(|at| (at, at + core.len()))
        .collect()
}

/// Finds overlapping occurrences, at most [`max_hits`].
fn occurrences<'a>(text: &'a str, needle: &'a str) -> impl Iterator<Item = usize> + 'a {
    let finder = Finder::new(needle.as_bytes()).into_owned();
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = from + finder.find(text.as_bytes().get(from..)?)?;
        from = at + 1;
        Some(at)
    })
    .take(max_hits(needle.len()))
}

// Lower for a long needle, because each match costs time in proportion to its length.
pub(super) fn max_hits(length: usize) -> usize {
    (MAX_SEARCHED / length.max(1)).clamp(2, MAX_HITS)
}

/// A text with its CRLF converted to LF.
struct UnixText {
    text: String,
    /// Offsets in `text` of the line feeds that followed a removed CR, ascending.
    missing: Vec<usize>,
}

impl UnixText {
    /// `None` if the text has no CRLF.
    fn of(text: &str) -> Option<UnixText> {
        let mut unix = UnixText {
            text: String::new(),
            missing: Vec::new(),
        };
        let mut copied = 0;
        for at in Finder::new("\r\n").find_iter(text.as_bytes()) {
            unix.text.push_str(&text[copied..at]);
            unix.missing.push(unix.text.len());
            copied = at + 1;
        }

        unix.text.push_str(&text[copied..]);
        (copied > 0).then_some(unix)
    }

    /// Converts ranges to those of the original text.
    fn back(&self, hits: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
        let original = |at: usize| at + self.missing.partition_point(|&m| m < at);
        hits.into_iter()
            .map(|(start, end)| (original(start), original(end)))
            .collect()
    }
}
