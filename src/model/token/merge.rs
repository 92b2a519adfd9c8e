//! Merging the bytes of a piece into tokens, and counting these.
//!
//! A piece that is a token is one. Any other begins as its bytes, and as long as two neighbours
//! together are a token, the two whose token has the lowest rank, the first of them, become one.
//! Short pieces look for the lowest rank each time. Long ones keep a heap, so that a run of a
//! million letters takes not much longer than as many letters in words.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::table::{NO_RANK, Node};

/// The longest piece, in bytes, in which the lowest rank is looked for each time.
const SHORT: usize = 48;
/// The longest piece that is looked at as one, in bytes: places in it have 32 bits.
const LONGEST: usize = u32::MAX as usize;

/// Counts the tokens of pieces, and keeps the memory for short ones from one to the next.
#[derive(Default)]
pub(super) struct Merger {
    /// The parts of a short piece, in order.
    parts: Vec<Stretch>,
    /// For each part, the rank of the token that it is together with the next one.
    ranks: Vec<u32>,
}

/// A byte, or neighbours that became one.
#[derive(Clone, Copy)]
struct Stretch {
    /// Where it ends in the piece: where the next one begins.
    end: u32,
    /// Where the one before begins. Only long pieces need it.
    before: u32,
    /// Where it leads in the trie.
    node: Node,
    /// Where it leads together with the next one.
    joined: Node,
}

/// A piece whose parts are linked: each is at the place of its first byte.
struct LongPiece<'a> {
    /// The bytes.
    bytes: &'a [u8],
    /// The parts; those that were merged into another one lead nowhere.
    parts: Vec<Stretch>,
    /// The ranks of neighbours, each above the place of the first one: the lowest comes first.
    /// Those of parts that have changed since are passed over.
    lowest: BinaryHeap<Reverse<u64>>,
}

impl Merger {
    /// Returns the number of tokens of a piece.
    #[inline]
    pub(super) fn count(&mut self, piece: &[u8]) -> usize {
        if Node::START.walk(piece).rank() != NO_RANK {
            1
        } else if piece.len() <= SHORT {
            self.count_short(piece)
        } else {
            let parts = piece.chunks(LONGEST);
            parts.map(|part| LongPiece::new(part).count()).sum()
        }
    }

    /// Returns the number of tokens of a short piece.
    fn count_short(&mut self, piece: &[u8]) -> usize {
        self.parts.clear();
        self.parts.extend(parts(piece));
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

    /// Merges a part of a short piece with the next one.
    #[inline]
    fn merge(&mut self, piece: &[u8], at: usize) {
        let next = self.parts.remove(at + 1);
        self.ranks.remove(at + 1);
        let part = &mut self.parts[at];
        part.end = next.end;
        part.node = part.joined;

        self.join(piece, at);
        if at > 0 {
            self.join(piece, at - 1);
        }
    }

    /// Looks up what a part of a short piece is together with the next one.
    #[inline]
    fn join(&mut self, piece: &[u8], at: usize) {
        let next_end = self.parts.get(at + 1).map(|next| next.end);
        let part = &mut self.parts[at];
        part.joined = joined(piece, part, next_end);
        self.ranks[at] = part.joined.rank();
    }
}

impl<'a> LongPiece<'a> {
    /// Returns a piece in which nothing is merged.
    fn new(bytes: &'a [u8]) -> LongPiece<'a> {
        let parts: Vec<Stretch> = parts(bytes).collect();
        let pairs = (0..).zip(&parts);
        let lowest = pairs.filter_map(|(at, part)| entry(part.joined, at));
        LongPiece {
            bytes,
            lowest: lowest.collect::<Vec<_>>().into(),
            parts,
        }
    }

    /// Merges what can be, and returns the number of parts.
    fn count(mut self) -> usize {
        let mut count = self.parts.len();
        while let Some(Reverse(entry)) = self.lowest.pop() {
            let at = entry as u32;
            if self.parts[at as usize].joined.rank() == (entry >> 32) as u32 {
                self.merge(at);
                count -= 1;
            }
        }
        count
    }

    /// Merges a part with the next one.
    fn merge(&mut self, at: u32) {
        let part = self.parts[at as usize];
        let next = self.parts[part.end as usize];
        self.parts[part.end as usize].joined = Node::NOWHERE;
        self.parts[at as usize].end = next.end;
        self.parts[at as usize].node = part.joined;
        if let Some(behind) = self.parts.get_mut(next.end as usize) {
            behind.before = at;
        }

        self.join(at);
        if at > 0 {
            self.join(part.before);
        }
    }

    /// Looks up what a part is together with the next one.
    fn join(&mut self, at: u32) {
        let part = self.parts[at as usize];
        let next_end = self.parts.get(part.end as usize).map(|next| next.end);
        let joined = joined(self.bytes, &part, next_end);
        self.parts[at as usize].joined = joined;
        self.lowest.extend(entry(joined, at));
    }
}

/// Returns the bytes of a piece as parts.
fn parts(piece: &[u8]) -> impl Iterator<Item = Stretch> {
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

/// Returns where a part leads together with the next one, which has this end if there is one.
#[inline]
fn joined(piece: &[u8], part: &Stretch, next_end: Option<u32>) -> Node {
    next_end.map_or(Node::NOWHERE, |end| {
        part.node.walk(&piece[part.end as usize..end as usize])
    })
}

/// Returns the entry of the heap for two parts that are a token together.
fn entry(joined: Node, at: u32) -> Option<Reverse<u64>> {
    let rank = joined.rank();
    (rank != NO_RANK).then_some(Reverse(u64::from(rank) << 32 | u64::from(at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(piece: &str, expected: usize) {
        let found = Merger::default().count(piece.as_bytes());
        assert_eq!(found, expected, "{piece:?}");
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
