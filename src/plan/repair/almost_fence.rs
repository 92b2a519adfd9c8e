//! Lines that are almost fences, and fences that mean less than they seem to.

use std::ops::Range;

use super::line::{Fence, Info, LineKind, ReplyLine};

/// Ends of comments and strings. Text after a fence that contains one of these is not a remark.
const CODE_ENDS: [&str; 9] = ["*/", "\"\"\"", "'''", "*)", "-}", "]]", "#>", "=#", "\"#"];

/// Returns whether a line that is not a fence in Markdown was probably meant as one: it has a
/// non-breaking space, one mark too few, an escape, or no line break before it.
pub(super) fn is_nearly_fence(line: &str) -> bool {
    if crate::text::fence::read(line).is_some() {
        return false;
    }

    let is_visible = |c: &char| !(c.is_whitespace() || c.is_control() || is_zero_width(*c));
    let text: String = line.chars().filter(is_visible).collect();
    let bare = text.replace('\\', "");
    let body = bare.trim_start_matches(['>', '-']);
    let alone = |mark: char| body.len() >= 2 * mark.len_utf8() && body.chars().all(|c| c == mark);
    let glued = |mark: &str| {
        let start = line.trim_end().trim_end_matches(&mark[..1]);
        line.trim_end().ends_with(mark) && start.ends_with(|c: char| !c.is_whitespace())
    };

    let starts = line.trim_start().starts_with("```");
    starts
        || ['`', '~', '´', '’', '‘', '＇', '\''].into_iter().any(alone)
        || glued("```")
        || glued("~~~")
}

/// Returns whether a character has no width.
fn is_zero_width(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{ad}')
}

/// Returns whether the text after a closing fence is a remark about it or invisible, and not the
/// end of the content's last line or the language of a block.
pub(super) fn is_remark_after_fence(closer: &str) -> bool {
    let text = text_after_fence(closer);
    let glued = closer
        .trim_start()
        .trim_start_matches(['`', '~'])
        .starts_with(text);
    let is_code = CODE_ENDS.iter().any(|end| text.contains(end));
    let is_word = text.chars().all(char::is_alphanumeric);
    let is_language = is_word
        && (glued || crate::text::language::is_known(text) || super::line::is_document(text));
    let says = text
        .split(|c: char| !c.is_alphabetic())
        .any(|word| word.chars().count() > 1);

    text.is_empty() || says && !is_code && !is_language
}

/// Returns the visible text after a closing fence.
pub(super) fn text_after_fence(closer: &str) -> &str {
    let text = closer.trim_start().trim_start_matches(['`', '~']);
    text.trim_matches(|c: char| c.is_whitespace() || is_zero_width(c))
}

/// Returns the fence that a content leaves open, as Markdown parses it.
pub(super) fn unclosed_fence(lines: &[ReplyLine<'_>], body: Range<usize>) -> Option<usize> {
    let mut open: Option<(usize, Fence)> = None;
    for at in body {
        let LineKind::Fence(fence) = lines[at].kind else {
            continue;
        };
        match open {
            None if fence.info != Info::Odd => open = Some((at, fence)),
            Some((_, outer))
                if fence.info == Info::Bare
                    && fence.mark == outer.mark
                    && fence.len >= outer.len =>
            {
                open = None;
            }
            _ => {}
        }
    }

    open.map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_nearly_a_fence_is_known() {
        for line in [
            "\u{a0}```",
            "\u{200b}````",
            "``",
            "~~",
            "cargo test```",
            "x~~~~",
            "\\`\\`\\`",
            "> ```",
            "- ```",
            "´´´",
            "```### `READ`",
            "’’’",
        ] {
            assert!(is_nearly_fence(line), "{line:?}");
        }
        for line in [
            "```", "~~~ sh", "use `x`", "a ``b``", "~~gone~~", "---", "", "'a'",
        ] {
            assert!(!is_nearly_fence(line), "{line:?}");
        }
    }

    #[test]
    fn a_remark_behind_a_closer_is_told_from_code_and_from_a_language() {
        for line in [
            "``` (end)",
            "```<!-- end -->",
            "~~~ and no more",
            "``` # done",
            "```\u{a0}",
        ] {
            assert!(is_remark_after_fence(line), "{line:?}");
        }
        for line in [
            "``` */",
            "``` \"\"\"",
            "```);",
            "```rust",
            "```markdown",
            "``` */ fn a() {}",
        ] {
            assert!(!is_remark_after_fence(line), "{line:?}");
        }
    }
}
