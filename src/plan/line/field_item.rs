//! Reads and writes `- **Key:** value` items.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::plan::action::ROWS;
use crate::plan::field::Field;
use crate::plan::line::{self, is_fence, split_key, split_marker};
use crate::text::fence::columns;
use crate::text::has_word;
use crate::text::markdown::{BlockKind, Item, Lines};

/// Keys of the list below the title.
pub const HEADER: [&str; 3] = ["Status", "Plan Type", "Agent"];
/// Keys that have a meaning only in other versions of the format.
const UNSUPPORTED: [&str; 4] = ["Match All", "Lines", "Background", "Tail"];
/// Keys that would make an action conditional. In this format every action runs.
const CONDITIONS: &str = "\
    condition conditional runif onlyif if unless when skip skipif skipped optional dryrun enabled \
    disabled";
/// Keys of other formats that would change what is written to a file.
const OTHER_EFFECTS: &str = "\
    append appendto appendmode writemode prepend insert linenumber insertafter insertbefore \
    insertat position occurrence ifexists merge executable permission permissions filepermissions \
    perms charset contentencoding filemode chmod renameto delete base64 encoding mode operation";
/// First words of their values that change nothing.
const NO_EFFECT: &str = "\
    false no none null na utf8 ascii text create new write overwrite replace modify edit update \
    change add regular full 0644 644 100644";
/// Keys with descriptive text only; an extra one is harmless.
const DESCRIPTIVE_KEYS: [&str; 4] = ["Status", "Plan Type", "Description", "Expected Outcome"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldItem {
    pub field: Field,
    /// First line of the item's text that is not part of the value: a label, or an invalid fence.
    pub text_start: Option<usize>,
}

/// Returns a key as the format spells it, ignoring case, whitespace and marks, and resolving
/// aliases.
pub fn canonical(key: &str) -> Option<&'static str> {
    NAMES.get(&letters(key)).copied()
}

static NAMES: LazyLock<HashMap<String, &str>> = LazyLock::new(|| {
    let keys = ROWS.iter().flat_map(|row| row.keys).copied();
    let keys = keys.chain(HEADER).chain(UNSUPPORTED);
    let aliases = [
        ("referencefiles", "Handoff Resources"),
        ("lineending", "Line Endings"),
    ];
    let aliases = aliases.map(|(letters, key)| (letters.to_owned(), key));
    keys.map(|key| (letters(key), key)).chain(aliases).collect()
});

/// Returns the letters and digits of a key, in lower case.
pub fn letters(key: &str) -> String {
    let letters: String = key.chars().filter(|c| c.is_alphanumeric()).collect();
    letters.to_lowercase()
}

/// Returns whether a known key changes what an action does.
pub fn has_weight(key: &str) -> bool {
    canonical(key) == Some(key) && !DESCRIPTIVE_KEYS.contains(&key)
}

/// Returns whether a key belongs to another version of the format.
pub fn is_unsupported(key: &str) -> bool {
    UNSUPPORTED.contains(&key)
}

pub fn is_condition(key: &str) -> bool {
    has_word(CONDITIONS, &letters(key))
}

/// Returns whether a field asks for something that CREATE and EDIT don't do.
pub fn asks_for_more(field: &Field) -> bool {
    let first = field.value.split_whitespace().next().unwrap_or_default();
    has_word(OTHER_EFFECTS, &letters(&field.key)) && !has_word(NO_EFFECT, &letters(first))
}

/// Parses an item. `own` decides whether an unindented line after the item's text belongs to its
/// value.
pub fn read(lines: &Lines<'_>, item: &Item, own: Own) -> Option<FieldItem> {
    let paragraph = item
        .blocks
        .first()
        .filter(|block| block.node == BlockKind::Paragraph)?;
    let (mark, text) = split_marker(lines.get(item.first));
    let (key, first) = split_key(text)?;
    let mut value = vec![first];
    let mut text_start = None;

    for number in paragraph.first + 1..=paragraph.last {
        let line = lines.get(number);
        // A lazy continuation line: CommonMark adds it to the item, but in a hand-over it starts
        // the message.
        let lazy = columns(line::indent_of(line)) < mark && own == Own::Indented;
        if lazy || line::label(line.trim()).is_some() || is_fence(line) {
            text_start = Some(number);
            break;
        }
        value.push(joint(lines, number));
        value.push(line.trim());
    }

    let key = canonical(key).map_or_else(|| key.to_owned(), str::to_owned);
    let field = Field {
        line: item.first,
        key,
        value: value.concat().trim().to_owned(),
        items: nested(lines, item),
    };
    Some(FieldItem { field, text_start })
}

/// Lines after the first one that belong to the value of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Own {
    /// All that CommonMark includes, indented or not.
    All,
    /// Indented lines only; an unindented line starts the message.
    Indented,
}

/// Writes a field as the format spells it, as one list item regardless of its text.
pub fn write(field: &Field, out: &mut String) {
    let value = one_line(&field.value);
    let key = one_line(&field.key);
    let blank = if value.is_empty() { "" } else { " " };
    out.push_str(&format!("- **{key}:**{blank}{value}\n"));
    for item in &field.items {
        out.push_str(&format!("    - {}\n", one_line(item)));
    }
}

/// Joins the lines of a text, without whitespace at its ends.
pub fn one_line(text: &str) -> String {
    text.split(['\n', '\r'])
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns whether a list's first item has a known key.
pub fn starts_known(lines: &Lines<'_>, items: &[Item]) -> bool {
    items
        .first()
        .and_then(|item| read(lines, item, Own::All))
        .is_some_and(|entry| canonical(&entry.field.key).is_some())
}

fn nested(lines: &Lines<'_>, item: &Item) -> Vec<String> {
    let lists = item.blocks.iter().filter_map(|block| match &block.node {
        BlockKind::List { items, .. } => Some(items),
        _ => None,
    });
    let worded = |inner: &&Item| {
        inner
            .blocks
            .first()
            .is_some_and(|block| block.node == BlockKind::Paragraph)
    };
    lists
        .flatten()
        .filter(worded)
        .map(|inner| item_text(lines, inner))
        .collect()
}

fn item_text(lines: &Lines<'_>, item: &Item) -> String {
    let last = item
        .blocks
        .first()
        .filter(|b| b.node == BlockKind::Paragraph)
        .map_or(item.first, |b| b.last);
    let (_, first) = split_marker(lines.get(item.first));
    let more = (item.first + 1..=last).flat_map(|n| [joint(lines, n), lines.get(n).trim()]);
    let text: String = std::iter::once(first.trim()).chain(more).collect();
    text.trim().to_owned()
}

/// Returns what joins a line to the one before it.
fn joint(lines: &Lines<'_>, number: usize) -> &'static str {
    // A carriage return alone ends a line for CommonMark, and for no editor: a path with one would be
    // another path than the reader sees.
    match lines.raw(number - 1).ends_with('\r') {
        true => "\r",
        false => " ",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::markdown::blocks;

    fn check(text: &str, expected: &[(&str, &str)]) {
        let lines = Lines::new(text);
        let mut actual = Vec::new();
        for block in blocks(text) {
            let BlockKind::List { items, .. } = block.node else {
                continue;
            };
            actual.extend(
                items
                    .iter()
                    .filter_map(|item| read(&lines, item, Own::All))
                    .map(|e| (e.field.key, e.field.value)),
            );
        }
        let expected: Vec<_> = expected
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        assert_eq!(actual, expected, "for {text:?}");
    }

    #[test]
    fn p8_a_key_is_read_in_every_usual_spelling() {
        for item in [
            "- **File Path:** x",
            "- **File Path**: x",
            "- File Path: x",
            "* *File Path:* x",
            "+ `File Path`: x",
            "- file_path: x",
        ] {
            check(item, &[("File Path", "x")]);
        }
        check("- **Reference Files:** x", &[("Handoff Resources", "x")]);
        check("- **Other:** z", &[("Other", "z")]);
    }

    #[test]
    fn p8_a_value_keeps_its_marks_and_colons() {
        check(
            "- **Description:** Description: `a` *b*",
            &[("Description", "Description: `a` *b*")],
        );
        check(
            "- **Resource:** https://example.com/a",
            &[("Resource", "https://example.com/a")],
        );
        check("- https://example.com\n- no key here", &[]);
    }

    #[test]
    fn p8_a_value_may_go_on_below() {
        check(
            "- **Description:** one\n  two\nthree\n",
            &[("Description", "one two three")],
        );
    }

    #[test]
    fn f04_a_label_below_a_value_is_no_part_of_it() {
        check("- **Description:** d\n`FIND:`\n", &[("Description", "d")]);
    }
}
