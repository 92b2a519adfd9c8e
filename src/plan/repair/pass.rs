//! Finds the cheapest reading of all tokens, and its lead over the next one.
//!
//! The next step depends only on the state. Keeping the two cheapest different readings per state
//! is therefore exact, up to the beam.

use super::block::inside;
use super::cost::Cost;
use super::event::RepairEvent;
use super::frontier::Frontier;
use super::grammar_step::GrammarStep;
use super::prefix::{BeamEntry, Prefix, ROOT_NODE};
use super::state::GrammarState;
use super::step::step_outside;
use super::token::{Token, TokenKind};

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
    /// Index of the line.
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
        state: GrammarState::start(),
        best: Prefix::start(),
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

/// Returns the steps of a complete reading.
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
