//! Tests of wrapping, cutting and colors.

use super::*;

fn check(line: StyledLine, width: usize, expected: &[&str]) {
    let rows: Vec<String> = line.wrap(width).iter().map(StyledLine::text).collect();
    assert_eq!(rows, expected);
}

#[test]
fn a_line_wraps_at_columns_not_at_characters() {
    check(StyledLine::plain("abcdef"), 3, &["abc", "def"]);
    check(StyledLine::plain("日本語"), 5, &["日本", "語"]);
    check(StyledLine::plain(""), 5, &[""]);
    check(StyledLine::plain("日"), 1, &["日"]);
}

#[test]
fn a_name_keeps_both_of_its_ends() {
    let check = |width: usize, expected: &str| {
        assert_eq!(shortened_within("a-long-name", width), expected);
    };
    check(11, "a-long-name");
    check(8, "a-lo…ame");
    check(3, "a…e");
    check(1, "…");
}

fn check_fold(text: &str, width: usize, expected: &[&str]) {
    let rows: Vec<String> = StyledLine::plain(text)
        .fold(width)
        .iter()
        .map(StyledLine::text)
        .collect();
    assert_eq!(rows, expected);
}

#[test]
fn a_folded_line_breaks_at_blanks_and_marks_what_goes_on() {
    check_fold("  one two three", 9, &["  one ", "  ↪ two ", "  ↪ three"]);
    check_fold("abcdefghijk", 6, &["abcdef", "↪ ghij", "↪ k"]);
    check_fold("日本語日本語", 7, &["日本語", "↪ 日本", "↪ 語"]);
    check_fold("abc", 1, &["a", "b", "c"]);
    check_fold("日本", 1, &["日", "本"]);
}

fn check_width(line: &StyledLine) {
    let rows = [line.clone().wrap(7), line.clone().fold(7)].concat();
    let lines = [line.clone().cut(5), line.clone().append(line.clone())];
    for line in rows.iter().chain(&lines).chain([line]) {
        let columns = line.spans.iter().map(|span| span.text.width());
        assert_eq!(line.width(), columns.sum::<usize>(), "{line:?}");
    }
}

#[test]
fn a_line_of_any_number_of_pieces_is_made_in_one_pass() {
    check_width(&StyledLine::plain("a\tb日本").blanks(3));
    // Quadratic measuring would take minutes here.
    let pieces = 50_000;
    let line = (0..pieces).fold(StyledLine::default(), |line, _| {
        line.with(Tone::Plain, "a").with(Tone::Strong, "日\t")
    });
    assert_eq!(line.spans().len(), 2 * pieces);
    assert_eq!(line.width(), 4 * pieces);
    check_width(&line);
}

#[test]
fn a_cut_line_says_so() {
    assert_eq!(StyledLine::plain("abcdef").cut(4).text(), "abc…");
    assert_eq!(StyledLine::plain("abcd").cut(4).text(), "abcd");
    assert_eq!(StyledLine::plain("日本語").cut(4).text(), "日…");
}

#[test]
fn nothing_on_a_line_can_steer_the_terminal() {
    let line = StyledLine::plain("a\x1b[2Jb\u{202e}c\rd");
    assert!(
        !line
            .paint(Paint::Colors)
            .chars()
            .any(|c| c.is_control() || c == '\u{202e}'),
        "{line:?}"
    );
    assert_eq!(StyledLine::plain("a\tb").text(), "a   b");
}

#[test]
fn a_text_without_end_is_not_made_into_lines() {
    let lines = |text: &str| block(Tone::Added, text);
    let output = long_text("a\x1b", lines, Paint::Colors);
    assert_eq!(output, "\x1b[32ma\\u{1b}\x1b[0m\n");
    let text = "\x1b\n".repeat(MAX_STYLED / 2 + 1);
    let output = long_text(&text, |_| panic!("it is too long"), Paint::Colors);
    assert_eq!(output, "\\u{1b}\n".repeat(MAX_STYLED / 2 + 1));
}

#[test]
fn tones_become_escape_sequences() {
    let line = StyledLine::plain("a ").with(Tone::Added, "b");
    assert_eq!(line.paint(Paint::Colors), "a \x1b[32mb\x1b[0m");
    assert_eq!(line.paint(Paint::Weights), "a b");
    assert_eq!(line.paint(Paint::Bare), "a b");
    let question = StyledLine::of(Tone::Question, "Run it?");
    assert_eq!(question.paint(Paint::Weights), "\x1b[1;7mRun it?\x1b[0m");
    assert_eq!(question.paint(Paint::Bare), "Run it?");
}

#[test]
fn the_width_of_a_long_text_is_the_sum_of_its_parts() {
    for text in [
        "",
        "abc",
        "aé1\u{fe0f}\u{20e3}b",
        "日本x語",
        "👩\u{200d}🔬a🇩🇪b",
        "e\u{301}e",
        "x\u{e9}",
    ] {
        assert_eq!(width(text), text.width(), "{text:?}");
    }
}
