//! What an exchange costs, from the prices that the user configured.
//!
//! An unknown price stays unknown: there is no built-in table that would be wrong next month.

use super::Usage;
use crate::config::settings::Price;

/// Returns the cost in US dollars; `None` where the price or the usage is not known.
pub fn cost(price: Option<&Price>, usage: Usage) -> Option<f64> {
    let price = price.filter(|_| usage.is_known())?;
    let cached = usage.cached.min(usage.input);
    let dollars = (usage.input - cached) as f64 * price.input
        + cached as f64 * price.cached.unwrap_or(price.input)
        + usage.output as f64 * price.output;
    Some(dollars / 1e6)
}

/// Returns the cost of a call before it is made: at least the input, at most an answer of `max_output` tokens besides.
pub fn estimate(price: Option<&Price>, input_tokens: usize, max_output: u32) -> Option<(f64, f64)> {
    let usage = |output| Usage { input: input_tokens.max(1) as u64, output, cached: 0 };
    Some((cost(price, usage(0))?, cost(price, usage(u64::from(max_output)))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price { input: 3.0, output: 15.0, cached: Some(0.3) };

    fn check(price: Option<&Price>, (input, output, cached): (u64, u64, u64), expected: Option<f64>) {
        assert_eq!(cost(price, Usage { input, output, cached }), expected);
    }

    #[test]
    fn a_cost_adds_input_cached_input_and_output() {
        check(Some(&PRICE), (1_000_000, 100_000, 0), Some(4.5));
        check(Some(&PRICE), (1_000_000, 0, 1_000_000), Some(0.3));
    }

    #[test]
    fn cached_tokens_without_a_price_of_their_own_cost_as_input() {
        check(Some(&Price { cached: None, ..PRICE }), (1_000_000, 0, 500_000), Some(3.0));
    }

    #[test]
    fn an_unknown_price_or_usage_is_not_guessed() {
        check(None, (10, 10, 0), None);
        check(Some(&PRICE), (0, 0, 0), None);
    }

    #[test]
    fn an_estimate_goes_from_no_answer_to_the_longest() {
        assert_eq!(estimate(Some(&PRICE), 1_000_000, 1_000_000), Some((3.0, 18.0)));
        assert_eq!(estimate(None, 10, 10), None);
    }
}
