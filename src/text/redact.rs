//! Removes keys from text that is recorded or displayed, recognized by their format.
//!
//! The formats are specific, so ordinary code, hashes and names are not affected. Takes linear
//! time.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// Minimum length of an exact value. Shorter ones could match ordinary words.
pub const MIN_VALUE: usize = 8;

// Names and patterns. If several match at the same place, the first one wins.
const SHAPES: [(&str, &str); 15] = [
    ("private key", PRIVATE_KEY),
    ("anthropic key", r"\bsk-ant-[A-Za-z0-9_-]{20,}"),
    (
        "openai key",
        r"\bsk-(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20,}|\bsk-[A-Za-z0-9]{32,}\b",
    ),
    ("aws key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    (
        "github token",
        r"\bgh[opsur]_[A-Za-z0-9]{36,}\b|\bgithub_pat_[A-Za-z0-9_]{40,}",
    ),
    ("gitlab token", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    (
        "slack token",
        r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-[0-9]-[A-Za-z0-9-]{20,}",
    ),
    ("google key", r"\bAIza[A-Za-z0-9_-]{35}"),
    (
        "json web token",
        r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    ),
    ("stripe key", r"\b[rs]k_live_[A-Za-z0-9]{20,}"),
    ("npm token", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("pypi token", r"\bpypi-AgEI[A-Za-z0-9_-]{50,}"),
    ("hugging face token", r"\bhf_[A-Za-z0-9]{34,}\b"),
    (
        "sendgrid key",
        r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}",
    ),
    ("digitalocean token", r"\bdo[opr]_v1_[a-f0-9]{64}\b"),
];

// A PEM header with at least one line of the key; the header alone can be part of prose. Line ends
// can also be escaped as `\n`.
const PRIVATE_KEY: &str = concat!(
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----",
    r"(?:(?:\s|\\r|\\n)+[A-Za-z-]{1,30}: [^\r\n\\]{0,200})*",
    r"(?:(?:\s|\\r|\\n)+[A-Za-z0-9+/=]{40,})+",
    r"(?:(?:\s|\\r|\\n)*[A-Za-z0-9+/=]{0,80}(?:\s|\\r|\\n)*(?:=[A-Za-z0-9+/]{4}(?:\s|\\r|\\n)*)?-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?",
);

// Each shape contains one of these. Most texts contain none, so one pass is enough for them.
static MARKS: LazyLock<Regex> = LazyLock::new(|| {
    let marks = concat!(
        "PRIVATE KEY|sk-|AKIA|ASIA|gh[opsur]_|github_pat_|glpat-|xox|xapp-|AIza|eyJ|k_live_|",
        r"npm_|pypi-AgEI|hf_|SG\.|_v1_",
    );
    Regex::new(marks).expect("the pattern is a constant that the tests compile")
});

// All shapes, with one group each.
static PATTERN: LazyLock<Regex> = LazyLock::new(|| {
    let all: Vec<String> = SHAPES
        .iter()
        .map(|(_, pattern)| format!("({pattern})"))
        .collect();
    Regex::new(&all.join("|")).expect("the patterns are constants that the tests compile")
});

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
    for value in values.iter().filter(|value| value.len() >= MIN_VALUE) {
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

/// Returns the keys in a text, with the names of their shapes.
pub(super) fn shapes(text: &str) -> impl Iterator<Item = (&'static str, Range<usize>)> {
    let marked = MARKS.is_match(text).then(|| PATTERN.captures_iter(text));
    let found = marked.into_iter().flatten().filter_map(|found| {
        let mut groups = SHAPES.iter().enumerate();
        groups.find_map(|(n, (shape, _))| Some((*shape, found.get(n + 1)?.range())))
    });
    found.filter(|(_, range)| is_random(&text[range.clone()]))
}

fn replace_shapes(text: &str) -> Option<(String, usize)> {
    let (mut output, mut end, mut count) = (String::new(), 0, 0);
    for (shape, range) in shapes(text) {
        output.push_str(&text[end..range.start]);
        output.push_str("[redacted ");
        output.push_str(shape);
        output.push(']');
        (end, count) = (range.end, count + 1);
    }
    (count > 0).then(|| (output + &text[end..], count))
}

/// Random strings contain digits and letters, and identifiers usually don't.
fn is_random(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    digits >= 2 && text.bytes().any(|byte| byte.is_ascii_alphabetic())
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
