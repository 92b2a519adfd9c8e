//! Memos: the model's long-term memory in `.teddy/memos.yaml`, and the changes that a plan makes to
//! it.
//!
//! This module handles the section of a plan, [`file`] the YAML file. Rules M1-M8 of
//! `docs/formats/memos.md`.

pub mod file;

use super::diagnostic::{Diagnostic, quote};

/// One line of `## Memos`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoChange {
    /// Line in the plan, from 1.
    pub line: usize,
    /// Adds or removes the memo.
    pub verb: Verb,
    /// The memo.
    pub text: String,
    /// Text after ` # `; shown, never stored.
    pub comment: Option<String>,
}

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

/// Writes one line of the section's block.
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
