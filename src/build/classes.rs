//! Generates the table of character classes from the same Unicode tables as tiktoken-rs.

use regex_syntax::hir::{Class, HirKind};

use crate::layout::{BLANK, BLOCKS, LOWER, NEWLINE, NUMBER, OPENER, SYMBOL, UPPER};

// Regular expressions and bits of the classes.
const CLASSES: [(&str, u8); 6] = [
    (r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", UPPER),
    (r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", LOWER),
    (r"\p{N}", NUMBER),
    (r"\s", BLANK),
    (r"[^\r\n\p{L}\p{N}]", OPENER),
    (r"[^\s\p{L}\p{N}]", SYMBOL),
];

/// Returns the table: block numbers, followed by the distinct blocks.
pub fn table() -> Vec<u8> {
    let mut of = vec![0_u8; BLOCKS * 256];
    of[usize::from(b'\r')] |= NEWLINE;
    of[usize::from(b'\n')] |= NEWLINE;
    for (pattern, bit) in CLASSES {
        for (first, last) in ranges(pattern) {
            of[first..=last].iter_mut().for_each(|class| *class |= bit);
        }
    }

    let mut blocks: Vec<&[u8]> = Vec::new();
    let mut table = Vec::new();
    for block in of.chunks(256) {
        let existing = blocks.iter().position(|one| *one == block);
        let number = existing.unwrap_or_else(|| {
            blocks.push(block);
            blocks.len() - 1
        });
        table.push(u8::try_from(number).expect("fewer than 256 blocks differ"));
    }
    table.extend(blocks.concat());

    table
}

/// Returns the inclusive ranges of code points in a character class.
fn ranges(pattern: &str) -> Vec<(usize, usize)> {
    let parsed = regex_syntax::parse(pattern).expect("a good pattern");
    let HirKind::Class(Class::Unicode(class)) = parsed.kind() else {
        panic!("`{pattern}` is not a class");
    };
    class
        .iter()
        .map(|range| (range.start() as usize, range.end() as usize))
        .collect()
}
