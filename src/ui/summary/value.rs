//! The proposal as JSON, for review by a program.

use serde_json::{Value, json};

use super::super::risk;
use super::changed;
use crate::plan::memo::Verb;
use crate::workflow::user::ReviewRequest;

/// Returns the proposal as one object. Nothing is shortened or escaped for display.
pub fn proposal_json(proposal: &ReviewRequest<'_>) -> Value {
    let plan = proposal.plan;
    let memo = |verb| match verb {
        Verb::Add => "add",
        Verb::Remove => "remove",
    };
    json!({
        "session": proposal.session,
        "turn": proposal.turn,
        "title": plan.title,
        "status": plan.field("Status"),
        "agent": plan.field("Agent"),
        "repair": proposal.repair.level,
        "confinement": proposal.confinement,
        "memos": plan.memos.iter().map(|m| json!({ "verb": memo(m.verb), "text": m.text, "comment": m.comment })).collect::<Vec<_>>(),
        "actions": (0..plan.actions.len()).map(|index| action_json(proposal, index)).collect::<Vec<_>>(),
        "spellings": proposal.repair.notes.iter().filter(|n| n.spelling).collect::<Vec<_>>(),
        "risks": risk::risks(proposal).iter().map(|r| json!({ "action": r.action, "text": r.text })).collect::<Vec<_>>(),
    })
}

fn action_json(proposal: &ReviewRequest<'_>, index: usize) -> Value {
    let kind = &proposal.plan.actions[index].kind;
    let mut value = json!({ "index": index, "kind": kind.name(), "target": kind.target(), "description": proposal.plan.actions[index].description() });
    for (key, contents) in kind.json(changed(proposal, index)) {
        value[key] = contents;
    }
    value
}
