//! Connects an acting model to the user: progress, permission prompts, budget and interrupts.

use super::SharedUser;
use crate::host::interrupt;
use crate::model::acting::{
    AgentHost, AgentProgress, PermissionAnswer, PermissionDecision, PermissionGiver,
    PermissionQuestion,
};
use crate::workflow::model::budget::Purse;
use crate::workflow::user::{Choice, Event};

/// Answers to a permission prompt. The order is that of `permission`.
const CHOICES: [Choice<'static>; 3] = [
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
    purse: Purse<'a>,
    over: bool,
}

impl<'a, 'u> WatchingUser<'a, 'u> {
    pub(super) fn new(
        user: &'a SharedUser<'u>,
        name: &'a str,
        purse: Purse<'a>,
    ) -> WatchingUser<'a, 'u> {
        WatchingUser {
            user,
            name,
            purse,
            over: false,
        }
    }

    pub(super) fn is_over_budget(&self) -> bool {
        self.over
    }
}

impl AgentHost for WatchingUser<'_, '_> {
    fn progress(&mut self, progress: AgentProgress<'_>) {
        if let AgentProgress::Used { usage, cost } = &progress {
            self.over |= self.purse.used(*usage, *cost) > self.purse.left;
        }
        self.user.borrow_mut().tell(Event::Working {
            model: self.name,
            progress: &progress,
        });
    }

    fn permission(&mut self, question: &PermissionQuestion) -> PermissionAnswer {
        let mut user = self.user.borrow_mut();
        if user.approves_unseen() {
            return answer(PermissionDecision::Once, PermissionGiver::Beforehand);
        }

        let mut words = format!("{} asks: {}", self.name, question.title);
        for line in &question.detail {
            words.push_str(&format!("\n  {line}"));
        }
        let decision = match user.choose(&words, &CHOICES) {
            Ok(Some(0)) => PermissionDecision::Once,
            Ok(Some(1)) => PermissionDecision::Always,
            Ok(Some(_)) => PermissionDecision::No,
            // An interrupted prompt also returns `None` or an error. Report it as cancelled, not as
            // a refusal.
            Ok(None) | Err(_) if interrupt::requested() => PermissionDecision::Cancelled,
            Ok(None) | Err(_) => return answer(PermissionDecision::No, PermissionGiver::Nobody),
        };
        answer(decision, PermissionGiver::Person)
    }

    fn stopped(&self) -> bool {
        self.over || interrupt::requested()
    }
}

fn answer(decision: PermissionDecision, by: PermissionGiver) -> PermissionAnswer {
    PermissionAnswer { decision, by }
}
