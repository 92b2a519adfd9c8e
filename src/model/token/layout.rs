//! Binary layout of the tokenizer's two tables. The build script, which generates them, compiles
//! this file too.
//!
//! **Classes** (`classes.bin`, 40 kB): one byte of the bits below for each character. The first
//! [`BLOCKS`] bytes map each run of 256 characters to a block; the blocks of 256 bytes follow, and
//! identical ones are shared. Block 0 is ASCII.
//!
//! **Tokens** (`tokens.bin`, 2.0 MB): a trie of all tokens as a double array. A unit is 32 bits,
//! little-endian: a value in the low [`VALUE_BITS`], the bits [`LEAF`] and [`TOKEN`], and from
//! [`LABEL_SHIFT`] on the node's label plus one. The value of a leaf, which ends a token and has no
//! children, is the token's rank. The value of any other node is the base of its children: the
//! child for a byte is at base plus byte, if the label there matches. A node that ends a token but
//! has children has an additional leaf with the label [`END`], which isn't a byte.
//!
//! Every node has its own base, so comparing the label is enough. The first 256 units are empty, so
//! base 0 leads nowhere. They are followed by the children of the root, which has no unit of its
//! own.

/// Upper or title case, letters without case, marks: the first part of a word.
pub const UPPER: u8 = 1;
/// Lower case, letters without case, marks: the second part of a word.
pub const LOWER: u8 = 1 << 1;
/// Digits and other numbers.
pub const NUMBER: u8 = 1 << 2;
/// Whitespace.
pub const BLANK: u8 = 1 << 3;
/// Carriage return and newline.
pub const NEWLINE: u8 = 1 << 4;
/// Can precede a word: not a letter, number or newline.
pub const OPENER: u8 = 1 << 5;
/// Not a letter, number or whitespace.
pub const SYMBOL: u8 = 1 << 6;

/// Number of runs of 256 characters, and so the offset of the first block.
pub const BLOCKS: usize = 0x11_0000 >> 8;

/// Number of bits of a value.
pub const VALUE_BITS: u32 = 20;
/// Marks a node without children, whose value is a rank.
pub const LEAF: u32 = 1 << VALUE_BITS;
/// Marks a node with children that also ends a token.
pub const TOKEN: u32 = 1 << (VALUE_BITS + 1);
/// Position of the label, which has 9 bits.
pub const LABEL_SHIFT: u32 = VALUE_BITS + 2;
/// Label of the leaf with the rank of a [`TOKEN`] node.
pub const END: u32 = 256;
/// Base of the root's children.
pub const ROOT: u32 = 256;
