//! Table of pairs and their results. `differs` marks cases that a tolerant matcher would accept;
//! see `docs/formats/plan.md` for the reasons against it.

use super::*;

/// Name, file, FIND and REPLACE, and the resulting file or error.
type Row<'a> = (&'a str, &'a str, (&'a str, &'a str), &'a str);

#[rustfmt::skip]
const ROWS: &[Row<'_>] = &[
    ("M1: the first of two pairs", "line 1\nline 2\nline 3", ("line 1\n", "LINE ONE\n"), "LINE ONE\nline 2\nline 3"),
    ("M1: the second of them", "LINE ONE\nline 2\nline 3", ("line 3\n", "LINE THREE\n"), "LINE ONE\nline 2\nLINE THREE"),
    ("M2: nowhere", "a\n", ("missing\n", "x\n"), "error: the FIND is not in the file"),
    ("M3: twice", "duplicate\nduplicate\n", ("duplicate\n", "x\n"), "error: FIND occurs in 2 places"),
    ("M4: deleted, and no blank line left", "Line 1\nLine 2\nLine 3\n", ("Line 2\n", ""), "Line 1\nLine 3\n"),
    ("M6: a file with CRLF", "Line 1\r\nLine 2\r\nLine 3\r\n", ("Line 2\n", "REPLACED\n"), "Line 1\r\nREPLACED\r\nLine 3\r\n"),
    ("M7: the same with LF", "Line 1\nLine 2\nLine 3\n", ("Line 2\n", "REPLACED\n"), "Line 1\nREPLACED\nLine 3\n"),
    ("M8: a FIND without its line end", "print('hello')\n", ("print('hello')", "print('x')"), "print('x')\n"),
    ("M8: the same with CRLF", "print('hello')\r\n", ("print('hello')", "print('x')"), "print('x')\r\n"),
    ("M9 differs: blanks at the end of the file's line", "a = 1  \nb\n", ("a = 1\nb\n", "x\n"), "error: the FIND is not in the file"),
    ("M10 and M11 differ: another indentation", "    def f():\n        print('old')", ("def f():\n    print('old')\n", "def f():\n    print('new')\n"), "error: the FIND is not in the file"),
    ("M12 differs: indentation that the file does not have", "def f():\nprint('old')", ("    def f():\n    print('old')\n", "    x\n"), "error: the FIND is not in the file"),
    ("M13: blank lines inside of a block stay", "a\n\nb\n", ("a\n\nb\n", "a\n\nc\n"), "a\n\nc\n"),
    ("M14: two indentations", "  a\n    b\n", ("a\nb\n", "x\n"), "error: the FIND is not in the file"),
    ("M15: another word", "return False\n", ("return True\n", "x\n"), "error: the FIND is not in the file"),
    ("M16: one letter", "The quick brown fox\n", ("The quick brown fix\n", "x\n"), "error: the FIND is not in the file"),
    ("M17: a part of a line", "the brown fox runs\n", ("brown fox\n", "red hen\n"), "the red hen runs\n"),
    ("M19: the exact text with its line end", "a\nb\nc\n", ("b\nc\n", "x\n"), "a\nx\n"),
    ("M20: several lines that start inside of one", "f(a,\n  b);\n", ("a,\n  b\n", "c,\n  d,\n  e\n"), "f(c,\n  d,\n  e);\n"),
    ("M21: nothing in a REPLACE means something", "a\n", ("a\n", "$1 \\n \\\\ & \\1\n"), "$1 \\n \\\\ & \\1\n"),
    ("M22: the whole file", "a\nb\n", ("a\nb\n", "c\n"), "c\n"),
    ("M23: the line that matches, not the first text that does", "x\n  x\n", ("  x\n", "  y\n"), "x\n  y\n"),
    ("M24: nothing fuzzy", "fn main() {\n    run();\n}\n", ("fn main() {\n    run()\n}\n", "x\n"), "error: the FIND is not in the file"),
];

#[test]
fn every_case_is_applied_or_refused() {
    let mut wrong = Vec::new();
    for (name, text, (find, replace), expected) in ROWS {
        let actual = apply(text, find, replace)
            .map_or_else(|error| format!("error: {error}"), |(after, _)| after);
        if actual != *expected {
            wrong.push(format!("{name}: {actual:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn m18_a_slip_in_a_long_file_is_shown_where_it_is() {
    let file: String = (1..=120)
        .map(|n| format!("- item {n} of the `list`\n"))
        .collect();
    let find = "- item 77 of the list\n";
    let error = apply(&file, find, "x\n").expect_err("a slip");
    let case = FailedPair {
        path: "a.md",
        text: &file,
        number: 1,
        count: 1,
        find,
        replace: "x\n",
        others: &[],
    };

    let message = explain(&case, &error).message;
    assert!(
        message.contains("the closest place is line 77")
            && message.contains("| - item 77 of the `list`"),
        "{message}"
    );
}
