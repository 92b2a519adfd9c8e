//! INVOKE and CONCLUDE: there is someone to hand over to, once, at the end. CONCLUDE needs nobody:
//! without a caller it is the end of the work.

use super::resource::check_there;
use super::{Diagnostic, Judge, Mistake, label};
use crate::plan::action::conclude::Conclude;
use crate::plan::action::invoke::Invoke;
use crate::plan::action::{Action, ActionKind};
use crate::text::visible::visible;

/// Judges an INVOKE.
pub(super) fn check_invoke(
    judge: &mut Judge<'_>,
    action: &Action,
    invoke: &Invoke,
) -> anyhow::Result<()> {
    let agents = judge.world.facts.agents();
    if !agents
        .iter()
        .any(|agent| agent.eq_ignore_ascii_case(&invoke.agent))
    {
        let known: Vec<String> = agents
            .iter()
            .map(|agent| format!("`{}`", visible(agent)))
            .collect();
        let untrusted = judge.world.facts.untrusted_agents();
        let name = visible(&invoke.agent);
        let message = if untrusted.contains(&invoke.agent.to_lowercase()) {
            format!(
                "the agent `{name}` of this repository is not trusted; the user can trust it with `teddy trust`"
            )
        } else {
            format!("there is no agent `{name}`")
        };
        let hint = if known.is_empty() {
            "there are no agents".to_owned()
        } else {
            format!("the agents are {}", known.join(", "))
        };
        judge.refuse(action, action.line, Mistake::new(message, hint));
    }
    invoke
        .resources
        .iter()
        .try_for_each(|resource| check_there(judge, action, resource))
}

/// Judges a CONCLUDE.
pub(super) fn check_conclude(
    judge: &mut Judge<'_>,
    action: &Action,
    conclude: &Conclude,
) -> anyhow::Result<()> {
    conclude
        .resources
        .iter()
        .try_for_each(|resource| check_there(judge, action, resource))
}

/// Judges that a plan hands over at most once, as the last thing that it does.
pub(super) fn check_order(judge: &mut Judge<'_>) {
    let plan = judge.plan;
    let leaves =
        |action: &Action| matches!(action.kind, ActionKind::Invoke(_) | ActionKind::Conclude(_));
    let leaving: Vec<usize> = (0..plan.actions.len())
        .filter(|&n| leaves(&plan.actions[n]))
        .collect();
    let mut refuse = |n: usize, message: String, hint: &str| {
        let action = &plan.actions[n];
        judge.simulation.steps[n].wrong = true;
        judge.simulation.diagnostics.push(Diagnostic {
            line: action.line,
            action: label(action),
            message,
            hint: Some(hint.to_owned()),
        });
    };
    for &n in leaving.iter().skip(1) {
        let first = &plan.actions[leaving[0]];
        refuse(
            n,
            format!("the plan hands over twice, first at line {}", first.line),
            "keep one INVOKE or CONCLUDE",
        );
    }
    if let Some(&n) = leaving
        .first()
        .filter(|&&n| n + 1 < plan.actions.len() && leaving.len() == 1)
    {
        let name = plan.actions[n].kind.name();
        refuse(
            n,
            format!("{name} is not the last action"),
            "put it at the end: nothing of this plan runs after it",
        );
    }
}
