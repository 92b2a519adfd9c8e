//! Finds paths that name a person by their home directory, in every spelling that programs print:
//! with slashes or backslashes, escaped in JSON, percent-encoded, and as `~name`.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

// Generic names, in lower case.
const GENERIC_NAMES: [&str; 24] = [
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
    "ubuntu",
    "vscode",
    "circleci",
    "codespace",
    "gitpod",
    "jovyan",
    "vagrant",
];
// Pages of web sites below `/home/`.
const PAGES: [&str; 18] = [
    "about",
    "index",
    "page",
    "pages",
    "dashboard",
    "settings",
    "profile",
    "login",
    "logout",
    "contact",
    "help",
    "search",
    "home",
    "news",
    "feed",
    "view",
    "list",
    "new",
];
// Text in front of the address of a page, rather than of a path.
const PAGE_BEFORE: [&str; 20] = [
    "href=",
    "src=",
    "action=",
    "to=",
    "url=",
    "url(",
    "href:",
    "url:",
    "route(",
    "get(",
    "post(",
    "put(",
    "delete(",
    "push(",
    "navigate(",
    "redirect(",
    "fetch(",
    "get ",
    "post ",
    "put ",
];
// Bytes before a path that are searched for the beginning of a word.
const FAR: usize = 512;

/// A path with a person's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HomePath {
    /// From its beginning to the end of the name.
    pub range: Range<usize>,
    /// Beginning of the name.
    pub name: usize,
}

const NAME: &str = r"[\p{L}\p{N}_][\p{L}\p{N}._-]{0,63}";
// `/`, `\/`, `\\` and so on, and both percent-encoded.
const SEPARATOR: &str = r"(?:/{1,3}|\\/|\\{1,8}|%2[Ff]|%5[Cc]|%255[Cc]|%252[Ff])";

static HOME: LazyLock<Regex> = LazyLock::new(|| {
    let dirs = "home|run/media|[Uu]sers|Documents(?: |%20)and(?: |%20)Settings";
    let first = SEPARATOR.replacen("/{1,3}", "/", 1);
    let pattern = format!("(?P<before>{first})(?P<dir>{dirs}){SEPARATOR}(?P<name>{NAME})");
    Regex::new(&pattern).expect("the pattern is a constant that the tests compile")
});

// Names of Windows can have spaces. Only a separator shows where they end.
static REST_OF_NAME: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"^((?: [\p{L}\p{N}._-]{1,32}){1,4})\\";
    Regex::new(pattern).expect("the pattern is a constant that the tests compile")
});

// Claude Code names a project's directory after its path.
static JOINED: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"projects[/\\]{1,4}-(?:home|Users)-(?P<name>[\p{L}\p{N}_.]{1,64})";
    Regex::new(pattern).expect("the pattern is a constant that the tests compile")
});

static TILDE: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"~(?P<name>[\p{L}_][\p{L}\p{N}._-]{1,31})";
    Regex::new(pattern).expect("the pattern is a constant that the tests compile")
});

// Where systems have homes besides `/home` and `/Users`, with `/` for every separator.
static ROOTS: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = concat!(
        r"(?:/{0,3}(?-u:\b)[A-Za-z]:|(?:/mnt|/cygdrive)?/[A-Za-z]|/var|/usr|/export|/mnt|/data|/net|/nfs",
        r"|/private|/System/Volumes/Data|/Volumes/[^/]+|/host|/rootfs|/hostfs)$",
    );
    Regex::new(pattern).expect("the pattern is a constant that the tests compile")
});

// What an escape or a terminal's color leaves in front of a path.
static ESCAPE: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?:\\[nrt]|\\u[0-9A-Fa-f]{4}|\x1b\[[0-9;]{0,16}[mK])$";
    Regex::new(pattern).expect("the pattern is a constant that the tests compile")
});

/// Returns the paths in a text that name a person. Paths below `home` count wherever it is.
pub(super) fn home_paths(text: &str, home: Option<&str>) -> Vec<HomePath> {
    let mut paths: Vec<HomePath> = HOME
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
        let path = HomePath {
            range: start..name.end(),
            name: name.start(),
        };
        (!is_generic(name.as_str())).then_some(path)
    }));
    let own_name = home.and_then(|home| home.trim_end_matches('/').rsplit('/').next());
    paths.extend(tildes(text, own_name));
    paths.extend(own(text, home));
    paths
}

fn named_path(text: &str, start: usize, mut name: Range<usize>) -> Option<HomePath> {
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
    is_named.then_some(HomePath {
        range: start..name.end,
        name: name.start,
    })
}

/// Returns `true` if a path can end after the name, rather than be the address of a page.
fn is_whole_path(text: &str, start: usize, name: Range<usize>) -> bool {
    let word = text[name.clone()].to_lowercase();
    let ends = |c: char| c.is_whitespace() || c.is_control() || "\"'`:;,)]}><|&!.-".contains(c);
    let next = text[name.end..].chars().next();
    if next.is_some_and(|c| !ends(c)) || PAGES.contains(&word.as_str()) {
        return false;
    }

    let is_page = [
        ".html", ".htm", ".php", ".js", ".css", ".json", ".png", ".svg", ".tsx", ".vue",
    ];
    let before = &text[boundary(text, start.saturating_sub(24))..start];
    let before = before
        .trim_end_matches(['"', '\'', '`', '\\'])
        .to_lowercase();
    !is_page.iter().any(|ending| word.ends_with(ending))
        && !PAGE_BEFORE.iter().any(|opening| before.ends_with(opening))
}

fn is_generic(name: &str) -> bool {
    GENERIC_NAMES.contains(&name.to_lowercase().as_str())
}

fn tildes(text: &str, own: Option<&str>) -> impl Iterator<Item = HomePath> {
    TILDE.captures_iter(text).filter_map(move |captures| {
        let (start, name) = (captures.get(0)?.start(), captures.name("name")?);
        let before = text[..start].chars().next_back();
        let starts = before.is_none_or(|c| c.is_whitespace() || "\"'`=:(,".contains(c));
        let is_own = own == Some(name.as_str());
        let is_dir = text[name.end()..].starts_with('/') && name.len() > 2;
        (starts && (is_own || is_dir) && !is_generic(name.as_str())).then(|| HomePath {
            range: start..name.end(),
            name: name.start(),
        })
    })
}

/// Finds the user's own home directory. Of those directly below the root, only that of root counts:
/// the others are directories of containers.
fn own(text: &str, home: Option<&str>) -> Vec<HomePath> {
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
        paths.extend(matches.map(|(at, _)| HomePath {
            range: at..at + spelled.len(),
            name: at + name,
        }));
    }
    paths
}

/// Returns `true` if a path starts here or at a directory of homes in front, rather than the middle
/// of another path or of a URL.
fn is_start(text: &str, start: usize, needs_drive: bool) -> bool {
    let before = &text[boundary(text, start.saturating_sub(FAR))..start];
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

/// Returns the last position up to `at` at which the text can be split.
pub(super) fn boundary(text: &str, at: usize) -> usize {
    let mut offsets = (0..=at).rev();
    offsets
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_names(text: &str, home: Option<&str>) -> Vec<String> {
        let paths = home_paths(text, home).into_iter();
        let mut names: Vec<_> = paths
            .map(|path| text[path.name..path.range.end].to_owned())
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
    fn addresses_and_other_paths_name_nobody() {
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
