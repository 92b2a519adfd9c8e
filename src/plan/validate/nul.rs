//! NUL in the texts of a plan that a person changed. In a plan that was parsed the parser has
//! refused it (P21).

use super::{Diagnostic, Simulation, label};
use crate::plan::Plan;
use crate::plan::action::ActionKind;

/// Notes every action with a NUL.
pub(super) fn check(plan: &Plan, simulation: &mut Simulation) {
    for (action, step) in plan.actions.iter().zip(&mut simulation.steps) {
        let Some(what) = holder(&action.kind) else {
            continue;
        };
        step.wrong = true;
        step.after = None;
        let message = format!("{what} has a NUL character");
        let hint = Some("make binary files with EXECUTE, as with `base64 -d`".to_owned());
        simulation.diagnostics.push(Diagnostic {
            line: action.line,
            action: label(action),
            message,
            hint,
        });
    }
}

/// Names the text of an action that has a NUL.
fn holder(kind: &ActionKind) -> Option<&'static str> {
    let has = |text: &str| text.contains('\0');
    match kind {
        ActionKind::Create(create) if has(&create.content) => Some("the content"),
        ActionKind::Edit(edit)
            if edit
                .pairs
                .iter()
                .any(|pair| has(&pair.find) || has(&pair.replace)) =>
        {
            Some("a pair")
        }
        ActionKind::Execute(execute) if has(&execute.command) => Some("the command"),
        ActionKind::Execute(execute) if execute.env.iter().any(|(_, value)| has(value)) => {
            Some("a variable")
        }
        _ => None,
    }
}
