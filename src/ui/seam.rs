//! Stand-ins for `text::visible` and `text::diff` until they are there.

use std::borrow::Cow;

/// Shows every deceptive character of one line as a code point.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(deceptive) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if deceptive(c) { format!("\\u{{{:x}}}", c as u32) } else { c.to_string() }).collect())
}

/// Tells whether a character can hide or change what is shown.
fn deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// One line of a difference.
pub(super) struct Changed {
    /// ` `, `-` or `+`.
    pub sign: char,
    /// The line, with its line end.
    pub text: String,
}

/// One hunk.
pub(super) struct Hunk {
    /// `@@ -1,2 +1,3 @@`
    pub header: String,
    /// Its lines.
    pub lines: Vec<Changed>,
}

/// Returns the hunks between two texts.
pub(super) fn hunks(before: &str, after: &str) -> Vec<Hunk> {
    let diff = similar::TextDiff::from_lines(before, after);
    let hunk = |h: &similar::udiff::UnifiedDiffHunk<'_, '_, '_, str>| Hunk {
        header: h.header().to_string(),
        lines: h
            .iter_changes()
            .map(|c| Changed { sign: c.tag().to_string().chars().next().unwrap_or(' '), text: c.value().to_owned() })
            .collect(),
    };
    diff.unified_diff().context_radius(3).iter_hunks().map(|h| hunk(&h)).collect()
}
