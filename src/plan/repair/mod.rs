//! Repair: the best segmentation of a reply by the plan grammar.

/// How much had to be assumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Nothing: the text is as it came.
    Clean,
    /// Fences were made longer; the reading was never in doubt.
    Refenced,
    /// A slip was mended; shown in review and report.
    Repaired,
    /// Another reading is about as likely: the model is asked again.
    Doubtful,
    /// No reading fits: the model is asked again.
    Hopeless,
}

/// One thing that was mended or is in doubt.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Note {
    /// The line in the reply, from 1.
    pub line: usize,
    /// What, as a sentence without a full stop.
    pub message: String,
}

/// A reply after repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// The plan's text.
    pub text: String,
    /// How much had to be assumed.
    pub level: Level,
    /// What was done, by line.
    pub notes: Vec<Note>,
}
