//! Memos: the model's long-term memory in `.teddy/memos.yaml`, and what a plan changes in it.
//!
//! The file is the user's as much as ours: a change adds or removes single lines, and every other
//! line, comments included, stays as it is. Rules M1-M8 of `docs/formats/memos.md`.

use serde_yaml::Value;

use super::diagnostic::{Diagnostic, quote};
use crate::text::yaml::{self, YamlError};

/// The largest file that is read, in bytes.
pub const MAX_FILE: usize = 64 << 10;

/// One line of `## Memos`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The line in the plan, from 1.
    pub line: usize,
    /// Whether the memo comes or goes.
    pub verb: Verb,
    /// The memo.
    pub text: String,
    /// What stands behind ` # `; shown, never stored.
    pub comment: Option<String>,
}

/// What happens to a memo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// `[+]`
    Add,
    /// `[-]`
    Remove,
}

/// Why a file holds no memos.
#[derive(Debug, thiserror::Error)]
pub enum MemoError {
    /// It is too large or too deep.
    #[error("cannot read the memos: {0}")]
    Guard(#[from] YamlError),
    /// It is no YAML.
    #[error("cannot read the memos: {0}")]
    Syntax(#[from] serde_yaml::Error),
    /// It is YAML of another shape.
    #[error("the memos are no list of texts, one `- memo` for each line")]
    Shape,
    /// An entry is no text.
    #[error("memo {0} is no text on one line")]
    Entry(usize),
}

/// Reads the lines of the section's block; `first` is the line in the plan of the first one.
pub fn parse(block: &str, first: usize) -> (Vec<Change>, Vec<Diagnostic>) {
    let (mut changes, mut wrong) = (Vec::new(), Vec::new());
    for (offset, line) in crate::text::fence::split_lines(block).enumerate() {
        let (line, text) = (first + offset, line.text.trim());
        if text.is_empty() {
            continue;
        }
        match change(line, text) {
            Ok(change) => changes.push(change),
            Err(message) => {
                let hint = "write `[+] a fact to remember # why` or `[-] the exact memo to forget # why`";
                wrong.push(Diagnostic::new(line, format!("{message}: \"{}\"", quote(text))).hint(hint));
            }
        }
    }
    (changes, wrong)
}

/// Reads one line.
fn change(line: usize, text: &str) -> Result<Change, &'static str> {
    let (verb, rest) = match text.get(..3) {
        Some("[+]") => (Verb::Add, &text[3..]),
        Some("[-]") => (Verb::Remove, &text[3..]),
        _ => return Err("a memo starts with `[+]` or `[-]`"),
    };
    let (memo, comment) = match rest.find(" # ") {
        Some(at) => (&rest[..at], Some(rest[at + 3..].trim().to_owned())),
        None => (rest, None),
    };
    let memo = memo.trim();
    if memo.is_empty() {
        return Err("the memo is empty");
    }
    if memo.chars().any(is_break) {
        return Err("the memo has a control character");
    }
    Ok(Change { line, verb, text: memo.to_owned(), comment: comment.filter(|c| !c.is_empty()) })
}

/// Writes one line of the section's block.
pub fn write(change: &Change, out: &mut String) {
    let sign = if change.verb == Verb::Add { "[+]" } else { "[-]" };
    out.push_str(&format!("{sign} {}", change.text));
    out.extend(change.comment.iter().map(|comment| format!(" # {comment}")));
    out.push('\n');
}

/// Reads the file. An empty one, or one of comments, has no memos.
///
/// # Errors
/// Where it is no list of texts on one line each; nothing is guessed then.
pub fn read(file: &str) -> Result<Vec<String>, MemoError> {
    yaml::guard(file, MAX_FILE)?;
    let entries = match serde_yaml::from_str::<Value>(file.strip_prefix('\u{feff}').unwrap_or(file))? {
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

/// Returns the file after the changes: each added memo a line at the end, each removed one its lines gone, all
/// else as it was. A file that [`read`] does not read comes back as it is.
pub fn apply(file: &str, changes: &[Change]) -> String {
    let Ok(mut memos) = read(file) else { return file.to_owned() };
    let mut text = file.to_owned();
    for change in changes {
        let at = memos.iter().position(|memo| *memo == change.text);
        let next = match (change.verb, at) {
            (Verb::Add, None) => {
                memos.push(change.text.clone());
                append(&text, &change.text)
            }
            (Verb::Remove, Some(at)) => {
                memos.remove(at);
                remove(&text, at)
            }
            _ => continue,
        };
        // A flow list, or anything else that has no line for each memo: written anew, as a plain list.
        let exact = read(&next).is_ok_and(|found| found == memos);
        text = if exact { next } else { fresh(&memos) };
    }
    text
}

/// Adds a line at the end.
fn append(file: &str, memo: &str) -> String {
    let ending = if file.contains("\r\n") { "\r\n" } else { "\n" };
    let indent = item_lines(file).first().map_or("", |&(start, _)| leading(&file[start..]));
    let mut text = file.to_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push_str(ending);
    }
    // `[]` is how an empty list may have been written; the new line takes its place.
    if text.lines().any(|line| line.trim() == "[]") {
        text = text.split_inclusive('\n').filter(|line| line.trim() != "[]").collect();
    }
    text + &format!("{indent}- {}{ending}", scalar(memo))
}

/// Removes the lines of an entry.
fn remove(file: &str, index: usize) -> String {
    match item_lines(file).get(index) {
        Some(&(start, end)) => format!("{}{}", &file[..start], &file[end..]),
        None => file.to_owned(),
    }
}

/// Writes a whole list.
fn fresh(memos: &[String]) -> String {
    memos.iter().map(|memo| format!("- {}\n", scalar(memo))).collect()
}

/// Returns for each entry of a block list the bytes of its lines, without comments and blank lines behind it.
fn item_lines(file: &str) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut margin = None;
    let mut at = 0;
    for line in file.split_inclusive('\n') {
        let (start, text) = (at, line.trim());
        at += line.len();
        let blanks = leading(line).len();
        let entry = text == "-" || text.starts_with("- ");
        if entry && margin.is_none_or(|margin| margin == blanks) {
            margin = Some(blanks);
            found.push((start, at));
        } else if !text.is_empty() && !text.starts_with('#') && margin.is_some_and(|margin| blanks > margin) {
            found.last_mut().expect("a margin comes with an entry").1 = at;
        }
    }
    found
}

/// Returns the blanks at a line's start.
fn leading(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t', '\u{feff}']).len()]
}

/// Writes a memo as a YAML scalar that every reader takes for this text.
fn scalar(memo: &str) -> String {
    if is_plain(memo) { memo.to_owned() } else { format!("'{}'", memo.replace('\'', "''")) }
}

/// Returns whether YAML, the old one too, reads an unquoted text as itself.
fn is_plain(memo: &str) -> bool {
    const WORDS: [&str; 10] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"];
    let first = memo.chars().next().unwrap_or(' ');
    let digits = first.is_ascii_digit() && !memo.contains(' ');
    let safe = first.is_alphanumeric() || !first.is_ascii();
    let marks = memo.contains(": ") || memo.contains(" #") || memo.ends_with(':') || memo.contains('\t');
    safe && !digits && !marks && !WORDS.contains(&memo.to_lowercase().as_str()) && first != '\u{feff}'
}

/// Returns whether a character ends or hides a line.
fn is_break(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Compares what a line of the section is read as.
    fn check(line: &str, expected: &str) {
        let (changes, wrong) = parse(line, 7);
        let said =
            changes.iter().map(|c| format!("{:?} {}{}", c.verb, c.text, c.comment.as_ref().map_or(String::new(), |t| format!(" | {t}"))));
        let found: Vec<String> = said.chain(wrong.iter().map(|w| format!("{}: {}", w.line, w.message))).collect();
        assert_eq!(found.join("; "), expected, "for {line:?}");
    }

    /// Makes changes from lines of a section.
    fn changes(block: &str) -> Vec<Change> {
        parse(block, 1).0
    }

    #[test]
    fn m1_a_line_adds_or_removes() {
        check("[+] A new fact to remember. # A new convention.", "Add A new fact to remember. | A new convention.");
        check("[-] Old. # why", "Remove Old. | why");
        check("\n  \n", "");
        check("Something without marker", "7: a memo starts with `[+]` or `[-]`: \"Something without marker\"");
        check("x\n[+]\n", "7: a memo starts with `[+]` or `[-]`: \"x\"; 8: the memo is empty: \"[+]\"");
    }

    #[test]
    fn m2_a_comment_starts_at_a_lone_hash() {
        check("[+] Close issue #42", "Add Close issue #42");
        check("[+] Use C# here", "Add Use C# here");
        check("[-] Old issue #42 closed # reason # two", "Remove Old issue #42 closed | reason # two");
        check("[+] # only", "7: the memo is empty: \"[+] # only\"");
        check("[+] Use ``` for code", "Add Use ``` for code");
    }

    #[test]
    fn m3_a_memo_is_one_plain_line() {
        check("[+] a\tb", "7: the memo has a control character: \"[+] a   b\"");
        check("[+] a\u{2028}b", "7: the memo has a control character: \"[+] a\\u{2028}b\"");
        check("[+] a\u{fffe}b", "7: the memo has a control character: \"[+] a\u{fffe}b\"");
        check("[+] 👩‍💻 works", "Add 👩‍💻 works");
    }

    #[test]
    fn m4_the_file_is_a_list_of_texts() {
        assert_eq!(read("").unwrap(), Vec::<String>::new());
        assert_eq!(read("# nothing yet\n").unwrap(), Vec::<String>::new());
        assert_eq!(read("- a\n- 'b: c' # note\n- 42\n- yes\n").unwrap(), ["a", "b: c", "42", "yes"]);
        assert_eq!(read("a: b\n").unwrap_err().to_string(), "the memos are no list of texts, one `- memo` for each line");
        assert_eq!(read("- a\n- [b]\n").unwrap_err().to_string(), "memo 2 is no text on one line");
        assert!(read("- 'a\n").unwrap_err().to_string().starts_with("cannot read the memos: "));
    }

    #[test]
    fn m5_a_change_touches_its_own_line_alone() {
        let file = "# ours\n\n- keep # why\n- 'drop: it'\n# about the next\n- last";
        assert_eq!(apply(file, &changes("[+] new")), format!("{file}\n- new\n"));
    }

    #[test]
    fn m5_a_removed_memo_takes_its_lines_and_nothing_else() {
        let file = "# ours\n- keep # why\n- 'drop: it' # gone\n# about the next\n- two\n  lines\n- last\n";
        assert_eq!(apply(file, &changes("[-] drop: it\n[-] two lines")), "# ours\n- keep # why\n# about the next\n- last\n");
        assert_eq!(apply(file, &changes("[-] absent")), file);
    }

    #[test]
    fn m5_indentation_and_line_ends_of_the_file_are_kept() {
        assert_eq!(apply("  - a\r\n", &changes("[+] b")), "  - a\r\n  - b\r\n");
        assert_eq!(apply("[]\n", &changes("[+] b")), "- b\n");
        assert_eq!(apply("# c\n", &changes("[+] b")), "# c\n- b\n");
        assert_eq!(apply("- a\n", &changes("[-] a")), "");
    }

    #[test]
    fn m6_a_list_of_another_shape_is_written_anew() {
        assert_eq!(apply("[a, 'b: c']\n", &changes("[+] d\n[-] a")), "- 'b: c'\n- d\n");
        assert_eq!(apply("a: b\n", &changes("[+] d")), "a: b\n");
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
            let file = apply("- first\n", &changes(&format!("[+] {memo}")));
            assert_eq!(read(&file).unwrap(), ["first", memo], "{file:?}");
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
            let add = |text: &String| Change { line: 1, verb: Verb::Add, text: text.clone(), comment: None };
            let file = apply("# head\n", &unique.iter().map(add).collect::<Vec<_>>());
            prop_assert_eq!(read(&file).unwrap(), unique.clone());
            prop_assert!(file.starts_with("# head\n"));
            let gone: Vec<Change> = unique.iter().map(|t| Change { verb: Verb::Remove, ..add(t) }).collect();
            prop_assert_eq!(apply(&file, &gone), "# head\n");
        }
    }
}
