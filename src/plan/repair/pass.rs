//! Finds the cheapest reading of all tokens, and its lead over the next one.
//!
//! The next step depends only on the state. Keeping the two cheapest different readings per state
//! is therefore exact, up to the beam.

use super::block::inside;
use super::cost::Cost;
use super::event::RepairEvent;
use super::frontier::Frontier;
use super::grammar_step::GrammarStep;
use super::prefix::{Prefix, ROOT, Reached};
use super::state::GrammarState;
use super::step::outside;
use super::token::{Token, TokenKind};

/// Stored steps at which unused ones are dropped.
const FULL: usize = 1 << 21;

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

pub(super) struct Best {
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
pub(super) fn best(tokens: &[Token]) -> Option<Best> {
    let mut from = vec![Reached {
        state: GrammarState::start(),
        best: Prefix::start(),
        next: None,
    }];
    let (mut frontier, mut nodes) = (Frontier::new(), Vec::new());
    for token in tokens {
        if matches!(token.kind, TokenKind::Gap(_)) {
            from.iter_mut().for_each(|entry| cross(entry, token));
        } else {
            from.iter()
                .for_each(|entry| advance(entry, token, &mut frontier));
            frontier.take(&mut from);
        }

        for entry in &mut from {
            entry
                .paths()
                .for_each(|path| store(path, token, &mut nodes));
        }

        if nodes.len() > FULL {
            compact(&mut nodes, &mut from);
        }
    }

    // All complete readings end in the same state.
    let end = from.first()?;
    let reading = |path: Prefix| trace(path, &nodes);
    Some(Best {
        first: reading(end.best),
        second: end.next.map(reading),
    })
}

/// Takes the only step over a gap, in place. Different states can become equal; the next token
/// merges them.
fn cross(entry: &mut Reached, token: &Token) {
    let (state, mut taken) = (entry.state, None);
    steps(state, token, &mut |step| taken = Some(step));
    if let Some(step) = taken {
        entry.state = step.state;
        entry
            .paths()
            .for_each(|path| *path = path.then(step, token.line));
    }
}

fn advance(entry: &Reached, token: &Token, frontier: &mut Frontier) {
    steps(entry.state, token, &mut |step| {
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
fn steps(state: GrammarState, token: &Token, emit: &mut impl FnMut(GrammarStep)) {
    match state.block {
        Some(block) => inside(state, block, token, emit),
        None => outside(state, token, emit),
    }
}

/// Stores the effect of a reading at a token.
fn store(path: &mut Prefix, token: &Token, nodes: &mut Vec<PassNode>) {
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
fn compact(nodes: &mut Vec<PassNode>, entries: &mut [Reached]) {
    let mut used = vec![false; nodes.len()];
    for path in entries.iter_mut().flat_map(Reached::paths) {
        let mut at = path.node;
        while at != ROOT && !std::mem::replace(&mut used[at as usize], true) {
            at = nodes[at as usize].parent;
        }
    }

    let mut moved = vec![ROOT; nodes.len()];
    let mut kept = 0u32;
    for at in 0..nodes.len() {
        if used[at] {
            let mut node = nodes[at];
            node.parent = if node.parent == ROOT {
                ROOT
            } else {
                moved[node.parent as usize]
            };
            nodes[kept as usize] = node;
            moved[at] = kept;

            kept += 1;
        }
    }

    nodes.truncate(kept as usize);
    for path in entries
        .iter_mut()
        .flat_map(Reached::paths)
        .filter(|path| path.node != ROOT)
    {
        path.node = moved[path.node as usize];
    }
}

/// Returns the steps of a complete reading.
fn trace(path: Prefix, nodes: &[PassNode]) -> RepairReading {
    let mut steps = Vec::new();
    let mut at = path.node;
    while at != ROOT {
        let node = nodes[at as usize];
        let before = if node.parent == ROOT {
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
