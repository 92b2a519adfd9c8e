//! Which model a turn asked, and what that took.

use serde::{Deserialize, Serialize};

use crate::session::limited;

/// Which model, and what it took.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelUse {
    /// The one that was asked.
    pub asked: String,
    /// The one that answered, as it says itself.
    pub answered: String,
    /// Tokens read.
    #[serde(deserialize_with = "limited::tokens")]
    pub tokens_in: u64,
    /// Tokens written.
    #[serde(deserialize_with = "limited::tokens")]
    pub tokens_out: u64,
    /// Of those read, the ones that came from the provider's cache.
    #[serde(default, deserialize_with = "limited::tokens")]
    pub tokens_cached: u64,
    /// Of those read, the ones that the provider put into its cache.
    #[serde(
        default,
        skip_serializing_if = "is_zero",
        deserialize_with = "limited::tokens"
    )]
    pub tokens_cache_written: u64,
    /// Dollars; nothing where no price is known.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "limited::dollars"
    )]
    pub cost: Option<f64>,
}

/// Says whether there is nothing to write.
fn is_zero(number: &u64) -> bool {
    *number == 0
}
