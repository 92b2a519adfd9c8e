//! Connects an acting model to the user: progress, permission prompts, budget and interrupts.

use super::SharedUser;
use crate::host::interrupt;
use crate::model::acting::{
    AgentHost, AgentProgress, PermissionAnswer, PermissionDecision, PermissionGiver,
    PermissionQuestion,
};
use crate::workflow::model::budget::BudgetSlice;
use crate::workflow::user::{Choice, Event};

/// Answers to a permission prompt. The order is that of `permission`.
const PERMISSION_CHOICES: [Choice<'static>; 3] = [
    Choice {
        key: 'y',
        label: "(y)es, this time",
    },
    Choice {
        key: 'a',
        label: "(a)lways in this turn",
    },
    Choice {
        key: 'n',
        label: "(n)o",
    },
];

/// Forwards events of the program to the user and stops it when its budget is used up.
pub(super) struct WatchingUser<'a, 'u> {
    user: &'a SharedUser<'u>,
    name: &'a str,
    budget: BudgetSlice<'a>,
    exceeded: bool,
}

impl<'a, 'u> WatchingUser<'a, 'u> {
    pub(super) fn new(
        user: &'a SharedUser<'u>,
        name: &'a str,
        budget: BudgetSlice<'a>,
    ) -> WatchingUser<'a, 'u> {
        WatchingUser {
            user,
            name,
            budget,
            exceeded: false,
        }
    }

    pub(super) fn is_over_budget(&self) -> bool {
        self.exceeded
    }
}

impl AgentHost for WatchingUser<'_, '_> {
    fn progress(&mut self, progress: AgentProgress<'_>) {
        if let AgentProgress::Used { usage, cost } = &progress {
            self.exceeded |= self.budget.used(*usage, *cost) > self.budget.remaining;
        }
        self.user.borrow_mut().report(Event::Working {
            model: self.name,
            progress: &progress,
        });
    }

    fn permission(&mut self, question: &PermissionQuestion) -> PermissionAnswer {
        let mut user = self.user.borrow_mut();
        if user.approves_unseen() {
            return permission_answer(PermissionDecision::Once, PermissionGiver::Beforehand);
        }

        let mut text = format!("{} asks: {}", self.name, question.title);
        for line in &question.detail {
            text.push_str(&format!("\n  {line}"));
        }
        let decision = match user.choose(&text, &PERMISSION_CHOICES) {
            Ok(Some(0)) => PermissionDecision::Once,
            Ok(Some(1)) => PermissionDecision::Always,
            Ok(Some(_)) => PermissionDecision::No,
            // An interrupted prompt also returns `None` or an error. Report it as cancelled, not as
            // a refusal.
            Ok(None) | Err(_) if interrupt::requested() => PermissionDecision::Cancelled,
            Ok(None) | Err(_) => {
                return permission_answer(PermissionDecision::No, PermissionGiver::Nobody);
            }
        };
        permission_answer(decision, PermissionGiver::Person)
    }

    fn stopped(&self) -> bool {
        self.exceeded || interrupt::requested()
    }
}

fn permission_answer(decision: PermissionDecision, by: PermissionGiver) -> PermissionAnswer {
    PermissionAnswer { decision, by }
}
