//! The time.

use jiff::Zoned;

/// Returns the time now, with the local offset; `TEDDY_NOW` (RFC 3339) fixes it for tests.
pub fn now() -> Zoned {
    super::env::var("TEDDY_NOW").and_then(|text| fixed(&text)).unwrap_or_else(Zoned::now)
}

/// Reads an RFC 3339 time with its offset.
fn fixed(text: &str) -> Option<Zoned> {
    let timestamp: jiff::Timestamp = text.parse().ok()?;
    Some(timestamp.to_zoned(jiff::tz::TimeZone::UTC))
}
