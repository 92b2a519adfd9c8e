//! Removes keys from text that is recorded or displayed, recognized by their format.
//!
//! The formats are specific, so ordinary code, hashes and names are not affected. Takes linear
//! time.

use std::borrow::Cow;

use super::key_shape::key_shapes;

/// Minimum length of an exact value. Shorter ones could match ordinary words.
pub const MIN_REDACTED: usize = 8;

/// A redacted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted<'a> {
    /// The text. Borrowed if nothing was redacted.
    pub text: Cow<'a, str>,
    /// Number of replacements.
    pub count: usize,
}

/// Replaces keys by `[redacted <shape>]`.
pub fn redact(text: &str) -> Cow<'_, str> {
    redact_values(text, &[]).text
}

/// Replaces keys and these exact values.
pub fn redact_values<'a>(text: &'a str, values: &[&str]) -> Redacted<'a> {
    let mut redacted = Redacted {
        text: Cow::Borrowed(text),
        count: 0,
    };
    for value in values.iter().filter(|value| value.len() >= MIN_REDACTED) {
        let hits = redacted.text.matches(value).count();
        if hits > 0 {
            redacted.count += hits;
            redacted.text = Cow::Owned(redacted.text.replace(value, "[redacted key]"));
        }
    }

    let shaped = replace_shapes(&redacted.text);
    if let Some((text, count)) = shaped {
        redacted = Redacted {
            text: Cow::Owned(text),
            count: redacted.count + count,
        };
    }

    redacted
}

fn replace_shapes(text: &str) -> Option<(String, usize)> {
    let (mut output, mut end, mut count) = (String::new(), 0, 0);
    for (shape, range) in key_shapes(text) {
        output.push_str(&text[end..range.start]);
        output.push_str("[redacted ");
        output.push_str(shape);
        output.push(']');
        (end, count) = (range.end, count + 1);
    }
    (count > 0).then(|| (output + &text[end..], count))
}

#[cfg(test)]
mod tests {
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
        assert_eq!(
            got,
            Redacted {
                text: "Bearer [redacted key], again [redacted key]; pin 1234".into(),
                count: 2
            }
        );
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
