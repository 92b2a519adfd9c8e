//! Checks the order of a chain: what each turn says about earlier ones.

use std::collections::HashSet;

use uuid::Uuid;

use super::{Checked, CheckedTurn, Fault};

/// Checks the newest `most` turns, and collects the faults of all turns, oldest first.
pub(super) fn check(checked: &mut Checked, most: usize) {
    let mut known = HashSet::new();
    let mut before = None;
    for (at, turn) in checked.turns.iter_mut().enumerate().rev() {
        if at < most {
            let wrong = number(turn, before).into_iter().chain(ids(turn, &known));
            checked
                .faults
                .extend(wrong.map(|(rule, what)| fault(turn, rule, what)));
        }
        checked.faults.append(&mut turn.faults);
        known.insert(turn.turn_id);
        before = Some(turn.number);
    }
}

fn fault(turn: &CheckedTurn, rule: &'static str, what: String) -> Fault {
    Fault {
        turn: Some(turn.number),
        commit: turn.commit,
        rule,
        what,
    }
}

fn number(turn: &CheckedTurn, before: Option<u64>) -> Option<(&'static str, String)> {
    let number = turn.number;
    let what = match before {
        Some(before) if before + 1 != number => {
            format!("its number is {number}, and {before} before it")
        }
        None if number != 0 => format!("the chain begins with turn {number}"),
        _ => return None,
    };
    Some(("T4", what))
}

fn ids(turn: &CheckedTurn, known: &HashSet<Uuid>) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    let id = turn.turn_id;
    if known.contains(&id) {
        wrong.push(format!("its `turn_id` {id} is that of an earlier turn"));
    }
    for (name, id) in turn.earlier {
        if let Some(id) = id.filter(|id| !known.contains(id)) {
            wrong.push(format!("its `{name}` {id} is that of no earlier turn"));
        }
    }
    wrong.into_iter().map(|what| ("T1", what)).collect()
}
