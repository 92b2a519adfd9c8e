//! A step in the history of a change: what happened, and what it took.

use serde::{Deserialize, Serialize};

use super::phase::ChangePhase;
use super::review::Issues;
use super::usage::StepUsage;
use super::verdict::ReviewVerdict;

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangeEntry {
    /// Which: `proposal`, `challenge`, `reproposal`, `edit`, `approve`, `implement`, `task`, `fix`,
    /// `review`, `archive`.
    pub step: String,
    /// When, RFC 3339.
    #[serde(default)]
    pub at: String,
    /// The phase after it.
    pub phase: ChangePhase,
    /// What it was about: the documents that it wrote, the task that it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// What a challenger or reviewer decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<ReviewVerdict>,
    /// The issues that came with the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issues: Option<IssueCounts>,
    /// Why the user overrode a verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The turn of the session that did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// What the model took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<StepUsage>,
    /// What a newer version keeps here.
    #[serde(flatten)]
    pub rest: serde_yaml::Mapping,
}

/// Issues as they are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueCounts {
    /// What must be mended.
    #[serde(default)]
    pub high: usize,
    /// What should be.
    #[serde(default)]
    pub medium: usize,
    /// What could be.
    #[serde(default)]
    pub low: usize,
}

impl ChangeEntry {
    /// Returns a step that is about to be taken.
    pub fn of(step: &str, now: &str) -> ChangeEntry {
        ChangeEntry {
            step: step.to_owned(),
            at: now.to_owned(),
            phase: ChangePhase::Proposed,
            about: None,
            verdict: None,
            issues: None,
            reason: None,
            turn: None,
            usage: None,
            rest: serde_yaml::Mapping::new(),
        }
    }
}

impl From<Issues> for IssueCounts {
    fn from(issues: Issues) -> IssueCounts {
        IssueCounts {
            high: issues.high,
            medium: issues.medium,
            low: issues.low,
        }
    }
}
