//! Finds private data in a text: keys, and paths with the name of a user.
//!
//! Keys are those that [`super::secret`] recognizes, paths those of [`super::home_path`]. Takes
//! linear time.

use std::borrow::Cow;
use std::ops::Range;

use super::home_path::{boundary, home_paths};
use super::secret;

// Replaces a user's name. It is a generic name, so it is not reported again.
const PLACEHOLDER: &str = "user";
// Redaction ends after so many passes, whatever is left.
const MAX_PASSES: usize = 4;
// Bytes shown on either side of a leak.
const CONTEXT_BYTES: usize = 40;

/// Kind of a leak.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum LeakKind {
    /// A likely key.
    Keys,
    /// A path with the name of a user.
    Paths,
}

impl LeakKind {
    /// Returns the name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            LeakKind::Keys => "keys",
            LeakKind::Paths => "paths",
        }
    }
}

/// A set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeakKinds {
    /// Contains [`LeakKind::Keys`].
    pub keys: bool,
    /// Contains [`LeakKind::Paths`].
    pub paths: bool,
}

impl LeakKinds {
    /// Both kinds.
    pub const ALL: LeakKinds = LeakKinds {
        keys: true,
        paths: true,
    };

    /// Returns `true` if the set contains a kind.
    pub fn has(self, kind: LeakKind) -> bool {
        match kind {
            LeakKind::Keys => self.keys,
            LeakKind::Paths => self.paths,
        }
    }
}

/// A leak in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    pub kind: LeakKind,
    /// A short description.
    pub label: &'static str,
    /// Its position in bytes.
    pub range: Range<usize>,
    /// Offset of the sensitive part: the user's name, or the whole key.
    secret: usize,
}

/// Returns the leaks in a text, in order and merged if they overlap. Paths below `home` are also
/// reported, if it is not in a usual place.
pub fn leaks(text: &str, home: Option<&str>) -> Vec<Leak> {
    let keys = secret::secret_ranges(text)
        .into_iter()
        .map(|(label, range)| Leak {
            kind: LeakKind::Keys,
            label,
            secret: range.start,
            range,
        });
    let paths = home_paths(text, home).into_iter().map(|path| Leak {
        kind: LeakKind::Paths,
        label: "personal path",
        range: path.range,
        secret: path.name,
    });
    let mut all: Vec<Leak> = keys.chain(paths).collect();
    all.sort_by_key(|leak| (leak.range.start, leak.range.end));

    let mut disjoint: Vec<Leak> = Vec::with_capacity(all.len());
    for leak in all {
        match disjoint.last_mut() {
            Some(last) if leak.range.start < last.range.end => {
                last.range.end = last.range.end.max(leak.range.end);
                // Report the overlap as a key, so that nothing of the key is shown.
                if leak.kind < last.kind {
                    (last.kind, last.label) = (leak.kind, leak.label);
                }
            }
            _ => disjoint.push(leak),
        }
    }

    disjoint
}

/// Like [`leaks`], for bytes that might not be UTF-8.
pub fn leaks_of_bytes(bytes: &[u8], home: Option<&str>) -> Vec<Leak> {
    leaks(&as_text(bytes), home)
}

/// Redacts the leaks of these kinds. `None` if there are none. YAML stays valid YAML.
pub fn redact_leaks(
    bytes: &[u8],
    is_yaml: bool,
    kinds: LeakKinds,
    home: Option<&str>,
) -> Option<Vec<u8>> {
    let mut redacted = redact_once(bytes, is_yaml, kinds, home)?;
    // Without a foreign letter in its path, a value can look like a key.
    for _ in 0..MAX_PASSES {
        match redact_once(&redacted, is_yaml, kinds, home) {
            Some(again) => redacted = again,
            None => break,
        }
    }
    Some(redacted)
}

fn redact_once(
    bytes: &[u8],
    is_yaml: bool,
    kinds: LeakKinds,
    home: Option<&str>,
) -> Option<Vec<u8>> {
    let leaks = leaks_of_bytes(bytes, home);
    let (mut plain, mut end) = (Vec::new(), 0);
    for leak in leaks.iter().filter(|leak| kinds.has(leak.kind)) {
        plain.extend_from_slice(&bytes[end..leak.range.start]);
        plain.extend_from_slice(&leak.replacement(bytes, is_yaml));
        end = leak.range.end;
    }

    plain.extend_from_slice(&bytes[end..]);
    (end > 0).then_some(plain)
}

impl Leak {
    fn replacement(&self, bytes: &[u8], is_yaml: bool) -> Vec<u8> {
        if self.kind == LeakKind::Paths {
            let dir = &bytes[self.range.start..self.secret];
            return [dir, PLACEHOLDER.as_bytes()].concat();
        }

        // A bracket would start a list in YAML.
        let [open, close] = if is_yaml { ["(", ")"] } else { ["[", "]"] };
        let label = self.label.split(" assigned").next().unwrap_or_default();
        format!("{open}redacted {label}{close}").into_bytes()
    }
}

/// Returns an excerpt of the line with a leak, with all keys masked.
pub fn masked_excerpt(text: &str, leak: &Leak, all: &[Leak]) -> String {
    let line = text[..leak.range.start].rfind('\n').map_or(0, |at| at + 1);
    let newline = text[leak.range.end..].find('\n');
    let line_end = newline.map_or(text.len(), |at| leak.range.end + at);
    let start = boundary(
        text,
        line.max(leak.range.start.saturating_sub(CONTEXT_BYTES)),
    );
    let end = boundary(text, line_end.min(leak.range.end + CONTEXT_BYTES));

    let mut excerpt = String::from(if start > line { "..." } else { "" });
    let mut at = start;
    let keys = all.iter().filter(|other| other.kind == LeakKind::Keys);
    for key in keys.filter(|key| key.range.start < end && key.range.end > start) {
        excerpt.push_str(&text[at.min(key.range.start.max(start))..key.range.start.max(start)]);
        excerpt.push_str(&format!("[{}]", key.label));
        at = key.range.end.min(end);
    }

    excerpt.push_str(&text[at..end]);
    if end < line_end {
        excerpt.push_str("...");
    }
    excerpt.trim().to_owned()
}

/// Converts bytes to a text with the same offsets. Replaces non-ASCII bytes if it is not UTF-8.
pub fn as_text(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(
        |_| {
            let ascii = |byte: &u8| {
                if byte.is_ascii() {
                    *byte as char
                } else {
                    '\u{1}'
                }
            };
            Cow::Owned(bytes.iter().map(ascii).collect())
        },
        Cow::Borrowed,
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Assembled here, so that scanners do not report a key in this file.
    fn key() -> String {
        format!("ghp_{}", "a9Zk3Qx7Lm2Vt8Rb5Nw4Yc6Hd1Jf0Gs4x8Pq2")
    }

    fn plain(text: &str, home: Option<&str>) -> String {
        let plain = redact_leaks(text.as_bytes(), false, LeakKinds::ALL, home);
        plain.map_or_else(
            || text.to_owned(),
            |bytes| String::from_utf8(bytes).unwrap(),
        )
    }

    #[test]
    fn a_path_names_a_person_by_their_home() {
        let check = |text: &str, expected: &str| assert_eq!(plain(text, None), expected, "{text}");
        check("see /home/ada/x.rs:3", "see /home/user/x.rs:3");
        check("\"/Users/Ada.L/x\"", "\"/Users/user/x\"");
        check("C:\\Users\\Ada L\\x", "C:\\Users\\user\\x");
        check(
            "\"C:\\\\Users\\\\ada\\\\x\"",
            "\"C:\\\\Users\\\\user\\\\x\"",
        );
        check("cc -I/home/ada/include", "cc -I/home/user/include");
        check(
            "PATH=/home/a1/bin:/home/b2/bin",
            "PATH=/home/user/bin:/home/user/bin",
        );
        check("file:///home/ada/x", "file:///home/user/x");
        check("/mnt/c/Users/ada/x", "/mnt/c/Users/user/x");
        check("/home/jörg/x", "/home/user/x");
        check("🫎/home/a", "🫎/home/user");
    }

    #[test]
    fn other_paths_and_addresses_name_nobody() {
        for text in [
            "https://example.org/home/ada/x",
            "example.org/home/ada/x",
            "/home/user/x /home/runner/work/x /Users/you/x",
            "href=\"/home/about\"",
            "data/home/ada/x",
            "~/home/ada/x",
            "/home/$USER/x /home/<name>/x",
        ] {
            assert_eq!(leaks(text, Some("/root")), [], "{text}");
        }
    }

    #[test]
    fn the_users_own_home_is_known_wherever_it_is() {
        let check = |text: &str, expected: &str| {
            assert_eq!(plain(text, Some("/srv/people/ada")), expected, "{text}");
        };
        check("HOME=/srv/people/ada\n", "HOME=/srv/people/user\n");
        check("in /srv/people/ada/x.", "in /srv/people/user/x.");
        check("/srv/people/adam", "/srv/people/adam");
    }

    #[test]
    fn keys_go_and_yaml_stays_yaml() {
        let text = format!("text: {}\nnext: 1\n", key());
        let redact = |is_yaml| {
            let bytes = redact_leaks(text.as_bytes(), is_yaml, LeakKinds::ALL, None).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(redact(false), "text: [redacted github token]\nnext: 1\n");
        assert_eq!(redact(true), "text: (redacted github token)\nnext: 1\n");
    }

    #[test]
    fn what_is_no_text_is_looked_at_as_well() {
        let bytes = [&b"\xff\xfe"[..], key().as_bytes(), b"\xff"].concat();
        let plain = redact_leaks(&bytes, false, LeakKinds::ALL, None).unwrap();
        assert_eq!(plain, b"\xff\xfe[redacted github token]\xff");
    }

    #[test]
    fn a_line_is_shown_without_its_keys() {
        let check = |text: &str, expected: &str| {
            let all = leaks(text, None);
            assert_eq!(masked_excerpt(text, &all[0], &all), expected);
        };
        check(
            &format!("a\nlet x = \"{0}\" + \"{0}\";\nb", key()),
            "let x = \"[github token]\" + \"[github token]...",
        );
        check(
            &format!("{} /home/ada/x {}", "é".repeat(60), "y".repeat(60)),
            &format!("...{} /home/ada/x {}...", "é".repeat(20), "y".repeat(37)),
        );
    }

    #[test]
    fn what_redaction_uncovers_is_redacted_too() {
        let text = "token=\"/home/\u{11335}/Aaaa0aA0A\"";
        let once = plain(text, None);
        assert_eq!(plain(&once, None), once);
    }

    proptest! {
        #[test]
        fn nothing_is_found_in_what_is_left(
            text in "(/home/|/Users/|C:\\\\Users\\\\|ghp_|[a-zA-Z0-9]{1,40}|/|-I|://|token=\"|\"|\\PC){0,16}"
        ) {
            let once = plain(&text, Some("/srv/ada"));
            prop_assert_eq!(plain(&once, Some("/srv/ada")), once);
        }

        #[test]
        fn no_key_is_shown(before in "[ -~é]{0,80}[ =\"]", after in "[ \"\n][ -~]{0,80}") {
            let text = format!("{before}{}{after} {}", key(), key());
            let all = leaks(&text, None);
            for leak in &all {
                prop_assert!(!masked_excerpt(&text, leak, &all).contains(&key()[4..24]));
            }
        }
    }
}
