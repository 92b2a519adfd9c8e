//! One step of the pass: where a token leads, what it costs and what it does.

use super::cost::{self, Cost};
use super::event::RepairEvent;
use super::state::{GrammarState, OpenBlock};
use super::token::FenceRule;

/// A step of a reading.
#[derive(Debug, Clone, Copy)]
pub(super) struct GrammarStep {
    /// Where it leads.
    pub state: GrammarState,
    /// What it costs.
    pub cost: Cost,
    /// What it does at the token's line.
    pub event: Option<RepairEvent>,
}

impl GrammarStep {
    /// Returns a step that does nothing at its line.
    pub fn to(state: GrammarState, cost: Cost) -> Self {
        GrammarStep {
            state,
            cost,
            event: None,
        }
    }

    /// Returns a step that does something.
    pub fn doing(event: RepairEvent, state: GrammarState, cost: Cost) -> Self {
        GrammarStep {
            state,
            cost,
            event: Some(event),
        }
    }

    /// Returns the step into a block that is read by the fence rule.
    pub fn by_rule(self, rule: FenceRule) -> Self {
        let Some(block) = self.state.block else {
            return self;
        };
        let price = match (rule, block.document) {
            (FenceRule::KeptOverAction, true) => cost::LOOK_BY_RULE,
            (FenceRule::KeptOverAction, false) => cost::LOOK_BY_RULE_IN_CODE,
            _ => 0,
        };

        GrammarStep {
            state: self.state.with(OpenBlock {
                sure: true,
                ..block
            }),
            ..self
        }
        .plus(price)
    }

    /// Returns the step with a further cost.
    pub fn plus(self, cost: Cost) -> Self {
        GrammarStep {
            cost: self.cost + cost,
            ..self
        }
    }
}
