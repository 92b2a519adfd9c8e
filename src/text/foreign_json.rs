//! Parses JSON of programs written in JavaScript.
//!
//! A text that is cut within an emoji ends in half of a surrogate pair there. `JSON.stringify` writes
//! it as an escape such as `\ud83d`, which serde_json refuses.

use serde_json::Value;

/// Half a surrogate pair becomes U+FFFD.
pub fn parse(json: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(json).or_else(|error| match replace_halves(json) {
        Some(whole) => serde_json::from_slice(&whole),
        None => Err(error),
    })
}

/// `None` if there are none.
fn replace_halves(json: &[u8]) -> Option<Vec<u8>> {
    let (mut whole, mut at, mut is_replaced) = (Vec::with_capacity(json.len()), 0, false);
    while let Some(rest) = json.get(at..).filter(|rest| !rest.is_empty()) {
        let length = match (unit(rest), rest.get(6..).and_then(unit)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => 12,
            (Some(0xd800..0xe000), _) => {
                whole.extend_from_slice(br"\ufffd");
                at += 6;
                is_replaced = true;
                continue;
            }
            // `\\u` is a backslash and a letter.
            _ if rest[0] == b'\\' => rest.len().min(2),
            _ => 1,
        };
        whole.extend_from_slice(&rest[..length]);
        at += length;
    }
    is_replaced.then_some(whole)
}

/// Value of an escape such as `\u00e9` at the beginning.
fn unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(br"\u")?.get(..4)?;
    let digits = std::str::from_utf8(digits).ok()?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_surrogate_pair_is_replaced() {
        let check = |json: &str, expected: &str| {
            assert_eq!(parse(json.as_bytes()).unwrap(), expected, "{json}");
        };
        check(r#""a \ud83d""#, "a \u{fffd}");
        check(r#""\ude00 ok""#, "\u{fffd} ok");
        check(r#""\ud83d\ud83d\ude00\uD83Dx""#, "\u{fffd}😀\u{fffd}x");
        check(r#""\ud83d\\ude00""#, "\u{fffd}\\ude00");
        check(r#""\\ud83d \ud83d""#, "\\ud83d \u{fffd}");
        check(r#""\u00e9\ud83d\n""#, "é\u{fffd}\n");
        for wrong in [
            r#""\ud83d"#,
            r#"{"a":"\ud83d",}"#,
            r#""\u+123""#,
            "\"\\",
            "",
        ] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
