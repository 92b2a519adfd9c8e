//! Memos: the model's long-term memory in `.teddy/memos.yaml`, and the changes that a plan makes to
//! it.
//!
//! This module handles the section of a plan, [`file`] the YAML file. Rules M1-M8 of
//! `docs/formats/memos.md`.

use serde_yaml::Value;

use super::diagnostic::{Diagnostic, quote};
use crate::text::yaml::{self, YamlError};

/// One line of `## Memos`.
#[derive(Debug, Clone)]
pub struct MemoChange {
    /// Line in the plan, from 1. Without effect on equality.
    pub line: usize,
    /// Adds or removes the memo.
    pub verb: Verb,
    pub text: String,
    /// Text after ` # `; shown, never stored.
    pub comment: Option<String>,
}

impl PartialEq for MemoChange {
    fn eq(&self, other: &MemoChange) -> bool {
        (self.verb, &self.text, &self.comment) == (other.verb, &other.text, &other.comment)
    }
}

impl Eq for MemoChange {}

/// Change of a memo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// `[+]`
    Add,
    /// `[-]`
    Remove,
}

/// Parses the section's block. `first` is the line number of its first line in the plan.
pub fn parse_section(block: &str, first: usize) -> (Vec<MemoChange>, Vec<Diagnostic>) {
    let (mut changes, mut wrong) = (Vec::new(), Vec::new());
    for (offset, line) in crate::text::fence::split_lines(block).enumerate() {
        let (line, text) = (first + offset, line.text.trim());
        if text.is_empty() {
            continue;
        }

        match parse_change(line, text) {
            Ok(change) => changes.push(change),
            Err(message) => {
                let hint =
                    "write `[+] a fact to remember # why` or `[-] the exact memo to forget # why`";
                wrong.push(
                    Diagnostic::new(line, format!("{message}: \"{}\"", quote(text))).hint(hint),
                );
            }
        }
    }

    (changes, wrong)
}

fn parse_change(line: usize, text: &str) -> Result<MemoChange, &'static str> {
    let (verb, body) = match text.get(..3) {
        Some("[+]") => (Verb::Add, &text[3..]),
        Some("[-]") => (Verb::Remove, &text[3..]),
        _ => return Err("a memo starts with `[+]` or `[-]`"),
    };
    let (memo, comment) = match body.find(" # ") {
        Some(at) => (&body[..at], Some(body[at + 3..].trim().to_owned())),
        None => (body, None),
    };

    let memo = memo.trim();
    if memo.is_empty() {
        return Err("the memo is empty");
    }

    if memo.chars().any(is_break) {
        return Err("the memo has a control character");
    }

    Ok(MemoChange {
        line,
        verb,
        text: memo.to_owned(),
        comment: comment.filter(|c| !c.is_empty()),
    })
}

pub fn write_change(change: &MemoChange, out: &mut String) {
    let sign = if change.verb == Verb::Add {
        "[+]"
    } else {
        "[-]"
    };

    out.push_str(&format!("{sign} {}", change.text));
    out.extend(change.comment.iter().map(|comment| format!(" # {comment}")));
    out.push('\n');
}

/// Returns whether a character ends or hides a line.
fn is_break(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
}

// Reads and changes `.teddy/memos.yaml`.
//
// A change adds or removes single lines. All other lines, comments included, are preserved.

/// Largest file that is read, in bytes.
pub const MAX_MEMO_FILE: usize = 64 << 10;

/// Why a file could not be read as memos.
#[derive(Debug, thiserror::Error)]
pub enum MemoError {
    #[error("cannot read the memos: {0}")]
    Guard(#[from] YamlError),
    #[error("cannot read the memos: {0}")]
    Syntax(#[from] serde_yaml::Error),
    #[error("the memos are not a list of texts, one `- memo` per line")]
    Shape,
    #[error("memo {0} is not a single line of text")]
    Entry(usize),
}

/// Parses the file. An empty file, or one with only comments, has no memos. Anything but a list of
/// single-line strings is an error: guessing could lose memos.
pub fn parse_file(file: &str) -> Result<Vec<String>, MemoError> {
    yaml::guard(file, MAX_MEMO_FILE)?;
    let entries =
        match serde_yaml::from_str::<Value>(file.strip_prefix('\u{feff}').unwrap_or(file))? {
            Value::Null => return Ok(Vec::new()),
            Value::Sequence(entries) => entries,
            _ => return Err(MemoError::Shape),
        };
    let text = |(index, entry): (usize, Value)| match entry {
        Value::String(text) if !text.chars().any(is_break) => Ok(text.trim().to_owned()),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(MemoError::Entry(index + 1)),
    };

    entries.into_iter().enumerate().map(text).collect()
}

/// Returns the file with the changes applied: an added memo becomes a line at the end, a removed
/// one loses its lines. A file that [`parse_file`] rejects is returned unchanged.
pub fn apply_to_file(file: &str, changes: &[MemoChange]) -> String {
    let Ok(mut memos) = parse_file(file) else {
        return file.to_owned();
    };
    let mut text = file.to_owned();
    for change in changes {
        let at = memos.iter().position(|memo| *memo == change.text);
        let next = match (change.verb, at) {
            (Verb::Add, None) => {
                memos.push(change.text.clone());
                append_memo(&text, &change.text)
            }
            (Verb::Remove, Some(at)) => {
                memos.remove(at);
                remove_memo(&text, at)
            }
            _ => continue,
        };

        // A flow list, or any other shape without a line per memo, is rewritten as a plain list.
        let exact = parse_file(&next).is_ok_and(|parsed| parsed == memos);
        text = if exact { next } else { write_file(&memos) };
    }

    text
}

fn append_memo(file: &str, memo: &str) -> String {
    let ending = if file.contains("\r\n") { "\r\n" } else { "\n" };
    let indent = entry_ranges(file)
        .first()
        .map_or("", |&(start, _)| leading_space(&file[start..]));
    let mut text = file.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push_str(ending);
    }

    // `[]` may stand for the empty list; the new line replaces it.
    if text.lines().any(|line| line.trim() == "[]") {
        text = text
            .split_inclusive('\n')
            .filter(|line| line.trim() != "[]")
            .collect();
    }

    text + &format!("{indent}- {}{ending}", yaml_scalar(memo))
}

fn remove_memo(file: &str, index: usize) -> String {
    match entry_ranges(file).get(index) {
        Some(&(start, end)) => format!("{}{}", &file[..start], &file[end..]),
        None => file.to_owned(),
    }
}

fn write_file(memos: &[String]) -> String {
    memos
        .iter()
        .map(|memo| format!("- {}\n", yaml_scalar(memo)))
        .collect()
}

/// Returns the byte range of each entry of a block list, without the comments and blank lines after
/// it.
fn entry_ranges(file: &str) -> Vec<(usize, usize)> {
    let mut items: Vec<(usize, usize)> = Vec::new();
    let mut margin = None;
    let mut at = 0;
    for line in file.split_inclusive('\n') {
        let (start, text) = (at, line.trim());
        at += line.len();
        let blanks = leading_space(line).len();
        let entry = text == "-" || text.starts_with("- ");
        if entry && margin.is_none_or(|margin| margin == blanks) {
            margin = Some(blanks);
            items.push((start, at));
        } else if !text.is_empty()
            && !text.starts_with('#')
            && margin.is_some_and(|margin| blanks > margin)
        {
            items.last_mut().expect("a margin comes with an entry").1 = at;
        }
    }

    items
}

fn leading_space(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t', '\u{feff}']).len()]
}

/// Writes a memo as a YAML scalar that every parser reads as this text.
fn yaml_scalar(memo: &str) -> String {
    if is_plain_scalar(memo) {
        memo.to_owned()
    } else {
        format!("'{}'", memo.replace('\'', "''"))
    }
}

/// Returns whether YAML 1.1 and 1.2 read the unquoted text as this string.
fn is_plain_scalar(memo: &str) -> bool {
    const RESERVED: [&str; 10] = [
        "y", "n", "yes", "no", "on", "off", "true", "false", "null", "none",
    ];

    let first = memo.chars().next().unwrap_or(' ');
    // A number, or a time with a space, such as `2024-01-01 10:00:00 +2`.
    let is_time = || {
        memo.chars()
            .all(|c| c.is_ascii_digit() || " -:.+TtZz".contains(c))
    };
    let digits = first.is_ascii_digit() && (!memo.contains(' ') || is_time());
    let safe = first.is_alphanumeric() || !first.is_ascii();
    let marks =
        memo.contains(": ") || memo.contains(" #") || memo.ends_with(':') || memo.contains('\t');
    safe && !digits
        && !marks
        && !RESERVED.contains(&memo.to_lowercase().as_str())
        && first != '\u{feff}'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        let (changes, wrong) = parse_section(line, 7);
        let rendered = changes.iter().map(|c| {
            format!(
                "{:?} {}{}",
                c.verb,
                c.text,
                c.comment
                    .as_ref()
                    .map_or(String::new(), |t| format!(" | {t}"))
            )
        });
        let actual: Vec<String> = rendered
            .chain(wrong.iter().map(|w| format!("{}: {}", w.line, w.message)))
            .collect();
        assert_eq!(actual.join("; "), expected, "for {line:?}");
    }

    #[test]
    fn m1_a_line_adds_or_removes() {
        check(
            "[+] A new fact to remember. # A new convention.",
            "Add A new fact to remember. | A new convention.",
        );
        check("[-] Old. # why", "Remove Old. | why");
        check("\n  \n", "");
        check(
            "Something without marker",
            "7: a memo starts with `[+]` or `[-]`: \"Something without marker\"",
        );
        check(
            "x\n[+]\n",
            "7: a memo starts with `[+]` or `[-]`: \"x\"; 8: the memo is empty: \"[+]\"",
        );
    }

    #[test]
    fn m2_a_comment_starts_at_a_lone_hash() {
        check("[+] Close issue #42", "Add Close issue #42");
        check("[+] Use C# here", "Add Use C# here");
        check(
            "[-] Old issue #42 closed # reason # two",
            "Remove Old issue #42 closed | reason # two",
        );
        check("[+] # only", "7: the memo is empty: \"[+] # only\"");
        check("[+] Use ``` for code", "Add Use ``` for code");
    }

    #[test]
    fn m3_a_memo_is_one_plain_line() {
        check(
            "[+] a\tb",
            "7: the memo has a control character: \"[+] a   b\"",
        );
        check(
            "[+] a\u{2028}b",
            "7: the memo has a control character: \"[+] a\\u{2028}b\"",
        );
        check(
            "[+] a\u{fffe}b",
            "7: the memo has a control character: \"[+] a\u{fffe}b\"",
        );
        check("[+] 👩‍💻 works", "Add 👩‍💻 works");
    }
}

#[cfg(test)]
mod file_tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::memo::parse_section;

    /// Parses memo changes from lines of a section.
    fn changes(block: &str) -> Vec<MemoChange> {
        parse_section(block, 1).0
    }

    #[test]
    fn m4_the_file_is_a_list_of_texts() {
        assert_eq!(parse_file("").unwrap(), Vec::<String>::new());
        assert_eq!(parse_file("# nothing yet\n").unwrap(), Vec::<String>::new());
        assert_eq!(
            parse_file("- a\n- 'b: c' # note\n- 42\n- yes\n").unwrap(),
            ["a", "b: c", "42", "yes"]
        );
        assert_eq!(
            parse_file("a: b\n").unwrap_err().to_string(),
            "the memos are not a list of texts, one `- memo` per line"
        );
        assert_eq!(
            parse_file("- a\n- [b]\n").unwrap_err().to_string(),
            "memo 2 is not a single line of text"
        );
        assert!(
            parse_file("- 'a\n")
                .unwrap_err()
                .to_string()
                .starts_with("cannot read the memos: ")
        );
    }

    #[test]
    fn m5_a_change_touches_its_own_line_alone() {
        let file = "# ours\n\n- keep # why\n- 'drop: it'\n# about the next\n- last";
        assert_eq!(
            apply_to_file(file, &changes("[+] new")),
            format!("{file}\n- new\n")
        );
    }

    #[test]
    fn m5_a_removed_memo_takes_its_lines_and_nothing_else() {
        let file =
            "# ours\n- keep # why\n- 'drop: it' # gone\n# about the next\n- two\n  lines\n- last\n";
        assert_eq!(
            apply_to_file(file, &changes("[-] drop: it\n[-] two lines")),
            "# ours\n- keep # why\n# about the next\n- last\n"
        );
        assert_eq!(apply_to_file(file, &changes("[-] absent")), file);
    }

    #[test]
    fn m5_indentation_and_line_ends_of_the_file_are_kept() {
        assert_eq!(
            apply_to_file("  - a\r\n", &changes("[+] b")),
            "  - a\r\n  - b\r\n"
        );
        assert_eq!(apply_to_file("[]\n", &changes("[+] b")), "- b\n");
        assert_eq!(apply_to_file("# c\n", &changes("[+] b")), "# c\n- b\n");
        assert_eq!(apply_to_file("- a\n", &changes("[-] a")), "");
    }

    #[test]
    fn m6_a_list_of_another_shape_is_written_anew() {
        assert_eq!(
            apply_to_file("[a, 'b: c']\n", &changes("[+] d\n[-] a")),
            "- 'b: c'\n- d\n"
        );
        assert_eq!(apply_to_file("a: b\n", &changes("[+] d")), "a: b\n");
    }

    /// Our own parser reads a time as text, so others are what this is for.
    #[test]
    fn m7_a_time_is_quoted() {
        for memo in [
            "2024-01-01 10:00:00",
            "2024-01-01 10:00:00.5 +02:00",
            "2024-1-1 1:00:00Z",
        ] {
            assert_eq!(
                apply_to_file("", &changes(&format!("[+] {memo}"))),
                format!("- '{memo}'\n")
            );
        }
        let begun = "2024-01-01 10:00:00 was the first build";
        assert_eq!(
            apply_to_file("", &changes(&format!("[+] {begun}"))),
            format!("- {begun}\n")
        );
    }

    #[test]
    fn m7_what_yaml_would_misread_is_quoted() {
        for memo in [
            "yes",
            "No",
            "null",
            "42",
            "1e3",
            "2024-01-01",
            "0x1f",
            "~",
            "- x",
            "@x",
            "%x",
            "a: b",
            "a:",
            "it's",
            "'q'",
            "\"q\"",
            "#x",
            "a #b",
            "[x]",
            "{x",
            "*a",
            "&a",
            "!t",
            "| x",
            "> x",
            "? x",
            "🟢 ok",
            "C#",
            "💥",
            "a\u{a0}b",
            "=",
            "<<",
            ".5",
            "-1",
        ] {
            let file = apply_to_file("- first\n", &changes(&format!("[+] {memo}")));
            assert_eq!(parse_file(&file).unwrap(), ["first", memo], "{file:?}");
            assert!(file.starts_with("- first\n"), "{file:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn m8_any_memo_survives_the_file(memos in proptest::collection::vec("[^\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\u{fffe}\u{ffff}]{1,30}", 1..5)) {
            let mut unique: Vec<String> = Vec::new();
            for memo in memos.iter().map(|m| m.trim().to_owned()) {
                if !memo.is_empty() && !unique.contains(&memo) {
                    unique.push(memo);
                }
            }
            let add = |text: &String| MemoChange { line: 1, verb: Verb::Add, text: text.clone(), comment: None };
            let file = apply_to_file("# head\n", &unique.iter().map(add).collect::<Vec<_>>());
            prop_assert_eq!(parse_file(&file).unwrap(), unique.clone());
            prop_assert!(file.starts_with("# head\n"));
            let removals: Vec<MemoChange> = unique.iter().map(|t| MemoChange { verb: Verb::Remove, ..add(t) }).collect();
            prop_assert_eq!(apply_to_file(&file, &removals), "# head\n");
        }
    }
}
