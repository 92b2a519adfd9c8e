//! Token counting with the `o200k_base` vocabulary: exact for OpenAI's models, approximate for
//! others.
//!
//! The build script converts the vocabulary of tiktoken-rs to tables ([`layout`]), which are
//! compiled in and used without loading or decoding. The first count is as fast as any other.

mod layout;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use layout::{
    BLANK, BLOCKS, END, LABEL_SHIFT, LEAF, LOWER, NEWLINE, NUMBER, OPENER, ROOT, SYMBOL, TOKEN,
    UPPER, VALUE_BITS,
};

/// Special tokens count as plain text.
pub fn count(text: &str) -> usize {
    let mut merger = Merger::default();
    Pieces::new(text).map(|piece| merger.count(piece)).sum()
}

// Byte pair encoding: merges the bytes of a piece into tokens and counts them. The two neighbors
// whose concatenation is the token of the lowest rank, the leftmost pair if there are several, are
// merged until no two neighbors form a token. Short pieces search for the lowest rank linearly,
// which is faster up to about 60 bytes. Long ones use a heap, so that a run of a million letters
// isn't quadratic.

/// In bytes.
const MAX_LINEAR: usize = 48;

/// In bytes: offsets have 32 bits.
const MAX_WHOLE: usize = u32::MAX as usize;

/// Reuses its buffers.
#[derive(Default)]
struct Merger {
    /// Of a short piece, in order.
    parts: Vec<Stretch>,
    /// For each part, the rank of its concatenation with the next one.
    ranks: Vec<u32>,
}

/// Bytes that form a token.
#[derive(Clone, Copy)]
struct Stretch {
    /// In the piece, where the next part starts.
    end: u32,
    /// Start of the previous part. For long pieces only.
    before: u32,
    node: Node,
    /// Of the part and the next one together.
    joined: Node,
}

/// A linked list of parts. Each is stored at the index of its first byte.
struct LongPiece<'a> {
    bytes: &'a [u8],
    /// A part merged into its predecessor has `joined` set to [`Node::NOWHERE`].
    parts: Vec<Stretch>,
    /// Heap of pairs: the rank in the high 32 bits, the index of the first part in the low ones.
    /// Entries of pairs that have changed are skipped when popped.
    lowest: BinaryHeap<Reverse<u64>>,
}

impl Merger {
    #[inline]
    fn count(&mut self, piece: &[u8]) -> usize {
        if Node::START.walk(piece).rank() != NO_RANK {
            1
        } else if piece.len() <= MAX_LINEAR {
            self.count_short(piece)
        } else {
            let parts = piece.chunks(MAX_WHOLE);
            parts.map(|part| LongPiece::new(part).count()).sum()
        }
    }

    fn count_short(&mut self, piece: &[u8]) -> usize {
        self.parts.clear();
        self.parts.extend(split_into_bytes(piece));
        self.ranks.clear();
        let ranks = self.parts.iter().map(|part| part.joined.rank());
        self.ranks.extend(ranks);

        loop {
            let lowest = self.ranks.iter().copied().min().unwrap_or(NO_RANK);
            if lowest == NO_RANK {
                return self.parts.len();
            }

            let first = self.ranks.iter().position(|rank| *rank == lowest);
            let at = first.expect("the lowest is one of them");
            self.merge(piece, at);
        }
    }

    #[inline]
    fn merge(&mut self, piece: &[u8], at: usize) {
        let next = self.parts.remove(at + 1);
        self.ranks.remove(at + 1);
        let part = &mut self.parts[at];
        part.end = next.end;
        part.node = part.joined;

        self.update_joined(piece, at);
        if at > 0 {
            self.update_joined(piece, at - 1);
        }
    }

    #[inline]
    fn update_joined(&mut self, piece: &[u8], at: usize) {
        let next_end = self.parts.get(at + 1).map(|next| next.end);
        let part = &mut self.parts[at];
        part.joined = joined_node(piece, part, next_end);
        self.ranks[at] = part.joined.rank();
    }
}

impl<'a> LongPiece<'a> {
    fn new(bytes: &'a [u8]) -> LongPiece<'a> {
        let parts: Vec<Stretch> = split_into_bytes(bytes).collect();
        let pairs = (0..).zip(&parts);
        let lowest = pairs.filter_map(|(at, part)| heap_entry(part.joined, at));
        LongPiece {
            bytes,
            lowest: lowest.collect::<Vec<_>>().into(),
            parts,
        }
    }

    fn count(mut self) -> usize {
        let mut count = self.parts.len();
        while let Some(Reverse(entry)) = self.lowest.pop() {
            let at = entry as u32;
            // Skip stale entries: the pair has changed since.
            if self.parts[at as usize].joined.rank() == (entry >> 32) as u32 {
                self.merge(at);
                count -= 1;
            }
        }
        count
    }

    fn merge(&mut self, at: u32) {
        let part = self.parts[at as usize];
        let next = self.parts[part.end as usize];
        // Makes the heap entries of the absorbed part stale.
        self.parts[part.end as usize].joined = Node::NOWHERE;
        self.parts[at as usize].end = next.end;
        self.parts[at as usize].node = part.joined;
        if let Some(following) = self.parts.get_mut(next.end as usize) {
            following.before = at;
        }

        self.push_joined(at);
        if at > 0 {
            self.push_joined(part.before);
        }
    }

    fn push_joined(&mut self, at: u32) {
        let part = self.parts[at as usize];
        let next_end = self.parts.get(part.end as usize).map(|next| next.end);
        let joined = joined_node(self.bytes, &part, next_end);
        self.parts[at as usize].joined = joined;
        self.lowest.extend(heap_entry(joined, at));
    }
}

fn split_into_bytes(piece: &[u8]) -> impl Iterator<Item = Stretch> {
    let next = piece.iter().skip(1).map(Some).chain([None]);
    (0..).zip(piece).zip(next).map(|((at, byte), next)| {
        let node = Node::START.step(*byte);
        Stretch {
            end: at + 1,
            before: at.saturating_sub(1),
            node,
            joined: next.map_or(Node::NOWHERE, |next| node.step(*next)),
        }
    })
}

/// `next_end` is `None` for the last part.
#[inline]
fn joined_node(piece: &[u8], part: &Stretch, next_end: Option<u32>) -> Node {
    next_end.map_or(Node::NOWHERE, |end| {
        part.node.walk(&piece[part.end as usize..end as usize])
    })
}

/// `None` if the pair isn't a token.
fn heap_entry(joined: Node, at: u32) -> Option<Reverse<u64>> {
    let rank = joined.rank();
    (rank != NO_RANK).then_some(Reverse(u64::from(rank) << 32 | u64::from(at)))
}

// Splits text into the pieces that are tokenized separately: words, numbers, symbols, whitespace.
//
// Equivalent to the regular expression of `o200k_base`, but written by hand: a regex engine takes
// longer to build its automaton than most texts take to count, and the one that tiktoken-rs uses
// panics at a million spaces in a row. The expression's alternatives are tried in order, each as
// long as possible:
//
// ```text
// [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
// [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
// \p{N}{1,3}
// ?[^\s\p{L}\p{N}]+[\r\n/]*
// \s*[\r\n]+
// \s+(?!\S)
// \s+
// ```
//
// Runs in linear time.

struct Pieces<'a> {
    text: &'a str,
    /// Of the next piece.
    at: usize,
}

impl<'a> Pieces<'a> {
    fn new(text: &'a str) -> Pieces<'a> {
        Pieces { text, at: 0 }
    }

    /// Also returns the offset of the next character. The class is 0 at the end of the text.
    #[inline]
    fn class_at(&self, at: usize) -> (u8, usize) {
        match self.text.as_bytes().get(at) {
            None => (0, at),
            Some(byte) if byte.is_ascii() => (ascii_class(*byte), at + 1),
            Some(_) => self.wide_class_at(at),
        }
    }

    fn wide_class_at(&self, at: usize) -> (u8, usize) {
        let c = self.text[at..].chars().next();
        c.map_or((0, at), |c| (class(c), at + c.len_utf8()))
    }

    #[inline]
    fn run(&self, mut at: usize, classes: u8) -> usize {
        loop {
            let (class, next) = self.class_at(at);
            if class & classes == 0 {
                return at;
            }
            at = next;
        }
    }

    /// `at` must not be the end of the text.
    fn piece_end(&self, at: usize) -> usize {
        let (first, next) = self.class_at(at);
        if first & (UPPER | LOWER) != 0 {
            // A mark is also allowed before a word, but that gives the same piece.
            return self.word_end(at).unwrap_or(next);
        }
        if first & NUMBER != 0 {
            return self.number_end(next);
        }
        if first & OPENER != 0
            && let Some(end) = self.word_end(next)
        {
            return end;
        }
        if first & SYMBOL != 0 {
            return self.symbols_end(next);
        }
        // Only a space can precede symbols, no other whitespace.
        if self.text.as_bytes()[at] == b' ' && self.class_at(next).0 & SYMBOL != 0 {
            return self.symbols_end(next);
        }
        self.blanks_end(at)
    }

    /// With a contraction. `None` if there is no word.
    #[inline]
    fn word_end(&self, start: usize) -> Option<usize> {
        let (mut at, mut shared) = (start, None);
        let end = loop {
            let (class, next) = self.class_at(at);
            match class & (UPPER | LOWER) {
                UPPER => at = next,
                0 => break shared.or((at > start).then_some(at))?,
                LOWER => break self.run(next, LOWER),
                _ => {
                    // Characters in both classes: the second part needs at least one, so the first
                    // part might have to give this one back.
                    shared = Some(next);
                    at = next;
                }
            }
        };
        Some(self.contraction_end(end))
    }

    /// Such as `'s`.
    #[inline]
    fn contraction_end(&self, end: usize) -> usize {
        let Some([b'\'', suffix @ ..]) = self.text.as_bytes().get(end..) else {
            return end;
        };
        let length = match suffix {
            [b's' | b'S' | b't' | b'T' | b'm' | b'M' | b'd' | b'D', ..] => 1,
            [b'r' | b'R' | b'v' | b'V', b'e' | b'E', ..] | [b'l' | b'L', b'l' | b'L', ..] => 2,
            // U+017F (long s) is a case variant of `s` in Unicode.
            [0xc5, 0xbf, ..] => 2,
            _ => return end,
        };
        end + 1 + length
    }

    /// Up to three digits, the first of which precedes `at`.
    fn number_end(&self, mut at: usize) -> usize {
        for _ in 0..2 {
            let (class, next) = self.class_at(at);
            if class & NUMBER == 0 {
                break;
            }
            at = next;
        }
        at
    }

    /// With the newlines and slashes after the symbols.
    fn symbols_end(&self, at: usize) -> usize {
        let end = self.run(at, SYMBOL);
        let tail = &self.text.as_bytes()[end..];
        let trailing = tail
            .iter()
            .take_while(|byte| matches!(byte, b'\r' | b'\n' | b'/'));
        end + trailing.count()
    }

    /// After its last newline. Without a newline, the last character is left to the next piece,
    /// unless it is the only one or the text ends there.
    fn blanks_end(&self, start: usize) -> usize {
        let (mut at, mut last, mut newline) = (start, start, None);
        loop {
            let (class, next) = self.class_at(at);
            if class & BLANK == 0 {
                break;
            }
            if class & NEWLINE != 0 {
                newline = Some(next);
            }
            (at, last) = (next, at);
        }

        let is_whole = at == self.text.len() || last == start;
        newline.unwrap_or(if is_whole { at } else { last })
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.at == self.text.len() {
            return None;
        }
        let start = self.at;
        self.at = self.piece_end(start);
        Some(&self.text.as_bytes()[start..self.at])
    }
}

static CLASSES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/classes.bin"));
static UNITS: &[[u8; 4]] = include_bytes!(concat!(env!("OUT_DIR"), "/tokens.bin"))
    .as_chunks()
    .0;

/// Of bytes that aren't a token.
const NO_RANK: u32 = u32::MAX;

/// A prefix of a token.
#[derive(Clone, Copy)]
struct Node(u32);

impl Node {
    const START: Node = Node(ROOT);
    /// Not a prefix of any token. All steps from here lead here again.
    const NOWHERE: Node = Node(0);

    #[inline]
    fn step(self, byte: u8) -> Node {
        // A leaf has a rank instead of a base. Base 0 leads nowhere.
        let base = if self.0 & LEAF == 0 { self.value() } else { 0 };
        let unit = unit(base + u32::from(byte));
        if unit >> LABEL_SHIFT == u32::from(byte) + 1 {
            Node(unit)
        } else {
            Node::NOWHERE
        }
    }

    #[inline]
    fn value(self) -> u32 {
        self.0 & ((1 << VALUE_BITS) - 1)
    }

    #[inline]
    fn walk(self, bytes: &[u8]) -> Node {
        let mut node = self;
        for byte in bytes {
            node = node.step(*byte);
            if node.0 == 0 {
                break;
            }
        }
        node
    }

    /// [`NO_RANK`] if no token ends here.
    #[inline]
    fn rank(self) -> u32 {
        match self.0 & (LEAF | TOKEN) {
            0 => NO_RANK,
            // The node's value is a base, so its rank is in a separate leaf.
            TOKEN => Node(unit(self.value() + END)).value(),
            _ => self.value(),
        }
    }
}

/// Out of range, an empty one.
#[inline]
fn unit(at: u32) -> u32 {
    let unit = UNITS.get(at as usize);
    u32::from_le_bytes(*unit.unwrap_or(&[0; 4]))
}

#[inline]
fn class(c: char) -> u8 {
    let number = usize::from(CLASSES[c as usize >> 8]);
    CLASSES[BLOCKS + number * 256 + (c as usize & 0xff)]
}

/// Faster than [`class`]: block 0 is ASCII.
#[inline]
fn ascii_class(byte: u8) -> u8 {
    CLASSES[BLOCKS + usize::from(byte)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: usize) {
        assert_eq!(count(text), expected);
    }

    #[test]
    fn tokens_are_those_of_o200k_base() {
        check("", 0);
        check("hello world", 2);
        check("Dependencies: measured choices\n", 5);
    }

    #[test]
    fn a_special_token_in_a_file_is_plain_text() {
        check("<|endoftext|>", 7);
    }
}

#[cfg(test)]
mod merge_tests {
    use super::*;

    #[track_caller]
    fn check(piece: &str, expected: usize) {
        let actual = Merger::default().count(piece.as_bytes());
        assert_eq!(actual, expected, "{piece:?}");
    }

    #[test]
    fn a_piece_is_as_many_tokens_as_are_left_of_its_bytes() {
        check("a", 1);
        check(" hello", 1);
        check("hellohello", 2);
        check("xqzj", 4);
        check("\u{10fffd}", 4);
        check(&"a".repeat(1_000), 125);
    }

    #[test]
    fn long_pieces_are_merged_like_short_ones() {
        for word in [
            "ab",
            "abc",
            "zxqv",
            "Donaudampf",
            "中文字",
            "\u{301}e",
            "\n\t ",
        ] {
            for length in 1..200 {
                let piece: Vec<u8> = word.bytes().cycle().take(length).collect();
                let short = Merger::default().count_short(&piece);
                assert_eq!(
                    LongPiece::new(&piece).count(),
                    short,
                    "{length} of {word:?}"
                );
            }
        }
    }

    #[test]
    fn what_is_kept_from_one_piece_to_the_next_changes_nothing() {
        let mut merger = Merger::default();
        let pieces = ["zxqvzxqv", "xqzj", " hello", "xqzj"];
        let counts = pieces.map(|piece| merger.count(piece.as_bytes()));
        let alone = pieces.map(|piece| Merger::default().count(piece.as_bytes()));
        assert_eq!(counts, alone);
    }
}

#[cfg(test)]
mod split_tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let actual: Vec<_> = Pieces::new(text).map(str::from_utf8).collect();
        let expected: Vec<_> = expected.iter().copied().map(Ok).collect();
        assert_eq!(actual, expected);
    }

    #[test]
    fn a_word_takes_one_character_before_it_and_begins_with_its_upper_case() {
        check("", &[]);
        check("Hello world", &["Hello", " world"]);
        check(
            "HTTPServer::newThing",
            &["HTTPServer", "::", "new", "Thing"],
        );
        check("(a)\n", &["(a", ")\n"]);
        check("((a", &["((", "a"]);
        check("ÄÖÜ äöü", &["ÄÖÜ", " äöü"]);
        check("中文Abc", &["中文Abc"]);
        check("AB中CD", &["AB中", "CD"]);
    }

    #[test]
    fn a_mark_is_of_both_cases_and_can_stand_before_a_word() {
        check("e\u{301}a", &["e\u{301}a"]);
        check("\u{301}AB", &["\u{301}", "AB"]);
        check("-\u{301}AB", &["-\u{301}", "AB"]);
        check("-\u{301}-", &["-\u{301}", "-"]);
        check("--\u{301}-", &["--\u{301}-"]);
    }

    #[test]
    fn a_contraction_belongs_to_its_word() {
        check("I'm WE'LL", &["I'm", " WE'LL"]);
        check("it'S\u{17f}", &["it'S", "\u{17f}"]);
        check("it'\u{17f}", &["it'\u{17f}"]);
        check("it'x 's", &["it", "'x", " '", "s"]);
        check("1's", &["1", "'s"]);
    }

    #[test]
    fn numbers_have_three_digits_at_most() {
        check("12345 ½", &["123", "45", " ", "½"]);
        check(" 1", &[" ", "1"]);
    }

    #[test]
    fn symbols_take_the_newlines_behind_them() {
        check("a //\n//b", &["a", " //\n//", "b"]);
        check("{\r\n\r\n\tx", &["{\r\n\r\n", "\tx"]);
        check("\t{}", &["\t", "{}"]);
    }

    #[test]
    fn the_last_blank_goes_with_what_follows() {
        check("  a", &[" ", " a"]);
        check(" \n  a", &[" \n", " ", " a"]);
        check("a  \n \n", &["a", "  \n \n"]);
        check("a   ", &["a", "   "]);
        check("  1", &[" ", " ", "1"]);
        check("\u{3000}\u{3000}b", &["\u{3000}", "\u{3000}b"]);
    }
}

#[cfg(test)]
mod table_tests {
    use super::*;

    #[test]
    fn a_character_is_in_its_classes() {
        let check = |c: char, classes: u8| assert_eq!(class(c), classes, "{c:?}");
        check('a', LOWER);
        check('A', UPPER);
        check('7', NUMBER);
        check('\n', BLANK | NEWLINE);
        check('\r', BLANK | NEWLINE);
        check(' ', BLANK | OPENER);
        check('\u{3000}', BLANK | OPENER);
        check('-', OPENER | SYMBOL);
        check('中', UPPER | LOWER);
        check('\u{301}', UPPER | LOWER | OPENER | SYMBOL);
        check('½', NUMBER);
        check('😀', OPENER | SYMBOL);
        check('\u{10ffff}', OPENER | SYMBOL);
    }

    #[test]
    fn tokens_have_the_ranks_of_the_vocabulary() {
        let check = |bytes: &[u8], rank: u32| {
            assert_eq!(Node::START.walk(bytes).rank(), rank, "{bytes:?}");
        };
        check(b"!", 0);
        check(b"hello", 24912);
        check(b" world", 2375);
        check(b"hellow", NO_RANK);
        check(b"", NO_RANK);
        check(&[0xff; 3], NO_RANK);
    }
}
