//! The file from which a plan was read: its mistakes are told by the lines of that file, because
//! that is where they are mended. What is recorded is the repaired plan, which may have others.

use crate::plan::diagnostic::Diagnostic;
use crate::text::diff::changed;

/// A file with a plan.
#[derive(Debug, Clone)]
pub struct PlanFile {
    /// Its path, as the user wrote it.
    pub name: String,
    /// What is in it.
    pub text: String,
}

impl PlanFile {
    /// Returns mistakes of the plan that was made of it, by its own lines.
    pub(super) fn placed(&self, mistakes: &[Diagnostic], repaired: &str) -> Vec<Diagnostic> {
        let [own, plan] = [&self.text, repaired].map(|text| text.lines().collect::<Vec<_>>());
        let changed = changed(&own, &plan);
        let place = |line: usize| {
            let Some(at) = line.checked_sub(1) else {
                return 0;
            };
            let (mut old, mut new) = (0, 0);
            for (own, plan) in &changed {
                if at < plan.start {
                    break;
                }
                if at < plan.end {
                    // A line that was changed, or that repair put there.
                    let inside = (at - plan.start).min(own.len().saturating_sub(1));
                    return (own.start + inside + 1).min(self.text.lines().count());
                }
                (old, new) = (own.end, plan.end);
            }
            old + (at - new) + 1
        };

        let of_own = |mistake: &Diagnostic| Diagnostic {
            line: place(mistake.line),
            ..mistake.clone()
        };
        mistakes.iter().map(of_own).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the lines of a file with those of the plan that was made of it.
    fn check(own: &str, repaired: &str, expected: &[(usize, usize)]) {
        let file = PlanFile {
            name: "a.md".to_owned(),
            text: own.to_owned(),
        };
        for &(line, expected) in expected {
            let mistakes = [Diagnostic::new(line, "wrong")];
            let found = file.placed(&mistakes, repaired)[0].line;
            assert_eq!(found, expected, "line {line} of {repaired:?}");
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
