//! How one sequence becomes another, step by step.
//!
//! Whatever is compared, lines, words or fingerprints, is numbered first: `similar` makes code for
//! each kind of sequence and each algorithm, about a hundred kilobytes, and this is the one kind.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Instant;

use similar::DiffOp;
use similar::algorithms::{Capture, Compact, Replace, histogram, myers};

/// How the steps are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepSearch {
    /// By what occurs rarely, as people read a difference.
    Readable,
    /// As few steps as can be had.
    Short,
}

/// Returns the steps from one sequence to another. After the deadline they are more than they had
/// to be.
pub(super) fn steps<T: Eq + Hash + Copy>(
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
    found(search, (&old, &new), deadline)
}

/// Returns the steps from some numbers to others.
fn found(
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
