//! The tables of the tokenizer, made by the build script and used in place: nothing is loaded.
//!
//! [`super::layout`] says how they are laid out.

use super::layout::{BLOCKS, END, LABEL_SHIFT, LEAF, ROOT, TOKEN, VALUE_BITS};

/// The classes of characters.
static CLASSES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/classes.bin"));
/// The trie of tokens.
static UNITS: &[[u8; 4]] = include_bytes!(concat!(env!("OUT_DIR"), "/tokens.bin"))
    .as_chunks()
    .0;

/// The rank where no token ends.
pub(super) const NO_RANK: u32 = u32::MAX;

/// A place in the trie: some bytes with which a token begins.
#[derive(Clone, Copy)]
pub(super) struct Node(u32);

impl Node {
    /// No bytes.
    pub(super) const START: Node = Node(ROOT);
    /// Bytes with which no token begins. No way leads out of here.
    pub(super) const NOWHERE: Node = Node(0);

    /// Returns the node one byte further.
    #[inline]
    pub(super) fn step(self, byte: u8) -> Node {
        let base = if self.0 & LEAF == 0 { self.value() } else { 0 };
        let unit = unit(base + u32::from(byte));
        if unit >> LABEL_SHIFT == u32::from(byte) + 1 {
            Node(unit)
        } else {
            Node::NOWHERE
        }
    }

    /// Returns the value of its unit.
    #[inline]
    fn value(self) -> u32 {
        self.0 & ((1 << VALUE_BITS) - 1)
    }

    /// Returns the node some bytes further.
    #[inline]
    pub(super) fn walk(self, bytes: &[u8]) -> Node {
        let mut node = self;
        for byte in bytes {
            node = node.step(*byte);
            if node.0 == 0 {
                break;
            }
        }
        node
    }

    /// Returns the rank of the token that ends here, or [`NO_RANK`].
    #[inline]
    pub(super) fn rank(self) -> u32 {
        match self.0 & (LEAF | TOKEN) {
            0 => NO_RANK,
            TOKEN => Node(unit(self.value() + END)).value(),
            _ => self.value(),
        }
    }
}

/// Returns a unit; an empty one behind the last.
#[inline]
fn unit(at: u32) -> u32 {
    let unit = UNITS.get(at as usize);
    u32::from_le_bytes(*unit.unwrap_or(&[0; 4]))
}

/// Returns the class of a character.
#[inline]
pub(super) fn class(c: char) -> u8 {
    let number = usize::from(CLASSES[c as usize >> 8]);
    CLASSES[BLOCKS + number * 256 + (c as usize & 0xff)]
}

/// Returns the class of an ASCII character.
#[inline]
pub(super) fn ascii_class(byte: u8) -> u8 {
    CLASSES[BLOCKS + usize::from(byte)]
}

#[cfg(test)]
mod tests {
    use super::super::layout::{BLANK, LOWER, NEWLINE, NUMBER, OPENER, SYMBOL, UPPER};
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
