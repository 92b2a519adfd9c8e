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
//! without a match, [`explain`] tells the model what to correct.
//!
//! Only the matched bytes change. REPLACE is literal. No edit adds or removes the line end at the
//! end of the file.

mod closest;
mod clue;
mod explain;
mod find;
mod splice;

pub use explain::{Explanation, FailedPair, MAX_OTHER, explain, explain_shortly};
pub use find::find_match;

// Approximate limit, because a match at the start or end of the file is counted separately. A FIND
// with more matches is equally ambiguous.
const MAX_HITS: usize = 1000;

/// The rule that found a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// Whole lines, byte for byte.
    Lines,
    /// Whole lines, with CRLF in the file and LF in FIND.
    LineEnds,
    /// Inside a line, without the final line end.
    Inline,
}

/// A match of a FIND.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
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
    /// FIND is empty or only whitespace.
    #[error("the FIND is blank")]
    Blank,
    /// FIND and REPLACE are equal.
    #[error("FIND and REPLACE are equal")]
    Same,
    /// There is no match.
    #[error("the FIND is not in the file")]
    Absent,
    /// There are several matches.
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
    let matched = find::find_match(text, find)?;
    Ok((splice::splice_match(text, find, replace, matched), matched))
}

fn core(text: &str) -> &str {
    text.strip_suffix('\n').unwrap_or(text)
}

#[cfg(test)]
mod cases;
#[cfg(test)]
mod explain_tests;
#[cfg(test)]
mod tests;
