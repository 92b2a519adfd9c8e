//! The turn transition: from a turn and what its plan did to the first state of the next turn.
//!
//! Pure: the caller reads the turns and stores the result.

use uuid::Uuid;

use super::artifact;
use super::name::SessionName;
use super::requests::Requests;
use crate::plan::run::Effect;
use crate::text::context_list::ListEntry;
use crate::text::resource::{Artifact, Resource};

/// What a turn leaves to read.
const LEFT_TO_READ: [&str; 3] = [artifact::REPORT, artifact::PLAN, artifact::USER_PROMPT];

/// The turn that ends.
#[derive(Debug, Clone)]
pub struct Current<'a> {
    /// Its session.
    pub session: &'a SessionName,
    /// Its number.
    pub number: u64,
    /// Its id.
    pub turn_id: Uuid,
    /// Who handed over to its agent.
    pub caller_turn_id: Option<Uuid>,
    /// Its agent.
    pub agent: &'a str,
    /// Its instructions.
    pub system_prompt: &'a str,
    /// Its working set.
    pub context: &'a [ListEntry],
    /// Whether its message is the user's own.
    pub is_asked: bool,
    /// What the model had asked the user before it.
    pub question: Option<&'a str>,
    /// What the user asked for in the session, this turn included.
    pub requests: &'a Requests,
}

/// The turn whose agent handed over, as far as CONCLUDE goes back to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Its id.
    pub turn_id: Uuid,
    /// Who had handed over to it in turn.
    pub caller_turn_id: Option<Uuid>,
    /// Its agent.
    pub agent: String,
    /// Its instructions.
    pub system_prompt: String,
    /// Its working set.
    pub context: Vec<ListEntry>,
}

/// An agent and its instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// The name of its prompt.
    pub name: String,
    /// The prompt.
    pub system_prompt: String,
}

/// What the transition needs besides the turn.
#[derive(Debug, Clone, Default)]
pub struct Others {
    /// The agent that an INVOKE names.
    pub invoked: Option<Agent>,
    /// The turn to which a CONCLUDE returns.
    pub caller: Option<Caller>,
}

/// The first state of the next turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    /// Whom it continues.
    pub parent_turn_id: Uuid,
    /// Who handed over to its agent.
    pub caller_turn_id: Option<Uuid>,
    /// Its agent.
    pub agent: String,
    /// Its instructions.
    pub system_prompt: String,
    /// Its working set.
    pub context: Vec<ListEntry>,
    /// What the model asks the user: nothing goes on before it is answered.
    pub question: Option<String>,
    /// What the model said when it called the work done: nothing is asked any more.
    pub conclusion: Option<String>,
    /// What the user asked for in the session.
    pub requests: Requests,
}

/// Returns the state after a plan ran: READ adds, PRUNE removes, in the plan's order; INVOKE and
/// CONCLUDE replace it; what the turn left to read comes last. Without a caller, CONCLUDE is the
/// end of the work.
pub fn after_run(current: &Current<'_>, effects: &[Effect], others: &Others) -> Next {
    let mut next = unchanged(current);
    for effect in effects {
        apply(&mut next, current, effect, others);
    }

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

/// Returns the state after an answer to a question: what was looked at joins, and what was open
/// before stays open.
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

/// Returns what a plan asks the user, all of it.
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

/// Returns what the model said when it concluded.
fn concluded(effects: &[Effect]) -> Option<&str> {
    effects.iter().find_map(|effect| match effect {
        Effect::Conclude { message, .. } => Some(message.as_str()),
        _ => None,
    })
}

/// Returns the state after a plan that was declined or interrupted: nothing of it applies, the
/// report joins.
pub fn without_effects(current: &Current<'_>) -> Next {
    let mut next = unchanged(current);
    append_history(&mut next.context, current, &LEFT_TO_READ);
    next
}

/// Returns the state after a wrong plan: nothing of it applies, its report stays out, and the
/// files whose text the model had wrong join, so that it sees the true one.
pub fn after_rejection(current: &Current<'_>, mistaken: &[Resource]) -> Next {
    let mut next = unchanged(current);
    mistaken
        .iter()
        .for_each(|resource| add(&mut next.context, resource));
    next
}

/// Returns the direct continuation of a turn. A question stays open until the user says something.
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

/// Applies what one action does.
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

/// Adds a resource that is not there yet.
fn add(context: &mut Vec<ListEntry>, resource: &Resource) {
    if !context.iter().any(|entry| is(entry, resource)) {
        context.push(ListEntry::Resource(resource.clone()));
    }
}

/// Returns whether an entry is a resource.
fn is(entry: &ListEntry, resource: &Resource) -> bool {
    matches!(entry, ListEntry::Resource(own) if own == resource)
}

/// Adds what the turn left to read, in place of what the last turn before it left. That is not
/// always the one right before: a rejected plan leaves nothing, a restore brings an older turn's
/// context back, a fork another session's.
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

    let last = context.iter().filter_map(left_by).max();
    context.retain(|entry| last.is_none() || left_by(entry) != last);
    let artifact = |name: &str| Artifact {
        session: own.to_owned(),
        turn: current.number,
        name: name.to_owned(),
    };
    let there = names
        .iter()
        .filter(|name| current.is_asked || **name != artifact::USER_PROMPT);

    there.for_each(|name| add(context, &Resource::Artifact(artifact(name))));
}

#[cfg(test)]
mod tests;
