//! Classifies the difference between a FIND and the file: whitespace, look-alike characters,
//! escapes, letter case, or text that was pasted along.

use unicode_normalization::UnicodeNormalization;

use super::closest::plain;
use crate::text::sanitize::sanitize_tabbed;
use crate::text::{counted, fence};

const QUOTED: usize = 40;

/// Describes the difference of two lines, such as `indentation: the file has 1 tab, FIND has 4
/// spaces`.
pub(super) fn name(find: &str, file: &str) -> String {
    let (f, t) = (find.trim_end_matches('\r'), file.trim_end_matches('\r'));
    if f == t {
        let end = |line: &str| if line.ends_with('\r') { "CRLF" } else { "LF" };
        return format!(
            "line end: the file has {}, FIND has {}",
            end(file),
            end(find)
        );
    }

    blanks_alone(f, t)
        .or_else(|| characters(f, t))
        .or_else(|| pasted(f, t))
        .unwrap_or_else(|| describe_contents(f, t))
}

fn blanks_alone(find: &str, file: &str) -> Option<String> {
    let end = |line: &str| blanks(&line[line.trim_end_matches(BLANKS).len()..]);
    let start = |line: &str| blanks(&line[..line.len() - line.trim_start_matches(BLANKS).len()]);
    if find.trim_end_matches(BLANKS) == file.trim_end_matches(BLANKS) {
        return Some(format!(
            "whitespace at the end of the line: the file has {}, FIND has {}",
            end(file),
            end(find)
        ));
    }

    if find.trim_matches(BLANKS) == file.trim_matches(BLANKS) {
        return Some(format!(
            "indentation: the file has {}, FIND has {}",
            start(file),
            start(find)
        ));
    }

    if squeezed(find) != squeezed(file) {
        return None;
    }

    let at = common(find, file);
    let run = |line: &str| {
        let from = line[..at].trim_end_matches(BLANKS).len();
        let tail = &line[from..];
        blanks(&tail[..tail.len() - tail.trim_start_matches(BLANKS).len()])
    };
    Some(format!(
        "whitespace inside the line, at column {}: the file has {}, FIND has {}",
        column(file, at),
        run(file),
        run(find)
    ))
}

fn characters(find: &str, file: &str) -> Option<String> {
    let normalize = |line: &str| -> String { line.chars().map(plain).collect() };
    let at = common(find, file);
    let points = |line: &str| {
        line[at..].chars().next().map_or("nothing".to_owned(), |c| {
            format!("`{}` (U+{:04X})", sanitize_tabbed(&c.to_string()), c as u32)
        })
    };
    let both = || {
        format!(
            "the file has {}, FIND has {}, at column {}",
            points(file),
            points(find),
            column(file, at)
        )
    };

    if squeezed(&normalize(find)) == squeezed(&normalize(file)) {
        return Some(format!("a character that looks like another: {}", both()));
    }

    if find.nfc().eq(file.nfc()) {
        return Some(format!("letters composed in another way: {}", both()));
    }

    let word = |line: &str| sanitize_tabbed(&line[at..].chars().take(2).collect::<String>());
    if unescape(find) == file || unescape(file) == find {
        return Some(format!(
            "escaping: the file has `{}`, FIND has `{}`, at column {}",
            word(file),
            word(find),
            column(file, at)
        ));
    }

    let lower = |line: &str| line.to_lowercase();
    (lower(find) == lower(file)).then(|| format!("letter case: {}", both()))
}

fn pasted(find: &str, file: &str) -> Option<String> {
    if without_number(find)
        .is_some_and(|stripped| stripped.trim_matches(BLANKS) == file.trim_matches(BLANKS))
    {
        return Some("a line number: FIND has it in front of the line".to_owned());
    }
    let has_mark = find
        .strip_prefix(['+', '-', '>'])
        .is_some_and(|stripped| stripped.trim_matches(BLANKS) == file.trim_matches(BLANKS));

    has_mark.then(|| "a mark of a diff: FIND has it in front of the line".to_owned())
}

fn describe_contents(find: &str, file: &str) -> String {
    let at = common(find, file);
    let (f, t) = (&find[at..], &file[at..]);
    let tail = f
        .chars()
        .rev()
        .zip(t.chars().rev())
        .take_while(|(a, b)| a == b)
        .map(|(c, _)| c.len_utf8())
        .sum::<usize>();
    let quoted = |text: &str| match text.chars().count() {
        0 => "nothing".to_owned(),
        n if n <= QUOTED => format!("`{}`", sanitize_tabbed(text)),
        _ => format!(
            "`{}…`",
            sanitize_tabbed(&text.chars().take(QUOTED).collect::<String>())
        ),
    };

    let middle = |text: &str| quoted(&text[..text.len() - tail]);
    format!(
        "content: the file has {}, FIND has {}, at column {}",
        middle(t),
        middle(f),
        column(file, at)
    )
}

/// Returns a text with every line changed that is not blank. `None` if one of them cannot be.
fn change_lines(text: &str, change: impl Fn(&str) -> Option<&str>) -> Option<String> {
    let lines = text.lines().map(|line| match line.trim().is_empty() {
        true => Some(line),
        false => change(line),
    });
    let lines: Vec<&str> = lines.collect::<Option<_>>()?;
    Some(lines.join("\n") + "\n")
}

/// Returns variants of a FIND without a likely mistake, each with the name of that mistake.
pub(super) fn cures(find: &str) -> Vec<(&'static str, String)> {
    let has_marks = find.lines().any(|l| l.starts_with(['+', '-']));
    let mark = |line: &str| line.starts_with(['+', '-', ' ']).then_some(1);
    let removed: String = find
        .lines()
        .filter(|l| !l.starts_with('+'))
        .map(|l| format!("{}\n", l.get(1..).unwrap_or_default()))
        .collect();
    let unmarked = change_lines(find, |line| mark(line).map(|n| &line[n..]));
    let unmarked = unmarked.filter(|_| has_marks);
    let cured = [
        (
            "line numbers in front of its lines",
            change_lines(find, without_number),
        ),
        (
            "marks of a diff in front of its lines",
            unmarked.as_ref().map(|_| removed),
        ),
        ("marks of a diff in front of its lines", unmarked),
        (
            "marks of a quotation in front of its lines",
            change_lines(find, |line| {
                line.strip_prefix("> ").or_else(|| line.strip_prefix('>'))
            }),
        ),
        ("a fence around its lines", unfenced(find)),
        ("escapes that the file does not have", Some(unescape(find))),
    ];

    cured
        .into_iter()
        .filter_map(|(name, text)| Some((name, text?)))
        .filter(|(_, text)| text != find && !text.trim().is_empty())
        .collect()
}

/// Returns `true` if a line is an ellipsis for omitted lines.
pub(super) fn is_elided(line: &str) -> bool {
    let compact: String = line.chars().filter(|c| !c.is_whitespace()).collect();
    let bare = compact.trim_matches(|c: char| "/#*<!->;()[]{}".contains(c));
    let lower = bare.to_lowercase();
    let dots = |text: &str| {
        text.starts_with("...")
            || text.starts_with('…')
            || text.ends_with("...")
            || text.ends_with('…')
    };

    dots(bare)
        && (bare.chars().all(|c| matches!(c, '.' | '…'))
            || ["exist", "rest", "unchanged", "same", "remain"]
                .iter()
                .any(|w| lower.contains(w)))
}

fn without_number(line: &str) -> Option<&str> {
    let tail = line.trim_start_matches(BLANKS).trim_start_matches('L');
    let digits = tail.bytes().take_while(u8::is_ascii_digit).count();
    let tail = tail.get(digits..).filter(|_| digits > 0)?;
    match tail
        .trim_start_matches(BLANKS)
        .strip_prefix([':', '|', '→', '│', '.', ')', '-'])
    {
        Some(text) => Some(text.strip_prefix(' ').unwrap_or(text)),
        None if tail.is_empty() => Some(tail),
        None => tail.strip_prefix(BLANKS),
    }
}

fn unfenced(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.trim_matches('\n').lines().collect();
    let (opener, closer) = (fence::read(lines.first()?)?, fence::read(lines.last()?)?);
    // A single fence can be a line of the file.
    (closer.closes(opener.mark, opener.len) && lines.len() > 1)
        .then(|| lines[1..lines.len() - 1].join("\n") + "\n")
}

/// Decodes the escapes of string literals and HTML.
fn unescape(text: &str) -> String {
    let pairs = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ];
    let text = pairs
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();

    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            (
                '\\',
                Some(
                    &next @ ('"' | '\'' | '\\' | '`' | '*' | '_' | '$' | '<' | '>' | '[' | ']'
                    | '#' | '{' | '}'),
                ),
            ) => {
                out.push(next);
                chars.next();
            }
            _ => out.push(c),
        }
    }

    out
}

// Other invisible characters are reported by their code point.
const BLANKS: [char; 2] = [' ', '\t'];

fn squeezed(line: &str) -> String {
    line.replace(BLANKS, "")
}

fn blanks(run: &str) -> String {
    let count = |c: char, name: &str| match run.matches(c).count() {
        0 => None,
        number => Some(counted(number as u64, name)),
    };
    let counts: Vec<String> = [count('\t', "tab"), count(' ', "space")]
        .into_iter()
        .flatten()
        .collect();
    if counts.is_empty() {
        "none".to_owned()
    } else {
        counts.join(" and ")
    }
}

/// Returns the length of the common prefix in bytes.
pub(super) fn common(a: &str, b: &str) -> usize {
    a.chars()
        .zip(b.chars())
        .take_while(|(x, y)| x == y)
        .map(|(c, _)| c.len_utf8())
        .sum()
}

/// Returns the column of a byte offset, from 1, in characters.
fn column(line: &str, at: usize) -> usize {
    line[..at].chars().count() + 1
}

#[cfg(test)]
mod tests;
