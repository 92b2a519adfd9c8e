//! Deserializers that restrict a setting to valid values.
//!
//! An error message names what is expected, as the second half of a sentence that starts with "must
//! be".

use std::collections::BTreeMap;

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};

/// Maximum timeout of a command in seconds. Plans have the same limit.
const MAX_TIMEOUT_SECONDS: u64 = 86_400;
/// Roles of the change workflow.
const ROLE_NAMES: [&str; 4] = ["author", "challenger", "implementer", "reviewer"];
/// Kinds of models.
pub const MODEL_KINDS: [&str; 7] = [
    "openai",
    "anthropic",
    "command",
    "replay",
    "manual",
    "acp",
    "agent",
];

pub(super) fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let amount = f64::deserialize(deserializer)?;
    if amount.is_finite() && amount >= 0.0 {
        return Ok(amount);
    }
    Err(D::Error::invalid_value(
        Unexpected::Float(amount),
        &"an amount that is not negative",
    ))
}

pub(super) fn some_amount<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    let amount = Option::<f64>::deserialize(deserializer)?;
    let wrong = amount.filter(|amount| !amount.is_finite() || *amount < 0.0);
    match wrong {
        None => Ok(amount),
        Some(wrong) => Err(D::Error::invalid_value(
            Unexpected::Float(wrong),
            &"an amount that is not negative",
        )),
    }
}

pub(super) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let seconds = u64::deserialize(deserializer)?;
    if (1..=MAX_TIMEOUT_SECONDS).contains(&seconds) {
        return Ok(seconds);
    }
    Err(D::Error::invalid_value(
        Unexpected::Unsigned(seconds),
        &"a number of seconds from 1 to 86400",
    ))
}

pub(super) fn turns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let turns = u32::deserialize(deserializer)?;
    if turns > 0 {
        return Ok(turns);
    }
    Err(D::Error::invalid_value(
        Unexpected::Unsigned(0),
        &"1 or more",
    ))
}

pub(super) fn parallel<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<usize>, D::Error> {
    let parallel = Option::<usize>::deserialize(deserializer)?;
    if parallel != Some(0) {
        return Ok(parallel);
    }
    Err(D::Error::invalid_value(
        Unexpected::Unsigned(0),
        &"1 or more",
    ))
}

pub(super) fn kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let kind = String::deserialize(deserializer)?;
    if MODEL_KINDS.contains(&kind.as_str()) {
        return Ok(kind);
    }
    Err(D::Error::unknown_variant(&kind, &MODEL_KINDS))
}

pub(super) fn address<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let address = Option::<String>::deserialize(deserializer)?;
    let is_one = |text: &String| {
        let text = text.trim().to_ascii_lowercase();
        let suffix = ["http://", "https://"]
            .iter()
            .find_map(|start| text.strip_prefix(start));
        suffix.is_some_and(|rest| !rest.is_empty())
    };
    match address {
        Some(wrong) if !is_one(&wrong) => Err(D::Error::invalid_value(
            Unexpected::Str(&wrong),
            &"an address that begins with `http://` or `https://`",
        )),
        address => Ok(address),
    }
}

pub(super) fn roles<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let roles = BTreeMap::<String, String>::deserialize(deserializer)?;
    match roles
        .keys()
        .find(|role| !ROLE_NAMES.contains(&role.as_str()))
    {
        None => Ok(roles),
        Some(unknown) => Err(D::Error::custom(format!(
            "there is no role `{unknown}`; the roles are `{}`",
            ROLE_NAMES.join("`, `")
        ))),
    }
}
