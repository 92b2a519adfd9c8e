//! Byte pair encoding: merges the bytes of a piece into tokens and counts them.
//!
//! A piece starts as single bytes. The two neighbors whose concatenation is the token of the lowest
//! rank, the leftmost pair if there are several, are merged until no two neighbors form a token.
//! Short pieces search for the lowest rank linearly, which is faster up to about 60 bytes. Long
//! ones use a heap, so that a run of a million letters isn't quadratic.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::table::{NO_RANK, Node};

/// Longest piece to search linearly, in bytes.
const MAX_LINEAR: usize = 48;
/// Longest piece to merge as a whole, in bytes: offsets have 32 bits.
const MAX_WHOLE: usize = u32::MAX as usize;

/// Counts the tokens of pieces. Reuses its buffers.
#[derive(Default)]
pub(super) struct Merger {
    /// Parts of a short piece, in order.
    parts: Vec<Stretch>,
    /// For each part, the rank of its concatenation with the next one.
    ranks: Vec<u32>,
}

/// A sequence of bytes that forms a token.
#[derive(Clone, Copy)]
struct Stretch {
    /// End offset in the piece, where the next part starts.
    end: u32,
    /// Start offset of the previous part. Used for long pieces only.
    before: u32,
    /// Trie node of the part.
    node: Node,
    /// Trie node of the part and the next one together.
    joined: Node,
}

/// A piece whose parts form a linked list. Each part is stored at the index of its first byte.
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
    pub(super) fn count(&mut self, piece: &[u8]) -> usize {
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

    /// Merges part `at` with the next one.
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

    /// Updates the rank of part `at` and the next one together.
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

    /// Merges all pairs and returns the number of tokens.
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

    /// Merges the part at `at` with the next one.
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

    /// Pushes the pair that starts at `at`.
    fn push_joined(&mut self, at: u32) {
        let part = self.parts[at as usize];
        let next_end = self.parts.get(part.end as usize).map(|next| next.end);
        let joined = joined_node(self.bytes, &part, next_end);
        self.parts[at as usize].joined = joined;
        self.lowest.extend(heap_entry(joined, at));
    }
}

/// Splits a piece into bytes.
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

/// Looks up a part and the next one together. `next_end` is `None` for the last part.
#[inline]
fn joined_node(piece: &[u8], part: &Stretch, next_end: Option<u32>) -> Node {
    next_end.map_or(Node::NOWHERE, |end| {
        part.node.walk(&piece[part.end as usize..end as usize])
    })
}

/// Heap entry for a pair. `None` if it isn't a token.
fn heap_entry(joined: Node, at: u32) -> Option<Reverse<u64>> {
    let rank = joined.rank();
    (rank != NO_RANK).then_some(Reverse(u64::from(rank) << 32 | u64::from(at)))
}

#[cfg(test)]
mod tests {
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
