//! The environment: the only place that reads it.
#![allow(clippy::disallowed_methods, reason = "this is the one home of these calls")]

/// Returns a variable that is set, not empty, and UTF-8.
pub fn var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
