//! Readings of the beginning of a reply: their cost, and a fingerprint of their effects.

use super::cost::Cost;
use super::event::{FenceScope, RepairEvent};
use super::grammar_step::GrammarStep;
use super::state::GrammarState;

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
    pub(super) fn start() -> Prefix {
        Prefix {
            cost: 0,
            print: 0,
            node: ROOT_NODE,
            event: None,
        }
    }

    /// Extends the reading by one step.
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
