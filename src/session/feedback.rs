//! The message with which a rejected plan goes back to the model.
//!
//! Machine feedback, never mixed with the user's words: the turn that gets it says so in its `meta.yaml`.

use super::report::errors;
use crate::plan::diagnostic::Diagnostic;
use crate::text::fence::fence_for;

/// Writes the message: every mistake, how the plan was read where that matters, and the plan itself.
pub fn render(plan: &str, diagnostics: &[Diagnostic], outline: Option<&str>) -> String {
    let mut text = String::from(
        "The previous plan failed validation. Please review the errors and the original plan, then generate a corrected version.\n\n\
         ## Validation Errors:\n\n",
    );
    text.push_str(&errors(diagnostics));
    if let Some(outline) = outline {
        let fence = fence_for(outline, 4);
        text.push_str(&format!("\n## How the Plan Was Read:\n{fence}text\n{}\n{fence}\n", outline.trim_end()));
    }
    let fence = fence_for(plan, 4);
    let end = if plan.is_empty() || plan.ends_with('\n') { "" } else { "\n" };
    text.push_str(&format!("\n## Original Faulty Plan:\n{fence}markdown\n{plan}{end}{fence}\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fence_around_the_faulty_plan_is_longer_than_any_inside() {
        let diagnostic =
            Diagnostic { line: 3, action: "EDIT a".to_owned(), message: "FIND is not there".to_owned(), hint: Some("read it".to_owned()) };
        let text = render("# T\n`````\nx\n`````\n", &[diagnostic], None);
        assert_eq!(
            text,
            "The previous plan failed validation. Please review the errors and the original plan, then generate a corrected version.\n\n\
             ## Validation Errors:\n\n- line 3: EDIT a: FIND is not there\n  - **Hint:** read it\n\n\
             ## Original Faulty Plan:\n``````markdown\n# T\n`````\nx\n`````\n``````\n"
        );
    }
}
