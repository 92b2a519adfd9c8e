//! What the models of a change took.

use serde::{Deserialize, Serialize};

/// What all calls of a change took.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangeUsage {
    /// How many answers there were.
    #[serde(default)]
    pub calls: u64,
    /// Tokens read.
    #[serde(default)]
    pub tokens_in: u64,
    /// Tokens written.
    #[serde(default)]
    pub tokens_out: u64,
    /// Dollars; calls without a known price count as nothing.
    #[serde(default)]
    pub cost: f64,
    /// What a newer version keeps here.
    #[serde(flatten)]
    pub rest: serde_yaml::Mapping,
}

/// What one step took.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StepUsage {
    /// The model that was asked, by its name in the configuration.
    pub model: String,
    /// How many answers it took until one was a document.
    #[serde(default)]
    pub calls: u64,
    /// Tokens read.
    #[serde(default)]
    pub tokens_in: u64,
    /// Tokens written.
    #[serde(default)]
    pub tokens_out: u64,
    /// Dollars; nothing where no price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Dollars besides that only the limit counts: of calls whose price is known in part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<f64>,
}

impl ChangeUsage {
    /// Adds what a step took.
    pub fn add(&mut self, taken: &StepUsage) {
        self.calls = self.calls.saturating_add(taken.calls);
        self.tokens_in = self.tokens_in.saturating_add(taken.tokens_in);
        self.tokens_out = self.tokens_out.saturating_add(taken.tokens_out);
        self.cost += taken.cost.unwrap_or_default();
    }
}
