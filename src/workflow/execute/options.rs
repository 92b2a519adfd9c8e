//! How a plan is executed, and the user's file that it comes from.

use super::comments::CommentRequest;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::repair::Repaired;
use crate::text::diff::changed;
use crate::workspace::snapshot::RecordedFiles;

#[derive(Debug, Clone, Default)]
pub struct ExecuteOptions {
    pub file: Option<PlanFile>,
    pub replan: bool,
    /// For the correction, instead of the plan's author.
    pub model: Option<String>,
    /// Turns follow each other without a review.
    pub yolo: bool,
    /// The caller asks the user the model's questions.
    pub leaves_question: bool,
    /// The user is at the prompt of a loop.
    pub takes_commands: bool,
    /// A recent snapshot from when the plan was made.
    pub recorded: Option<RecordedFiles>,
    /// Comments with which the plan is declined.
    pub comments: Vec<CommentRequest>,
}

impl ExecuteOptions {
    /// Returns mistakes with the lines of the user's file, where they are to be fixed.
    pub(super) fn placed(&self, mistakes: &[Diagnostic], plan: &Repaired) -> Vec<Diagnostic> {
        match &self.file {
            Some(file) => file.in_file_lines(mistakes, &plan.text),
            None => mistakes.to_vec(),
        }
    }
}

/// A plan that the user wrote. Repair can add and remove lines.
#[derive(Debug, Clone)]
pub struct PlanFile {
    /// As the user wrote it.
    pub name: String,
    pub text: String,
}

impl PlanFile {
    fn in_file_lines(&self, mistakes: &[Diagnostic], repaired: &str) -> Vec<Diagnostic> {
        let [own, plan] = [&self.text, repaired].map(|text| text.lines().collect::<Vec<_>>());
        let changed = changed(&own, &plan);
        let file_line = |line: usize| {
            let Some(at) = line.checked_sub(1) else {
                return 0;
            };
            let (mut old, mut new) = (0, 0);
            for (own, plan) in &changed {
                if at < plan.start {
                    break;
                }
                if at < plan.end {
                    // The line was changed or inserted by repair.
                    let inside = (at - plan.start).min(own.len().saturating_sub(1));
                    return (own.start + inside + 1).min(self.text.lines().count());
                }
                (old, new) = (own.end, plan.end);
            }
            old + (at - new) + 1
        };

        let of_own = |mistake: &Diagnostic| Diagnostic {
            line: file_line(mistake.line),
            ..mistake.clone()
        };
        mistakes.iter().map(of_own).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(own: &str, repaired: &str, expected: &[(usize, usize)]) {
        let file = PlanFile {
            name: "a.md".to_owned(),
            text: own.to_owned(),
        };
        for &(line, expected) in expected {
            let mistakes = [Diagnostic::new(line, "wrong")];
            let actual = file.in_file_lines(&mistakes, repaired)[0].line;
            assert_eq!(actual, expected, "line {line} of {repaired:?}");
        }
    }

    #[test]
    fn a_mistake_has_the_line_of_the_file() {
        check("a\nb\n", "a\nb\n", &[(0, 0), (1, 1), (2, 2)]);
        check("Sure:\n\n# A\nb\n", "# A\nb\n", &[(1, 3), (2, 4)]);
        check(
            "# A\n```\nb\n",
            "# A\n````\nb\n````\n",
            &[(2, 2), (3, 3), (4, 3)],
        );
        check("a\nx\nb\nc\n", "a\nb\nnew\nc\n", &[(2, 3), (3, 4), (4, 4)]);
        check("", "a\n", &[(1, 0)]);
    }
}
