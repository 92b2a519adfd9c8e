//! Readings of a part of the reply: what they cost so far, and what tells them apart.

use super::cost::Cost;
use super::event::{FenceScope, RepairEvent};
use super::grammar_step::GrammarStep;
use super::state::GrammarState;

/// No step before this one.
pub(super) const ROOT: u32 = u32::MAX;

/// A reading so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prefix {
    /// What it cost.
    pub cost: Cost,
    /// Equal for readings that do the same.
    print: u64,
    /// Its last stored step.
    pub node: u32,
    /// What it does at this token, not stored yet.
    pub event: Option<RepairEvent>,
}

/// The two cheapest readings that end in one state.
pub(super) struct Reached {
    /// The state.
    pub state: GrammarState,
    /// The cheapest.
    pub best: Prefix,
    /// The cheapest that does something else.
    pub next: Option<Prefix>,
}

impl Prefix {
    /// Returns the one that has read nothing.
    pub(super) fn start() -> Prefix {
        Prefix {
            cost: 0,
            print: 0,
            node: ROOT,
            event: None,
        }
    }

    /// Returns the reading with one step more.
    pub(super) fn then(self, step: GrammarStep, line: usize) -> Prefix {
        let print = step
            .event
            .and_then(print_of)
            .map_or(self.print, |event| mix(self.print, event, line));
        Prefix {
            cost: self.cost + step.cost,
            print,
            node: self.node,
            event: step.event,
        }
    }
}

impl Reached {
    /// Returns the readings.
    pub(super) fn paths(&mut self) -> impl Iterator<Item = &mut Prefix> {
        std::iter::once(&mut self.best).chain(self.next.as_mut())
    }

    /// Takes over a reading that ends in the same state.
    pub(super) fn join(&mut self, path: Prefix) {
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
fn print_of(event: RepairEvent) -> Option<u64> {
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

/// Returns the print of a reading that does one thing more.
fn mix(print: u64, event: u64, line: usize) -> u64 {
    let word = (line as u64) << 4 | event;
    (print.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
