//! Maps diagnostics of the repaired plan to lines of the user's file, where they are to be fixed.
//! Repair can add and remove lines.

use crate::plan::diagnostic::Diagnostic;
use crate::text::diff::changed;

/// A file that contains a plan.
#[derive(Debug, Clone)]
pub struct PlanFile {
    /// Path as the user wrote it.
    pub name: String,
    /// Content of the file.
    pub text: String,
}

impl PlanFile {
    pub(super) fn in_file_lines(&self, mistakes: &[Diagnostic], repaired: &str) -> Vec<Diagnostic> {
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
