//! An entry in the history of a change.

use serde::{Deserialize, Serialize};

use super::phase::ChangePhase;
use super::review::Issues;
use super::usage::StepUsage;
use super::verdict::ReviewVerdict;

/// A completed step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangeEntry {
    /// Kind of step: `proposal`, `challenge`, `reproposal`, `edit`, `approve`, `implement`, `task`,
    /// `fix`, `review`, `archive`.
    pub step: String,
    /// Time of the step, in RFC 3339.
    #[serde(default)]
    pub at: String,
    /// The phase after it.
    pub phase: ChangePhase,
    /// The documents that it wrote, or the task that it completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The challenger's or reviewer's verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<ReviewVerdict>,
    /// The issues of the review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issues: Option<IssueCounts>,
    /// The user's reason for overriding a verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The session's turn that performed the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// Usage of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<StepUsage>,
    /// Unknown fields of later versions.
    #[serde(flatten)]
    pub rest: serde_yaml::Mapping,
}

/// The issues of a review, as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueCounts {
    /// Issues that must be fixed.
    #[serde(default)]
    pub high: usize,
    /// Issues that should be fixed.
    #[serde(default)]
    pub medium: usize,
    /// Optional improvements.
    #[serde(default)]
    pub low: usize,
}

impl ChangeEntry {
    /// Creates an entry. [`ChangeState::apply`](super::state::ChangeState::apply) sets its phase.
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
