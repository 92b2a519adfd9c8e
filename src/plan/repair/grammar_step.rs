//! One step of the pass: next state, cost and effect.

use super::cost::{self, Cost};
use super::event::RepairEvent;
use super::state::{GrammarState, OpenBlock};
use super::token::FenceRule;

#[derive(Debug, Clone, Copy)]
pub(super) struct GrammarStep {
    pub state: GrammarState,
    pub cost: Cost,
    /// Effect on the token's line.
    pub event: Option<RepairEvent>,
}

impl GrammarStep {
    pub fn to(state: GrammarState, cost: Cost) -> Self {
        GrammarStep {
            state,
            cost,
            event: None,
        }
    }

    pub fn with_event(event: RepairEvent, state: GrammarState, cost: Cost) -> Self {
        GrammarStep {
            state,
            cost,
            event: Some(event),
        }
    }

    /// Returns the step into a block that is trusted by the fence rule, with its cost.
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

    pub fn plus(self, cost: Cost) -> Self {
        GrammarStep {
            cost: self.cost + cost,
            ..self
        }
    }
}
