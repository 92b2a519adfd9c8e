//! Finds NUL in a plan that the user changed. For a parsed plan, the parser reports it (P21).

use super::{Diagnostic, Simulation, label};
use crate::plan::Plan;

pub(super) fn check_nul(plan: &Plan, simulation: &mut Simulation) {
    for (action, step) in plan.actions.iter().zip(&mut simulation.steps) {
        let Some(part) = action.kind.text_with_nul() else {
            continue;
        };
        step.wrong = true;
        step.after = None;
        let message = format!("{part} has a NUL character");
        let hint = Some("make binary files with EXECUTE, as with `base64 -d`".to_owned());

        simulation.diagnostics.push(Diagnostic {
            line: action.line,
            action: label(action),
            message,
            hint,
        });
    }
}
