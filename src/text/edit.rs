//! Where a FIND occurs in a file: exact, unique, in three tiers; and the file with its REPLACE.
//!
//! 1. Whole lines, byte for byte; the end of the file ends a line as well.
//! 2. The same, where the file has CRLF and the plan LF.
//! 3. Inside a line, with the final line end of FIND and REPLACE left out.
//!
//! The first tier with a hit decides, and more than one hit in it is an error, overlapping ones
//! included. Nothing is fuzzy: validation and execution share this one matcher, and the effort for
//! a FIND that misses goes into [`explain`], the words for the model that has to correct it.
//! Only the bytes of the hit change, REPLACE is literal, and no edit changes whether the file ends
//! with a line end.

mod closest;
mod clue;
mod explain;
mod find;
mod splice;

pub use explain::{Explanation, FailedPair, MAX_OTHER, explain, explain_shortly};
pub use find::find;

/// The most hits that are counted, but for one at an edge; a FIND with more is as ambiguous as can
/// be.
const MAX_HITS: usize = 1000;

/// Which rule found the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// Whole lines, byte for byte.
    Lines,
    /// Whole lines; the file has CRLF where the plan has LF.
    LineEnds,
    /// Inside a line, without the final newline.
    Inline,
}

/// Where a FIND applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct MatchPlace {
    /// Which rule found it.
    pub tier: Tier,
    /// The line in the file at that moment, from 1.
    pub line: usize,
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

/// Why a FIND selects no place, or a pair is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MatchError {
    /// FIND has no character that could be found.
    #[error("the FIND is blank")]
    Blank,
    /// FIND and REPLACE are the same text.
    #[error("FIND and REPLACE are equal")]
    Same,
    /// It is nowhere.
    #[error("the FIND is not in the file")]
    Absent,
    /// It is in several places.
    #[error("FIND occurs in {} places", places.len())]
    Ambiguous {
        /// Every place, or as many as are counted.
        places: Vec<MatchPlace>,
    },
}

/// Returns the text with the one place of FIND replaced, and the place as it was before.
///
/// An empty REPLACE deletes the lines. Where neither FIND nor REPLACE has a CR, the new lines end
/// as the file's lines at that place do.
///
/// # Errors
/// Any [`MatchError`]; the text is not changed then.
pub fn apply(text: &str, find: &str, replace: &str) -> Result<(String, MatchPlace), MatchError> {
    if core(find) == core(replace) && !find.trim().is_empty() {
        return Err(MatchError::Same);
    }
    let place = find::find(text, find)?;
    Ok((splice::splice(text, find, replace, place), place))
}

/// Returns the text without its final line feed.
fn core(text: &str) -> &str {
    text.strip_suffix('\n').unwrap_or(text)
}

#[cfg(test)]
mod cases;
#[cfg(test)]
mod explain_tests;
#[cfg(test)]
mod tests;
