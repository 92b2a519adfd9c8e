//! Parses numbers on the command line, with errors that state the expected form.

use std::str::FromStr;

/// Parses a number of turns, at least 1.
pub(super) fn turns<N: FromStr + PartialOrd + From<u8>>(text: &str) -> Result<N, String> {
    let number = text.parse().ok().filter(|number| *number >= N::from(1));
    number.ok_or_else(|| "write a number of turns, 1 or more".to_owned())
}

/// Parses a maximum.
pub(super) fn most(text: &str) -> Result<usize, String> {
    let number = text.parse().ok();
    number.ok_or_else(|| "write a number, such as `10`".to_owned())
}

/// Parses a number of turns, 0 or more.
pub(super) fn depth(text: &str) -> Result<u64, String> {
    let number = text.parse().ok();
    number.ok_or_else(|| "write a number of turns, 0 or more".to_owned())
}

pub(super) fn days(text: &str) -> Result<u32, String> {
    let number = text.parse().ok();
    number.ok_or_else(|| "write a number of days, 0 or more".to_owned())
}

pub(super) fn dollars(text: &str) -> Result<f64, String> {
    let amount = text.parse().ok();
    let amount = amount.filter(|amount: &f64| amount.is_finite() && *amount >= 0.0);
    amount.ok_or_else(|| "write an amount of dollars, 0 or more, such as `2.50`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_number_is_told_what_is_wanted() {
        let check = |result: Result<String, String>, expected: &str| {
            assert_eq!(result.unwrap_or_else(|wrong| wrong), expected);
        };
        let number = |text| turns::<u64>(text).map(|number| number.to_string());
        check(number("3"), "3");
        check(number("0"), "write a number of turns, 1 or more");
        check(number("x"), "write a number of turns, 1 or more");
        let amount = |text| dollars(text).map(|amount| amount.to_string());
        check(amount("0"), "0");
        for wrong in ["-1", "nan", "inf", "x"] {
            check(
                amount(wrong),
                "write an amount of dollars, 0 or more, such as `2.50`",
            );
        }
    }
}
