//! Splits text into the pieces that are tokenized separately: words, numbers, symbols, whitespace.
//!
//! Equivalent to the regular expression of `o200k_base`, but written by hand: a regex engine takes
//! longer to build its automaton than most texts take to count, and the one that tiktoken-rs uses
//! panics at a million spaces in a row. The expression's alternatives are tried in order, each as
//! long as possible:
//!
//! ```text
//! [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! \p{N}{1,3}
//! ?[^\s\p{L}\p{N}]+[\r\n/]*
//! \s*[\r\n]+
//! \s+(?!\S)
//! \s+
//! ```
//!
//! Runs in linear time.

use super::layout::{BLANK, LOWER, NEWLINE, NUMBER, OPENER, SYMBOL, UPPER};
use super::table::{ascii_class, class};

/// Iterator over the pieces of a text.
pub(super) struct Pieces<'a> {
    text: &'a str,
    /// Start of the next piece.
    at: usize,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(text: &'a str) -> Pieces<'a> {
        Pieces { text, at: 0 }
    }

    /// Returns the class of the character at an offset and the offset of the next one. The class is
    /// 0 at the end of the text.
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

    /// Returns the end of a run of characters of the given classes.
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

    /// Returns the end of the piece that starts at `at`, which must not be the end of the text.
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

    /// Returns the end of the word at `start`, including a contraction. `None` if there is no word.
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

    /// Skips a contraction such as `'s` after a word.
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

    /// Returns the end of a number of up to three digits, the first of which precedes `at`.
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

    /// Returns the end of symbols and the newlines and slashes after them.
    fn symbols_end(&self, at: usize) -> usize {
        let end = self.run(at, SYMBOL);
        let tail = &self.text.as_bytes()[end..];
        let trailing = tail
            .iter()
            .take_while(|byte| matches!(byte, b'\r' | b'\n' | b'/'));
        end + trailing.count()
    }

    /// Returns the end of whitespace: after its last newline. Without a newline, the last character
    /// is left to the next piece, unless it is the only one or the text ends there.
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

#[cfg(test)]
mod tests {
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
