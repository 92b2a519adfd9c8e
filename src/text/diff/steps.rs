//! Computes an edit script between two sequences.
//!
//! Elements are mapped to numbers first. `similar` is generic, and each type of sequence with each
//! algorithm adds about 100 kB of code, so only one is instantiated.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Instant;

use similar::DiffOp;
use similar::algorithms::{Capture, Compact, Replace, histogram, myers};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepSearch {
    /// Histogram diff, which reads best.
    Readable,
    /// Myers diff, which is minimal.
    Short,
}

/// Returns the edit script. After the deadline it is correct but not minimal.
pub(super) fn edit_script<T: Eq + Hash + Copy>(
    search: StepSearch,
    (old, new): (&[T], &[T]),
    deadline: Option<Instant>,
) -> Vec<DiffOp> {
    let mut numbers = HashMap::new();
    let mut numbered = |sequence: &[T]| -> Vec<u32> {
        let number = |&one: &T| {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            *numbers.entry(one).or_insert(next)
        };
        sequence.iter().map(number).collect()
    };
    let (old, new) = (numbered(old), numbered(new));
    run_search(search, (&old, &new), deadline)
}

fn run_search(
    search: StepSearch,
    (old, new): (&[u32], &[u32]),
    deadline: Option<Instant>,
) -> Vec<DiffOp> {
    let mut hook = Compact::new(Replace::new(Capture::new()), old, new);
    let (all_old, all_new) = (0..old.len(), 0..new.len());
    let Ok(()) = match search {
        StepSearch::Readable => {
            histogram::diff_deadline(&mut hook, old, all_old, new, all_new, deadline)
        }
        StepSearch::Short => myers::diff_deadline(&mut hook, old, all_old, new, all_new, deadline),
    };
    hook.into_inner().into_inner().into_ops()
}
