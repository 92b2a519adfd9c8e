//! Classifies the headings of a plan: section, action or other text.

use super::{ActionRow, ROWS};

/// A section of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// `## Rationale`
    Rationale,
    /// `## Memos`
    Memos,
    /// `## Action Plan`
    Plan,
}

impl Section {
    /// Returns the heading's text as the format spells it.
    pub fn name(self) -> &'static str {
        match self {
            Section::Rationale => "Rationale",
            Section::Memos => "Memos",
            Section::Plan => "Action Plan",
        }
    }
}

/// Returns the section that a level 2 heading opens. Ignores case, numbering, emphasis and a colon.
pub fn section(text: &str) -> Option<Section> {
    let name = bare(text);
    [Section::Rationale, Section::Memos, Section::Plan]
        .into_iter()
        .find(|s| s.name().eq_ignore_ascii_case(name))
}

/// Returns the action that a level 3 heading opens: the name in upper case, or in any case between
/// backticks. Ignores numbering, emphasis and a colon, and accepts a space for `_`.
pub fn action(text: &str) -> Option<&'static ActionRow> {
    let name = bare(text).replace([' ', '-'], "_");
    let quoted = unnumbered(text)
        .trim_start_matches(['*', '_'])
        .starts_with('`');
    let same = |candidate: &str| {
        if quoted {
            candidate.eq_ignore_ascii_case(&name)
        } else {
            candidate == name
        }
    };

    ROWS.iter()
        .find(|row| same(row.name) || row.aliases.iter().any(|a| same(a)))
        .copied()
}

/// Returns the label if a line or a heading of an EDIT is `FIND:` or `REPLACE:`.
pub fn label(line: &str) -> Option<Label> {
    let name = bare(line.trim_start_matches('#'));
    [("FIND", Label::Find), ("REPLACE", Label::Replace)]
        .into_iter()
        .find(|(word, _)| word.eq_ignore_ascii_case(name))
        .map(|(_, l)| l)
}

/// Returns a line without its bullet and leading whitespace.
pub fn unlisted(line: &str) -> &str {
    let text = line.trim_start_matches([' ', '\t']);
    text.strip_prefix(['-', '*', '+'])
        .filter(|tail| tail.starts_with([' ', '\t']))
        .map_or(text, |tail| tail.trim_start_matches([' ', '\t']))
}

/// A label of an EDIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Label {
    /// `FIND:`
    Find,
    /// `REPLACE:`
    Replace,
}

/// Lists the action names that a model can use, for messages.
pub fn allowed() -> String {
    let rows = ROWS.iter().filter(|row| !row.is_ours());
    let names: Vec<String> = rows.map(|row| format!("`{}`", row.name)).collect();
    names.join(", ")
}

/// Removes numbering, emphasis, backticks, a colon and whitespace around a heading's text.
pub fn bare(text: &str) -> &str {
    unnumbered(text).trim_matches(['`', '*', '_', ':', ' ', '\t', '\u{a0}'])
}

fn unnumbered(text: &str) -> &str {
    let text = text.trim_matches([' ', '\t', '\u{a0}']);
    let tail = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = tail.len() < text.len() && tail.starts_with(['.', ')']);
    if numbered {
        tail[1..].trim_start_matches([' ', '\t', '\u{a0}'])
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let actual = action(text).map(|row| row.name).unwrap_or_default();
        assert_eq!(actual, expected, "for {text:?}");
    }

    #[test]
    fn p17_an_action_is_known_in_every_usual_spelling() {
        for text in [
            "`READ`",
            "READ",
            "**READ**",
            "`READ**",
            "1. READ",
            "2) `READ`",
            "**`READ`**",
            "READ:",
            "`read`",
            "\u{a0}`READ`",
        ] {
            check(text, "READ");
        }
        for text in [
            "CHAT WITH USER",
            "`CHAT_WITH_USER`",
            "CHAT-WITH-USER",
            "PROMPT",
        ] {
            check(text, "CHAT_WITH_USER");
        }
        check("`RETURN`", "CONCLUDE");
    }

    #[test]
    fn p17_words_are_no_action() {
        for text in ["Read", "Research", "READ the docs", "MESSAGE", "", "FIND:"] {
            check(text, "");
        }
    }

    #[test]
    fn sections_and_labels_are_known_by_name() {
        assert_eq!(section("2. Action plan:"), Some(Section::Plan));
        assert_eq!(section("**Rationale**"), Some(Section::Rationale));
        assert_eq!(section("Plan"), None);
        assert_eq!(label("#### `FIND:`"), Some(Label::Find));
        assert_eq!(label("**REPLACE:**"), Some(Label::Replace));
        assert_eq!(label("find the bug"), None);
    }
}
