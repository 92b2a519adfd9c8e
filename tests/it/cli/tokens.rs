//! Token counts equal those of tiktoken-rs for any text.
//!
//! `PROPTEST_CASES=1000000` tests more texts.

use std::fmt::Write as _;
use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::*;
use teddy::model::token::count;
use tiktoken_rs::{CoreBPE, o200k_base_singleton};

use crate::support::source::files;

/// Maximum length in bytes of a text that is counted as a whole.
const CHUNK: usize = 64 * 1024;
/// Part of the texts in this target, as `1 / SHARE`.
const SHARE: usize = if crate::WORLDS { 1 } else { 20 };
/// Without special tokens.
const TOKENS: usize = 199_998;
/// Texts with special rules in the tokenizer, and similar ones.
#[rustfmt::skip]
const PARTICULAR: [&str; 44] = [
    " ", "  ", "\t", "\n", "\r", "\r\n", "\u{b}", "\u{85}", "\u{a0}", "\u{2028}", "\u{3000}",
    "\u{200b}", "\u{feff}", "a", "z", "A", "Z", "é", "É", "ǅ", "ʰ", "ª", "中", "ん", "ب", "\u{301}",
    "\u{93f}", "\u{20dd}", "1", "٣", "½", "Ⅷ", "'", "'s", "'LL", "'ſ", "’s", "/", "//", "-", "_",
    "😀", "👩\u{200d}👧", "<|endoftext|>",
];

/// Xorshift generator: the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn one(&mut self, range: Range<usize>) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        range.start + (self.0 >> 11) as usize % range.len()
    }
}

fn reference() -> &'static CoreBPE {
    o200k_base_singleton()
}

fn token(rank: usize) -> String {
    let bytes = reference().decode_bytes(&[rank as u32]).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[track_caller]
fn check(text: &str) {
    let expected = reference().encode_ordinary(text).len();
    assert_eq!(count(text), expected, "{text:?}");
}

/// Compares a long text in chunks, and reports the first line with a different count.
fn check_long(text: &str) {
    let middle = boundary(text, text.len() / 2);
    std::thread::scope(|scope| {
        for half in [&text[..middle], &text[middle..]] {
            scope.spawn(move || chunks(half).for_each(check_chunk));
        }
    });
}

/// Returns the last position up to `most` at which the text can be split.
fn boundary(text: &str, most: usize) -> usize {
    let mut places = (0..=most.min(text.len())).rev();
    places.find(|at| text.is_char_boundary(*at)).unwrap()
}

/// Splits a text into chunks of at most `CHUNK` bytes.
fn chunks(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (chunk, rest) = text.split_at(boundary(text, CHUNK));
        text = rest;
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// Compares a chunk. On a difference, compares its lines.
fn check_chunk(chunk: &str) {
    if count(chunk) != reference().encode_ordinary(chunk).len() {
        chunk.split_inclusive('\n').for_each(check);
        panic!("counted differently: {chunk:?}");
    }
}

/// Returns all text files of this project.
fn project() -> String {
    let written = [
        ("src", ".rs"),
        ("tests", ".rs"),
        ("tests", ".snap"),
        ("benches", ".rs"),
        ("docs", ".md"),
        ("prompts", ".xml"),
        ("fixtures", ".md"),
    ];
    let files = written.iter().flat_map(|(folder, end)| files(folder, end));
    files.step_by(SHARE).map(|file| file.text).collect()
}

/// Returns lines of random tokens, with and without spaces in between.
fn vocabulary(numbers: &mut Numbers) -> String {
    let mut text = String::new();
    for line in 0..90_000 / SHARE {
        let between = ["", " ", "", "\t", "\u{301}", "'s"][line % 6];
        for _ in 0..numbers.one(1..16) {
            text += &token(numbers.one(0..TOKENS));
            text += between;
        }
        text.push('\n');
    }
    text
}

/// Returns each character of the first two planes and a sample of the others, in several positions.
fn characters() -> String {
    let all = (0..0x2_0000).chain((0x2_0000..0x11_0000).step_by(97));
    let mut text = String::new();
    for c in all.filter_map(char::from_u32).step_by(SHARE) {
        writeln!(text, "{c}a{c}{c}B {c}1{c}'s  {c}").unwrap();
    }
    text
}

/// Returns lines of special texts, some of them repeated.
fn particular(numbers: &mut Numbers, lines: usize) -> String {
    let mut text = String::new();
    for _ in 0..lines {
        for _ in 0..numbers.one(1..40) {
            let one = PARTICULAR[numbers.one(0..PARTICULAR.len())];
            let times = [1, 1, 1, 2, 3, 9, 60][numbers.one(0..7)];
            text += &one.repeat(times);
        }
        text.push('\n');
    }
    text
}

/// Returns random bytes as text, some from a small alphabet.
fn bytes(numbers: &mut Numbers, lines: usize) -> String {
    let mut text = String::new();
    for line in 0..lines {
        let range = [0..256, 0..256, 32..127, 97..123, 0xc0..0x100][line % 5].clone();
        let bytes: Vec<u8> = (0..numbers.one(1..200))
            .map(|_| numbers.one(range.clone()) as u8)
            .collect();
        text += &String::from_utf8_lossy(&bytes);
        text.push('\n');
    }
    text
}

#[test]
fn texts_of_all_kinds_are_counted_as_by_tiktoken_rs() {
    let mut numbers = Numbers(1);
    let texts = [
        project(),
        vocabulary(&mut numbers),
        characters(),
        particular(&mut numbers, 30_000 / SHARE),
        bytes(&mut numbers, 15_000 / SHARE),
    ];

    texts.iter().for_each(|text| check_long(text));
    let lengths = texts.map(|text| text.len());
    let least = 20_000_000 / SHARE;
    assert!(lengths.iter().sum::<usize>() > least, "{lengths:?}");
}

#[test]
fn each_token_of_the_vocabulary_is_counted_as_by_tiktoken_rs() {
    for rank in 0..TOKENS {
        check(&token(rank));
    }
}

#[test]
fn long_runs_are_counted_as_by_tiktoken_rs() {
    for run in [
        "a", "aB", "ab", " ", "\n", " \n", "\t", "\r\n", "-", "=", "/", "中", "\u{301}",
    ] {
        check(&format!("x{}y", run.repeat(2_000)));
        check(&format!("x{} {}", run.repeat(49), run.repeat(20_000)));
    }
}

#[test]
fn promise_d9_a_million_in_a_row_are_counted() {
    // In quadratic time, `worlds` would take hours.
    let check = |text: &str, expected: usize| assert_eq!(count(text), expected);
    check(&" ".repeat(1_280_000 / SHARE), 10_000 / SHARE);
    check(&"a".repeat(1_000_000 / SHARE), 125_000 / SHARE);
    check(&" \u{3000}\n".repeat(100_000 / SHARE), 200_000 / SHARE);
}

/// A special text, any character, a token or bytes.
fn part() -> impl Strategy<Value = String> {
    let bytes = vec(any::<u8>(), 1..12);
    prop_oneof![
        4 => prop::sample::select(&PARTICULAR[..]).prop_map(str::to_owned),
        2 => any::<char>().prop_map(String::from),
        2 => (0..TOKENS).prop_map(token),
        1 => "[a-zA-Z]{1,60}",
        1 => bytes.prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    ]
}

/// A concatenation of parts, some of them repeated.
fn text() -> impl Strategy<Value = String> {
    let times = prop_oneof![6 => Just(1_usize), 2 => 2..5_usize, 1 => 5..300_usize];
    let run = (part(), times).prop_map(|(part, times)| part.repeat(times));
    vec(run, 0..30).prop_map(|runs| runs.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_counted_as_by_tiktoken_rs(text in text()) {
        let expected = reference().encode_ordinary(&text).len();
        prop_assert_eq!(count(&text), expected);
    }
}
