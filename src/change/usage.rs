//! Model usage of a change.

use serde::{Deserialize, Serialize};

/// Total usage of a change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangeUsage {
    /// Number of answers.
    #[serde(default)]
    pub calls: u64,
    /// Input tokens.
    #[serde(default)]
    pub tokens_in: u64,
    /// Output tokens.
    #[serde(default)]
    pub tokens_out: u64,
    /// Dollars. Calls without a known price count as zero.
    #[serde(default)]
    pub cost: f64,
    /// Unknown fields of later versions.
    #[serde(flatten)]
    pub rest: serde_yaml::Mapping,
}

/// Usage of one step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StepUsage {
    /// Name of the model in the configuration.
    pub model: String,
    /// Number of answers until one was valid.
    #[serde(default)]
    pub calls: u64,
    /// Input tokens.
    #[serde(default)]
    pub tokens_in: u64,
    /// Output tokens.
    #[serde(default)]
    pub tokens_out: u64,
    /// Dollars. `None` if no price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Additional dollars that count only against the limit, from calls whose price is partly
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<f64>,
}

impl ChangeUsage {
    /// Adds the usage of a step.
    pub fn add(&mut self, step: &StepUsage) {
        self.calls = self.calls.saturating_add(step.calls);
        self.tokens_in = self.tokens_in.saturating_add(step.tokens_in);
        self.tokens_out = self.tokens_out.saturating_add(step.tokens_out);
        self.cost += step.cost.unwrap_or_default();
    }
}
