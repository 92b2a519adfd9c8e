//! RESEARCH needs a search engine.

use super::{Judge, Mistake};
use crate::plan::action::Action;

/// Checks that searches can find something: one that cannot would fail in the middle of the plan.
pub(super) fn check(judge: &mut Judge<'_>, action: &Action) {
    let Some(why) = judge.world.facts.search_obstacle() else {
        return;
    };
    let mistake = Mistake::new(
        format!("RESEARCH cannot search: {why}"),
        "leave RESEARCH out: READ pages whose address you know, or ask the user to set up a search engine as `docs/research.md` says",
    );
    judge.refuse(action, action.line, mistake);
}
