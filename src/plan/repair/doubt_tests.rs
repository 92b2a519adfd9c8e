//! The rules for doubts, one by one.

use super::Level::{Doubtful, Refenced};
use super::cases::{check, expand};
use super::repair;

/// Compares the doubts about a reply, each as `line: message`.
fn check_doubts(reply: &str, expected: &[&str]) {
    let repaired = repair(&expand(reply));
    let doubts: Vec<_> = repaired
        .notes
        .iter()
        .filter(|note| note.doubt)
        .map(|note| format!("{}: {}", note.line, note.message))
        .collect();
    assert_eq!(doubts, expected, "{:?}: {}", repaired.level, repaired.text);

    assert_eq!(repaired.level == Doubtful, !expected.is_empty());
}

#[test]
fn rp14_a_fence_is_a_line_of_code_only_in_what_spans_lines() {
    let script = |body: &str| format!("{{head}}{{execute}}```sh\n{body}```\n");
    let text = |body: &str| format!("{{head}}{{execute}}````sh\n{body}````\n");
    let here = "cat > a.md <<'EOF'\n```\nls\n```\nEOF\n";
    check("a here-document", &script(here), Refenced, &text(here));
    check_doubts(
        &script("ls\n\n```sh\nmake\n```\n"),
        &["18: this fence can end the block that opens at line 15, or be a line of it"],
    );
    let program = "{head}### `CREATE`\n- **File Path:** [a.rs](/a.rs)\n";
    let comment = "/** Say:\n```\na()\n``` */\nfn a() {}\n";

    check(
        "the end of a comment",
        &format!("{program}```\n{comment}```\n"),
        Refenced,
        &format!("{program}````\n{comment}````\n"),
    );
}

#[test]
fn rp15_a_remark_behind_a_command_or_the_memos_is_no_part_of_it() {
    let two = |first, last| {
        format!(
            "{first}: the fences can be read in two ways: line {first} closes its block, and a remark with a block of its own follows, or line {last} closes it"
        )
    };
    let comment = "Or:\n```\nrm a\n```\n";
    check_doubts(
        &format!("{{head}}{{execute}}```\nls\n```\n{comment}"),
        &[&two(17, 21)],
    );
    check_doubts(
        &format!(
            "{{title}}\n## Rationale\n~~~\nr\n~~~\n\n## Memos\n```\n[+] a\n```\n{comment}\n## Action Plan\n\n{{read}}"
        ),
        &[&two(14, 18)],
    );

    // A block with another language could not be content: only the parser reports it.
    check_doubts("{head}{execute}```\nls\n```\nOr:\n```sh\nrm a\n```\n", &[]);
}

#[test]
fn rp16_what_could_be_the_closer_is_told_by_its_line() {
    let block = |code: &str| format!("{{head}}{{execute}}```sh\n{code}\n{{read}}");
    let can = |line| format!("{line}: this can be meant to close the block that opens at line 15");
    for code in ["ls```\n", "ls\n\u{a0}```\n", "ls\n``\n", "ls\n> ```\n"] {
        let line = if code.starts_with("ls`") { 16 } else { 17 };
        check_doubts(&block(code), &[&can(line)]);
    }

    check_doubts(
        &block("ls\n~~~\n"),
        &["17: this fence can end the block that opens at line 15, or be a line of it"],
    );
    check_doubts(
        &block("ls\n``` */\n"),
        &["17: this closes the block that opens at line 15, or is a line of it"],
    );
    check_doubts(&block("ls\n``` (end)\n"), &[]);
}

#[test]
fn rp17_where_an_answer_ends_shows_that_it_was_cut_off() {
    let inside = "the answer was cut off: it ends inside the block that starts here";
    let partial = "the answer was cut off: its last line is not complete";
    let at = |line: usize, message: &str| format!("{line}: {message}");
    check_doubts("{head}{execute}```sh\nls", &[&at(15, inside)]);
    check_doubts("{head}{execute}````sh\nls\n```", &[&at(15, inside)]);
    check_doubts("```md\n{head}{execute}~~~sh\nls\n~~~\n", &[&at(1, inside)]);
    check_doubts("{head}{read}\n### `EX", &[&at(17, partial)]);
    check_doubts("{head}{read}\n### ", &[&at(17, partial)]);
    check_doubts(
        "{head}### `CHAT_WITH_USER`\nHi.\n\n### `RE",
        &[&at(16, partial)],
    );

    check_doubts("{head}{execute}```sh\nls\n```", &[]);
}
