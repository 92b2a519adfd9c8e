//! Tests of matches and of the resulting files.

use proptest::prelude::*;

use super::*;

/// Compares the edited text and the match as `tier line: text`, or the error.
fn check(text: &str, (find, replace): (&str, &str), expected: &str) {
    let actual = match apply(text, find, replace) {
        Ok((after, matched)) => format!("{:?} {}: {after}", matched.tier, matched.line),
        Err(MatchError::Ambiguous { places }) => {
            format!(
                "lines {:?}",
                places.iter().map(|p| p.line).collect::<Vec<_>>()
            )
        }
        Err(error) => error.to_string(),
    };
    assert_eq!(actual, expected, "for {text:?}, {find:?} -> {replace:?}");
}

#[test]
fn whole_lines_are_replaced() {
    check(
        "Line 1\nLine 2\nLine 3\n",
        ("Line 2\n", "REPLACED\n"),
        "Lines 2: Line 1\nREPLACED\nLine 3\n",
    );
    check(
        "a\nb\nc\nd\n",
        ("b\nc\n", "x\ny\nz\n"),
        "Lines 2: a\nx\ny\nz\nd\n",
    );
    check("x\n  x\n", ("  x\n", "  y\n"), "Lines 2: x\n  y\n");

    check("x\n  x\n", ("x\n", "y\n"), "Lines 1: y\n  x\n");
}

#[test]
fn an_empty_replace_deletes_the_lines() {
    check(
        "Line 1\nLine 2\nLine 3\n",
        ("Line 2\n", ""),
        "Lines 2: Line 1\nLine 3\n",
    );
    check("a\r\nb\r\n", ("a\n", ""), "LineEnds 1: b\r\n");
    check("only\n", ("only\n", ""), "Lines 1: ");

    check("only", ("only\n", ""), "Lines 1: ");
}

#[test]
fn a_replace_of_one_blank_line_leaves_one() {
    check("a\nb\nc\n", ("b\n", "\n"), "Lines 2: a\n\nc\n");
}

#[test]
fn the_last_line_matches_without_a_line_end_and_gets_none() {
    check(
        "line 1\nline 3",
        ("line 3\n", "LINE THREE\n"),
        "Lines 2: line 1\nLINE THREE",
    );
    check("a\nb", ("b\n", "x\ny\n"), "Lines 2: a\nx\ny");
    check("a\nb", ("a\nb\n", "c\n"), "Lines 1: c");
    check("a\r\nb", ("b\r\n", "c\r\n"), "Lines 2: a\r\nc");

    check("a\nb\r", ("b\r\n", "c\r\n"), "Lines 2: a\nc\r");
}

#[test]
fn deleting_the_last_lines_keeps_the_end_of_the_file_as_it_was() {
    check("a\nb", ("b\n", ""), "Lines 2: a");
    check("a\r\nb", ("b\n", ""), "Lines 2: a");
    check("a\nb\n", ("b\n", ""), "Lines 2: a\n");
}

#[test]
fn lines_with_crlf_are_found_with_lf_and_keep_their_ends() {
    check(
        "Line 1\r\nLine 2\r\nLine 3\r\n",
        ("Line 2\n", "REPLACED\n"),
        "LineEnds 2: Line 1\r\nREPLACED\r\nLine 3\r\n",
    );
    check(
        "a\r\nb\r\n",
        ("a\nb\n", "a\nx\nb\n"),
        "LineEnds 1: a\r\nx\r\nb\r\n",
    );
    check("a\r\nb", ("a\nb\n", "c\nd\n"), "LineEnds 1: c\r\nd");
    check("a\r\nb", ("b\n", "c\nd\n"), "Lines 2: a\r\nc\r\nd");

    check(
        "let a = 1;\r\n",
        ("a = 1\n", "a = 1\n    + 2\n"),
        "Inline 1: let a = 1\r\n    + 2;\r\n",
    );
}

#[test]
fn lines_that_find_and_replace_share_keep_their_own_ends() {
    check(
        "a\nb\r\nc\r\n",
        ("a\nb\nc\n", "a\nx\nc\n"),
        "LineEnds 1: a\nx\r\nc\r\n",
    );
    check(
        "a\r\nb\n",
        ("a\nb\n", "a\nb\nc\n"),
        "LineEnds 1: a\r\nb\nc\n",
    );
}

#[test]
fn exact_lines_win_over_lines_with_other_ends() {
    check("a\r\na\n", ("a\n", "b\n"), "Lines 2: a\r\nb\n");
}

#[test]
fn a_pair_with_a_cr_is_literal() {
    check("a\r\n", ("a\r\n", "a\n"), "Lines 1: a\n");
    check("a\nb\n", ("a\n", "a\r\n"), "Lines 1: a\r\nb\n");
    check("a\n", ("a\r\n", "b\r\n"), "the FIND is not in the file");
}

#[test]
fn a_place_inside_a_line_is_the_last_resort() {
    check(
        "the brown fox runs\n",
        ("brown fox\n", "red hen\n"),
        "Inline 1: the red hen runs\n",
    );
    check("a(b,\n  c)\n", ("b,\n  c\n", "x\n"), "Inline 1: a(x)\n");
    check(
        "a(b,\r\n  c)\r\n",
        ("b,\n  c\n", "x,\n  y\n"),
        "Inline 1: a(x,\r\n  y)\r\n",
    );
    check("a b c\n", (" b\n", ""), "Inline 1: a c\n");

    check("block1\nblock2\n", ("block\n", "x\n"), "lines [1, 2]");
}

#[test]
fn a_blank_line_at_an_edge_of_find_is_a_whole_line() {
    check("a\n\nb\n", ("a\n\n", "a\n"), "Lines 1: a\nb\n");
    check("a\n\nb\n", ("\nb\n", "b\n"), "Lines 2: a\nb\n");
    check("a\nb\n", ("a\n\n", "x\n"), "the FIND is not in the file");
    check("a\n", ("a\n\n", "x\n"), "the FIND is not in the file");
    check("xa\nb\n", ("\na\n", "y\n"), "the FIND is not in the file");
}

#[test]
fn more_than_one_hit_is_an_error_even_when_they_overlap() {
    check(
        "duplicate\nduplicate\n",
        ("duplicate\n", "x\n"),
        "lines [1, 2]",
    );
    check("a\nb\na\nb\na\n", ("a\nb\na\n", "x\n"), "lines [1, 3]");
    check("aaa!\n", ("aa\n", "b\n"), "lines [1, 1]");

    check("a\na", ("a\n", "b\n"), "lines [1, 2]");
}

#[test]
fn blank_and_equal_pairs_are_no_edits() {
    check("a\n", ("", "x\n"), "the FIND is blank");
    check("a\n", (" \n\n", "x\n"), "the FIND is blank");
    check("a\n", ("a\n", "a\n"), "FIND and REPLACE are equal");
    check("a\n", ("a\n", "a"), "FIND and REPLACE are equal");
}

#[test]
fn replace_is_literal() {
    check(
        "a\n",
        ("a\n", "$1 \\1 \\n & $0\n"),
        "Lines 1: $1 \\1 \\n & $0\n",
    );
    check("(.*)\n", ("(.*)\n", "b\n"), "Lines 1: b\n");
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_line() {
    check("\u{feff}a\nb\n", ("a\n", "x\n"), "Lines 1: \u{feff}x\nb\n");
    check("\u{feff}a\nb\n", ("\u{feff}a\n", "x\n"), "Lines 1: x\nb\n");
}

#[test]
fn a_later_pair_sees_the_text_after_the_earlier_ones() {
    let (after, _) =
        apply("line 1\nline 2\nline 3", "line 1\n", "LINE ONE\n").expect("the first pair fits");
    check(
        &after,
        ("line 3\n", "LINE THREE\n"),
        "Lines 3: LINE ONE\nline 2\nLINE THREE",
    );
}

/// A naive matcher, which returns the matches of the first tier that has any.
fn reference(text: &str, find: &str) -> (usize, Vec<usize>) {
    let core = find.strip_suffix('\n').unwrap_or(find);
    let lines = |text: &str| -> Vec<usize> {
        let ends =
            |at: usize| text[at..].starts_with('\n') || (at == text.len() && !text.ends_with('\n'));
        let starts = |at: usize| at == 0 || text[..at].ends_with('\n');
        (0..=text.len())
            .filter(|&at| {
                text.is_char_boundary(at)
                    && text[at..].starts_with(core)
                    && starts(at)
                    && ends(at + core.len())
            })
            .map(|at| text[..at].matches('\n').count() + 1)
            .collect()
    };

    let unix = text.replace("\r\n", "\n");
    let tolerant = if find.contains('\r') { text } else { &unix };
    let edge = core.starts_with(['\n', '\r']) || core.ends_with(['\n', '\r']);
    let inside: Vec<usize> = (0..tolerant.len())
        .filter(|&at| !edge && tolerant.is_char_boundary(at) && tolerant[at..].starts_with(core))
        .map(|at| tolerant[..at].matches('\n').count() + 1)
        .collect();

    [lines(text), lines(tolerant), inside]
        .into_iter()
        .enumerate()
        .find(|(_, hits)| !hits.is_empty())
        .unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_matcher_agrees_with_the_plainest_one(text in "([ab]{0,2}(\n|\r\n)){0,6}[ab]{0,2}", find in "([ab]{0,2}\n){1,3}") {
        prop_assume!(!find.trim().is_empty());
        let (tier, lines) = reference(&text, &find);
        let actual = match super::find_match(&text, &find) {
            Ok(matched) => (matched.tier as usize, vec![matched.line]),
            Err(MatchError::Ambiguous { places }) => (places[0].tier as usize, places.iter().map(|p| p.line).collect()),
            Err(_) => (0, Vec::new()),
        };

        prop_assert_eq!(actual, (tier, lines));
    }

    #[test]
    fn only_the_place_changes(text in "([ab]{0,2}(\n|\r\n)){0,6}[ab]{0,2}", find in "([ab]{1,2}\n){1,3}", new in "([xy]{1,2}\n){1,3}") {
        if let Ok((after, place)) = apply(&text, &find, &new) {
            prop_assert!(after.starts_with(&text[..place.start]));
            prop_assert!(after.ends_with(&text[place.end..]));
            prop_assert_eq!(after.ends_with('\n'), text.ends_with('\n'));
            prop_assert_eq!(after.replace("\r\n", "\n").contains(new.trim_end()), true);
            let back = apply(&after, &new, &find).map(|(back, _)| back);
            prop_assert!(back.is_err() || back.as_deref() == Ok(text.as_str()) || text.contains('\r'));
        }
    }
}
