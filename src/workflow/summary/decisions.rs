//! Collects the user's decisions in a session: answers, declined plans, changes and omissions in
//! reviews.

use serde::Serialize;

use super::{is_users, prepare_text, text_of};
use crate::git::repository::Repository;
use crate::plan;
use crate::session::artifact;
use crate::session::report::reading;
use crate::session::turn::{Turn, in_next};

/// A decision of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UserDecision {
    /// Turn number.
    pub turn: u64,
    /// Kind of decision.
    pub kind: DecisionKind,
    /// Its subject: the question, the title of the plan, or an action.
    pub about: String,
    /// The user's words.
    pub said: String,
}

/// Kind of decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// Answered a question.
    Answered,
    /// Declined a plan.
    Declined,
    /// Changed an action in the review.
    Changed,
    /// Deselected actions in the review.
    LeftOut,
}

/// Oldest first.
pub(super) fn collect_decisions(
    repository: &Repository,
    turns: &[Turn],
) -> anyhow::Result<Vec<UserDecision>> {
    let (mut decisions, mut open_question) = (Vec::new(), None);
    for turn in turns {
        let text = |name: &str| text_of(repository, turn, name);
        let prompt = text(artifact::USER_PROMPT)?.unwrap_or_default();
        if is_users(turn) && !prompt.trim().is_empty() {
            let question: Option<String> = open_question.take();
            decisions.extend(question.map(|about| UserDecision {
                turn: turn.number(),
                kind: DecisionKind::Answered,
                about,
                said: prepare_text(&prompt),
            }));
        }

        if let Some(why) = text(artifact::DECLINED)? {
            decisions.push(UserDecision {
                turn: turn.number(),
                kind: DecisionKind::Declined,
                about: prepare_text(&turn.title),
                said: prepare_text(&why),
            });
        }

        if let Some(approved) = text(artifact::APPROVED)? {
            let proposed = text(artifact::PLAN)?.unwrap_or_default();
            let report = text(artifact::REPORT)?.unwrap_or_default();
            decisions.extend(review_changes(turn, (&proposed, &approved), &report));
        }

        open_question = text(&in_next(artifact::QUESTION))?.map(|text| prepare_text(&text));
    }

    Ok(decisions)
}

fn review_changes(
    turn: &Turn,
    (proposed, approved): (&str, &str),
    report: &str,
) -> Vec<UserDecision> {
    let decision = |kind, about: String| UserDecision {
        turn: turn.number(),
        kind,
        about,
        said: String::new(),
    };
    let report = reading::read(report).unwrap_or_default();
    let modified = report.actions.iter().filter(|action| action.modified);
    let mut decisions: Vec<_> = modified
        .map(|action| {
            let location = action.field("File Path").or(action.field("Description"));
            let label = format!("{} {}", action.name, location.unwrap_or_default());
            decision(DecisionKind::Changed, prepare_text(&label))
        })
        .collect();

    let count = |text: &str| plan::parse(text).0.actions.len();
    let (before, after) = (count(proposed), count(approved));
    if before > after {
        let about = format!("{} of {before} actions", before - after);
        decisions.push(decision(DecisionKind::LeftOut, about));
    }

    decisions
}
