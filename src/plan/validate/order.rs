//! Hand-overs: at most one, as the last action.

use super::{Diagnostic, Validator, label};

pub(super) fn check_handover_order(validator: &mut Validator<'_>) {
    let plan = validator.plan;
    let leaving: Vec<usize> = (0..plan.actions.len())
        .filter(|&n| plan.actions[n].kind.hands_over())
        .collect();
    let mut refuse = |n: usize, message: String, hint: &str| {
        let action = &plan.actions[n];
        validator.simulation.steps[n].wrong = true;
        validator.simulation.diagnostics.push(Diagnostic {
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

    // Two hand-overs are reported above.
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
