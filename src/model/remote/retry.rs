//! Delays between retries.

use std::time::Duration;

/// Longest delay, even if a server asks for more.
pub const MAX_RETRY_PAUSE: Duration = Duration::from_secs(60);

/// Maximum random extension of a delay that a server asked for, as a fraction of it.
const MAX_RETRY_JITTER: f64 = 0.25;

/// Delay before a retry: what the server asks for, slightly extended, else exponential backoff with
/// jitter. `chance`, from 0 to 1, spreads clients that were rejected at the same time.
pub fn retry_pause(
    first: Duration,
    repetition: u32,
    asked: Option<Duration>,
    jitter: f64,
) -> Duration {
    let pause = match asked {
        Some(asked) => asked
            .min(MAX_RETRY_PAUSE)
            .mul_f64(1.0 + MAX_RETRY_JITTER * jitter),
        None => first
            // A shift by 32 or more would overflow.
            .saturating_mul(1 << repetition.min(16))
            .min(MAX_RETRY_PAUSE)
            .mul_f64(0.5 + 0.5 * jitter),
    };
    pause.min(MAX_RETRY_PAUSE)
}

/// Parses a `Retry-After` header: seconds or a date. `now` turns a date into a delay.
pub fn parse_retry_after(value: &str, now: jiff::Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds.clamp(0.0, MAX_RETRY_PAUSE.as_secs_f64())).ok();
    }
    let date = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_pause_doubles_up_to_a_minute() {
        assert_eq!(
            [0, 1, 2, 9, 99].map(|n| retry_pause(SECOND, n, None, 1.0).as_secs()),
            [1, 2, 4, 60, 60]
        );
    }

    #[test]
    fn chance_spreads_the_second_half_of_a_pause() {
        assert_eq!(
            [0.0, 0.5, 1.0].map(|jitter| retry_pause(SECOND, 2, None, jitter).as_millis()),
            [2000, 3000, 4000]
        );
    }

    #[test]
    fn what_a_server_asks_for_is_never_cut_short() {
        assert_eq!(
            [0.0, 0.5, 1.0]
                .map(|jitter| retry_pause(SECOND, 0, Some(4 * SECOND), jitter).as_millis()),
            [4000, 4500, 5000]
        );
        assert_eq!(
            retry_pause(SECOND, 0, Some(Duration::ZERO), 1.0),
            Duration::ZERO
        );
    }

    #[test]
    fn a_server_may_ask_for_a_minute_at_most() {
        assert_eq!(
            [3, 86_400]
                .map(|seconds| retry_pause(SECOND, 0, Some(seconds * SECOND), 0.0).as_secs()),
            [3, 60]
        );
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = "2026-01-24T10:00:00Z".parse().unwrap();
        let check = |value: &str, expected: Option<u64>| {
            assert_eq!(
                parse_retry_after(value, now).map(|pause| pause.as_secs()),
                expected,
                "{value}"
            )
        };
        check("7", Some(7));
        check("99999999999999999999", Some(60));
        check("-5", Some(0));
        check("Sat, 24 Jan 2026 10:00:30 GMT", Some(30));
        check("Sat, 24 Jan 2026 09:00:00 GMT", Some(0));
        check("soon", None);
    }
}
