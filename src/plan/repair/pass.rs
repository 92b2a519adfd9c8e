//! Finds the cheapest reading of all tokens, and its lead over the next one.
//!
//! The next step depends only on the state. Keeping the two cheapest different readings per state
//! is therefore exact, up to the beam.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use super::block::inside;
use super::cost::{self, Cost};
use super::reply::ReplyLine;
use super::state::{
    FenceScope, GrammarPosition, GrammarState, GrammarStep, OpenBlock, RepairEvent,
};
use super::step::step_outside;
use super::token::{Token, TokenKind};
use crate::plan::line::{Info, LineKind, indent_of};
use crate::text::fence::{columns, dedented};

/// Stored steps at which unused ones are dropped.
const MAX_NODES: usize = 1 << 21;

/// A reading of the reply: its effects by line.
#[derive(Debug, Clone, Default)]
pub(super) struct RepairReading {
    /// Steps with an effect, in order.
    pub steps: Vec<ReadingStep>,
    pub cost: Cost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReadingStep {
    pub line: usize,
    pub event: RepairEvent,
    /// Cost since the previous step.
    pub cost: Cost,
}

pub(super) struct BestReadings {
    pub first: RepairReading,
    /// The cheapest reading that differs from the first.
    pub second: Option<RepairReading>,
}

/// A stored step, linked to the previous one.
#[derive(Debug, Clone, Copy)]
struct PassNode {
    parent: u32,
    line: u32,
    /// Cost up to here.
    cost: Cost,
    event: RepairEvent,
}

/// Returns the best readings; `None` if no reading reaches the end.
pub(super) fn best_readings(tokens: &[Token]) -> Option<BestReadings> {
    let mut from = vec![BeamEntry {
        state: GrammarState::default(),
        best: Prefix {
            cost: 0,
            print: 0,
            node: ROOT_NODE,
            event: None,
        },
        next: None,
    }];
    let (mut frontier, mut nodes) = (Frontier::new(), Vec::new());
    for token in tokens {
        if matches!(token.kind, TokenKind::Gap(_)) {
            from.iter_mut().for_each(|entry| cross_gap(entry, token));
        } else {
            from.iter()
                .for_each(|entry| advance_entry(entry, token, &mut frontier));
            frontier.take_entries(&mut from);
        }

        for entry in &mut from {
            entry
                .paths()
                .for_each(|path| store_node(path, token, &mut nodes));
        }

        if nodes.len() > MAX_NODES {
            compact_nodes(&mut nodes, &mut from);
        }
    }

    // All complete readings end in the same state.
    let end = from.first()?;
    let reading = |path: Prefix| trace_reading(path, &nodes);
    Some(BestReadings {
        first: reading(end.best),
        second: end.next.map(reading),
    })
}

/// Takes the only step over a gap, in place. Different states can become equal; the next token
/// merges them.
fn cross_gap(entry: &mut BeamEntry, token: &Token) {
    let (state, mut chosen) = (entry.state, None);
    emit_steps(state, token, &mut |step| chosen = Some(step));
    if let Some(step) = chosen {
        entry.state = step.state;
        entry
            .paths()
            .for_each(|path| *path = path.then(step, token.line));
    }
}

fn advance_entry(entry: &BeamEntry, token: &Token, frontier: &mut Frontier) {
    emit_steps(entry.state, token, &mut |step| {
        if frontier.admits(entry.best.cost + step.cost) {
            let best = entry.best.then(step, token.line);
            frontier.add(
                step.state,
                best,
                entry.next.map(|path| path.then(step, token.line)),
            );
        }
    });
}

/// Emits every possible step for a token.
#[inline]
fn emit_steps(state: GrammarState, token: &Token, emit: &mut impl FnMut(GrammarStep)) {
    match state.block {
        Some(block) => inside(state, block, token, emit),
        None => step_outside(state, token, emit),
    }
}

/// Stores the effect of a reading at a token.
fn store_node(path: &mut Prefix, token: &Token, nodes: &mut Vec<PassNode>) {
    let Some(event) = path.event.take() else {
        return;
    };
    let line = u32::try_from(token.line).unwrap_or(u32::MAX);
    nodes.push(PassNode {
        parent: path.node,
        line,
        cost: path.cost,
        event,
    });

    path.node =
        u32::try_from(nodes.len() - 1).expect("steps are compacted long before they are that many");
}

/// Drops stored steps that no reading uses.
fn compact_nodes(nodes: &mut Vec<PassNode>, entries: &mut [BeamEntry]) {
    let mut used = vec![false; nodes.len()];
    for path in entries.iter_mut().flat_map(BeamEntry::paths) {
        let mut at = path.node;
        while at != ROOT_NODE && !std::mem::replace(&mut used[at as usize], true) {
            at = nodes[at as usize].parent;
        }
    }

    let mut moved = vec![ROOT_NODE; nodes.len()];
    let mut count = 0u32;
    for at in 0..nodes.len() {
        if used[at] {
            let mut node = nodes[at];
            node.parent = if node.parent == ROOT_NODE {
                ROOT_NODE
            } else {
                moved[node.parent as usize]
            };
            nodes[count as usize] = node;
            moved[at] = count;

            count += 1;
        }
    }

    nodes.truncate(count as usize);
    for path in entries
        .iter_mut()
        .flat_map(BeamEntry::paths)
        .filter(|path| path.node != ROOT_NODE)
    {
        path.node = moved[path.node as usize];
    }
}

fn trace_reading(path: Prefix, nodes: &[PassNode]) -> RepairReading {
    let mut steps = Vec::new();
    let mut at = path.node;
    while at != ROOT_NODE {
        let node = nodes[at as usize];
        let before = if node.parent == ROOT_NODE {
            0
        } else {
            nodes[node.parent as usize].cost
        };

        steps.push(ReadingStep {
            line: node.line as usize,
            event: node.event,
            cost: node.cost - before,
        });
        at = node.parent;
    }

    steps.reverse();
    RepairReading {
        steps,
        cost: path.cost,
    }
}

/// States kept after each token; up to twice as many at equal cost.
const BEAM_WIDTH: usize = 32;

pub(super) struct Frontier {
    entries: Vec<BeamEntry>,
    /// Index into `entries` of each state.
    by_state: HashMap<GrammarState, usize, BuildHasherDefault<StateHasher>>,
    cheapest: Cost,
}

/// Mixes the words of a state. Collisions are harmless: the beam bounds the table.
#[derive(Default)]
struct StateHasher(u64);

impl Hasher for StateHasher {
    fn write(&mut self, bytes: &[u8]) {
        let word = |word, byte: &u8| word << 8 | u64::from(*byte);
        self.write_u64(bytes.iter().fold(0, word));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

impl Frontier {
    pub(super) fn new() -> Frontier {
        Frontier {
            entries: Vec::new(),
            by_state: HashMap::default(),
            cheapest: Cost::MAX,
        }
    }

    /// Returns whether a reading of this cost is close enough to the best.
    #[inline]
    pub(super) fn admits(&self, cost: Cost) -> bool {
        cost <= self.cheapest.saturating_add(cost::HOPELESS)
    }

    /// Adds the readings that end in a state.
    pub(super) fn add(&mut self, state: GrammarState, best: Prefix, next: Option<Prefix>) {
        self.cheapest = self.cheapest.min(best.cost);
        match self.by_state.entry(state) {
            Entry::Occupied(index) => {
                let entry = &mut self.entries[*index.get()];
                entry.add_path(best);
                next.into_iter().for_each(|path| entry.add_path(path));
            }
            Entry::Vacant(index) => {
                index.insert(self.entries.len());
                self.entries.push(BeamEntry { state, best, next });
            }
        }
    }

    /// Swaps the cheapest states into `others` and starts over with its empty list.
    pub(super) fn take_entries(&mut self, others: &mut Vec<BeamEntry>) {
        self.trim();
        std::mem::swap(&mut self.entries, others);
        self.entries.clear();
        self.cheapest = Cost::MAX;
        self.by_state.clear();
    }

    fn trim(&mut self) {
        let limit = self.cheapest.saturating_add(cost::HOPELESS);
        self.entries.retain(|entry| entry.best.cost <= limit);
        if self.entries.len() > BEAM_WIDTH {
            let costs = self.entries.iter().map(|entry| entry.best.cost);
            let mut costs: Vec<Cost> = costs.collect();
            let (_, &mut limit, _) = costs.select_nth_unstable(BEAM_WIDTH - 1);
            self.entries.retain(|entry| entry.best.cost <= limit);
            self.entries.truncate(2 * BEAM_WIDTH);
        }
    }
}

/// Marks the first step, which has no previous one.
pub(super) const ROOT_NODE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
pub(super) struct Prefix {
    pub cost: Cost,
    /// Fingerprint: equal for readings with the same effects.
    print: u64,
    /// Last stored step.
    pub node: u32,
    /// Effect at the current token, not stored yet.
    pub event: Option<RepairEvent>,
}

pub(super) struct BeamEntry {
    pub state: GrammarState,
    pub best: Prefix,
    /// The cheapest with other effects.
    pub next: Option<Prefix>,
}

impl Prefix {
    pub(super) fn then(self, step: GrammarStep, line: usize) -> Prefix {
        let print = step
            .event
            .and_then(fingerprint_of)
            .map_or(self.print, |event| mix_fingerprint(self.print, event, line));
        Prefix {
            cost: self.cost + step.cost,
            print,
            node: self.node,
            event: step.event,
        }
    }
}

impl BeamEntry {
    pub(super) fn paths(&mut self) -> impl Iterator<Item = &mut Prefix> {
        std::iter::once(&mut self.best).chain(self.next.as_mut())
    }

    /// Adds a reading that ends in the same state.
    pub(super) fn add_path(&mut self, path: Prefix) {
        if path.print == self.best.print {
            if path.cost < self.best.cost {
                self.best = path;
            }
        } else if path.cost < self.best.cost {
            self.next = Some(std::mem::replace(&mut self.best, path));
        } else if self.next.is_none_or(|next| path.cost < next.cost) {
            self.next = Some(path);
        }
    }
}

/// Returns the part of an event that distinguishes readings. Ignored are the form of a closing
/// fence, and the fences of messages and of the rationale, which affect only where those end.
fn fingerprint_of(event: RepairEvent) -> Option<u64> {
    match event {
        RepairEvent::Title => Some(1),
        RepairEvent::Wrap => Some(2),
        RepairEvent::Unwrap => Some(3),
        RepairEvent::Action => Some(4),
        RepairEvent::Open(FenceScope::Content, _) => Some(5),
        RepairEvent::Close(FenceScope::Content, _) => Some(6),
        RepairEvent::Forgotten(FenceScope::Content | FenceScope::Message) => Some(7),
        RepairEvent::Surplus => Some(8),
        RepairEvent::SecondPlan => Some(9),
        RepairEvent::Open(..)
        | RepairEvent::Close(..)
        | RepairEvent::Forgotten(_)
        | RepairEvent::Glued
        | RepairEvent::Prose
        | RepairEvent::Broken => None,
    }
}

fn mix_fingerprint(print: u64, event: u64, line: usize) -> u64 {
    let word = (line as u64) << 4 | event;
    (print.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

// Fast path: accepts a reply if CommonMark's reading fits the grammar and is the only one.
//
// That is the case if every step is free, every block is closed, and no line inside a block could
// close it or open another block of its kind.

/// Returns the contents of all blocks if the reply needs no repair.
pub(super) fn unambiguous_blocks(
    lines: &[ReplyLine<'_>],
    tokens: &[Token],
) -> Option<Vec<Range<usize>>> {
    let mut contents = Vec::new();
    let (mut state, mut at) = (GrammarState::default(), 0);
    while let Some(token) = tokens.get(at) {
        let step = only_free_step(state, token)?;
        (state, at) = (step.state, at + 1);
        let Some(block) = state.block else { continue };
        let closer = only_closer(&block, &tokens[at..], state)?;
        at += closer + 1;
        let body = token.line + 1..tokens[at - 1].line;

        if block.fence.indent > 0 && !is_indented_like(&lines[body.clone()], lines[token.line].text)
        {
            return None;
        }

        contents.push(body);
        state = state.after_block(&block);
    }

    Some(contents)
}

fn only_free_step(state: GrammarState, token: &Token) -> Option<GrammarStep> {
    let mut free = None;
    step_outside(state, token, &mut |step| {
        let skips_title = matches!(token.kind, TokenKind::Title { .. }) && step.event.is_none();
        let preamble = state.position == GrammarPosition::Start
            && !matches!(step.event, Some(RepairEvent::Title));
        let is_blank = matches!(token.kind, TokenKind::Gap(gap) if !gap.solid);
        if step.cost == 0 && !skips_title && (!preamble || is_blank) && free.is_none() {
            free = Some(step);
        }
    });
    free
}

/// Returns the index of the token that closes a block; `None` if another fence inside could close
/// it too.
fn only_closer(block: &OpenBlock, tokens: &[Token], state: GrammarState) -> Option<usize> {
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Fence(fence) if fence.is_long_enough(block.fence) => {
                let closes = fence.info == Info::Bare && fence.indent == block.fence.indent;
                return closes.then_some(at);
            }
            // RP8: this is what a missing closing fence in a message looks like.
            TokenKind::Action(_)
                if matches!(state.position, GrammarPosition::Message)
                    && block.fence.info == Info::Code =>
            {
                return None;
            }
            _ => {}
        }
    }

    None
}

/// Returns whether every non-blank line has the opener's indentation.
pub(super) fn is_indented_like(body: &[ReplyLine<'_>], opener: &str) -> bool {
    let indent = columns(indent_of(opener));
    body.iter()
        .all(|line| dedented(line.text, indent).is_some())
}

/// Returns whether the closing fence is longer than the opening one.
pub(super) fn is_closed_longer(lines: &[ReplyLine<'_>], body: &Range<usize>) -> bool {
    let len = |at: usize| {
        if let LineKind::Fence(fence) = lines[at].kind {
            fence.len
        } else {
            0
        }
    };
    len(body.end) > len(body.start - 1)
}
