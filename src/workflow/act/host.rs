//! The user as a program sees them that works in a worktree: watched, asked, and able to stop it.

use super::SharedUser;
use crate::host::interrupt;
use crate::model::acting::{
    AgentHost, AgentProgress, PermissionAnswer, PermissionDecision, PermissionGiver,
    PermissionQuestion,
};
use crate::workflow::model::budget::Purse;
use crate::workflow::user::{Choice, Event};

/// What can be answered to a program that asks.
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

/// A user who watches a program.
pub(super) struct WatchingUser<'a, 'u> {
    /// The user.
    user: &'a SharedUser<'u>,
    /// The model's name.
    name: &'a str,
    /// What the program is paid with.
    purse: Purse<'a>,
    /// Whether it has used up what it may.
    over: bool,
}

impl<'a, 'u> WatchingUser<'a, 'u> {
    /// Returns a user who watches a model.
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

    /// Returns whether the program used up what it may.
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
            Ok(None) | Err(_) if interrupt::requested() => PermissionDecision::Cancelled,
            Ok(None) | Err(_) => return answer(PermissionDecision::No, PermissionGiver::Nobody),
        };
        answer(decision, PermissionGiver::Person)
    }

    fn stopped(&self) -> bool {
        self.over || interrupt::requested()
    }
}

/// Returns an answer and whose it is.
fn answer(decision: PermissionDecision, by: PermissionGiver) -> PermissionAnswer {
    PermissionAnswer { decision, by }
}
