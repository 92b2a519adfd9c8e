//! Finds the unique match of a FIND in a file, and applies its REPLACE.
//!
//! A match is exact, in one of three tiers:
//!
//! 1. Whole lines, byte for byte. The end of the file also ends a line.
//! 2. Whole lines, if the file has CRLF and FIND has LF.
//! 3. Inside a line, without the final line end of FIND and REPLACE.
//!
//! The first tier with a match decides. More than one match in it is an error, even if they
//! overlap. There is no fuzzy matching. Validation and execution share this matcher. For a FIND
//! without a match, [`explain`](explain()) tells the model what to correct.
//!
//! Only the matched bytes change. REPLACE is literal. No edit adds or removes the line end at the
//! end of the file.

mod closest;
mod clue;
mod explain;

use memchr::memchr_iter;
use memchr::memmem::Finder;

pub use explain::{Explanation, FailedPair, MAX_OTHER, explain, explain_shortly};

// Approximate limit, because a match at the start or end of the file is counted separately. A FIND
// with more matches is equally ambiguous.
const MAX_HITS: usize = 1000;

/// The rule that found a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// Whole lines, byte for byte.
    Lines,
    /// Whole lines, with CRLF in the file and LF in FIND.
    LineEnds,
    /// Inside a line, without the final line end.
    Inline,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchPlace {
    /// The rule that found it.
    pub tier: Tier,
    /// Line number at the time of the search, from 1.
    pub line: usize,
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
}

/// Why a pair of FIND and REPLACE does not apply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MatchError {
    #[error("the FIND is blank")]
    Blank,
    #[error("FIND and REPLACE are equal")]
    Same,
    #[error("the FIND is not in the file")]
    Absent,
    #[error("FIND occurs in {} places", places.len())]
    Ambiguous {
        /// The matches, up to a limit.
        places: Vec<MatchPlace>,
    },
}

/// Applies one pair. Returns the new text, and the match in the old text.
///
/// An empty REPLACE deletes the lines. Unless FIND or REPLACE contains a CR, new lines get the line
/// ends of the file at that place.
pub fn apply(text: &str, find: &str, replace: &str) -> Result<(String, MatchPlace), MatchError> {
    if core(find) == core(replace) && !find.trim().is_empty() {
        return Err(MatchError::Same);
    }
    let matched = find_match(text, find)?;
    Ok((splice_match(text, find, replace, matched), matched))
}

fn core(text: &str) -> &str {
    text.strip_suffix('\n').unwrap_or(text)
}

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

    // With the line feeds around FIND, a match inside a line costs no extra check.
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
fn max_hits(length: usize) -> usize {
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

fn splice_match(text: &str, find: &str, replace: &str, matched: MatchPlace) -> String {
    let (before, after) = (&text[..matched.start], &text[matched.end..]);
    let hit = &text[matched.start..matched.end];
    let ended = matched.tier != Tier::Inline && hit.ends_with('\n');
    if replace.is_empty() && matched.tier != Tier::Inline && !ended {
        return without_line_end(before).to_owned();
    }

    // A pair with a CR is meant byte for byte.
    let literal = find.contains('\r') || replace.contains('\r');
    let new = match literal {
        // The file has no final line end, so its CR is dropped as well.
        true if !ended && !hit.ends_with('\r') && matched.tier != Tier::Inline => {
            core(replace).trim_end_matches('\r').to_owned()
        }
        true => core(replace).to_owned(),
        false => with_ends(text, (find, replace), matched),
    };

    let end = match ended && !replace.is_empty() {
        true if !literal && hit.ends_with("\r\n") => "\r\n",
        true => "\n",
        false => "",
    };
    [before, &new, end, after].concat()
}

// For a deletion of the last lines of a text without a final line end.
fn without_line_end(text: &str) -> &str {
    text.strip_suffix('\n')
        .map_or(text, |t| t.strip_suffix('\r').unwrap_or(t))
}

/// Returns REPLACE with the line ends of the file. Lines that REPLACE shares with the start or end
/// of FIND keep theirs; the others get the most frequent one.
fn with_ends(text: &str, pair: (&str, &str), matched: MatchPlace) -> String {
    let hit = &text[matched.start..matched.end];
    let new: Vec<&str> = core(pair.1).split('\n').collect();
    let crlf_inside = hit.contains("\r\n");
    if new.len() == 1
        || !(crlf_inside || (!hit.contains('\n') && end_nearby(text, matched) == "\r\n"))
    {
        return core(pair.1).to_owned();
    }

    let old: Vec<&str> = core(pair.0).split('\n').collect();
    let ends: Vec<&str> = hit.split_inclusive('\n').map(line_end_of).collect();
    let common = common_prefix(old.iter(), new.iter());
    let max_tail = old.len().min(new.len()) - common;
    let tail = common_prefix(
        old.iter().rev().take(max_tail),
        new.iter().rev().take(max_tail),
    );
    let usual = if crlf_inside {
        most_frequent(&ends)
    } else {
        "\r\n"
    };

    let mut out = String::with_capacity(pair.1.len() + new.len());
    for (at, line) in new.iter().enumerate() {
        let old_line = if at < common {
            Some(at)
        } else {
            (at + tail >= new.len()).then(|| at + old.len() - new.len())
        };

        out.push_str(line);
        if at + 1 < new.len() {
            out.push_str(
                old_line
                    .and_then(|t| ends.get(t))
                    .copied()
                    .filter(|end| !end.is_empty())
                    .unwrap_or(usual),
            );
        }
    }

    out
}

fn common_prefix<'a>(
    a: impl Iterator<Item = &'a &'a str>,
    b: impl Iterator<Item = &'a &'a str>,
) -> usize {
    a.zip(b).take_while(|(x, y)| x == y).count()
}

fn line_end_of(line: &str) -> &'static str {
    if line.ends_with("\r\n") {
        "\r\n"
    } else if line.ends_with('\n') {
        "\n"
    } else {
        ""
    }
}

// CRLF on a tie.
fn most_frequent(ends: &[&'static str]) -> &'static str {
    let count = |end: &str| ends.iter().filter(|&&e| e == end).count();
    if count("\r\n") >= count("\n") {
        "\r\n"
    } else {
        "\n"
    }
}

/// Returns the line end of the line in which the match ends, or that of the line above if it has
/// none.
fn end_nearby(text: &str, matched: MatchPlace) -> &'static str {
    let at = text[matched.end..]
        .find('\n')
        .map(|n| matched.end + n)
        .or_else(|| text[..matched.start].rfind('\n'));
    match at {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

#[cfg(test)]
mod cases;

#[cfg(test)]
mod explain_tests;

#[cfg(test)]
mod tests;
