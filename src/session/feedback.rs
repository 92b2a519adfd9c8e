//! Formats a rejected plan as feedback for the model.
//!
//! The turn that gets this message records its origin as `validation`, so it is never mistaken for
//! the user's.

use super::input::write_block;
use super::report::errors;
use crate::plan::diagnostic::Diagnostic;

#[derive(Debug, Clone, Copy)]
pub struct Rejected<'a> {
    pub plan: &'a str,
    pub diagnostics: &'a [Diagnostic],
    /// The structure as parsed, if a mistake concerns it.
    pub outline: Option<&'a str>,
    /// Labels.
    pub correct_actions: &'a [String],
    /// Files that the plan changes and that were not in the context, if nothing else is wrong.
    pub unseen: &'a [String],
}

pub fn render(rejected: &Rejected<'_>) -> String {
    let Rejected {
        plan,
        diagnostics,
        outline,
        correct_actions,
        unseen,
    } = *rejected;
    if !unseen.is_empty() {
        return shown_files(plan, unseen);
    }
    let mut text = String::from(
        "The previous plan failed validation. Please review the errors and the original plan, then generate a corrected version.\n\n\
         ## Validation Errors:\n\n",
    );
    text.push_str(&errors(diagnostics));

    if !correct_actions.is_empty() {
        text.push_str("\n## Correct Actions:\n\nRepeat these as they are.\n\n");
        correct_actions
            .iter()
            .for_each(|label| text.push_str(&format!("- {label}\n")));
    }

    if let Some(outline) = outline {
        text.push_str("\n## How the Plan Was Read:\n");
        write_block(&mut text, "text", outline.trim_end());
    }

    text.push_str("\n## Original Faulty Plan:\n");
    write_block(&mut text, "markdown", plan);
    text
}

/// Renders the message if the only mistake is that the plan changes files that were not in the
/// context.
fn shown_files(plan: &str, unseen: &[String]) -> String {
    let listed: String = unseen.iter().map(|path| format!("- {path}\n")).collect();
    let mut text = format!(
        "Your plan changes files that were not in the context when you wrote it. They are in the context now:\n\n\
         {listed}\n\
         Compare the plan with them and send it again, corrected if needed. Nothing has run.\n\n\
         ## Your Plan:\n"
    );
    write_block(&mut text, "markdown", plan);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fence_around_the_faulty_plan_is_longer_than_any_inside() {
        let diagnostic = Diagnostic {
            line: 3,
            action: "EDIT a".to_owned(),
            message: "FIND is not there".to_owned(),
            hint: Some("read it".to_owned()),
        };
        let correct_actions = ["READ b".to_owned()];
        let text = render(&Rejected {
            plan: "# T\n`````\nx\n`````\n",
            diagnostics: &[diagnostic],
            outline: None,
            correct_actions: &correct_actions,
            unseen: &[],
        });
        assert_eq!(
            text,
            "The previous plan failed validation. Please review the errors and the original plan, then generate a corrected version.\n\n\
             ## Validation Errors:\n\n- line 3: EDIT a: FIND is not there\n  - **Hint:** read it\n\n\
             ## Correct Actions:\n\nRepeat these as they are.\n\n- READ b\n\n\
             ## Original Faulty Plan:\n``````markdown\n# T\n`````\nx\n`````\n``````\n"
        );
    }

    #[test]
    fn files_that_were_not_shown_are_no_error() {
        let text = render(&Rejected {
            plan: "# T\n",
            diagnostics: &[Diagnostic::new(3, "`a` is in no context list")],
            outline: None,
            correct_actions: &[],
            unseen: &["src/a.rs".to_owned()],
        });
        assert_eq!(
            text,
            "Your plan changes files that were not in the context when you wrote it. They are in the context now:\n\n\
             - src/a.rs\n\n\
             Compare the plan with them and send it again, corrected if needed. Nothing has run.\n\n\
             ## Your Plan:\n````markdown\n# T\n````\n"
        );
    }
}
