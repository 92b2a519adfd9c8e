//! Validates memo changes: added memos are new, removed ones exist, and each occurs once.

use std::collections::BTreeMap;

use super::Validator;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::memo::{MemoChange, Verb};
use crate::text::sanitize::sanitize_line;

pub(super) fn check_memos(validator: &mut Validator<'_>) {
    let mut first_uses: BTreeMap<&str, &MemoChange> = BTreeMap::new();
    let memos = validator.files.facts.memos();
    for change in &validator.plan.memos {
        let exists = memos.contains(&change.text);
        let mistake = match (first_uses.get(change.text.as_str()), change.verb) {
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
            (None, Verb::Add) if exists => {
                Some(("the memo already exists".to_owned(), "leave the line out"))
            }
            (None, Verb::Remove) if !exists => Some((
                "there is no such memo".to_owned(),
                "copy the memo that you want to remove word for word",
            )),
            (None, _) => None,
        };

        first_uses.entry(&change.text).or_insert(change);
        if let Some((message, hint)) = mistake {
            let message = format!("{message}: `{}`", sanitize_line(&change.text));
            validator.simulation.diagnostics.push(Diagnostic {
                line: change.line,
                action: String::new(),
                message,
                hint: Some(hint.to_owned()),
            });
        }
    }
}
