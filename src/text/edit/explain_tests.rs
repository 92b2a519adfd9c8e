//! Tests of complete messages for pairs that do not apply.

use super::*;

fn check(text: &str, (find, replace): (&str, &str), expected: &str) {
    let error = apply(text, find, replace).expect_err("the pair should not apply");
    let others = [(
        "src/other.rs".to_owned(),
        "one\nlet moved = here();\n".to_owned(),
    )];
    let case = FailedPair {
        path: "src/a.rs",
        text,
        number: 2,
        count: 3,
        find,
        replace,
        others: &others,
    };

    assert_eq!(
        explain(&case, &error).message,
        expected.trim_end(),
        "for {find:?} in {text:?}"
    );
}

const FILE: &str = "fn a() {\n    one();\n}\n\nfn b() {\n\tlet x = compute(1);\n\tx\n}\n\nfn c() {\n    one();\n}\n";

#[test]
fn the_closest_place_is_shown_with_its_real_lines() {
    check(
        FILE,
        ("fn b() {\n    let x = compute(1);\n    x\n}\n", "x\n"),
        "FIND 2 of 3 is not in `src/a.rs`
the closest place is lines 5 to 8, 2 of the 4 lines of FIND are there
the first difference is at line 6: indentation: the file has 1 tab, FIND has 4 spaces
  file 5 | fn b() {
  file 6 | \tlet x = compute(1);
  FIND 2 |     let x = compute(1);
         | ^
  file 7 | \tx
  file 8 | }",
    );
}

#[test]
fn a_slip_in_one_line_is_marked() {
    check(
        "alpha\nThis is the original content\nomega\n",
        ("This is the orignal content\n", "x\n"),
        "FIND 2 of 3 is not in `src/a.rs`
the closest place is line 2
the first difference is at line 2: content: the file has `i`, FIND has nothing, at column 17
  file 2 | This is the original content
  FIND 1 | This is the orignal content
         |                 ^",
    );
}

#[test]
fn a_line_that_find_leaves_out_is_named() {
    check(
        FILE,
        ("fn b() {\n\tx\n}\n", "x\n"),
        "FIND 2 of 3 is not in `src/a.rs`
the closest place is lines 5 to 8, 3 of the 3 lines of FIND are there
FIND leaves out line 6, above its line 2
  file 5 | fn b() {
  file 6 | \tlet x = compute(1);
  file 7 | \tx
  file 8 | }",
    );
    check(
        FILE,
        ("}\nfn b() {\n\tlet x = compute(1);\n", "x\n"),
        "FIND 2 of 3 is not in `src/a.rs`
the closest place is lines 3 to 6, 3 of the 3 lines of FIND are there
FIND leaves out line 4, blank in the file, above its line 2
  file 3 | }
  file 4 | 
  file 5 | fn b() {
  file 6 | \tlet x = compute(1);",
    );
}

#[test]
fn an_elision_is_told_from_text() {
    check(
        FILE,
        ("fn b() {\n    // ... existing code ...\n}\n", "x\n"),
        "FIND 2 of 3 is not in `src/a.rs`
the closest place is lines 5 to 8, 2 of the 3 lines of FIND are there
line 2 of FIND stands for lines that are left out; FIND has to be complete
  file 5 | fn b() {
  file 6 | \tlet x = compute(1);
  FIND 2 |     // ... existing code ...
         | ^
  file 7 | \tx
  file 8 | }",
    );
}

#[test]
fn a_blank_line_too_many_is_named() {
    check(
        "a = 1\nb = 2\n",
        ("b = 2\n\n", "x\n"),
        "FIND 2 of 3 is not in `src/a.rs`
the closest place is line 2, 1 of the 2 lines of FIND are there
line 2 of FIND is blank; the file has no blank line there
  file 2 | b = 2",
    );
}

#[test]
fn what_was_pasted_along_is_named_with_the_place() {
    check(
        FILE,
        ("5 | fn b() {\n6 | \tlet x = compute(1);\n", "x\n"),
        "FIND 2 of 3 is not in `src/a.rs`
FIND has line numbers in front of its lines; without them it is at line 5",
    );
    check(
        FILE,
        ("```rust\nfn b() {\n```\n", "x\n"),
        "FIND 2 of 3 is not in `src/a.rs`
FIND has a fence around its lines; without them it is at line 5",
    );
}

#[test]
fn an_edit_that_was_made_already_is_recognised() {
    check(
        FILE,
        ("\tlet y = 1;\n", "\tlet x = compute(1);\n"),
        "FIND 2 of 3 is not in `src/a.rs`
the REPLACE is already there, at line 6",
    );
}

#[test]
fn a_replace_that_only_leaves_lines_out_says_nothing_about_the_past() {
    check(
        FILE,
        ("\tlet x = compute(2);\n}\n", "}\n"),
        "FIND 2 of 3 is not in `src/a.rs`
the closest place is lines 6 to 8, 1 of the 2 lines of FIND are there
the first difference is at line 6: content: the file has `1`, FIND has `2`, at column 18
  file 6 | \tlet x = compute(1);
  FIND 1 | \tlet x = compute(2);
         | \t                ^
  file 7 | \tx
  file 8 | }",
    );
}

#[test]
fn the_text_in_another_file_is_pointed_at() {
    check(
        FILE,
        ("let moved = here();\n", "x\n"),
        "FIND 2 of 3 is not in `src/a.rs`
no place in the file is like it
the text is in `src/other.rs`, at line 2",
    );
    check(
        "",
        ("let moved = here();\n", "x\n"),
        "FIND 2 of 3 is not in `src/a.rs`
the file is empty
the text is in `src/other.rs`, at line 2",
    );
}

#[test]
fn several_places_are_told_apart() {
    check(
        FILE,
        ("    one();\n", "x\n"),
        "FIND 2 of 3 occurs in 2 places in `src/a.rs`: lines 2, 11
  line 2 is below `fn a() {`
  line 11 is below `fn c() {`",
    );
    check(
        "block1\nblock2\n",
        ("block\n", "x\n"),
        "FIND 2 of 3 occurs in 2 places in `src/a.rs`, inside a line: lines 1, 2
  line 1 is the first
  line 2 is below `block1`",
    );
}

#[test]
fn a_very_frequent_find_lists_a_few_lines() {
    let text = "x\n".repeat(5000);
    let error = find_match(&text, "x\n").expect_err("the text is everywhere");
    let case = FailedPair {
        path: "a",
        text: &text,
        number: 1,
        count: 1,
        find: "x\n",
        replace: "y\n",
        others: &[],
    };

    let message = explain(&case, &error).message;
    assert!(
        message.starts_with("FIND occurs in at least 1001 places in `a`: lines 1, 2, 3"),
        "{message}"
    );
    assert!(message.len() < 500, "{message}");
}

#[test]
fn blank_and_equal_pairs_are_explained() {
    check(FILE, ("\n", "x\n"), "FIND 2 of 3 is blank");
    check(
        FILE,
        ("}\n", "}\n"),
        "FIND 2 of 3 and its REPLACE are equal",
    );
    check(
        "",
        ("", "x\n"),
        "FIND 2 of 3 is blank, and so is `src/a.rs`",
    );
}

#[test]
fn hostile_text_is_made_visible() {
    check(
        "let a = \"\u{202e}x\u{1b}[2J\";\n",
        ("let b = \"\u{202e}x\u{1b}[2J\";\n", "x\n"),
        "FIND 2 of 3 is not in `src/a.rs`
the closest place is line 1
the first difference is at line 1: content: the file has `a`, FIND has `b`, at column 5
  file 1 | let a = \"\\u{202e}x\\u{1b}[2J\";
  FIND 1 | let b = \"\\u{202e}x\\u{1b}[2J\";
         |     ^",
    );
}

#[test]
fn long_lines_are_cut_around_the_difference() {
    let (a, b) = ("a".repeat(500), "b".repeat(500));
    let text = format!("{a}1{b}\n");
    let find = format!("{a}2{b}\n");
    let error = find_match(&text, &find).expect_err("the text is not there");
    let case = FailedPair {
        path: "a",
        text: &text,
        number: 1,
        count: 1,
        find: &find,
        replace: "y\n",
        others: &[],
    };

    let message = explain(&case, &error).message;
    assert!(
        message.contains("…aaa") && message.contains("a1b") && message.len() < 800,
        "{message}"
    );
}
