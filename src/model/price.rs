//! Computes costs from configured prices.
//!
//! There is no built-in price list, since it would soon be wrong. Without a configured price the
//! cost is unknown.

use super::TokenUsage;
use crate::config::settings::Price;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// No price is configured, or the model doesn't report usage.
    All,
    /// No price for tokens read from the cache.
    CacheRead,
    /// No price for tokens written to the cache.
    CacheWrite,
}

impl Unknown {
    /// `None` if it isn't a single setting.
    pub fn setting(self) -> Option<&'static str> {
        match self {
            Unknown::All => None,
            Unknown::CacheRead => Some("cache_read"),
            Unknown::CacheWrite => Some("cache_write"),
        }
    }
}

/// US dollars.
pub fn cost(price: Option<&Price>, usage: TokenUsage) -> Result<f64, Unknown> {
    let price = price.filter(|_| usage.is_known()).ok_or(Unknown::All)?;
    let of = |tokens: u64, price: Option<f64>, missing| {
        if tokens == 0 {
            Ok(0.0)
        } else {
            price.ok_or(missing)
        }
    };

    let read = of(usage.cached, price.cache_read, Unknown::CacheRead)?;
    let written = of(usage.cache_written, price.cache_write, Unknown::CacheWrite)?;
    Ok(sum(price, usage, read, written))
}

/// For the cost limit. Charges cached tokens without a price as plain input, so that the limit
/// still applies.
pub fn charge(price: Option<&Price>, usage: TokenUsage) -> f64 {
    price.map_or(0.0, |price| {
        sum(
            price,
            usage,
            price.cache_read.unwrap_or(price.input),
            price.cache_write.unwrap_or(price.input),
        )
    })
}

fn sum(price: &Price, usage: TokenUsage, read: f64, written: f64) -> f64 {
    // A server can report more cached than sent tokens.
    let cached = usage.cached.min(usage.input);
    let cache_written = usage.cache_written.min(usage.input - cached);
    let plain = usage.input - cached - cache_written;
    let dollars = plain as f64 * price.input
        + cached as f64 * read
        + cache_written as f64 * written
        + usage.output as f64 * price.output;

    dollars / 1e6
}

/// Bounds of a call's cost before it is made: without any answer, and with one of `max_output`
/// tokens.
pub fn estimate(price: Option<&Price>, input_tokens: usize, max_output: u32) -> Option<(f64, f64)> {
    let price = price?;
    let of = |output| {
        charge(
            Some(price),
            TokenUsage {
                input: input_tokens.max(1) as u64,
                output,
                ..TokenUsage::default()
            },
        )
    };
    Some((of(0), of(u64::from(max_output))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price {
        input: 3.0,
        output: 15.0,
        cache_read: Some(0.5),
        cache_write: Some(4.0),
    };
    const PLAIN: Price = Price {
        cache_read: None,
        cache_write: None,
        ..PRICE
    };
    const MILLION: u64 = 1_000_000;

    /// The tokens are input, output, cached and written to the cache.
    fn check(
        price: Option<&Price>,
        (input, output, cached, cache_written): (u64, u64, u64, u64),
        expected: (Result<f64, Unknown>, f64),
    ) {
        let usage = TokenUsage {
            input,
            output,
            cached,
            cache_written,
        };
        assert_eq!((cost(price, usage), charge(price, usage)), expected);
    }

    #[test]
    fn a_cost_adds_input_output_and_both_ways_of_the_cache() {
        check(Some(&PRICE), (MILLION, 100_000, 0, 0), (Ok(4.5), 4.5));
        check(Some(&PRICE), (MILLION, 0, MILLION, 0), (Ok(0.5), 0.5));
        check(
            Some(&PRICE),
            (3 * MILLION, 0, MILLION, MILLION),
            (Ok(7.5), 7.5),
        );
    }

    #[test]
    fn cached_tokens_without_a_price_of_their_own_are_unknown_and_count_as_input() {
        check(
            Some(&PLAIN),
            (MILLION, 0, 500_000, 0),
            (Err(Unknown::CacheRead), 3.0),
        );
        check(
            Some(&PLAIN),
            (MILLION, 0, 0, 500_000),
            (Err(Unknown::CacheWrite), 3.0),
        );
        check(Some(&PLAIN), (MILLION, 0, 0, 0), (Ok(3.0), 3.0));
    }

    #[test]
    fn an_unknown_price_or_usage_is_not_guessed() {
        check(None, (10, 10, 0, 0), (Err(Unknown::All), 0.0));
        check(Some(&PRICE), (0, 0, 0, 0), (Err(Unknown::All), 0.0));
    }

    #[test]
    fn more_from_the_cache_than_was_sent_is_a_servers_mistake_and_no_gain() {
        check(
            Some(&PRICE),
            (MILLION, 0, u64::MAX, u64::MAX),
            (Ok(0.5), 0.5),
        );
    }

    #[test]
    fn an_estimate_goes_from_no_answer_to_the_longest() {
        assert_eq!(
            estimate(Some(&PRICE), 1_000_000, 1_000_000),
            Some((3.0, 18.0))
        );
        assert_eq!(estimate(None, 10, 10), None);
    }
}
