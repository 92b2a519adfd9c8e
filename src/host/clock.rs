//! The current time. `TEDDY_NOW`, an RFC 3339 time with offset, fixes it, so that a session can be
//! reproduced commit for commit.

use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use jiff::fmt::temporal::Pieces;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use super::env;
use super::file::read_regular;

// Real zone files are far smaller.
const MAX_ZONE: u64 = 1 << 20;

/// A longer time between two steps of a loop that polls means that this process was stopped.
const LEAST_PAUSE: Duration = Duration::from_secs(1);

/// Measures how long this process was stopped, as by ctrl-z. That time counts toward no limit.
#[derive(Debug)]
pub struct PauseClock {
    last: Instant,
}

impl PauseClock {
    pub fn start() -> PauseClock {
        PauseClock {
            last: Instant::now(),
        }
    }

    /// Returns how long the process was stopped since the last call. Call it many times a second.
    pub fn take(&mut self) -> Duration {
        self.take_at(Instant::now())
    }

    fn take_at(&mut self, now: Instant) -> Duration {
        let since = now.saturating_duration_since(self.last);
        self.last = now;
        match since > LEAST_PAUSE {
            true => since,
            false => Duration::ZERO,
        }
    }
}

/// Returns the current time in the user's zone, or `TEDDY_NOW` if that is valid.
pub fn now() -> Zoned {
    env::var("TEDDY_NOW")
        .and_then(|text| parse(&text))
        .unwrap_or_else(|| Timestamp::now().to_zoned(zone()))
}

fn zone() -> TimeZone {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();

    // `TimeZone::system` searches the whole zone database for the name of the local zone. That
    // takes longer than everything else here, and the name is not needed.
    let local = || match env::var("TZ") {
        Some(_) => None,
        None => {
            let rules = read_regular(Path::new("/etc/localtime"), MAX_ZONE).ok()?;
            TimeZone::tzif("Local", &rules).ok()
        }
    };
    ZONE.get_or_init(|| local().unwrap_or_else(TimeZone::system))
        .clone()
}

/// Returns `true` if `TEDDY_NOW` fixes the time, so that all measured durations are zero.
pub fn is_fixed() -> bool {
    env::var("TEDDY_NOW").is_some_and(|text| parse(&text).is_some())
}

/// Returns the time in the format of artifacts: RFC 3339 in UTC, to the millisecond.
pub fn stamp() -> String {
    now()
        .timestamp()
        .round(jiff::Unit::Millisecond)
        .unwrap_or_else(|_| now().timestamp())
        .to_string()
}

/// Formats a git timestamp (seconds since 1970) as RFC 3339 in UTC. `None` if it is out of range.
pub fn of_seconds(seconds: i64) -> Option<String> {
    let time = Timestamp::from_second(seconds).ok()?;
    Some(time.to_string())
}

/// Formats an RFC 3339 time with `strftime` in the user's time zone. `None` if `text` is not one.
pub fn in_zone(text: &str, format: &str) -> Option<String> {
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(
        time.to_zoned(now().time_zone().clone())
            .strftime(format)
            .to_string(),
    )
}

/// Says how long ago an RFC 3339 time is, within a week, and otherwise names its day. At most ten
/// columns. `None` if `text` is not a time.
pub fn age_or_day(text: &str) -> Option<String> {
    let time: Timestamp = text.parse().ok()?;
    let minutes = now().timestamp().duration_since(time).as_mins();
    let (hours, days) = (minutes / 60, minutes / (60 * 24));
    match (minutes, hours, days) {
        // Another machine's clock can be ahead.
        (..0, ..) => in_zone(text, "%Y-%m-%d"),
        (0, ..) => Some("just now".to_owned()),
        (_, 0, _) => Some(format!("{minutes} min ago")),
        (_, _, 0) => Some(format!("{hours} h ago")),
        (_, _, 1) => Some("yesterday".to_owned()),
        (_, _, ..7) => Some(format!("{days} days ago")),
        _ => in_zone(text, "%Y-%m-%d"),
    }
}

/// Parses an RFC 3339 time. Its offset becomes the time zone.
pub fn parse(text: &str) -> Option<Zoned> {
    let instant: Timestamp = text.trim().parse().ok()?;
    let offset = Pieces::parse(text.trim()).ok()?.to_numeric_offset()?;
    Some(instant.to_zoned(TimeZone::fixed(offset)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(
            parse(text).map(|t| t.to_string()).as_deref(),
            expected,
            "for {text:?}"
        );
    }

    #[test]
    fn a_long_gap_between_two_calls_is_a_pause() {
        let mut pauses = PauseClock::start();
        let start = pauses.last;
        let after = |millis| start + Duration::from_millis(millis);
        assert_eq!(pauses.take_at(after(900)), Duration::ZERO);
        assert_eq!(pauses.take_at(after(60_900)), Duration::from_secs(60));
        assert_eq!(pauses.take_at(after(61_000)), Duration::ZERO);
    }

    #[test]
    fn the_offset_is_kept() {
        check(
            "2026-01-24T10:00:00+01:00",
            Some("2026-01-24T10:00:00+01:00[+01:00]"),
        );
        check(
            "2026-01-24T10:00:00Z",
            Some("2026-01-24T10:00:00+00:00[UTC]"),
        );
    }

    #[test]
    fn promise_c3_a_time_that_no_calendar_has_is_unknown() {
        assert_eq!(of_seconds(0).as_deref(), Some("1970-01-01T00:00:00Z"));
        assert_eq!(of_seconds(i64::MAX), None);
    }

    #[test]
    fn a_time_without_offset_is_no_time() {
        check("2026-01-24T10:00:00", None);
        check("yesterday", None);
    }
}
