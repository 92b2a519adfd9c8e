//! Computes the initial state of the next turn from a turn and the effects of its plan.
//!
//! Pure: the caller reads the turns and stores the result.

use uuid::Uuid;

use super::artifact;
use super::name::SessionName;
use super::requests::Requests;
use crate::plan::run::Effect;
use crate::text::context_list::ListEntry;
use crate::text::resource::{Artifact, Resource};

// Artifacts of a turn that are added to the context of the next one.
const LEFT_TO_READ: [&str; 3] = [artifact::REPORT, artifact::PLAN, artifact::USER_PROMPT];

#[derive(Debug, Clone)]
pub struct Current<'a> {
    pub session: &'a SessionName,
    pub number: u64,
    pub turn_id: Uuid,
    pub caller_turn_id: Option<Uuid>,
    pub agent: &'a str,
    pub system_prompt: &'a str,
    pub context: &'a [ListEntry],
    pub is_asked: bool,
    /// The question that was open before the turn.
    pub question: Option<&'a str>,
    /// Including this turn's.
    pub requests: &'a Requests,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub turn_id: Uuid,
    pub caller_turn_id: Option<Uuid>,
    pub agent: String,
    pub system_prompt: String,
    pub context: Vec<ListEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    pub name: String,
    pub system_prompt: String,
}

#[derive(Debug, Clone, Default)]
pub struct Others {
    pub invoked: Option<Agent>,
    pub caller: Option<Caller>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    pub parent_turn_id: Uuid,
    pub caller_turn_id: Option<Uuid>,
    pub agent: String,
    pub system_prompt: String,
    pub context: Vec<ListEntry>,
    /// The model's question, which the user must answer first.
    pub question: Option<String>,
    /// The model's final message. If set, the work is complete and no model is asked.
    pub conclusion: Option<String>,
    pub requests: Requests,
}

/// READ and PRUNE apply in plan order. INVOKE and CONCLUDE replace the state; without a caller,
/// CONCLUDE completes the work. The turn's own artifacts come last.
pub fn after_run(current: &Current<'_>, effects: &[Effect], others: &Others) -> Next {
    let mut next = unchanged(current);
    for effect in effects {
        apply(&mut next, current, effect, others);
    }

    // Another agent gets the outcome, not the conversation that led to it.
    let handed_over = effects.iter().any(|effect| match effect {
        Effect::Invoke { .. } => true,
        Effect::Conclude { .. } => others.caller.is_some(),
        _ => false,
    });
    let history: &[&str] = if handed_over {
        &[artifact::REPORT]
    } else {
        &LEFT_TO_READ
    };

    append_history(&mut next.context, current, history);
    next.question = asked(effects).or(next.question);
    next.conclusion = concluded(effects)
        .filter(|_| others.caller.is_none() && next.question.is_none())
        .map(str::to_owned);
    next
}

/// Adds what was read, and keeps the open question and the conclusion.
pub fn after_answer(current: &Current<'_>, effects: &[Effect], conclusion: Option<String>) -> Next {
    let mut next = unchanged(current);
    for effect in effects {
        match effect {
            Effect::Add(resource) => add(&mut next.context, resource),
            Effect::Remove(resource) => next.context.retain(|entry| !is(entry, resource)),
            Effect::Invoke { .. } | Effect::Conclude { .. } | Effect::Chat { .. } => {}
        }
    }

    append_history(&mut next.context, current, &LEFT_TO_READ);
    next.conclusion = conclusion;
    next
}

pub fn asked(effects: &[Effect]) -> Option<String> {
    let messages: Vec<&str> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Chat { message } => Some(message.as_str()),
            _ => None,
        })
        .collect();
    (!messages.is_empty()).then(|| messages.join("\n\n"))
}

fn concluded(effects: &[Effect]) -> Option<&str> {
    effects.iter().find_map(|effect| match effect {
        Effect::Conclude { message, .. } => Some(message.as_str()),
        _ => None,
    })
}

/// After a declined or interrupted plan: adds only the artifacts of the turn.
pub fn without_effects(current: &Current<'_>) -> Next {
    let mut next = unchanged(current);
    append_history(&mut next.context, current, &LEFT_TO_READ);
    next
}

/// Adds the files that the model quoted wrongly.
pub fn after_rejection(current: &Current<'_>, mistaken: &[Resource]) -> Next {
    // The report is not added: the model gets the mistakes as its next message.
    let mut next = unchanged(current);
    mistaken
        .iter()
        .for_each(|resource| add(&mut next.context, resource));
    next
}

/// An open question is dropped once the user sends a message.
fn unchanged(current: &Current<'_>) -> Next {
    Next {
        parent_turn_id: current.turn_id,
        caller_turn_id: current.caller_turn_id,
        agent: current.agent.to_owned(),
        system_prompt: current.system_prompt.to_owned(),
        context: current.context.to_vec(),
        question: current
            .question
            .filter(|_| !current.is_asked)
            .map(str::to_owned),
        conclusion: None,
        requests: current.requests.clone(),
    }
}

fn apply(next: &mut Next, current: &Current<'_>, effect: &Effect, others: &Others) {
    match effect {
        Effect::Add(resource) => add(&mut next.context, resource),
        Effect::Remove(resource) => next.context.retain(|entry| !is(entry, resource)),
        Effect::Invoke {
            agent, resources, ..
        } => {
            let invoked = others.invoked.clone().unwrap_or(Agent {
                name: agent.clone(),
                system_prompt: next.system_prompt.clone(),
            });
            next.agent = invoked.name;
            next.system_prompt = invoked.system_prompt;
            next.caller_turn_id = Some(current.turn_id);
            next.context.clear();

            resources.iter().for_each(|r| add(&mut next.context, r));
        }
        Effect::Conclude { resources, .. } => {
            next.caller_turn_id = None;
            if let Some(caller) = &others.caller {
                next.agent.clone_from(&caller.agent);
                next.system_prompt.clone_from(&caller.system_prompt);
                next.parent_turn_id = caller.turn_id;
                next.caller_turn_id = caller.caller_turn_id;
                next.context.clone_from(&caller.context);
            }
            resources.iter().for_each(|r| add(&mut next.context, r));
        }
        Effect::Chat { .. } => {}
    }
}

fn add(context: &mut Vec<ListEntry>, resource: &Resource) {
    if !context.iter().any(|entry| is(entry, resource)) {
        context.push(ListEntry::Resource(resource.clone()));
    }
}

fn is(entry: &ListEntry, resource: &Resource) -> bool {
    matches!(entry, ListEntry::Resource(own) if own == resource)
}

/// Replaces the artifacts of the last earlier turn in the context by those of this one.
fn append_history(context: &mut Vec<ListEntry>, current: &Current<'_>, names: &[&str]) {
    let own = current.session.as_str();
    let left_by = |entry: &ListEntry| match entry {
        ListEntry::Resource(Resource::Artifact(artifact))
            if LEFT_TO_READ.contains(&artifact.name.as_str()) && artifact.turn < current.number =>
        {
            Some((artifact.session == own, artifact.turn))
        }
        _ => None,
    };

    // The last one is not always the previous turn: a rejected turn adds nothing, a restore
    // reinstates the context of an older turn, and a fork starts with that of another session.
    let last = context.iter().filter_map(left_by).max();
    context.retain(|entry| last.is_none() || left_by(entry) != last);
    let artifact = |name: &str| Artifact {
        session: own.to_owned(),
        turn: current.number,
        name: name.to_owned(),
    };
    let present = names
        .iter()
        .filter(|name| current.is_asked || **name != artifact::USER_PROMPT);

    present.for_each(|name| add(context, &Resource::Artifact(artifact(name))));
}

#[cfg(test)]
mod tests;
