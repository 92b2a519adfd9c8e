//! Tests of the descriptions of differences.

use super::*;

fn check(find: &str, file: &str, expected: &str) {
    assert_eq!(name(find, file), expected, "for {find:?} and {file:?}");
}

#[test]
fn blanks_are_counted() {
    check(
        "a",
        "a  ",
        "whitespace at the end of the line: the file has 2 spaces, FIND has none",
    );
    check(
        "    a",
        "\ta",
        "indentation: the file has 1 tab, FIND has 4 spaces",
    );
    check(
        "    a ",
        "\t  a",
        "indentation: the file has 1 tab and 2 spaces, FIND has 4 spaces",
    );
    check(
        "a = 1",
        "a  = 1",
        "whitespace inside the line, at column 3: the file has 2 spaces, FIND has 1 space",
    );

    check(
        "f(a,b)",
        "f(a, b)",
        "whitespace inside the line, at column 5: the file has 1 space, FIND has none",
    );
}

#[test]
fn look_alikes_are_named_by_their_code_points() {
    check(
        "it's",
        "it\u{2019}s",
        "a character that looks like another: the file has `\u{2019}` (U+2019), FIND has `'` (U+0027), at column 3",
    );
    check(
        "a b",
        "a\u{a0}b",
        "a character that looks like another: the file has `\u{a0}` (U+00A0), FIND has ` ` (U+0020), at column 2",
    );
    check(
        "a - b",
        "a \u{2013} b",
        "a character that looks like another: the file has `\u{2013}` (U+2013), FIND has `-` (U+002D), at column 3",
    );

    check(
        "cafe\u{301}",
        "caf\u{e9}",
        "letters composed in another way: the file has `\u{e9}` (U+00E9), FIND has `e` (U+0065), at column 4",
    );
}

#[test]
fn escapes_and_letter_case_are_named() {
    check(
        "say(\\\"x\\\")",
        "say(\"x\")",
        "escaping: the file has `\"x`, FIND has `\\\"`, at column 5",
    );
    check(
        "a &lt; b",
        "a < b",
        "escaping: the file has `< `, FIND has `&l`, at column 3",
    );
    check(
        "Foo",
        "foo",
        "letter case: the file has `f` (U+0066), FIND has `F` (U+0046), at column 1",
    );
}

#[test]
fn pasted_marks_and_numbers_are_named() {
    check(
        "12: let a",
        "let a",
        "a line number: FIND has it in front of the line",
    );
    check(
        "  12 | let a",
        "  let a",
        "a line number: FIND has it in front of the line",
    );
    check(
        "+ let a",
        "let a",
        "a mark of a diff: FIND has it in front of the line",
    );
}

#[test]
fn other_content_is_quoted() {
    check(
        "return False",
        "return True",
        "content: the file has `Tru`, FIND has `Fals`, at column 8",
    );
    check(
        "a()",
        "a(b)",
        "content: the file has `b`, FIND has nothing, at column 3",
    );
    check("a\r", "a", "line end: the file has LF, FIND has CRLF");
}

#[test]
fn elisions_are_recognised() {
    for line in [
        "...",
        "    …",
        "// ... existing code ...",
        "# ... rest unchanged",
        "<!-- ... -->",
        "/* … */",
    ] {
        assert!(is_elided(line), "{line:?}");
    }

    for line in ["wait...", "let a = &b[..];", "}", "print('...')"] {
        assert!(!is_elided(line), "{line:?}");
    }
}

#[test]
fn what_was_pasted_along_can_be_taken_off() {
    let check = |find: &str, expected: &[&str]| {
        let actual: Vec<String> = cures(find).into_iter().map(|(_, text)| text).collect();
        assert_eq!(actual, expected, "for {find:?}");
    };
    check("12 | a\n13 |   b\n", &["a\n  b\n"]);
    check("  12\ta\n\n  13\t  b\n", &["a\n\n  b\n"]);
    check("-a\n b\n+c\n", &["a\nb\n", "a\nb\nc\n"]);
    check("> a\n> b\n", &["a\nb\n"]);
    check("```rust\na\n```\n", &["a\n"]);
    check("```rust\na\n", &[]);
    check("a\n```\n", &[]);
    check("```\n", &[]);

    check("a\nb\n", &[]);
}
