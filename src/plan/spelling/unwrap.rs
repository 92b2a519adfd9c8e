//! Unwraps a plan that is quoted or indented as a whole.

use super::SpellingNote;
use crate::text::fence::split_lines;

/// Removes the quotation marks or the indentation that every line has; `None` without either. Line
/// numbers are preserved.
pub fn unwrapped_plan(text: &str) -> Option<(String, SpellingNote)> {
    let (strip, message): (fn(&str) -> Option<&str>, _) = match () {
        () if every_line_strips(text, without_quote_mark) => {
            (without_quote_mark, "took the plan out of its quotation")
        }
        () if every_line_strips(text, |line| line.strip_prefix("    ")) => (
            |line| line.strip_prefix("    "),
            "took the indentation off the plan",
        ),
        () if every_line_strips(text, |line| line.strip_prefix('\t')) => (
            |line| line.strip_prefix('\t'),
            "took the indentation off the plan",
        ),
        () => return None,
    };
    let lines = split_lines(text).map(|line| {
        [
            strip(line.text).unwrap_or(line.text.trim_start()),
            line.ending,
        ]
        .concat()
    });

    let note = SpellingNote {
        line: 1,
        message: message.to_owned(),
        aside: false,
    };
    Some((lines.collect(), note))
}

/// Returns whether every non-blank line has a prefix, and there is such a line.
fn every_line_strips(text: &str, strip: fn(&str) -> Option<&str>) -> bool {
    let mut solid = split_lines(text).filter(|line| !line.text.trim().is_empty());
    let first = solid.next().is_some_and(|line| strip(line.text).is_some());
    first && solid.all(|line| strip(line.text).is_some())
}

fn without_quote_mark(line: &str) -> Option<&str> {
    let tail = line.strip_prefix('>')?;
    Some(tail.strip_prefix(' ').unwrap_or(tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p36_a_plan_that_is_quoted_or_indented_as_a_whole_is_taken_out() {
        for (text, expected) in [
            ("> # T\n>\n> - a\n>   b\n", Some("# T\n\n- a\n  b\n")),
            ("    # T\n\n      x\n", Some("# T\n\n  x\n")),
            ("\t# T\n", Some("# T\n")),
            ("# T\n> x\n", None),
            ("", None),
        ] {
            assert_eq!(
                unwrapped_plan(text).map(|(text, _)| text).as_deref(),
                expected
            );
        }
    }
}
