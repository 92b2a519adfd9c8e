//! The model of a turn and its usage.

use serde::{Deserialize, Serialize};

use crate::session::limited;

/// A model and its usage.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelUse {
    /// The requested model.
    pub asked: String,
    /// The model that answered, as it identifies itself.
    pub answered: String,
    /// Input tokens.
    #[serde(deserialize_with = "limited::tokens")]
    pub tokens_in: u64,
    /// Output tokens.
    #[serde(deserialize_with = "limited::tokens")]
    pub tokens_out: u64,
    /// Input tokens that were read from the provider's cache.
    #[serde(default, deserialize_with = "limited::tokens")]
    pub tokens_cached: u64,
    /// Input tokens that were written to the provider's cache.
    #[serde(
        default,
        skip_serializing_if = "is_zero",
        deserialize_with = "limited::tokens"
    )]
    pub tokens_cache_written: u64,
    /// Dollars. `None` if no price is known.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "limited::dollars"
    )]
    pub cost: Option<f64>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
