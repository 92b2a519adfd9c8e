//! Detects secrets in a text: keys by their format, and random values that are assigned to a name
//! such as `api_token`.
//!
//! The formats are those of [`super::key_shape`]. Avoids false positives for common content: hashes,
//! lock files, UUIDs, encoded images, minified code, examples and values made of words. Takes
//! linear time, and one pass if there is nothing to find.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::key_shape::key_shapes;

const ASSIGNED: &str = "value assigned to a secret's name";

// A shorter value can be a word.
const MIN_ASSIGNED: usize = 20;
// A longer value is rather an embedded file.
const MAX_ASSIGNED: usize = 512;

// A name that ends with a word for a secret, and its value: in quotes, or up to the end of the
// line. Unquoted code does not match, because it continues after a name.
static ASSIGNMENT: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = concat!(
        r"(?i-u)(?:secret|passw(?:or)?d|passphrase|token|credentials?|",
        r"(?:api|access|auth|secret|private|encryption|signing|account|master)[_-]?key)",
        r#"(?:[_-]?(?:base|value))?\\{0,7}["'`]?\s{0,8}(?::=|=>|=|:)\s{0,8}(?:bearer )?"#,
        // JSON in a string has a backslash before each quote.
        r#"(?:\\{1,7}["']([!-!#-&(-\[\]-~]{20,513})\\{1,7}["']|"([!-!#-~]{20,513})"|'([!-&(-~]{20,513})'|([A-Za-z0-9_+/=.~-]{20,513})[ \t]*(?:[\r\n]|\z))"#,
    );
    Regex::new(pattern).expect("the pattern is a constant that the tests compile")
});

static QUOTED_KEY: LazyLock<Regex> = LazyLock::new(|| {
    let pattern =
        r#"["']key\\{0,7}["']\s{0,8}:\s{0,8}\\{0,7}["']([A-Za-z0-9_+/=-]{24,128})\\{0,7}["']"#;
    Regex::new(pattern).expect("the pattern is a constant that the tests compile")
});

/// Returns the kind of the first secret in a text.
pub fn find_secret(text: &str) -> Option<&'static str> {
    let shaped = shaped(text).next().map(|(shape, _)| shape);
    shaped.or_else(|| assigned(text).next().map(|_| ASSIGNED))
}

/// Returns all secrets in a text, with their kinds.
pub(super) fn secret_ranges(text: &str) -> Vec<(&'static str, Range<usize>)> {
    let assigned = assigned(text).map(|range| (ASSIGNED, range));
    shaped(text).chain(assigned).collect()
}

fn shaped(text: &str) -> impl Iterator<Item = (&'static str, Range<usize>)> {
    let shapes = key_shapes(text).into_iter();
    shapes.filter(|(_, range)| !text[range.clone()].contains("EXAMPLE"))
}

fn assigned(text: &str) -> impl Iterator<Item = Range<usize>> {
    let assignments = ASSIGNMENT
        .captures_iter(text)
        .filter_map(|captures| captures.iter().skip(1).flatten().next())
        .filter(|value| is_random_value(value.as_str()));
    // `key` alone often names a hash, which has letters of one case.
    let keys = QUOTED_KEY
        .captures_iter(text)
        .filter_map(|captures| captures.get(1))
        .filter(|value| is_random_value(value.as_str()) && has_both_cases(value.as_str()));
    assignments.chain(keys).map(|value| value.range())
}

fn has_both_cases(value: &str) -> bool {
    value.bytes().any(|byte| byte.is_ascii_uppercase())
        && value.bytes().any(|byte| byte.is_ascii_lowercase())
}

fn is_random_value(value: &str) -> bool {
    if !(MIN_ASSIGNED..=MAX_ASSIGNED).contains(&value.len()) || is_uuid(value) || is_example(value)
    {
        return false;
    }

    let plain: Vec<u8> = value.bytes().filter(u8::is_ascii_alphanumeric).collect();
    let digits = plain.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = plain.len() - digits;
    if digits < 2 || letters < 2 || plain.len() * 5 < value.len() * 3 {
        return false;
    }

    // Values typed by hand are often sequences or repetitions.
    let is_step = |pair: &&[u8]| pair[1].wrapping_sub(pair[0]) <= 1;
    let steps = plain.windows(2).filter(is_step).count();

    // Words and numbers are runs of one class, even if each word starts with a capital. In random
    // values, every second or third character starts a new run. If all letters have the same case,
    // compare with the number of changes that the counts of digits and letters predict.
    let classes: Vec<CharClass> = plain.iter().map(|byte| CharClass::of(*byte)).collect();
    let is_change =
        |pair: &&[CharClass]| pair[0] != pair[1] && *pair != [CharClass::Upper, CharClass::Lower];
    let changes = classes.windows(2).filter(is_change).count();
    let is_mixed = classes.contains(&CharClass::Upper) && classes.contains(&CharClass::Lower);
    let as_expected = !is_mixed && digits >= 4 && 2 * changes * plain.len() >= 3 * digits * letters;

    steps * 3 < plain.len() && (changes * 10 >= plain.len() * 3 || as_expected)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Digit,
    Lower,
    Upper,
}

impl CharClass {
    fn of(byte: u8) -> CharClass {
        match byte {
            b'0'..=b'9' => CharClass::Digit,
            b'A'..=b'Z' => CharClass::Upper,
            _ => CharClass::Lower,
        }
    }
}

fn is_uuid(value: &str) -> bool {
    value.len() == 36
        && value.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn is_example(value: &str) -> bool {
    const WORDS: [&str; 15] = [
        "example",
        "sample",
        "dummy",
        "placeholder",
        "changeme",
        "fake",
        "test",
        "xxxx",
        "your",
        "://",
        "${",
        "{{",
        "<",
        "..",
        "%2",
    ];

    let value = value.to_ascii_lowercase();
    WORDS.iter().any(|word| value.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random characters. Keys are assembled here, so that scanners do not report this file.
    const RANDOM: &str = "a9Zk3Qx7Lm2Vt8Rb5Nw4Yc6Hd1Jf0Gs";

    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(find_secret(text), expected, "for {text}");
    }

    #[test]
    fn promise_b7_a_key_is_known_by_its_shape() {
        check(
            &format!("x = \"ghp_{RANDOM}{RANDOM}\""),
            Some("github token"),
        );
        check(&format!("see AKIA{}", "QX7LM2VT8RB5NW4Y"), Some("aws key"));
        check("see AKIAIOSFODNN7EXAMPLE", None);
    }

    #[test]
    fn promise_b7_a_random_value_of_a_secrets_name_is_one() {
        let hex = "0f3a9c5e7b1d2864f0a5c39e8d7b6142";
        for text in [
            format!("API_TOKEN={RANDOM}"),
            format!("export API_TOKEN={RANDOM}\r\nX=1"),
            format!("{{ \"clientSecret\": \"{RANDOM}\" }}"),
            format!("let password = '{RANDOM}';"),
            format!("aws_secret_access_key = {RANDOM}/x+Y8"),
            format!("  secret_key_base: {hex}{hex}\n"),
            format!("SECRET_KEY = 'django-insecure-#{RANDOM}!@'"),
            format!("auth_token := \"{hex}\""),
            format!("token: bearer {RANDOM}\n"),
            format!(r#""{{\"api_key\":\"{RANDOM}\"}}""#),
            format!(r#"{{\\\"key\\\": \\\"{RANDOM}\\\"}}"#),
        ] {
            check(&text, Some(ASSIGNED));
        }
    }

    #[test]
    fn promise_b7_what_repositories_are_full_of_is_none() {
        let hex = "0f3a9c5e7b1d2864f0a5c39e8d7b6142";
        for text in [
            format!("checksum = \"{hex}\"\nsha256: {hex}{hex}"),
            format!("\"integrity\": \"sha512-{RANDOM}{RANDOM}==\""),
            format!("public_key = \"{RANDOM}\""),
            format!("\"key\": \"{hex}{hex}\""),
            format!("password_hash = \"{hex}\""),
            format!("token_url = \"https://a.example/{RANDOM}\""),
            format!("src=\"data:image/png;base64,{RANDOM}{RANDOM}\""),
            "client_secret: 550e8400-e29b-41d4-a716-446655440000".to_owned(),
            "let token = next_token_of_the_stream(2, 17);".to_owned(),
            "token: NonEmptyMaxLength64String\n".to_owned(),
            "resetPassword: \"/v1/accounts:resetPassword2026\"".to_owned(),
            "password = \"correct-horse-battery-staple-42\"".to_owned(),
            "api_key = \"0123456789abcdef0123456789abcdef\"".to_owned(),
            format!("api_key = \"your-key-{RANDOM}\""),
            "token: ${{ secrets.GITHUB_TOKEN_2026_A1B2 }}".to_owned(),
            "password: \"%20!%22$%&'()*+,-.%2F09%3A%3B%3C%3D\"".to_owned(),
            format!("secret = \"{}\"", RANDOM.repeat(20)),
        ] {
            check(&text, None);
        }
    }

    #[test]
    fn a_text_full_of_openings_takes_no_longer_than_its_length() {
        let start = std::time::Instant::now();
        for unit in [
            "token = ",
            "secretsecret_key:=",
            "password=\"",
            "token='a1B2c3D4e5F6",
        ] {
            check(&unit.repeat((1 << 20) / unit.len()), None);
        }
        assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
    }
}
