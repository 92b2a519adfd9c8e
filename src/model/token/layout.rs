//! How the two tables of the tokenizer are laid out. The build script, which makes them, compiles
//! this file as well.
//!
//! **Classes** (`classes.bin`, 40 kB): what the splitter wants to know of a character is one byte
//! of the bits below. The first [`BLOCKS`] bytes say, for each 256 characters in a row, which of
//! the blocks behind has theirs; a block is 256 bytes. Block 0 is that of ASCII.
//!
//! **Tokens** (`tokens.bin`, 2.0 MB): a trie of all tokens as a double array. A unit is 32 bits,
//! little-endian: a value in the low [`VALUE_BITS`], the bits [`LEAF`] and [`TOKEN`], and from
//! [`LABEL_SHIFT`] on the label of the node and one. The value of a leaf, where a token ends and
//! nothing goes on, is its rank; that of any other node is the base of its children. The child by a
//! byte is at the base plus that byte, if the label there says so. Where a token ends and others go
//! on, the node has a leaf with the label [`END`], too, which no byte leads to.
//!
//! No two nodes have a base in common, so the label is all that has to be compared. The first 256
//! units are empty: base 0 leads nowhere. Those behind are the children of the root, which has no
//! unit itself.

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

/// How many bits a value has.
pub const VALUE_BITS: u32 = 20;
/// The bit of a node without children, whose value is a rank.
pub const LEAF: u32 = 1 << VALUE_BITS;
/// The bit of a node with children where a token ends as well.
pub const TOKEN: u32 = 1 << (VALUE_BITS + 1);
/// Where the label begins; it has 9 bits.
pub const LABEL_SHIFT: u32 = VALUE_BITS + 2;
/// The label of the leaf that has the rank of such a token.
pub const END: u32 = 256;
/// The base of the root's children.
pub const ROOT: u32 = 256;
