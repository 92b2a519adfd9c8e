//! The states that a token leads to: each once, the cheapest of them kept.

use super::cost::{self, Cost};
use super::prefix::{Prefix, Reached};
use super::state::{GrammarState, StateKey};

/// How many states are kept after each token; in case of equal costs twice as many.
const BEAM: usize = 32;
/// The places of the table at first; a power of two.
const SLOTS: usize = 512;

/// The states, found again by their keys in a table that is never cleared: a slot counts if it has
/// the mark of the token. The beam bounds the table, so nobody can flood it.
pub(super) struct Frontier {
    /// The states.
    entries: Vec<Reached>,
    /// Where they stand.
    slots: Vec<Slot>,
    /// The mark of this token.
    mark: u32,
    /// The lowest cost so far.
    cheapest: Cost,
    /// Room for the costs of the states.
    costs: Vec<Cost>,
}

/// A place of the table.
#[derive(Clone, Copy)]
struct Slot {
    /// The state's key.
    key: StateKey,
    /// The mark of the token that it was filled at.
    mark: u32,
    /// Where the state stands.
    index: u32,
}

/// A place that no token has filled.
const FREE: Slot = Slot {
    key: StateKey([0; 2]),
    mark: 0,
    index: 0,
};

impl Frontier {
    /// Returns an empty one.
    pub(super) fn new() -> Frontier {
        Frontier {
            entries: Vec::new(),
            slots: vec![FREE; SLOTS],
            mark: 1,
            cheapest: Cost::MAX,
            costs: Vec::new(),
        }
    }

    /// Returns whether a reading of this cost is worth its place.
    #[inline]
    pub(super) fn admits(&self, cost: Cost) -> bool {
        cost <= self.cheapest.saturating_add(cost::HOPELESS)
    }

    /// Adds the readings that end in a state.
    pub(super) fn add(&mut self, state: GrammarState, best: Prefix, next: Option<Prefix>) {
        self.cheapest = self.cheapest.min(best.cost);
        let key = state.key();
        let slot = self.slot(key);
        if self.slots[slot].mark == self.mark {
            let known = &mut self.entries[self.slots[slot].index as usize];
            known.join(best);
            next.into_iter().for_each(|path| known.join(path));
            return;
        }

        let index =
            u32::try_from(self.entries.len()).expect("the beam bounds the states of a token");
        self.slots[slot] = Slot {
            key,
            mark: self.mark,
            index,
        };
        self.entries.push(Reached { state, best, next });
        if self.entries.len() * 2 > self.slots.len() {
            self.grow();
        }
    }

    /// Returns the slot of a key: the one that has it, or a free one.
    fn slot(&self, key: StateKey) -> usize {
        let last = self.slots.len() - 1;
        let mut at = hash(key) & last;
        loop {
            let slot = &self.slots[at];
            if slot.mark != self.mark || slot.key == key {
                return at;
            }
            at = (at + 1) & last;
        }
    }

    /// Doubles the table.
    fn grow(&mut self) {
        let room = vec![FREE; self.slots.len() * 2];
        for slot in std::mem::replace(&mut self.slots, room) {
            if slot.mark == self.mark {
                let at = self.slot(slot.key);
                self.slots[at] = slot;
            }
        }
    }

    /// Gives away the cheapest states in exchange for a list to fill again, and is empty.
    pub(super) fn take(&mut self, others: &mut Vec<Reached>) {
        self.trim();
        std::mem::swap(&mut self.entries, others);
        self.entries.clear();
        self.cheapest = Cost::MAX;
        self.mark = self.mark.wrapping_add(1);

        if self.mark == 0 {
            self.slots.fill(FREE);
            self.mark = 1;
        }
    }

    /// Keeps the cheapest states.
    fn trim(&mut self) {
        let limit = self.cheapest.saturating_add(cost::HOPELESS);
        self.entries.retain(|entry| entry.best.cost <= limit);
        if self.entries.len() > BEAM {
            self.costs.clear();
            self.costs
                .extend(self.entries.iter().map(|entry| entry.best.cost));
            let (_, &mut limit, _) = self.costs.select_nth_unstable(BEAM - 1);
            self.entries.retain(|entry| entry.best.cost <= limit);
            self.entries.truncate(2 * BEAM);
        }
    }
}

/// Spreads the two words of a key over all bits.
fn hash(StateKey([first, second]): StateKey) -> usize {
    let word = (first.rotate_left(23) ^ second).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    usize::try_from(word >> 32).unwrap_or_default()
}
