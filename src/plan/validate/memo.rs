//! Validates memo changes: added memos are new, removed ones exist, and each occurs once.

use std::collections::BTreeMap;

use super::Judge;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::memo::{MemoChange, Verb};
use crate::text::visible::visible;

pub(super) fn check(judge: &mut Judge<'_>) {
    let mut seen: BTreeMap<&str, &MemoChange> = BTreeMap::new();
    let memos = judge.world.facts.memos();
    for change in &judge.plan.memos {
        let there = memos.contains(&change.text);
        let mistake = match (seen.get(change.text.as_str()), change.verb) {
            (Some(first), verb) if first.verb == verb => Some((
                format!("the memo is named twice, first at line {}", first.line),
                "keep one line",
            )),
            (Some(first), _) => Some((
                format!(
                    "the memo is added and removed, first at line {}",
                    first.line
                ),
                "keep only the line that you want",
            )),
            (None, Verb::Add) if there => {
                Some(("the memo is there already".to_owned(), "leave the line out"))
            }
            (None, Verb::Remove) if !there => Some((
                "there is no such memo".to_owned(),
                "copy the memo that you want to remove word for word",
            )),
            (None, _) => None,
        };

        seen.entry(&change.text).or_insert(change);
        if let Some((message, hint)) = mistake {
            let message = format!("{message}: `{}`", visible(&change.text));
            judge.simulation.diagnostics.push(Diagnostic {
                line: change.line,
                action: String::new(),
                message,
                hint: Some(hint.to_owned()),
            });
        }
    }
}
