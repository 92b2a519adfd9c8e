//! Parses values of fields as models spell them: paths, times, words for "none".

use crate::text::path::RepoPath;
use crate::text::resource::{Resource, is_url};
use crate::text::{has_phrase, has_word, link};

const NOTHING: &str = "\
    none, n/a, na, null, nil, -, –, —, nothing, not applicable, not needed, not set, unset, \
    default";
/// Values that mean the project root.
const ROOTS: &str = "\
    project root, the project root, root of the project, repository root, the repository root, \
    (project root)";
/// Top-level directories of a file system. A path that starts with one of them can be an absolute
/// path.
const SYSTEM: &str = "\
    bin boot dev etc home lib lib64 media mnt opt private proc root run sbin srv sys tmp usr var \
    Applications Users Volumes";
/// Mount points of the project in containers of coding tools.
const MOUNTS: &str = "repo workspace workspaces";
const UNITS: [(&str, u64); 3] = [
    ("h hrs hour hours", 3600),
    ("m min mins minute minutes", 60),
    ("s sec secs second seconds", 1),
];

/// Returns whether a value means "none".
pub fn is_nothing(value: &str) -> bool {
    let text = value
        .trim_matches(|c: char| " \t*_`\"'()[].".contains(c))
        .to_lowercase();
    let marks = text.is_empty() && !value.trim().is_empty() && !value.contains("..");
    has_phrase(NOTHING, &text) || marks
}

/// Returns whether a field's value means "none". `Final Newline: none` has another meaning, and a
/// directory can be named `default`.
pub fn is_nothing_for(key: &str, value: &str) -> bool {
    let own = match key {
        "Final Newline" => ["none", "nothing", "null", "nil"]
            .iter()
            .any(|word| value.to_lowercase().contains(word)),
        "cwd" => value.starts_with('`') && value.contains(char::is_alphabetic),
        _ => false,
    };
    let none = ["`none`", "`null`", "`n/a`"].contains(&&*value.to_lowercase());
    is_nothing(value) && (!own || (key == "cwd" && none))
}

pub fn is_root(value: &str) -> bool {
    let text = value.trim_matches(['`', '*', '.', ' ']).to_lowercase();
    has_phrase(ROOTS, &text)
}

/// Returns the path or artifact that a value names, in exact or other spellings; `None` if there is
/// none or the value is ambiguous.
pub fn path(value: &str) -> Option<String> {
    let name = link::read(value).ok().filter(|name| is_path(name));
    name.or_else(|| other_path(bare(value)))
}

/// Returns the path of a value that the parser does not read as intended.
fn other_path(value: &str) -> Option<String> {
    let name = match linked(value) {
        Some((text, destination)) => {
            let [text, destination] = [text, destination].map(from_root);
            let (mut text, mut destination) = (text?, destination?);
            // A mention or the lines of a link, which only one of its parts has, name nothing.
            if text != destination {
                (text, destination) = (unmentioned(text), unmentioned(destination));
            }
            link::read(&format!("[{text}](</{destination}>)")).ok()?
        }
        // A Markdown viewer shows `<a.txt>` as nothing.
        None if value.starts_with(['/', '<']) || value.contains("](") => return None,
        None if value.contains([' ', '\t', '`']) && unquoted(value).is_none() => return None,
        None => link::read(&format!("`{}`", from_root(value)?)).ok()?,
    };
    is_path(&name).then_some(name)
}

/// Returns whether a name is a path from the project root without decoration.
fn is_path(name: &str) -> bool {
    let bare = !name.starts_with("./") && !name.starts_with(['"', '\'', '“']);
    let is_valid = RepoPath::parse(name).is_ok() || Resource::parse(name).is_ok();
    bare && is_valid && !name.starts_with('/') && !is_url(name)
}

/// Returns a time with its unit in seconds.
pub fn seconds(value: &str) -> Option<u64> {
    let value = bare(value).trim_matches(['`', '(', ')']).to_lowercase();
    let value = value.trim_start_matches(['~', '≈', ' ']);
    let digits = value.len() - value.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number: u64 = value[..digits].parse().ok()?;
    let unit = value[digits..].trim_matches([' ', '(', ')', '.', '-']);

    if unit.is_empty() {
        return Some(number);
    }

    if matches!(unit, "ms" | "milliseconds") {
        return (number.is_multiple_of(1000)).then_some(number / 1000);
    }

    let (_, seconds) = UNITS.iter().find(|(names, _)| has_word(names, unit))?;
    number.checked_mul(*seconds)
}

/// Returns a value without quotes, bold marks and Markdown line breaks.
fn bare(value: &str) -> &str {
    let value = value.trim_end_matches('\\').trim();
    let pairs = ["***", "**", "__", "*", "\"", "'"].map(|mark| (mark, mark));
    let mut inside = pairs
        .into_iter()
        .chain([("“", "”")])
        .filter_map(|(open, close)| {
            let tail = value.strip_prefix(open)?;
            tail.strip_suffix(close).filter(|inside| !inside.is_empty())
        });
    inside.next().map_or(value, str::trim)
}

/// Returns the text of a value that is one code span.
pub fn unquoted(value: &str) -> Option<&str> {
    let inner = value.strip_prefix('`')?.strip_suffix('`')?;
    (!inner.contains('`')).then_some(inner)
}

fn linked(value: &str) -> Option<(&str, &str)> {
    let value = value.trim_matches('`');
    let (text, destination) = value
        .strip_prefix('[')?
        .strip_suffix(')')?
        .split_once("](")?;
    (!destination.contains("](")).then_some((text, destination))
}

/// Returns a path without the `@` of a mention before it and the lines behind it: `#L4-L5`, `:4-5`.
pub fn unmentioned(path: &str) -> &str {
    let path = path.strip_prefix('@').unwrap_or(path);
    let lines = |text: &str| {
        let numbers = |part: &str| {
            let digits = part.strip_prefix('L').unwrap_or(part);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        text.split('-').count() <= 2 && text.split('-').all(numbers)
    };
    match path.rsplit_once(['#', ':']) {
        Some((file, position)) if lines(position) && !file.is_empty() => file,
        _ => path,
    }
}

/// Returns a part of a link, or a path, relative to the project's root.
fn from_root(text: &str) -> Option<&str> {
    let text = text.trim();
    let text = text
        .strip_prefix('<')
        .and_then(|tail| tail.strip_suffix('>'))
        .unwrap_or(text)
        .trim_matches('`');
    let text = text.trim_start_matches("./");
    let Some(tail) = text.strip_prefix('/') else {
        return Some(text);
    };

    let first = tail.split('/').next().unwrap_or_default();
    (!tail.starts_with('/') && ![SYSTEM, MOUNTS].iter().any(|list| has_word(list, first)))
        .then_some(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p32_a_path_is_read_in_the_spellings_of_models() {
        for value in [
            "./src/a.py",
            "[/src/a.py](/src/a.py)",
            "[./src/a.py](./src/a.py)",
            "[`/src/a.py`](/src/a.py)",
            "\"src/a.py\"",
            "**src/a.py**",
            "**[src/a.py](/src/a.py)**",
            "`./src/a.py`",
            "src/a.py\\",
        ] {
            assert_eq!(path(value).as_deref(), Some("src/a.py"), "{value}");
        }
    }

    #[test]
    fn p32_a_path_that_may_be_the_systems_or_another_is_none() {
        for value in [
            "/src/a.py",
            "[/etc/hosts](/etc/hosts)",
            "[a.py](/src/a.py)",
            "[/src/a.py](//src/a.py)",
            "../a.py",
            "https://example.com/a.py",
            "[a](/a) [b](/b)",
            "",
        ] {
            assert_eq!(path(value), None, "{value}");
        }
    }

    #[test]
    fn p32_a_time_may_have_a_unit() {
        for (value, expected) in [
            ("2 minutes", Some(120)),
            ("2m", Some(120)),
            ("`90`", Some(90)),
            ("120 (seconds)", Some(120)),
            ("1 hour", Some(3600)),
            ("30000 ms", Some(30)),
            ("1500ms", None),
            ("a while", None),
            ("1-2 minutes", None),
        ] {
            assert_eq!(seconds(value), expected, "{value}");
        }
    }

    #[test]
    fn p32_words_for_nothing_are_known() {
        for value in ["None", "`none`", "(none)", "N/A", "-", "null.", "*default*"] {
            assert!(is_nothing(value), "{value}");
        }
        for value in ["", "0", "no", "src", "none of it"] {
            assert!(!is_nothing(value), "{value}");
        }
    }
}
