//! Reads and changes `.teddy/memos.yaml`.
//!
//! A change adds or removes single lines. All other lines, comments included, are preserved.

use serde_yaml::Value;

use super::{MemoChange, Verb, is_break};
use crate::text::yaml::{self, YamlError};

/// Largest file that is read, in bytes.
pub const MAX_MEMO_FILE: usize = 64 << 10;

/// Why a file could not be read as memos.
#[derive(Debug, thiserror::Error)]
pub enum MemoError {
    /// Too large or too deeply nested.
    #[error("cannot read the memos: {0}")]
    Guard(#[from] YamlError),
    /// Not YAML.
    #[error("cannot read the memos: {0}")]
    Syntax(#[from] serde_yaml::Error),
    /// YAML, but not a list of strings.
    #[error("the memos are not a list of texts, one `- memo` per line")]
    Shape,
    /// An entry that is not one line of text.
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
    let digits = first.is_ascii_digit() && !memo.contains(' ');
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
