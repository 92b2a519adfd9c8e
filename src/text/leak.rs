//! Finds private data in a text: keys, and paths with the name of a user.
//!
//! Keys are those that [`super::secret`] recognizes. Takes linear time.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::colorless::Colorless;
use super::encoding::{ByteOrder, utf16_text};
use super::secret;
use super::{constant_regex, floor_char_boundary, has_word};

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
    Keys,
    /// A path with the name of a user.
    Paths,
}

impl LeakKind {
    pub const ALL: [LeakKind; 2] = [LeakKind::Keys, LeakKind::Paths];

    pub fn name(self) -> &'static str {
        match self {
            LeakKind::Keys => "keys",
            LeakKind::Paths => "paths",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    pub kind: LeakKind,
    pub label: &'static str,
    /// Its position in bytes.
    pub range: Range<usize>,
    /// Offset of the sensitive part: the user's name, or the whole key.
    secret: usize,
}

/// Returns the leaks in a text, in order and merged if they overlap. Paths below `home` are also
/// reported, if it is not in a usual place.
pub fn leaks(text: &str, home: Option<&str>) -> Vec<Leak> {
    let find = |text: &str| {
        let keys = secret::secret_ranges(text).into_iter();
        let keys = keys.map(|(label, range)| Leak {
            kind: LeakKind::Keys,
            label,
            secret: range.start,
            range,
        });
        keys.chain(home_paths(text, home)).collect::<Vec<Leak>>()
    };
    let mut all = find(text);
    if let Some(colorless) = Colorless::of(text) {
        let found = find(&colorless.text).into_iter();
        all.extend(found.map(|leak| Leak {
            range: colorless.original_range(&leak.range),
            secret: colorless.original(leak.secret),
            ..leak
        }));
    }
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

/// Redacts the leaks of these kinds. `None` if there are none. YAML stays valid YAML.
pub fn redact_leaks(
    bytes: &[u8],
    is_yaml: bool,
    kinds: &[LeakKind],
    home: Option<&str>,
) -> Option<Vec<u8>> {
    let mut redacted = redact_once(bytes, is_yaml, kinds, home);
    // Without a foreign letter in its path, a value can look like a key.
    for _ in 0..MAX_PASSES {
        let again = redacted.as_deref();
        match again.and_then(|bytes| redact_once(bytes, is_yaml, kinds, home)) {
            Some(again) => redacted = Some(again),
            None => break,
        }
    }

    // A mark of UTF-16 can be in front of any bytes.
    let bytes = redacted.as_deref().unwrap_or(bytes);
    let Some((order, text)) = ByteOrder::of(bytes).zip(utf16_text(bytes)) else {
        return redacted;
    };
    let Some(text) = redact_leaks(text.as_bytes(), is_yaml, kinds, home) else {
        return redacted;
    };
    Some([&bytes[..2], &order.encode(&String::from_utf8_lossy(&text))].concat())
}

fn redact_once(
    bytes: &[u8],
    is_yaml: bool,
    kinds: &[LeakKind],
    home: Option<&str>,
) -> Option<Vec<u8>> {
    let leaks = leaks(&as_text(bytes), home);
    let (mut plain, mut end) = (Vec::new(), 0);
    for leak in leaks.iter().filter(|leak| kinds.contains(&leak.kind)) {
        plain.extend_from_slice(&bytes[end..leak.range.start]);
        plain.extend_from_slice(&leak.replacement(bytes, is_yaml));
        end = leak.range.end;
    }

    plain.extend_from_slice(&bytes[end..]);
    (end > 0).then_some(plain)
}

impl Leak {
    /// `secret` is the offset of the user's name.
    fn of_path(range: Range<usize>, secret: usize) -> Leak {
        Leak {
            kind: LeakKind::Paths,
            label: "personal path",
            range,
            secret,
        }
    }

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
    let start = floor_char_boundary(
        text,
        line.max(leak.range.start.saturating_sub(CONTEXT_BYTES)),
    );
    let end = floor_char_boundary(text, line_end.min(leak.range.end + CONTEXT_BYTES));

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

/// Converts bytes to the texts in which [`redact_leaks`] finds leaks.
pub fn searched_texts(bytes: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    let decoded = utf16_text(bytes).map(Cow::Owned);
    [as_text(bytes)].into_iter().chain(decoded)
}

/// Converts bytes to a text with the same offsets. Replaces non-ASCII bytes if it is not UTF-8.
fn as_text(bytes: &[u8]) -> Cow<'_, str> {
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

// Paths that name a person by their home directory, in every spelling that programs print: with
// slashes or backslashes, escaped in JSON, percent-encoded, and as `~name`.

// Generic names, in lower case.
const GENERIC_NAMES: &str = "\
    user username yourname your-name your_name yourusername your-username your_username you me \
    name example runner linuxbrew shared public default ubuntu vscode circleci codespace \
    gitpod jovyan vagrant";
// Pages of web sites below `/home/`.
const PAGES: &str = "\
    about index page pages dashboard settings profile login logout contact help search home \
    news feed view list new";
// Text in front of the address of a page, rather than of a path.
const PAGE_BEFORE: &str = "\
    href= src= action= to= url= url( href: url: route( get( post( put( delete( push( navigate( \
    redirect( fetch(";
const METHODS: [&str; 3] = ["get ", "post ", "put "];
// Bytes before a path that are searched for the beginning of a word.
const FAR: usize = 512;

const NAME: &str = r"[\p{L}\p{N}_][\p{L}\p{N}._-]*";
// `/`, `\/`, `\\` and so on, and both percent-encoded.
const SEPARATOR: &str = r"(?:/{1,3}|\\/|\\{1,8}|%2[Ff]|%5[Cc]|%255[Cc]|%252[Ff])";

static HOME: LazyLock<Regex> = LazyLock::new(|| {
    let dirs = "home|run/media|[Uu]sers|Documents(?: |%20)and(?: |%20)Settings";
    let first = SEPARATOR.replacen("/{1,3}", "/", 1);
    let pattern = format!("(?P<before>{first})(?P<dir>{dirs}){SEPARATOR}(?P<name>{NAME})");
    constant_regex(&pattern)
});

// Names of Windows can have spaces. Only a separator shows where they end.
static REST_OF_NAME: LazyLock<Regex> =
    LazyLock::new(|| constant_regex(r"^((?: [\p{L}\p{N}._-]+){1,4})\\"));

// Claude Code names a project's directory after its path.
static JOINED: LazyLock<Regex> = LazyLock::new(|| {
    constant_regex(r"projects[/\\]{1,4}-(?:home|Users)-(?P<name>[\p{L}\p{N}_.]+)")
});

static TILDE: LazyLock<Regex> =
    LazyLock::new(|| constant_regex(r"~(?P<name>[\p{L}_][\p{L}\p{N}._-]+)"));

// Where systems have homes besides `/home` and `/Users`, with `/` for every separator.
static ROOTS: LazyLock<Regex> = LazyLock::new(|| {
    constant_regex(concat!(
        r"(?:/{0,3}(?-u:\b)[A-Za-z]:|(?:/mnt|/cygdrive)?/[A-Za-z]|/var|/usr|/export|/mnt|/data|/net|/nfs",
        r"|/private|/System/Volumes/Data|/Volumes/[^/]+|/host|/rootfs|/hostfs)$",
    ))
});

// What an escape or a terminal's color leaves in front of a path.
static ESCAPE: LazyLock<Regex> =
    LazyLock::new(|| constant_regex(r"(?:\\[nrt]|\\u[0-9A-Fa-f]{4}|\x1b\[[0-9;]{0,16}[mK])$"));

/// Returns the paths in a text that name a person. Paths below `home` count wherever it is.
fn home_paths(text: &str, home: Option<&str>) -> Vec<Leak> {
    let mut paths: Vec<Leak> = HOME
        .captures_iter(text)
        .filter_map(|captures| {
            let (before, dir) = (captures.name("before")?, captures.name("dir")?);
            let name = captures.name("name")?.range();
            let needs_drive = dir.as_str() == "users";
            let is_start = is_start(text, before.start(), needs_drive);
            named_path(text, before.start(), name).filter(|_| is_start)
        })
        .collect();

    paths.extend(JOINED.captures_iter(text).filter_map(|captures| {
        let (start, name) = (captures.get(0)?.start(), captures.name("name")?);
        (!is_generic(name.as_str())).then(|| Leak::of_path(start..name.end(), name.start()))
    }));
    let own_name = home.and_then(|home| home.trim_end_matches('/').rsplit('/').next());
    paths.extend(tildes(text, own_name));
    paths.extend(own(text, home));
    paths
}

fn named_path(text: &str, start: usize, mut name: Range<usize>) -> Option<Leak> {
    if let Some(suffix) = REST_OF_NAME.captures(&text[name.end..]) {
        name.end += suffix.get(1)?.len();
    }
    // A full stop can end a sentence.
    name.end -= text[name.clone()].len() - text[name.clone()].trim_end_matches('.').len();
    let after = &text[name.end..];
    let is_dir = after.starts_with(['/', '\\'])
        || ["%2f", "%5c", "%252f", "%255c"].iter().any(|separator| {
            let start = after.as_bytes().get(..separator.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(separator.as_bytes()))
        });
    let is_person = !is_generic(&text[name.clone()]);
    let is_named = is_person && (is_dir || is_whole_path(text, start, name.clone()));
    is_named.then(|| Leak::of_path(start..name.end, name.start))
}

/// Returns `true` if a path can end after the name, rather than be the address of a page.
fn is_whole_path(text: &str, start: usize, name: Range<usize>) -> bool {
    let word = text[name.clone()].to_lowercase();
    let ends = |c: char| c.is_whitespace() || c.is_control() || "\"'`:;,)]}><|&!.-".contains(c);
    let next = text[name.end..].chars().next();
    if next.is_some_and(|c| !ends(c)) || has_word(PAGES, &word) {
        return false;
    }

    let is_page = [
        ".html", ".htm", ".php", ".js", ".css", ".json", ".png", ".svg", ".tsx", ".vue",
    ];
    let before = &text[floor_char_boundary(text, start.saturating_sub(24))..start];
    let before = before
        .trim_end_matches(['"', '\'', '`', '\\'])
        .to_lowercase();
    !is_page.iter().any(|ending| word.ends_with(ending))
        && !PAGE_BEFORE
            .split(' ')
            .chain(METHODS)
            .any(|opening| before.ends_with(opening))
}

fn is_generic(name: &str) -> bool {
    has_word(GENERIC_NAMES, &name.to_lowercase())
}

fn tildes(text: &str, own: Option<&str>) -> impl Iterator<Item = Leak> {
    TILDE.captures_iter(text).filter_map(move |captures| {
        let (start, name) = (captures.get(0)?.start(), captures.name("name")?);
        let before = text[..start].chars().next_back();
        let starts = before.is_none_or(|c| c.is_whitespace() || "\"'`=:(,".contains(c));
        let is_own = own == Some(name.as_str());
        let is_dir = text[name.end()..].starts_with('/') && name.len() > 2;
        (starts && (is_own || is_dir) && !is_generic(name.as_str()))
            .then(|| Leak::of_path(start..name.end(), name.start()))
    })
}

/// Finds the user's own home directory. Of those directly below the root, only that of root counts:
/// the others are directories of containers.
fn own(text: &str, home: Option<&str>) -> Vec<Leak> {
    let home = home.map(|home| home.trim_end_matches('/'));
    let is_deep = |home: &&str| home.matches('/').count() > 1 || *home == "/root";
    let Some(home) = home.filter(|home| home.starts_with('/')).filter(is_deep) else {
        return Vec::new();
    };
    let dir = home.rfind('/').map_or(0, |at| at + 1);
    if is_generic(&home[dir..]) {
        return Vec::new();
    }

    let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut paths = Vec::new();
    for separator in ["/", "\\/", "%2F", "%2f"] {
        let spelled = home.replace('/', separator);
        let name = spelled.len() - (home.len() - dir);
        let is_whole = |at: usize| {
            let tail = &text[at + spelled.len()..];
            // A full stop can end a sentence.
            !tail.trim_start_matches('.').starts_with(goes_on)
        };
        let matches = text.match_indices(&spelled);
        let matches = matches.filter(|(at, _)| is_whole(*at) && is_start(text, *at, false));
        paths.extend(matches.map(|(at, _)| Leak::of_path(at..at + spelled.len(), at + name)));
    }
    paths
}

/// Returns `true` if a path starts here or at a directory of homes in front, rather than the middle
/// of another path or of a URL.
fn is_start(text: &str, start: usize, needs_drive: bool) -> bool {
    let before = &text[floor_char_boundary(text, start.saturating_sub(FAR))..start];
    let is_escaped = ESCAPE.is_match(before);
    let decoded = decoded(before);
    let ends_word =
        |c: char| c.is_whitespace() || c.is_control() || "\"'`()[]{}<>,;=|&".contains(c);
    let word = decoded.rsplit(ends_word).next().unwrap_or_default();
    let is_share = word.starts_with('\\');
    let word = with_slashes(word);
    let root = ROOTS.find(&word).map(|root| root.as_str());
    if needs_drive {
        return root.is_some_and(|root| root.ends_with(':') || root.len() == "/c".len());
    }
    if is_escaped {
        return true;
    }

    if let Some((_, tail)) = word.split_once("://") {
        let is_local = tail.is_empty() || ["file", "localhost"].contains(&tail);
        let is_root = ROOTS.find(tail).is_some_and(|root| root.as_str() == tail);
        return is_local || is_root || word.starts_with("file://wsl");
    }
    let host = word.strip_prefix('/').unwrap_or_default();
    if is_share && !host.is_empty() && host.split('/').count() <= 2 {
        return true;
    }
    let is_part = |c: char| c.is_alphanumeric() || "._-/~$%".contains(c);
    let starts_after = |word: &str| {
        let is_option = word.len() > 1 && word.starts_with('-') && !word.contains('/');
        is_option || !word.ends_with(is_part)
    };
    // `b:` can be a drive, or the end of another path in a list.
    starts_after(&word) || starts_after(&word[..word.len() - root.map_or(0, str::len)])
}

/// Decodes the percent-encoding of paths.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut text = text.replace("%25", "%");
    for (code, plain) in [
        ("%2F", "/"),
        ("%2f", "/"),
        ("%3A", ":"),
        ("%3a", ":"),
        ("%5C", "\\"),
        ("%5c", "\\"),
        ("%3D", "="),
        ("%3d", "="),
        ("%26", "&"),
        ("%22", "\""),
        ("%20", " "),
        ("%0A", "\n"),
        ("%0a", "\n"),
    ] {
        text = text.replace(code, plain);
    }
    Cow::Owned(text)
}

/// Replaces each run of backslashes, and `\/`, by one slash.
fn with_slashes(word: &str) -> String {
    let mut path = String::with_capacity(word.len());
    let mut chars = word.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            path.push(c);
            continue;
        }
        while chars.next_if_eq(&'\\').is_some() {}
        if chars.peek() != Some(&'/') {
            path.push('/');
        }
    }
    path
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
        let plain = redact_leaks(text.as_bytes(), false, &LeakKind::ALL, home);
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

    /// Bug: what `grep --color` had marked stayed.
    #[test]
    fn colors_do_not_hide_what_is_in_parts() {
        let check = |text: &str, expected: &str| assert_eq!(plain(text, None), expected, "{text}");
        let key = key();
        let (front, rest) = key.split_at(4);
        for [on, off] in [
            ["\u{1b}[01;31m\u{1b}[K", "\u{1b}[m\u{1b}[K"],
            [r"\e[31m", r"\e[0m"],
            [r"\\u001B[31m", r"\\u001B[0m"],
            ["\u{1b}]8;;http://localhost\u{7}", "\u{1b}]8;;\u{7}"],
        ] {
            let text = format!("x={on}{front}{off}{rest} {on}/home/{off}{on}ada{off}/x {on}y{off}");
            let expected =
                format!("x={on}[redacted github token] {on}/home/{off}{on}user{off}/x {on}y{off}");
            check(&text, &expected);
        }
        check(
            &format!("\u{1b}[31m{key}\u{1b}[m"),
            "\u{1b}[31m[redacted github token]\u{1b}[m",
        );
    }

    #[test]
    fn utf16_with_a_mark_is_redacted() {
        for (mark, order) in [
            ([0xff, 0xfe], ByteOrder::Little),
            ([0xfe, 0xff], ByteOrder::Big),
        ] {
            let encoded = |text: &str| [&mark[..], &order.encode(text)].concat();
            let redact = |text: &str| redact_leaks(&encoded(text), false, &LeakKind::ALL, None);
            let expected = encoded("é [redacted github token] /home/user/x\r\n");
            assert_eq!(
                redact(&format!("é {} /home/ada/x\r\n", key())),
                Some(expected)
            );
            assert_eq!(redact("nothing\r\n"), None);
        }
    }

    #[test]
    fn other_paths_and_addresses_leak_no_user() {
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
            let bytes = redact_leaks(text.as_bytes(), is_yaml, &LeakKind::ALL, None).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(redact(false), "text: [redacted github token]\nnext: 1\n");
        assert_eq!(redact(true), "text: (redacted github token)\nnext: 1\n");
    }

    #[test]
    fn what_is_no_text_is_looked_at_as_well() {
        let bytes = [&b"\xff\xfe"[..], key().as_bytes(), b"\xff"].concat();
        let plain = redact_leaks(&bytes, false, &LeakKind::ALL, None).unwrap();
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

#[cfg(test)]
mod home_path_tests {
    use super::*;

    fn find_names(text: &str, home: Option<&str>) -> Vec<String> {
        let paths = home_paths(text, home).into_iter();
        let mut names: Vec<_> = paths
            .map(|path| text[path.secret..path.range.end].to_owned())
            .collect();
        names.dedup();
        names
    }

    #[test]
    fn a_home_is_known_in_every_spelling() {
        for text in [
            "/home/ada",
            "cd /home/ada.",
            "HOME=/home/ada\n",
            "\"home\": \"/home/ada\"",
            "/home/ada/x",
            "/home//ada/x",
            "/Users/ada/x",
            "/Users/ada: permission denied",
            "C:\\Users\\ada\\x",
            "c:\\users\\ada\\x",
            "C:/Users/ada",
            "\"C:\\\\Users\\\\ada\\\\x\"",
            "\"\\\"C:\\\\\\\\Users\\\\\\\\ada\\\\\\\\x\\\"\"",
            "C:\\Documents and Settings\\ada\\x",
            "file:///home/ada/x",
            "file:///C:/Users/ada/x",
            "file:///c%3A/Users/ada/x",
            "sqlite:///home/ada/x.db",
            "vscode://file/home/ada/x:3",
            "%2Fhome%2Fada%2Fx",
            "https://example.org/?path=%2Fhome%2Fada",
            "file%3A%2F%2F%2Fhome%2Fada%2Fx",
            "C%3A%5CUsers%5Cada%5Cx",
            "\\/home\\/ada\\/x",
            "/var/home/ada/x",
            "/usr/home/ada/x",
            "/export/home/ada/x",
            "/private/home/ada/x",
            "/System/Volumes/Data/Users/ada/x",
            "/Volumes/Disk/Users/ada/x",
            "/run/media/ada/stick",
            "/mnt/c/Users/ada/x",
            "/c/Users/ada/x",
            "/cygdrive/c/Users/ada/x",
            "\\\\wsl$\\Ubuntu\\home\\ada\\x",
            "\\\\wsl.localhost\\Ubuntu\\home\\ada",
            "\\\\server\\Users\\ada\\x",
            "\\\\?\\C:\\Users\\ada\\x",
            "file://wsl.localhost/Ubuntu/home/ada/x",
            "cat ~ada/x",
            "one\\n/home/ada/x\\ntwo",
            "\u{1b}[32m/home/ada/x\u{1b}[0m",
            "-I/home/ada/include",
            "x:/home/ada/x",
            "~/.claude/projects/-home-ada-src-x/y.jsonl",
        ] {
            assert_eq!(find_names(text, None), ["ada"], "{text}");
        }
        assert_eq!(find_names("C:\\Users\\Ada L\\x", None), ["Ada L"]);
        assert_eq!(find_names("owner ~ada", Some("/home/ada")), ["ada"]);
        assert_eq!(
            find_names("x=%2Fsrv%2Fpeople%2Fada", Some("/srv/people/ada")),
            ["ada"]
        );
        assert_eq!(find_names("see /root/.cargo", Some("/root")), ["root"]);
    }

    #[test]
    fn addresses_and_other_paths_contain_no_name() {
        for text in [
            "https://example.org/home/ada/x https://example.org/Users/ada",
            "https%3A%2F%2Fexample.org%2Fhome%2Fada",
            "//example.org/home/ada/x example.org/home/ada",
            "href=\"/home/ada\" router.get('/home/ada') GET /home/ada HTTP/1.1",
            "/home/about /home/index.html /home/?x /home/{id} /home/* /home/ada?x=1",
            "/api/users/ada/x GET /users/ada {\"users\": 1}",
            "data/home/ada/x src/Users/ada/x ~/home/ada/x $ROOT/home/ada/x",
            "/home/user/x /home/runner/work /Users/Shared/x /home/$USER/x",
            "HEAD~ada/x https://example.org/~ada/x ~/x ~1.2/x ~km/h and ~ada",
            "/root/.cargo/bin /var/root/x",
        ] {
            assert_eq!(find_names(text, None), [""; 0], "{text}");
        }
    }
}
