//! Detects secrets in a text: keys by their format, and random values that are assigned to a name
//! such as `api_token`.
//!
//! The formats are those of [`super::key_shape`]. Avoids false positives for common content: hashes,
//! lock files, UUIDs, encoded images, minified code, examples and values made of words. Takes
//! linear time, and one pass if there is nothing to find.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::Regex;

use super::constant_regex;
use super::key_shape::key_shapes;

const ASSIGNED: &str = "value assigned to a secret's name";

// A shorter value can be a word.
const MIN_ASSIGNED: usize = 20;

// A longer value is rather an embedded file.
const MAX_ASSIGNED: usize = 512;
const MAX_QUOTED_KEY: usize = 128;

// A name that ends with a word for a secret, and its value: in quotes, or up to the end of the
// line. Unquoted code does not match, because it continues after a name. Without an upper bound the
// pattern is compiled three times faster; `is_random_value` has the bound.
static ASSIGNMENT: LazyLock<Regex> = LazyLock::new(|| {
    constant_regex(concat!(
        r"(?i-u)(?:secret|passw(?:or)?d|passphrase|token|credentials?|",
        r"(?:api|access|auth|secret|private|encryption|signing|account|master)[_-]?key)",
        r#"(?:[_-]?(?:base|value))?\\{0,7}["'`]?\s{0,8}(?::=|=>|=|:)\s{0,8}(?:bearer )?"#,
        // JSON in a string has a backslash before each quote.
        r#"(?:\\{1,7}["']([!-!#-&(-\[\]-~]{20,})\\{1,7}["']|"([!-!#-~]{20,})"|'([!-&(-~]{20,})'|([A-Za-z0-9_+/=.~-]{20,})[ \t]*(?:[\r\n]|\z))"#,
    ))
});

static QUOTED_KEY: LazyLock<Regex> = LazyLock::new(|| {
    constant_regex(
        r#"["']key\\{0,7}["']\s{0,8}:\s{0,8}\\{0,7}["']([A-Za-z0-9_+/=-]{24,})\\{0,7}["']"#,
    )
});

// One of these is in each name that the patterns match. Most texts have none, and the patterns take
// milliseconds to compile.
static NAMES: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let mut builder = AhoCorasick::builder();
    builder.ascii_case_insensitive(true);
    let names = builder.build("secret passw passphrase token credential key".split(' '));
    names.expect("the names are constants that the tests build")
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
    let values = NAMES.is_match(text).then(|| assigned_to_names(text));
    values.into_iter().flatten()
}

fn assigned_to_names(text: &str) -> impl Iterator<Item = Range<usize>> {
    let assignments = ASSIGNMENT
        .captures_iter(text)
        .filter_map(|captures| captures.iter().skip(1).flatten().next())
        .filter(|value| is_random_value(value.as_str()));
    // `key` alone often names a hash, which has letters of one case.
    let keys = QUOTED_KEY
        .captures_iter(text)
        .filter_map(|captures| captures.get(1))
        .filter(|value| value.len() <= MAX_QUOTED_KEY)
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
    const PARTS: &str =
        "example sample dummy placeholder changeme fake test xxxx your :// ${ {{ < .. %2";

    let value = value.to_ascii_lowercase();
    PARTS.split(' ').any(|part| value.contains(part))
}

// Removes keys from text that is recorded or displayed, recognized by their format.
//
// The formats are specific, so ordinary code, hashes and names are not affected. Takes linear
// time.

/// Minimum length of an exact value. Shorter ones could match ordinary words.
pub const MIN_REDACTED: usize = 8;

/// Replaces keys by `[redacted <shape>]`.
pub fn redact(text: &str) -> Cow<'_, str> {
    let (mut output, mut end) = (String::new(), 0);
    for (shape, range) in key_shapes(text) {
        output.push_str(&text[end..range.start]);
        output.push_str("[redacted ");
        output.push_str(shape);
        output.push(']');
        end = range.end;
    }
    match end {
        0 => Cow::Borrowed(text),
        _ => Cow::Owned(output + &text[end..]),
    }
}

/// Replaces keys and these exact values.
pub fn redact_values<'a>(text: &'a str, values: &[&str]) -> Cow<'a, str> {
    match replace_values(text, values) {
        Cow::Borrowed(text) => redact(text),
        Cow::Owned(text) => Cow::Owned(redact(&text).into_owned()),
    }
}

/// Replaces these exact values only, where a key by its format can also be an id.
pub fn replace_values<'a>(text: &'a str, values: &[&str]) -> Cow<'a, str> {
    let mut redacted = Cow::Borrowed(text);
    for value in values.iter().filter(|value| value.len() >= MIN_REDACTED) {
        if redacted.contains(value) {
            redacted = Cow::Owned(redacted.replace(value, "[redacted key]"));
        }
    }
    redacted
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
    fn a_value_that_is_too_long_is_an_embedded_file() {
        for (length, expected) in [(512, Some(ASSIGNED)), (513, None)] {
            let value = &RANDOM.repeat(17)[..length];
            check(&format!("API_TOKEN={value}"), expected);
            check(&format!("{{ \"clientSecret\": \"{value}\" }}"), expected);
            check(&format!("let password = '{value}';"), expected);
            check(&format!(r#""{{\"api_key\":\"{value}\"}}""#), expected);
        }
        for (length, expected) in [(128, Some(ASSIGNED)), (129, None)] {
            let value = &RANDOM.repeat(17)[..length];
            check(&format!(r#"{{"key": "{value}"}}"#), expected);
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

#[cfg(test)]
mod redaction_tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(redact(text), expected);
    }

    /// Returns random-looking text. Keys are assembled here, so that scanners do not report this
    /// file.
    fn random(length: usize) -> String {
        "a9Zk3Qx7Lm2Vt8Rb5Nw4Yc6Hd1Jf0Gs"
            .chars()
            .cycle()
            .take(length)
            .collect()
    }

    #[test]
    fn each_shape_is_named() {
        for (key, shape) in [
            (format!("sk-ant-api03-{}", random(80)), "anthropic key"),
            (format!("sk-proj-{}", random(48)), "openai key"),
            (format!("sk-{}", random(48)), "openai key"),
            (
                format!("AKIA{}", &random(40).to_uppercase()[..16]),
                "aws key",
            ),
            (format!("ghp_{}", random(36)), "github token"),
            (format!("github_pat_{}", random(70)), "github token"),
            (format!("glpat-{}", random(20)), "gitlab token"),
            (format!("xoxb-{}", random(30)), "slack token"),
            (format!("AIza{}", random(35)), "google key"),
            (
                format!("eyJ{}.eyJ{}.{}", random(20), random(40), random(43)),
                "json web token",
            ),
            (format!("sk_live_{}", random(24)), "stripe key"),
            (format!("hf_{}", random(34)), "hugging face token"),
        ] {
            check(
                &format!("key = \"{key}\";\n"),
                &format!("key = \"[redacted {shape}]\";\n"),
            );
        }
    }

    #[test]
    fn a_private_key_goes_as_a_whole() {
        let body = format!("{}\n{}\n{}==", random(64), random(64), random(20));
        let key = format!(
            "-----BEGIN OPENSSH {0}-----\n{body}\n-----END OPENSSH {0}-----",
            "PRIVATE KEY"
        );
        check(&format!("a\n{key}\nb\n"), "a\n[redacted private key]\nb\n");
        check(&key.replace('\n', "\\n"), "[redacted private key]");
        check(&key.replace('\n', "\r\n"), "[redacted private key]");
        check(
            &format!("-----BEGIN RSA {}-----\n{}\n", "PRIVATE KEY", random(64)),
            "[redacted private key]\n",
        );
    }

    #[test]
    fn ordinary_text_stays() {
        let header = format!("-----BEGIN {}-----", "PRIVATE KEY");
        for text in [
            "commit 0676b58f1d2c3b4a59687746352413021f0e9d8c",
            "sha512-oRkSZ1Q3ZsIvCHvbrN5ZQyYvn3bUzVJ8WqPYzCtXbS7MZcGd0u0CVqv0fOQBcR2Y8SIGjqMO4DsdvA7yzfRmJQ==",
            "class=\"sk-folding-cube sk-circle-fade-dot\" sk-learn",
            "task-1234567890123456789012345678901234567890",
            "import sklearn; risk-abcdefghijklmnopqrstuvwxyzabcdefghij",
            "if text.contains(\"eyJ\") { glpat-please_use_a_token_here }",
            "550e8400-e29b-41d4-a716-446655440000",
            &format!(
                "if line == \"{header}\" {{ inside = true }} else if line == \"-----END PRIVATE KEY-----\" {{ inside = false }}"
            ),
        ] {
            check(text, text);
            assert!(matches!(redact(text), Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn exact_values_go_wherever_they_stand() {
        let got = redact_values(
            "Bearer hunter2-hunter2, again hunter2-hunter2; pin 1234",
            &["hunter2-hunter2", "1234"],
        );
        assert_eq!(got, "Bearer [redacted key], again [redacted key]; pin 1234");
    }

    #[test]
    fn a_text_full_of_openings_takes_no_longer_than_its_length() {
        let header = format!("-----BEGIN {}-----\n", "PRIVATE KEY");
        let text = format!(
            "{}{}",
            header.repeat(40_000),
            "eyJaaaaaaaaaaaa.".repeat(60_000)
        );
        let start = std::time::Instant::now();
        check(&text, &text);
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    }

    proptest! {
        #[test]
        fn no_text_breaks_it_and_twice_is_once(text in "(sk-|ghp_|AKIA|eyJ|-----BEGIN PRIVATE KEY-----|[A-Za-z0-9._\\n-]{1,40}|\\PC){0,12}") {
            let once = redact(&text).into_owned();
            prop_assert_eq!(redact(&once), once.as_str());
        }

        #[test]
        fn a_key_is_found_between_any_words(before in "[ -,\\PC]{0,20}[ \"'=:]", after in "[ \"';\\n][ -~]{0,20}") {
            let key = format!("ghp_{}", random(36));
            let text = format!("{before}{key}{after}");
            prop_assert!(!redact(&text).contains(&key));
        }
    }
}
