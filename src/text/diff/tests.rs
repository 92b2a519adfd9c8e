//! Tests of diffs, some against the results of `similar` itself.

use proptest::prelude::*;

use super::*;

/// Renders a preview with signs, line numbers, and brackets around marked pieces.
fn preview(old: &str, new: &str) -> String {
    let number = |n: Option<usize>| n.map_or("-".to_owned(), |n| n.to_string());
    let mut out = String::new();
    for line in difference(old, new, usize::MAX)
        .hunks
        .iter()
        .flat_map(|hunk| &hunk.lines)
    {
        let text: String = line
            .pieces
            .iter()
            .map(|(differs, t)| {
                if *differs {
                    format!("[{t}]")
                } else {
                    t.clone()
                }
            })
            .collect();
        let end = if line.unended { " (no line end)" } else { "" };
        out += &format!(
            "{:?} {} {} {text}{end}\n",
            line.change,
            number(line.old),
            number(line.new)
        );
    }
    out
}

fn text() -> impl Strategy<Value = String> {
    let word = prop_oneof!["a", "b", "let x", "é", "0\r", " ", "\t}"];
    let line = prop::collection::vec(word, 0..5).prop_map(|tokens| tokens.concat());
    let lines = prop::collection::vec(line, 0..24);
    (lines, any::<bool>()).prop_map(|(lines, is_ended)| {
        // `similar` treats a lone CR at the end of the text as a line end, unlike git.
        let end = if is_ended { "\n" } else { "z" };
        lines.join("\n") + end
    })
}

fn by_similar<'t>(old: &[&'t str], new: &[&'t str]) -> similar::TextDiff<'t, 't, str> {
    let mut config = similar::TextDiffConfig::default();
    config.algorithm(similar::Algorithm::Histogram);
    config.newline_terminated(true).diff_slices(old, new)
}

proptest! {
    #[test]
    fn a_difference_is_what_similar_makes_of_it(old in text(), new in text()) {
        let (a, b) = (lines(&old), lines(&new));
        let diff = by_similar(&a, &b);
        let unified = unified(&old, &new, ("a", "b"));
        let mut expected = diff.unified_diff();
        prop_assert_eq!(unified, expected.header("a", "b").to_string());

        let mut options = similar::InlineChangeOptions::new();
        options.algorithm(similar::Algorithm::Histogram);
        let mut expected = Vec::new();
        for step in diff.grouped_ops(AROUND).iter().flatten() {
            let changes = diff.iter_inline_changes_with_options(step, options);
            expected.extend(changes.map(|change| {
                let numbers = (change.old_index(), change.new_index());
                (numbers, joined(change.values()))
            }));
        }
        let actual = difference(&old, &new, usize::MAX).hunks.into_iter().flat_map(|hunk| hunk.lines);
        let actual = actual.map(|line| {
            let from_0 = |number: Option<usize>| number.map(|number| number - 1);
            let pieces: Vec<_> = line.pieces.iter().map(|(differs, text)| (*differs, &**text)).collect();
            ((from_0(line.old), from_0(line.new)), joined(&pieces))
        });
        prop_assert_eq!(actual.collect::<Vec<_>>(), expected);
    }
}

/// Merges pieces with the same mark, and drops line ends, which can be pieces of their own.
fn joined(pieces: &[(bool, &str)]) -> Vec<(bool, String)> {
    let mut joined: Vec<(bool, String)> = Vec::new();
    for (differs, text) in pieces {
        let text = text.replace(['\r', '\n'], "");
        match joined.last_mut() {
            _ if text.is_empty() => {}
            Some((last, before)) if last == differs => before.push_str(&text),
            _ => joined.push((*differs, text)),
        }
    }
    joined
}

#[test]
fn a_unified_diff_is_what_git_writes() {
    let diff = unified("a\nb\nc\n", "a\nx\nc\n", ("a/f.txt", "b/f.txt"));
    assert_eq!(
        diff,
        "--- a/f.txt\n+++ b/f.txt\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"
    );
    assert_eq!(unified("a\n", "a\n", ("a", "b")), "");
}

#[test]
fn a_missing_final_line_end_is_said() {
    let diff = unified("a\nb", "a\nb\n", ("a", "b"));
    assert_eq!(
        diff,
        "--- a\n+++ b\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"
    );
    let diff = unified("", "b\r", ("a", "b"));
    assert_eq!(
        diff,
        "--- a\n+++ b\n@@ -0,0 +1 @@\n+b\r\n\\ No newline at end of file\n"
    );
}

#[test]
fn lines_that_come_and_go_are_counted() {
    assert_eq!(
        counts("a\nb\nc\n", "a\nx\ny\nc\n"),
        Counts {
            added: 2,
            removed: 1
        }
    );
    assert_eq!(
        counts("", "a\nb\n"),
        Counts {
            added: 2,
            removed: 0
        }
    );
    assert_eq!(
        counts("a\r\n", "a\n"),
        Counts {
            added: 1,
            removed: 1
        }
    );
    assert_eq!(counts("a\rb\n", "a\rb\n"), Counts::default());
}

#[test]
fn a_preview_marks_what_differs_inside_a_line() {
    assert_eq!(
        preview(
            "fn a() {\n    let x = one;\n}\n",
            "fn a() {\n    let x = two;\n}"
        ),
        "Kept 1 1 fn a() {\nRemoved 2 - \u{20}   let x = [one];\nRemoved 3 - }\nAdded - 2     let x = [two];\nAdded - 3 } (no line end)\n"
    );
}

#[test]
fn a_preview_has_at_most_so_many_lines_and_says_how_many_more() {
    let old: String = (0..40).map(|n| format!("{n}\n")).collect();
    let new = old.replace("5\n", "five\n").replace("30\n", "thirty\n");
    let preview = |most| {
        let result = difference(&old, &new, most);
        let lengths: Vec<usize> = result.hunks.iter().map(|hunk| hunk.lines.len()).collect();
        (lengths, result.left_out)
    };
    assert_eq!(preview(usize::MAX).1, 0);
    let total: usize = preview(usize::MAX).0.iter().sum();
    assert_eq!(preview(3), (vec![3], total - 3));
    assert_eq!(preview(0), (vec![], total));
}

#[test]
fn aligned_ranges_are_in_order() {
    assert_eq!(
        align(&[1, 2, 3, 4], &[9, 1, 2, 4]),
        [(0..2, 1..3), (3..4, 3..4)]
    );
}

#[test]
fn two_large_texts_with_nothing_in_common_are_compared_in_bounded_time() {
    let text = |seed: usize| {
        (0..20_000)
            .map(|n| format!("{}\n", n * 2 + seed))
            .collect::<String>()
    };
    assert_eq!(
        counts(&text(0), &text(1)),
        Counts {
            added: 20_000,
            removed: 20_000
        }
    );
}

#[test]
fn words_of_a_line_of_megabytes_are_not_marked() {
    let differs = |words: usize| {
        let old = "word ".repeat(words);
        let new = format!("{}{old}", "other ");
        let hunks = difference(&old, &new, usize::MAX).hunks;
        let lines = hunks[0].lines.iter();
        lines
            .flat_map(|line| &line.pieces)
            .any(|(differs, _)| *differs)
    };
    assert!(differs(1_000));
    assert!(!differs(100_000));
}

#[test]
fn lines_with_a_long_common_beginning_are_marked_behind_it() {
    let check = |old: &str, new: &str, expected: &str| {
        assert_eq!(preview(old, new).replace(&"é ".repeat(50), "..."), expected);
    };
    let start = "é ".repeat(50);
    // Dissimilar, and too large for words.
    for middle in ["a b c ".repeat(100), "a ".repeat(100_000)] {
        let (old, new) = (format!("{start}{middle}end\n"), format!("{start}new end\n"));
        check(
            &old,
            &new,
            &format!(
                "Removed 1 - ...[{}] end\nAdded - 1 ...[new] end\n",
                middle.trim_end()
            ),
        );
    }
    check(
        "a b\n",
        "a c d e f g h i\n",
        "Removed 1 - a b\nAdded - 1 a c d e f g h i\n",
    );
}
