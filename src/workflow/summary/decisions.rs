//! What people decided: answers to questions, plans that they declined, changed or cut.

use serde::Serialize;

use super::{is_users, kept, text_of};
use crate::git::repository::Repository;
use crate::plan;
use crate::session::artifact;
use crate::session::report::read;
use crate::session::turn::{Turn, in_next};

/// Something that a person decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UserDecision {
    /// The turn.
    pub turn: u64,
    /// What kind of decision.
    pub kind: DecisionKind,
    /// What it was about: the question, the title of the plan, an action.
    pub about: String,
    /// What they said.
    pub said: String,
}

/// A kind of decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// A question of the model's was answered.
    Answered,
    /// A plan was declined.
    Declined,
    /// An action was changed in the review.
    Changed,
    /// Actions of a plan were left out in the review.
    LeftOut,
}

/// Returns what people decided, oldest first.
pub(super) fn decisions(
    repository: &Repository,
    turns: &[Turn],
) -> anyhow::Result<Vec<UserDecision>> {
    let (mut found, mut asked) = (Vec::new(), None);
    for turn in turns {
        let text = |name: &str| text_of(repository, turn, name);
        let said = text(artifact::USER_PROMPT)?.unwrap_or_default();
        if is_users(turn) && !said.trim().is_empty() {
            let question: Option<String> = asked.take();
            found.extend(question.map(|about| UserDecision {
                turn: turn.number(),
                kind: DecisionKind::Answered,
                about,
                said: kept(&said),
            }));
        }

        if let Some(why) = text(artifact::DECLINED)? {
            found.push(UserDecision {
                turn: turn.number(),
                kind: DecisionKind::Declined,
                about: kept(&turn.title),
                said: kept(&why),
            });
        }

        if let Some(approved) = text(artifact::APPROVED)? {
            let proposed = text(artifact::PLAN)?.unwrap_or_default();
            let report = text(artifact::REPORT)?.unwrap_or_default();
            found.extend(changes(turn, (&proposed, &approved), &report));
        }

        asked = text(&in_next(artifact::QUESTION))?.map(|text| kept(&text));
    }

    Ok(found)
}

/// Returns what was changed in a review, and how much was left out.
fn changes(turn: &Turn, (proposed, approved): (&str, &str), report: &str) -> Vec<UserDecision> {
    let decision = |kind, about: String| UserDecision {
        turn: turn.number(),
        kind,
        about,
        said: String::new(),
    };
    let report = read::read(report).unwrap_or_default();
    let modified = report.actions.iter().filter(|action| action.modified);
    let mut found: Vec<_> = modified
        .map(|action| {
            let place = action.field("File Path").or(action.field("Description"));
            let label = format!("{} {}", action.name, place.unwrap_or_default());
            decision(DecisionKind::Changed, kept(&label))
        })
        .collect();

    let count = |text: &str| plan::parse(text).0.actions.len();
    let (before, after) = (count(proposed), count(approved));
    if before > after {
        let about = format!("{} of {before} actions", before - after);
        found.push(decision(DecisionKind::LeftOut, about));
    }

    found
}
