//! Lines that stand for code that was left out: `# ... existing code ...`, `// rest unchanged`.
//!
//! A model that writes one means "as it is now". Written into a file, it replaces what it stands for.

use super::has_word;

/// What opens a comment that takes the rest of its line.
const OPENERS: [&str; 10] = ["//", "#", "--", ";", "%", "/*", "<!--", "{/*", "(*", "{-"];
/// What closes a comment.
const CLOSERS: [&str; 5] = ["*/}", "*/", "-->", "*)", "-}"];
/// Marks that follow the opener of a comment, as in `///`.
const MARKS: [char; 7] = ['/', '#', '-', ';', '%', '!', '*'];
/// The most words of a comment that stands for code.
const MAX_WORDS: usize = 12;
/// The most characters of one in a language that does not separate words.
const MAX_CHARS: usize = 80;
/// Words that say that something is as it was, or is not shown.
const UNCHANGED: &str = "unchanged unmodified untouched omitted elided snip snipped";
/// Words for what is left, or was there.
const REST: &str = "existing rest remaining remainder previous original other";
/// Words for a whole.
const WHOLE: &str = "code file implementation";
/// Other words of such a comment.
const JOINING: &str = "\
    same before here brevity the of this that function functions method methods class classes \
    module component logic body content contents lines line imports import fields field tests \
    test props definitions properties config configuration section sections and as is are was \
    not for stay stays remain remains keep everything else all with in changes";
/// The same in other languages.
const ELSEWHERE: &str = "\
    unverändert, bestehender code, bestehenden code, restlicher code, inchangé, code existant, \
    reste du code, sin cambios, código existente, resto del código, sem alterações, invariato, \
    codice esistente, без изменений, остальной код, существующий код, 変更なし, 既存のコード, 省略, 保持不变, \
    现有代码";

/// Returns the first line of a new text that stands for code that was left out, unless the old text
/// has it too.
pub fn elided<'a>(new: &'a str, old: &str) -> Option<&'a str> {
    let mut lines = new.lines().filter(|line| is_elision(line));
    lines.find(|line| !old.lines().any(|old_line| old_line.trim() == line.trim()))
}

/// Returns whether a line is a comment that stands for code.
fn is_elision(line: &str) -> bool {
    let line = line.trim();
    let comment = comment(line);
    let text = comment.unwrap_or(line).trim_matches(['(', '[', ')', ']']);
    let inner = text.trim_matches(|c: char| c.is_whitespace() || ".…-=*#[]()<>".contains(c));
    let start = text.len() - text.trim_start_matches(is_dot).len();
    let starts = is_ellipsis(&text[..start]);
    let ends = is_ellipsis(&text[text.trim_end_matches(is_dot).len()..]);
    if inner.is_empty() {
        return comment.is_some() && starts;
    }

    let short = inner.chars().count() <= MAX_CHARS && inner.split_whitespace().count() <= MAX_WORDS;
    let both = starts && ends;
    // In a comment, dots on both sides say it in every language.
    let says = match comment {
        Some(_) => both || claims_elision(inner, starts || ends),
        None => both && claims_elision(inner, true),
    };
    short && says
}

fn is_dot(c: char) -> bool {
    matches!(c, '.' | '…')
}

fn is_ellipsis(dots: &str) -> bool {
    dots.contains('…') || dots.len() >= 3
}

/// Returns the text of a line that is a comment as a whole.
fn comment(line: &str) -> Option<&str> {
    let opener = OPENERS.iter().find(|opener| line.starts_with(**opener));
    // A line of a comment that spans several.
    let opener = opener.or_else(|| line.starts_with("* ").then_some(&"*"));
    let text = line.strip_prefix(*opener?)?;
    let text = text.trim_start_matches(MARKS).trim();
    let inner = CLOSERS.iter().find_map(|closer| text.strip_suffix(closer));
    Some(inner.unwrap_or(text).trim())
}

/// Returns whether a text says that code is unchanged. `dotted`: there is an ellipsis next to it.
fn claims_elision(text: &str, dotted: bool) -> bool {
    let text = text.to_lowercase();
    if ELSEWHERE.split(", ").any(|phrase| text.contains(phrase)) {
        return true;
    }

    let all: Vec<&str> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let has = |list: &str| all.iter().any(|word| has_word(list, word));
    let lists = [UNCHANGED, REST, WHOLE, JOINING];
    let plain = all
        .iter()
        .all(|word| lists.iter().any(|list| has_word(list, word)));
    let (unchanged, has_rest, has_whole) = (has(UNCHANGED), has(REST), has(WHOLE));
    let same = has("same") || text.contains("as before");
    if !plain {
        return dotted && has_rest && (has_whole || unchanged);
    }

    let stays = same && (has_rest || has("stay stays remain remains"));
    unchanged || stays || (has_rest && has_whole) || (dotted && (has_rest || same || has_whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p44_a_comment_that_stands_for_code_is_known() {
        for line in [
            "# ... existing code ...",
            "    // ... existing code ...",
            "/* ... rest of the file ... */",
            "<!-- ... -->",
            "{/* ... existing props ... */}",
            "-- rest unchanged",
            "// rest of the code unchanged",
            "// ...",
            "# …",
            "// ... (unchanged)",
            "# ... rest of implementation",
            "# Rest of the function stays the same",
            "// existing code here",
            "; unchanged",
            "// [rest of file omitted for brevity]",
            "# ... bestehender Code ...",
            "// ... остальной код без изменений ...",
            "# ... 既存のコード ...",
            "// ... 现有代码 ...",
            "# ... das Übrige wie gehabt ...",
            "... existing code ...",
            " * ... existing methods ...",
        ] {
            assert!(is_elision(line), "{line}");
        }
    }

    #[test]
    fn p44_ordinary_lines_stand_for_nothing() {
        for line in [
            "",
            "...",
            "    ...",
            "def f(): ...",
            "# Loading...",
            "# ...and then the rest of the buffer is flushed to the existing socket",
            "// Reuse existing code paths where we can",
            "# The remaining tests need a network",
            "# Existing users keep their settings",
            "// same",
            "# test",
            "// before all tests",
            "let rest = &all[1..];",
            "#[derive(Debug)]",
            "#include <existing.h>",
            "#!/bin/sh",
            "# existing imports",
            "// Keep the order of the fields",
            "--",
            "---",
            "# -----------------",
            "The rest is unchanged.",
        ] {
            assert!(!is_elision(line), "{line}");
        }
    }

    #[test]
    fn p44_a_line_that_was_there_is_no_elision() {
        let old = "def f():\n    # ... existing code ...\n    pass\n";
        assert_eq!(elided("  # ... existing code ...\n", old), None);
        assert_eq!(elided("x\n# ...\n", old), Some("# ..."));
    }
}
