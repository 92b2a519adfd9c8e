//! What a text tells that not everybody may read: keys, and paths that name a person.
//!
//! The keys are those that [`super::secret`] knows. A path names a person by the folder of their
//! home. Linear in the length of the text.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::secret;

/// What a name in a path is replaced by; it names nobody, and is not found again.
const NOBODY: &str = "user";
/// Names that are nobody's, in lower case.
const NOBODYS: [&str; 17] = [
    "user",
    "username",
    "yourname",
    "your-name",
    "your_name",
    "yourusername",
    "your-username",
    "your_username",
    "you",
    "me",
    "name",
    "example",
    "runner",
    "linuxbrew",
    "shared",
    "public",
    "default",
];
/// So far before a path is looked for the beginning of an address.
const FAR: usize = 512;
/// So much of a line is shown on either side of what was found.
const SHOWN: usize = 40;

/// The folder of a home, and the name in it.
static HOME: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = concat!(
        r"(?:/home/|/Users/)([\p{L}\p{N}_][\p{L}\p{N}._-]{0,63})[/\\]",
        r"|[A-Za-z]:(?:\\{1,4}|/)Users(?:\\{1,4}|/)([\p{L}\p{N}_][\p{L}\p{N}._ -]{0,63})[/\\]",
    );
    Regex::new(pattern).expect("the pattern is a constant that the tests compile")
});

/// A kind of what is found.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum LeakKind {
    /// What looks like a key.
    Keys,
    /// A path that names a person.
    Paths,
}

impl LeakKind {
    /// Returns the word for the kind.
    pub fn name(self) -> &'static str {
        match self {
            LeakKind::Keys => "keys",
            LeakKind::Paths => "paths",
        }
    }
}

/// Which kinds are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeakKinds {
    /// Keys are.
    pub keys: bool,
    /// Paths are.
    pub paths: bool,
}

impl LeakKinds {
    /// Both of them.
    pub const ALL: LeakKinds = LeakKinds {
        keys: true,
        paths: true,
    };

    /// Returns whether a kind is among them.
    pub fn has(self, kind: LeakKind) -> bool {
        match kind {
            LeakKind::Keys => self.keys,
            LeakKind::Paths => self.paths,
        }
    }
}

/// A place in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    /// The kind.
    pub kind: LeakKind,
    /// What it is, in a few words.
    pub what: &'static str,
    /// Where it is, in bytes.
    pub range: Range<usize>,
    /// Where in it the part begins that is the person's or the key itself.
    secret: usize,
}

/// Returns the places of a text, in order, none of them in another one. A path also names a person
/// if it is `home` or below it, wherever that is.
pub fn leaks(text: &str, home: Option<&str>) -> Vec<Leak> {
    let keys = secret::places(text).into_iter().map(|(what, range)| Leak {
        kind: LeakKind::Keys,
        what,
        secret: range.start,
        range,
    });
    let mut found: Vec<Leak> = keys.chain(homes(text)).chain(own(text, home)).collect();
    found.sort_by_key(|leak| (leak.range.start, leak.range.end));

    let mut apart: Vec<Leak> = Vec::with_capacity(found.len());
    for leak in found {
        match apart.last_mut() {
            Some(last) if leak.range.start < last.range.end => {
                last.range.end = last.range.end.max(leak.range.end);
                // Nothing of a key is shown because a path is around it.
                if leak.kind < last.kind {
                    (last.kind, last.what) = (leak.kind, leak.what);
                }
            }
            _ => apart.push(leak),
        }
    }

    apart
}

/// Returns the places of something that need not be text.
pub fn leaks_of_bytes(bytes: &[u8], home: Option<&str>) -> Vec<Leak> {
    leaks(&as_text(bytes), home)
}

/// Returns something without what is found of these kinds, if anything is. Files in YAML stay what
/// they are.
pub fn without(
    bytes: &[u8],
    is_yaml: bool,
    kinds: LeakKinds,
    home: Option<&str>,
) -> Option<Vec<u8>> {
    let found = leaks_of_bytes(bytes, home);
    let (mut plain, mut end) = (Vec::new(), 0);
    for leak in found.iter().filter(|leak| kinds.has(leak.kind)) {
        plain.extend_from_slice(&bytes[end..leak.range.start]);
        plain.extend_from_slice(&leak.replacement(bytes, is_yaml));
        end = leak.range.end;
    }

    plain.extend_from_slice(&bytes[end..]);
    (end > 0).then_some(plain)
}

impl Leak {
    /// Returns what stands in its place.
    fn replacement(&self, bytes: &[u8], is_yaml: bool) -> Vec<u8> {
        if self.kind == LeakKind::Paths {
            let folder = &bytes[self.range.start..self.secret];
            return [folder, NOBODY.as_bytes()].concat();
        }

        // What begins with a bracket is a list in YAML.
        let [open, close] = if is_yaml { ["(", ")"] } else { ["[", "]"] };
        let what = self.what.split(" assigned").next().unwrap_or_default();
        format!("{open}redacted {what}{close}").into_bytes()
    }
}

/// Returns a part of the line in which something was found, without any key.
pub fn shown(text: &str, leak: &Leak, all: &[Leak]) -> String {
    let line = text[..leak.range.start].rfind('\n').map_or(0, |at| at + 1);
    let rest = text[leak.range.end..].find('\n');
    let line_end = rest.map_or(text.len(), |at| leak.range.end + at);
    let start = boundary(text, line.max(leak.range.start.saturating_sub(SHOWN)));
    let end = boundary(text, line_end.min(leak.range.end + SHOWN));

    let mut view = String::from(if start > line { "..." } else { "" });
    let mut at = start;
    let keys = all.iter().filter(|other| other.kind == LeakKind::Keys);
    for key in keys.filter(|key| key.range.start < end && key.range.end > start) {
        view.push_str(&text[at.min(key.range.start.max(start))..key.range.start.max(start)]);
        view.push_str(&format!("[{}]", key.what));
        at = key.range.end.min(end);
    }

    view.push_str(&text[at..end]);
    if end < line_end {
        view.push_str("...");
    }
    view.trim().to_owned()
}

/// Returns something as a text in which everything has the place that it has there.
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

/// Returns the nearest place up to here at which a character begins.
fn boundary(text: &str, at: usize) -> usize {
    let mut places = (0..=at).rev();
    places
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or_default()
}

/// Returns where the home of anybody is.
fn homes(text: &str) -> impl Iterator<Item = Leak> {
    HOME.captures_iter(text).filter_map(|found| {
        let name = found.get(1).or(found.get(2))?;
        let start = found.get(0)?.start();
        let is_somebody = !NOBODYS.contains(&name.as_str().to_lowercase().as_str());
        (is_somebody && is_path(text, start)).then(|| Leak {
            kind: LeakKind::Paths,
            what: "personal path",
            range: start..name.end(),
            secret: name.start(),
        })
    })
}

/// Returns where the user's own home is; one that nothing is below is nobody's.
fn own(text: &str, home: Option<&str>) -> Vec<Leak> {
    let home = home.map(|home| home.trim_end_matches('/'));
    let Some(home) = home.filter(|home| home.starts_with('/') && home.matches('/').count() > 1)
    else {
        return Vec::new();
    };
    let folder = home.rfind('/').map_or(0, |at| at + 1);
    if NOBODYS.contains(&home[folder..].to_lowercase().as_str()) {
        return Vec::new();
    }

    let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_whole = |at: usize| {
        let rest = &text[at + home.len()..];
        // A full stop can end a sentence.
        !rest.trim_start_matches('.').starts_with(goes_on)
    };
    text.match_indices(home)
        .filter(|(at, _)| is_whole(*at) && is_path(text, *at))
        .map(|(at, _)| Leak {
            kind: LeakKind::Paths,
            what: "personal path",
            range: at..at + home.len(),
            secret: at + folder,
        })
        .collect()
}

/// Returns whether a path begins here, and not the middle of one or of an address.
fn is_path(text: &str, start: usize) -> bool {
    let before = &text[boundary(text, start.saturating_sub(FAR))..start];
    let ends_word = |c: char| c.is_whitespace() || "\"'`()[]{}<>,;=|&".contains(c);
    let word = before.rfind(ends_word).map_or(before, |at| {
        let after = before[at..].chars().next().map_or(0, char::len_utf8);
        &before[at + after..]
    });
    if let Some((scheme, rest)) = word.rsplit_once("://") {
        return scheme.ends_with("file") && rest.is_empty();
    }

    let is_option = word.len() > 1 && word.starts_with('-') && !word.contains('/');
    let is_drive = word.len() == 6 && word.starts_with("/mnt/");
    let is_part = |c: char| c.is_alphanumeric() || "._-/~$%".contains(c);
    is_option || is_drive || !word.ends_with(is_part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A key, put together here, so that no scanner finds one in the source.
    fn key() -> String {
        format!("ghp_{}", "a9Zk3Qx7Lm2Vt8Rb5Nw4Yc6Hd1Jf0Gs4x8Pq2")
    }

    /// Returns what a text is without anything found.
    fn plain(text: &str, home: Option<&str>) -> String {
        let plain = without(text.as_bytes(), false, LeakKinds::ALL, home);
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
            let bytes = without(text.as_bytes(), is_yaml, LeakKinds::ALL, None).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(redact(false), "text: [redacted github token]\nnext: 1\n");
        assert_eq!(redact(true), "text: (redacted github token)\nnext: 1\n");
    }

    #[test]
    fn what_is_no_text_is_looked_at_as_well() {
        let bytes = [&b"\xff\xfe"[..], key().as_bytes(), b"\xff"].concat();
        let plain = without(&bytes, false, LeakKinds::ALL, None).unwrap();
        assert_eq!(plain, b"\xff\xfe[redacted github token]\xff");
    }

    #[test]
    fn a_line_is_shown_without_its_keys() {
        let check = |text: &str, expected: &str| {
            let all = leaks(text, None);
            assert_eq!(shown(text, &all[0], &all), expected);
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
                prop_assert!(!shown(&text, leak, &all).contains(&key()[4..24]));
            }
        }
    }
}
