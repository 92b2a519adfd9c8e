//! Checks the order of a chain: what each turn says about earlier ones.

use std::collections::HashSet;

use uuid::Uuid;

use super::{Checked, CheckedTurn, Fault};

/// Checks the newest `most` turns, and collects the faults of all turns, oldest first.
pub(super) fn check_order(checked: &mut Checked, most: usize) {
    let mut known_ids = HashSet::new();
    let mut before = None;
    for (at, turn) in checked.turns.iter_mut().enumerate().rev() {
        if at < most {
            let wrong = number_fault(turn, before)
                .into_iter()
                .chain(id_faults(turn, &known_ids));
            checked
                .faults
                .extend(wrong.map(|(rule, problem)| order_fault(turn, rule, problem)));
        }
        checked.faults.append(&mut turn.faults);
        known_ids.insert(turn.turn_id);
        before = Some(turn.number);
    }
}

fn order_fault(turn: &CheckedTurn, rule: &'static str, problem: String) -> Fault {
    Fault {
        turn: Some(turn.number),
        commit: turn.commit,
        rule,
        what: problem,
    }
}

fn number_fault(turn: &CheckedTurn, before: Option<u64>) -> Option<(&'static str, String)> {
    let number = turn.number;
    let problem = match before {
        Some(before) if before + 1 != number => {
            format!("its number is {number}, and {before} before it")
        }
        None if number != 0 => format!("the chain begins with turn {number}"),
        _ => return None,
    };
    Some(("T4", problem))
}

fn id_faults(turn: &CheckedTurn, known_ids: &HashSet<Uuid>) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    let id = turn.turn_id;
    if known_ids.contains(&id) {
        wrong.push(format!("its `turn_id` {id} is that of an earlier turn"));
    }
    for (name, id) in turn.earlier {
        if let Some(id) = id.filter(|id| !known_ids.contains(id)) {
            wrong.push(format!("its `{name}` {id} is that of no earlier turn"));
        }
    }
    wrong.into_iter().map(|problem| ("T1", problem)).collect()
}
