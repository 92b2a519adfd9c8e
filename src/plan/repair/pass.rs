//! The pass: the cheapest reading of all tokens, and how far ahead of the next one it is.
//!
//! The next step depends only on the state, so that keeping the two cheapest different readings
//! of each state is exact, up to the beam.

use super::block::inside;
use super::cost::Cost;
use super::event::{Event, Scope};
use super::frontier::Frontier;
use super::state::State;
use super::step::{Move, outside};
use super::token::{Token, TokenKind};

/// No step before this one.
const ROOT: u32 = u32::MAX;
/// So many steps are kept before those that no reading uses any more are dropped.
const FULL: usize = 1 << 21;

/// A reading: what it does, by line.
#[derive(Debug, Clone, Default)]
pub(super) struct Reading {
    /// The steps that do something, in order.
    pub steps: Vec<Step>,
    /// The sum of its costs.
    pub cost: Cost,
}

/// Something that a reading does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    /// The index of the line.
    pub line: usize,
    /// What.
    pub event: Event,
    /// What was paid since the step before.
    pub cost: Cost,
}

/// The best readings of a reply.
pub(super) struct Best {
    /// The cheapest.
    pub first: Reading,
    /// The cheapest one that differs from it.
    pub second: Option<Reading>,
}

/// A reading so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path {
    /// What it cost.
    pub cost: Cost,
    /// Equal for readings that do the same.
    print: u64,
    /// Its last stored step.
    node: u32,
    /// What it does at this token, not stored yet.
    event: Option<Event>,
}

/// A stored step.
#[derive(Debug, Clone, Copy)]
struct Node {
    /// The step before.
    parent: u32,
    /// The line.
    line: u32,
    /// The cost up to here.
    cost: Cost,
    /// What was done.
    event: Event,
}

/// The two cheapest readings that end in one state.
pub(super) struct Entry {
    /// The state.
    pub state: State,
    /// The cheapest.
    pub best: Path,
    /// The cheapest that does something else.
    pub next: Option<Path>,
}

/// Returns the best readings; `None` if no reading reaches the end.
pub(super) fn best(tokens: &[Token]) -> Option<Best> {
    let root = Path {
        cost: 0,
        print: 0,
        node: ROOT,
        event: None,
    };
    let mut from = vec![Entry {
        state: State::start(),
        best: root,
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
    let end = from.first()?;
    let reading = |path: Path| trace(path, &nodes);
    Some(Best {
        first: reading(end.best),
        second: end.next.map(reading),
    })
}

/// Takes the one step over a gap, in place. It makes equal states of few; the next token joins
/// them.
fn cross(entry: &mut Entry, token: &Token) {
    let (state, mut taken) = (entry.state, None);
    steps(state, token, &mut |step| taken = Some(step));
    if let Some(step) = taken {
        entry.state = step.state;
        entry
            .paths()
            .for_each(|path| *path = path.then(step, token.line));
    }
}

/// Adds every step from one state.
fn advance(entry: &Entry, token: &Token, frontier: &mut Frontier) {
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

/// Passes every step that a token may be to `emit`.
#[inline]
fn steps(state: State, token: &Token, emit: &mut impl FnMut(Move)) {
    match state.block {
        Some(block) => inside(state, block, token, emit),
        None => outside(state, token, emit),
    }
}

impl Path {
    /// Returns the reading with one step more.
    fn then(self, step: Move, line: usize) -> Self {
        let print = step
            .event
            .and_then(print_of)
            .map_or(self.print, |event| mix(self.print, event, line));
        Path {
            cost: self.cost + step.cost,
            print,
            node: self.node,
            event: step.event,
        }
    }
}

impl Entry {
    /// Returns the readings.
    fn paths(&mut self) -> impl Iterator<Item = &mut Path> {
        std::iter::once(&mut self.best).chain(self.next.as_mut())
    }

    /// Takes over a reading that ends in the same state.
    pub(super) fn join(&mut self, path: Path) {
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

/// Returns what tells readings apart: not how a closer looks, nor the fences
/// of a message or of the rationale, which decide nothing but where it ends.
fn print_of(event: Event) -> Option<u64> {
    match event {
        Event::Title => Some(1),
        Event::Wrap => Some(2),
        Event::Unwrap => Some(3),
        Event::Action => Some(4),
        Event::Open(Scope::Content, _) => Some(5),
        Event::Close(Scope::Content, _) => Some(6),
        Event::Forgotten(Scope::Content | Scope::Message) => Some(7),
        Event::Surplus => Some(8),
        Event::SecondPlan => Some(9),
        Event::Open(..)
        | Event::Close(..)
        | Event::Forgotten(_)
        | Event::Glued
        | Event::Prose
        | Event::Broken => None,
    }
}

/// Returns the print of a reading that does one thing more.
fn mix(print: u64, event: u64, line: usize) -> u64 {
    let word = (line as u64) << 4 | event;
    (print.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Stores what a reading does at a token.
fn store(path: &mut Path, token: &Token, nodes: &mut Vec<Node>) {
    let Some(event) = path.event.take() else {
        return;
    };
    let line = u32::try_from(token.line).unwrap_or(u32::MAX);
    nodes.push(Node {
        parent: path.node,
        line,
        cost: path.cost,
        event,
    });
    path.node =
        u32::try_from(nodes.len() - 1).expect("steps are compacted long before they are that many");
}

/// Drops the stored steps that no reading uses.
fn compact(nodes: &mut Vec<Node>, entries: &mut [Entry]) {
    let mut used = vec![false; nodes.len()];
    for path in entries.iter_mut().flat_map(Entry::paths) {
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
        .flat_map(Entry::paths)
        .filter(|path| path.node != ROOT)
    {
        path.node = moved[path.node as usize];
    }
}

/// Returns the steps that led to a reading's end.
fn trace(path: Path, nodes: &[Node]) -> Reading {
    let mut steps = Vec::new();
    let mut at = path.node;
    while at != ROOT {
        let node = nodes[at as usize];
        let before = if node.parent == ROOT {
            0
        } else {
            nodes[node.parent as usize].cost
        };
        steps.push(Step {
            line: node.line as usize,
            event: node.event,
            cost: node.cost - before,
        });
        at = node.parent;
    }
    steps.reverse();
    Reading {
        steps,
        cost: path.cost,
    }
}
