//! Where a FIND stands in a file: exact, unique, in three tiers.

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
pub struct Place {
    /// Which rule found it.
    pub tier: Tier,
    /// The line in the file at that moment, from 1.
    pub line: usize,
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}
