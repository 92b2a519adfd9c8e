//! Generates the tables for counting tokens: the trie of all tokens from the vocabulary in
//! tiktoken-rs, and the classes of characters from the Unicode tables that it uses.
//!
//! The trie is a double array. Nodes with many children are placed first, each at the first base
//! where its children fit. The many nodes with one child fill the gaps. The algorithm must be fast
//! without optimization, because most builds run it that way.

use std::ops::Range;

use regex_syntax::hir::{Class, HirKind};

use crate::layout::{
    BLANK, BLOCKS, END, LABEL_SHIFT, LEAF, LOWER, NEWLINE, NUMBER, OPENER, ROOT, SYMBOL, TOKEN,
    UPPER, VALUE_BITS,
};

const CAPACITY: usize = 1 << VALUE_BITS;
// After this many bases in a row do not fit, gaps before them are left to smaller nodes.
const TRIES: usize = 64;

struct Inner {
    /// Range of its proper extensions in the sorted tokens.
    tokens: Range<usize>,
    /// Number of bytes from the root.
    depth: usize,
    /// Rank of its bytes, if they are a token.
    rank: Option<u32>,
    /// Its children in the list of edges.
    edges: Range<usize>,
    /// Base of its children, once placed.
    base: usize,
}

struct Edge {
    /// A byte, or [`END`].
    label: u32,
    child: TrieChild,
}

enum TrieChild {
    /// Rank of a token without extensions.
    Leaf(u32),
    /// Index of a node.
    Inner(usize),
}

/// A doubly linked list of the free units.
struct FreeUnits {
    after: Vec<usize>,
    before: Vec<usize>,
    is_free: Vec<bool>,
    /// `true` if a node has this base. Bases must be unique.
    is_base: Vec<bool>,
}

pub fn trie_table() -> Vec<u8> {
    let tokens = sorted_tokens();
    let (mut nodes, edges) = trie(&tokens);
    assign_bases(&mut nodes, &edges);

    let last = nodes.iter().map(|node| node.base).max();
    let last = last.expect("there is a root") + END as usize;
    let mut units = vec![0_u32; last + 1];
    for node in &nodes {
        for edge in &edges[node.edges.clone()] {
            let (value, kind) = match edge.child {
                TrieChild::Leaf(rank) => (rank, LEAF),
                TrieChild::Inner(inner) => {
                    let is_token = nodes[inner].rank.is_some();
                    (nodes[inner].base as u32, if is_token { TOKEN } else { 0 })
                }
            };
            assert!(value < 1 << VALUE_BITS, "a unit is too small for {value}");
            units[node.base + edge.label as usize] = value | kind | (edge.label + 1) << LABEL_SHIFT;
        }
    }

    units.iter().flat_map(|unit| unit.to_le_bytes()).collect()
}

fn sorted_tokens() -> Vec<(Vec<u8>, u32)> {
    let vocabulary = tiktoken_rs::o200k_base().expect("the vocabulary is part of the crate");
    // The ordinary tokens end at a gap, after which the special tokens follow.
    let token = |rank: u32| Some((vocabulary.decode_bytes(&[rank]).ok()?, rank));
    let mut tokens: Vec<_> = (0..).map_while(token).collect();
    assert!(tokens.len() > 190_000, "{} tokens", tokens.len());
    tokens.sort_unstable();
    tokens
}

/// Returns the nodes, root first, and the edges.
fn trie(tokens: &[(Vec<u8>, u32)]) -> (Vec<Inner>, Vec<Edge>) {
    let (mut nodes, mut edges) = (vec![Inner::new(0..tokens.len(), 0, None)], Vec::new());
    let mut at = 0;
    while at < nodes.len() {
        let (tokens_here, depth) = (nodes[at].tokens.clone(), nodes[at].depth);
        let first_edge = edges.len();
        let mut from = tokens_here.start;
        while from < tokens_here.end {
            let (bytes, rank) = &tokens[from];
            let label = bytes[depth];
            let same = |(other, _): &&(Vec<u8>, u32)| other[depth] == label;
            let count = tokens[from..tokens_here.end]
                .iter()
                .take_while(same)
                .count();
            let rank = (bytes.len() == depth + 1).then_some(*rank);
            let child_tokens = from + usize::from(rank.is_some())..from + count;
            from = child_tokens.end;
            let child = match rank {
                Some(rank) if child_tokens.is_empty() => TrieChild::Leaf(rank),
                _ => {
                    nodes.push(Inner::new(child_tokens, depth + 1, rank));
                    TrieChild::Inner(nodes.len() - 1)
                }
            };
            let label = u32::from(label);
            edges.push(Edge { label, child });
        }

        let (label, end) = (END, nodes[at].rank.map(TrieChild::Leaf));
        edges.extend(end.map(|child| Edge { label, child }));
        nodes[at].edges = first_edge..edges.len();
        at += 1;
    }

    (nodes, edges)
}

fn assign_bases(nodes: &mut [Inner], edges: &[Edge]) {
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_key(|node| std::cmp::Reverse(nodes[*node].edges.len()));
    assert_eq!(
        (order[0], nodes[0].edges.len()),
        (0, 256),
        "each byte is a token"
    );

    let mut free = FreeUnits::new();
    let (mut start, mut children) = (ROOT as usize, 256);
    for node in order {
        let edges = &edges[nodes[node].edges.clone()];
        if edges.len() < children {
            (start, children) = (ROOT as usize, edges.len());
        }
        nodes[node].base = free.take(edges, &mut start);
    }
}

impl Inner {
    fn new(tokens: Range<usize>, depth: usize, rank: Option<u32>) -> Inner {
        Inner {
            tokens,
            depth,
            rank,
            edges: 0..0,
            base: 0,
        }
    }
}

impl FreeUnits {
    fn new() -> FreeUnits {
        FreeUnits {
            after: (1..=CAPACITY).collect(),
            before: (0..CAPACITY).map(|at| at.saturating_sub(1)).collect(),
            is_free: vec![true; CAPACITY],
            is_base: vec![false; CAPACITY],
        }
    }

    /// Reserves units for a node's children and returns their base. The search begins at `start`,
    /// which advances past regions with only small gaps.
    fn take(&mut self, edges: &[Edge], start: &mut usize) -> usize {
        while !self.is_free[*start] {
            *start = self.after[*start];
        }

        let first = edges[0].label as usize;
        let (mut at, mut tries) = (*start, 0);
        while !self.fits(edges, at, first) {
            at = self.after[at];
            tries += 1;
            if tries % TRIES == 0 {
                *start = at;
            }
        }

        let base = at - first;
        self.is_base[base] = true;
        for edge in edges {
            self.occupy(base + edge.label as usize);
        }
        base
    }

    /// Checks whether the children fit if the first of them is placed at the free unit `at`.
    fn fits(&self, edges: &[Edge], at: usize, first: usize) -> bool {
        at >= ROOT as usize + first
            && !self.is_base[at - first]
            && edges[1..]
                .iter()
                .all(|edge| self.is_free[at - first + edge.label as usize])
    }

    fn occupy(&mut self, at: usize) {
        let (before, after) = (self.before[at], self.after[at]);
        self.is_free[at] = false;
        self.after[before] = after;
        if let Some(back) = self.before.get_mut(after) {
            *back = before;
        }
    }
}

// Regular expressions and bits of the classes.
const CLASSES: [(&str, u8); 6] = [
    (r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", UPPER),
    (r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", LOWER),
    (r"\p{N}", NUMBER),
    (r"\s", BLANK),
    (r"[^\r\n\p{L}\p{N}]", OPENER),
    (r"[^\s\p{L}\p{N}]", SYMBOL),
];

/// Returns the table of character classes: block numbers, followed by the distinct blocks.
pub fn class_table() -> Vec<u8> {
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
