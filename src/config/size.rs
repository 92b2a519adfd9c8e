//! Human-readable sizes: `10MiB`, `512k`, `4096`.

use std::fmt;
use std::str::FromStr;

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// An invalid size.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a valid size; write bytes or `512KiB`, `10MiB`, `1GiB`")]
pub struct SizeError(String);

/// Unit suffixes and their shift.
const SIZE_UNITS: [(&[&str], u32); 4] = [
    (&["gib", "gb", "g"], 30),
    (&["mib", "mb", "m"], 20),
    (&["kib", "kb", "k"], 10),
    (&["b", ""], 0),
];

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Size, SizeError> {
        let error = || SizeError(text.to_owned());
        let lower = text.trim().to_lowercase();
        let digits = lower.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = lower.split_at(digits);
        let number: u64 = number.parse().map_err(|_| error())?;
        let shift = SIZE_UNITS
            .iter()
            .find(|(names, _)| names.contains(&unit.trim()))
            .map(|&(_, shift)| shift)
            .ok_or_else(error)?;

        number.checked_mul(1 << shift).map(Size).ok_or_else(error)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = |shift: u32| self.0 > 0 && self.0.is_multiple_of(1 << shift);
        match self.0 {
            n if exact(30) => write!(f, "{} GiB", n >> 30),
            n if exact(20) => write!(f, "{} MiB", n >> 20),
            n if exact(10) => write!(f, "{} KiB", n >> 10),
            n => write!(f, "{n} bytes"),
        }
    }
}

impl<'de> serde::Deserialize<'de> for Size {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Size, D::Error> {
        let value = serde_yaml::Value::deserialize(deserializer)?;
        let text = match value {
            serde_yaml::Value::Number(number) => number.to_string(),
            serde_yaml::Value::String(text) => text,
            _ => String::new(),
        };
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let actual = text
            .parse::<Size>()
            .map_or_else(|e| e.to_string(), |s| s.to_string());
        assert_eq!(actual, expected);
    }

    #[test]
    fn sizes_are_read_with_and_without_units() {
        check("10MiB", "10 MiB");
        check("512k", "512 KiB");
        check("4097", "4097 bytes");
        check("1 gb", "1 GiB");
    }

    #[test]
    fn other_texts_are_refused() {
        check(
            "many",
            "`many` is not a valid size; write bytes or `512KiB`, `10MiB`, `1GiB`",
        );
        check(
            "99999999999999g",
            "`99999999999999g` is not a valid size; write bytes or `512KiB`, `10MiB`, `1GiB`",
        );
    }
}
