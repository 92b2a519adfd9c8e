//! The beam: reachable grammar states, deduplicated and limited to the cheapest.

use super::cost::{self, Cost};
use super::prefix::{BeamEntry, Prefix};
use super::state::{GrammarState, StateKey};

/// States kept after each token; up to twice as many at equal cost.
const BEAM_WIDTH: usize = 32;
/// Initial table size; a power of two.
const INITIAL_SLOTS: usize = 512;

/// States by key in a hash table that is never cleared: a slot is valid only if it has the mark of
/// the current token. The beam bounds the table, so hostile input cannot fill it.
pub(super) struct Frontier {
    entries: Vec<BeamEntry>,
    slots: Vec<Slot>,
    /// Mark of the current token.
    mark: u32,
    cheapest: Cost,
    /// Buffer for the costs of the states.
    costs: Vec<Cost>,
}

#[derive(Clone, Copy)]
struct Slot {
    key: StateKey,
    /// Mark of the token at which the slot was filled.
    mark: u32,
    /// Index into `entries`.
    index: u32,
}

/// A slot that was never filled.
const EMPTY_SLOT: Slot = Slot {
    key: StateKey([0; 2]),
    mark: 0,
    index: 0,
};

impl Frontier {
    pub(super) fn new() -> Frontier {
        Frontier {
            entries: Vec::new(),
            slots: vec![EMPTY_SLOT; INITIAL_SLOTS],
            mark: 1,
            cheapest: Cost::MAX,
            costs: Vec::new(),
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
        let key = state.key();
        let slot = self.slot(key);
        if self.slots[slot].mark == self.mark {
            let entry = &mut self.entries[self.slots[slot].index as usize];
            entry.add_path(best);
            next.into_iter().for_each(|path| entry.add_path(path));
            return;
        }

        let index =
            u32::try_from(self.entries.len()).expect("the beam bounds the states of a token");
        self.slots[slot] = Slot {
            key,
            mark: self.mark,
            index,
        };
        self.entries.push(BeamEntry { state, best, next });
        if self.entries.len() * 2 > self.slots.len() {
            self.grow();
        }
    }

    /// Returns the slot that contains a key, or a free one.
    fn slot(&self, key: StateKey) -> usize {
        let last = self.slots.len() - 1;
        let mut at = hash_key(key) & last;
        loop {
            let slot = &self.slots[at];
            if slot.mark != self.mark || slot.key == key {
                return at;
            }
            at = (at + 1) & last;
        }
    }

    fn grow(&mut self) {
        let slots = vec![EMPTY_SLOT; self.slots.len() * 2];
        for slot in std::mem::replace(&mut self.slots, slots) {
            if slot.mark == self.mark {
                let at = self.slot(slot.key);
                self.slots[at] = slot;
            }
        }
    }

    /// Swaps the cheapest states into `others` and starts over with its empty list.
    pub(super) fn take_entries(&mut self, others: &mut Vec<BeamEntry>) {
        self.trim();
        std::mem::swap(&mut self.entries, others);
        self.entries.clear();
        self.cheapest = Cost::MAX;
        self.mark = self.mark.wrapping_add(1);

        // Marks repeat after 2^32 tokens, so older slots must become invalid.
        if self.mark == 0 {
            self.slots.fill(EMPTY_SLOT);
            self.mark = 1;
        }
    }

    /// Keeps the cheapest states.
    fn trim(&mut self) {
        let limit = self.cheapest.saturating_add(cost::HOPELESS);
        self.entries.retain(|entry| entry.best.cost <= limit);
        if self.entries.len() > BEAM_WIDTH {
            self.costs.clear();
            self.costs
                .extend(self.entries.iter().map(|entry| entry.best.cost));
            let (_, &mut limit, _) = self.costs.select_nth_unstable(BEAM_WIDTH - 1);
            self.entries.retain(|entry| entry.best.cost <= limit);
            self.entries.truncate(2 * BEAM_WIDTH);
        }
    }
}

fn hash_key(StateKey([first, second]): StateKey) -> usize {
    let word = (first.rotate_left(23) ^ second).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    usize::try_from(word >> 32).unwrap_or_default()
}
