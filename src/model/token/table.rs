//! Lookups in the tokenizer's tables, which the build script generates.
//!
//! See [`super::layout`] for the format.

use super::layout::{BLOCKS, END, LABEL_SHIFT, LEAF, ROOT, TOKEN, VALUE_BITS};

static CLASSES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/classes.bin"));
static UNITS: &[[u8; 4]] = include_bytes!(concat!(env!("OUT_DIR"), "/tokens.bin"))
    .as_chunks()
    .0;

/// Of bytes that aren't a token.
pub(super) const NO_RANK: u32 = u32::MAX;

/// A prefix of a token.
#[derive(Clone, Copy)]
pub(super) struct Node(u32);

impl Node {
    pub(super) const START: Node = Node(ROOT);
    /// Not a prefix of any token. All steps from here lead here again.
    pub(super) const NOWHERE: Node = Node(0);

    #[inline]
    pub(super) fn step(self, byte: u8) -> Node {
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

    /// [`NO_RANK`] if no token ends here.
    #[inline]
    pub(super) fn rank(self) -> u32 {
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
pub(super) fn class(c: char) -> u8 {
    let number = usize::from(CLASSES[c as usize >> 8]);
    CLASSES[BLOCKS + number * 256 + (c as usize & 0xff)]
}

/// Faster than [`class`]: block 0 is ASCII.
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
