//! Recognizes changes in the formats of other tools: diffs, conflict markers, tool calls.
//!
//! The diagnostic names the format and shows the equivalent of this one. Such changes are never
//! applied: line numbers and context of a diff were not validated.

use crate::plan::diagnostic::Diagnostic;
use crate::text::fence::{fence_for, split_lines};

/// Lines of pairs shown in a message.
const MAX_SHOWN: usize = 80;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct ForeignChange {
    find: String,
    replace: String,
}

/// Describes a code block without a label if it is a change in another tool's format.
pub fn change(text: &str, language: &str) -> Option<String> {
    let (problem, changes) = match conflicts(text) {
        Some(changes) => ("has conflict markers", changes),
        None if is_diff(text, language) => ("is a diff", hunks(text)),
        None => return None,
    };
    let language = if ["diff", "patch"].contains(&language) {
        ""
    } else {
        language
    };

    let example: String = changes
        .iter()
        .filter(|change| !change.find.is_empty())
        .map(|change| pair(change, language))
        .collect();
    let message = format!("this code block {problem}; EDIT takes pairs of FIND and REPLACE");
    let lines = example.lines().count();
    if lines == 0 || lines > MAX_SHOWN {
        return Some(message);
    }

    Some(format!("{message}, here:\n{}", example.trim_end()))
}

/// Reports a reply with no part of the format if it looks like input for another program.
pub fn reply(text: &str) -> Option<Diagnostic> {
    let first = text.lines().find(|line| !line.trim().is_empty())?.trim();
    let inner = match first.strip_prefix("```") {
        Some(_) => {
            let (_, inner) = text.split_once(first)?;
            inner.trim_start()
        }
        None => text.trim_start(),
    };

    let tool = ["<tool", "<function", "<invoke", "<action"]
        .iter()
        .any(|tag| inner.starts_with(tag));
    let kind = match inner.chars().next()? {
        '{' | '[' if inner.contains('"') => "JSON",
        '<' if tool => "a call of a tool",
        _ => return None,
    };

    let hint = "answer with `# Title`, `## Rationale` and its code block, then `## Action Plan` with ### `EDIT` and the other actions: a list with `- **File Path:** [src/a.rs](/src/a.rs)`, then `FIND:` and `REPLACE:` with a code block each";
    let message = format!("the reply is {kind}; a plan is a Markdown document");
    Some(Diagnostic::new(1, message).hint(hint))
}

fn is_diff(text: &str, language: &str) -> bool {
    let is_labelled = ["diff", "patch"].contains(&language);
    let mut lines = text.lines().filter(|line| !line.is_empty());
    let hunked = text.lines().any(|line| line.starts_with("@@ "));
    let has_markers = lines.clone().any(|line| line.starts_with('-'))
        && lines.clone().any(|line| line.starts_with('+'))
        && lines.all(|line| line.starts_with(['-', '+', ' ', '@', '\\']));
    is_labelled || hunked || has_markers
}

fn hunks(text: &str) -> Vec<ForeignChange> {
    let mut changes = vec![ForeignChange::default()];
    for line in split_lines(text) {
        let is_header = ["--- ", "+++ ", "diff ", "index ", "\\ "]
            .iter()
            .any(|start| line.text.starts_with(start));
        if line.text.starts_with("@@") {
            changes.push(ForeignChange::default());
            continue;
        }

        if is_header {
            continue;
        }

        let change = changes.last_mut().expect("there is one from the start");
        let body = line.text.strip_prefix(['-', '+', ' ']);
        let body = body.unwrap_or(line.text);
        let mark = &line.text[..line.text.len() - body.len()];
        if mark != "+" {
            change.find.push_str(&format!("{body}\n"));
        }

        if mark != "-" {
            change.replace.push_str(&format!("{body}\n"));
        }
    }

    changes
}

/// Returns the changes between conflict markers; `None` without markers.
fn conflicts(text: &str) -> Option<Vec<ForeignChange>> {
    let (mut changes, mut open, mut in_replacement) = (Vec::new(), None::<ForeignChange>, false);
    for line in text.lines() {
        match open.as_mut() {
            None if line.starts_with("<<<<<<<") => {
                (open, in_replacement) = (Some(ForeignChange::default()), false)
            }
            Some(_) if line.starts_with("=======") => in_replacement = true,
            Some(_) if line.starts_with(">>>>>>>") => changes.extend(open.take()),
            Some(change) if in_replacement => change.replace.push_str(&format!("{line}\n")),
            Some(change) => change.find.push_str(&format!("{line}\n")),
            None => {}
        }
    }

    (!changes.is_empty()).then_some(changes)
}

fn pair(change: &ForeignChange, language: &str) -> String {
    let block = |text: &str| {
        let fence = fence_for(text, 4);
        format!("{fence}{language}\n{text}{fence}\n")
    };
    format!(
        "`FIND:`\n{}`REPLACE:`\n{}",
        block(&change.find),
        block(&change.replace)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p14_a_difference_is_shown_as_the_pairs_that_it_stands_for() {
        let pairs = "`FIND:`\n````\na\nb\n````\n`REPLACE:`\n````\na\nc\n````\n`FIND:`\n````\nd\n````\n`REPLACE:`\n````\n````";
        for (text, language) in [
            ("@@ -1,2 +1,2 @@\n a\n-b\n+c\n@@ -9 +9,0 @@\n-d\n", ""),
            (
                "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n@@ -9 +9,0 @@\n-d\n",
                "diff",
            ),
        ] {
            let message = change(text, language).unwrap_or_default();
            assert_eq!(
                message,
                format!(
                    "this code block is a diff; EDIT takes pairs of FIND and REPLACE, here:\n{pairs}"
                )
            );
        }
        let markers = "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n";
        assert_eq!(
            change(markers, "py").unwrap_or_default(),
            "this code block has conflict markers; EDIT takes pairs of FIND and REPLACE, here:\n`FIND:`\n````py\na\n````\n`REPLACE:`\n````py\nb\n````"
        );
        assert_eq!(change("fn a() {\n    - 1\n}\n", "rust"), None);
    }

    #[test]
    fn p1_a_call_of_a_tool_is_named() {
        let check = |text: &str, expected: Option<&str>| {
            let actual = reply(text).map(|wrong| wrong.message);
            let expected =
                expected.map(|kind| format!("the reply is {kind}; a plan is a Markdown document"));
            assert_eq!(actual, expected, "{text}");
        };
        check("```json\n{\"type\": \"EDIT\"}\n```\n", Some("JSON"));
        check("[{\"type\": \"EDIT\"}]", Some("JSON"));
        check("<tool_call>\n<name>edit</name>\n", Some("a call of a tool"));
        check("[a](/a) is fine.", None);
        check("Sorry.", None);
        check("", None);
    }
}
