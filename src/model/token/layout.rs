//! How the two tables of the tokenizer are laid out. The build script, which makes them, compiles
//! this file as well.
//!
//! **Classes** (`classes.bin`, 40 kB): what the splitter wants to know of a character is one byte
//! of the bits below. The first [`BLOCKS`] bytes say, for each 256 characters in a row, which of
//! the blocks behind has theirs; a block is 256 bytes. Block 0 is that of ASCII.
//!
//! **Tokens** (`tokens.bin`, 2.7 MB): a trie of all tokens as a double array. A unit is 48 bits,
//! little-endian: the base of a node's children in the low [`BASE_BITS`], above them its label and
//! one, and from [`RANK_SHIFT`] on the rank of the token that ends here and one, or 0 if none does.
//! The child by a byte is at the base plus that byte, if the label there says so. No two nodes have
//! a base in common, so the label is all that has to be compared. The first 256 units are empty:
//! base 0 leads nowhere. Those behind are the children of the root, which has no unit itself.

/// Upper or title case, or a letter without case, or a mark: the first part of a word.
pub const UPPER: u8 = 1;
/// Lower case, or a letter without case, or a mark: the second part of a word.
pub const LOWER: u8 = 1 << 1;
/// A digit, or another number.
pub const NUMBER: u8 = 1 << 2;
/// White space.
pub const BLANK: u8 = 1 << 3;
/// A carriage return or a newline.
pub const NEWLINE: u8 = 1 << 4;
/// One of these can stand before a word: no letter, number or newline.
pub const OPENER: u8 = 1 << 5;
/// No letter, number or white space.
pub const SYMBOL: u8 = 1 << 6;

/// Where the blocks of classes begin: so many times 256 characters there are.
pub const BLOCKS: usize = 0x11_0000 >> 8;

/// How many bytes a unit has.
pub const UNIT: usize = 6;
/// How many bits a base has; the label is above them.
pub const BASE_BITS: u32 = 19;
/// Where the rank begins, behind a label of 9 bits.
pub const RANK_SHIFT: u32 = BASE_BITS + 9;
/// The base of the root's children.
pub const ROOT: usize = 256;
