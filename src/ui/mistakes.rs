//! Formats the diagnostics of a plan like compiler errors.
//!
//! `plan.md:12: EDIT src/a.rs: what is wrong`, with further lines and hints indented below. If the
//! plan came from a user's file, its name replaces `plan.md`.

use super::style::{StyledLine, Tone};
use crate::plan::diagnostic::Diagnostic;
use crate::session::artifact;
use crate::text::counted;

/// Returns all diagnostics of a rejected plan. `file` is the user's file that contained the plan.
pub fn rejected(file: Option<&str>, diagnostics: &[Diagnostic]) -> Vec<StyledLine> {
    let file = file.unwrap_or(artifact::PLAN);
    let heading = format!(
        "The plan was not accepted: {}",
        counted(diagnostics.len(), "mistake")
    );
    std::iter::once(StyledLine::of(Tone::Warning, &heading))
        .chain(diagnostics.iter().flat_map(|mistake| placed(file, mistake)))
        .collect()
}

pub fn listed(diagnostics: &[Diagnostic]) -> Vec<StyledLine> {
    diagnostics.iter().flat_map(diagnostic).collect()
}

pub fn diagnostic(diagnostic: &Diagnostic) -> Vec<StyledLine> {
    placed(artifact::PLAN, diagnostic)
}

fn placed(file: &str, diagnostic: &Diagnostic) -> Vec<StyledLine> {
    let line = if diagnostic.line > 0 {
        format!(":{}", diagnostic.line)
    } else {
        String::new()
    };

    let action = if diagnostic.action.is_empty() {
        String::new()
    } else {
        format!(" {}:", diagnostic.action)
    };

    let position = format!("{file}{line}:{action} ");
    let mut message = diagnostic.message.lines();
    let first = StyledLine::of(Tone::Accent, &position)
        .with(Tone::Plain, message.next().unwrap_or_default());
    let more = message.map(|line| StyledLine::of(Tone::Faint, &format!("    {line}")));
    let hint = diagnostic
        .hint
        .iter()
        .flat_map(|hint| hint.lines())
        .map(|line| StyledLine::of(Tone::Added, &format!("    hint: {line}")));

    std::iter::once(first).chain(more).chain(hint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(diagnostics: &[Diagnostic], expected: &str) {
        let lines: Vec<String> = rejected(None, diagnostics)
            .iter()
            .map(StyledLine::text)
            .collect();
        assert_eq!(lines.join("\n"), expected);
    }

    #[test]
    fn a_mistake_is_told_as_a_compiler_tells_it() {
        let mistake = Diagnostic {
            line: 12,
            action: "EDIT a.rs".to_owned(),
            message: "FIND matches nothing\nclosest: line 3".to_owned(),
            hint: Some("take the text of line 3".to_owned()),
        };
        let plain = Diagnostic::new(3, "a second level 1 heading");
        check(
            &[plain, mistake],
            "The plan was not accepted: 2 mistakes
plan.md:3: a second level 1 heading
plan.md:12: EDIT a.rs: FIND matches nothing
    closest: line 3
    hint: take the text of line 3",
        );
    }

    #[test]
    fn a_mistake_of_the_whole_plan_has_no_line() {
        check(
            &[Diagnostic::new(0, "it is empty")],
            "The plan was not accepted: 1 mistake\nplan.md: it is empty",
        );
    }

    #[test]
    fn what_deceives_is_visible() {
        check(
            &[Diagnostic::new(1, "a\u{202e}b")],
            "The plan was not accepted: 1 mistake\nplan.md:1: a\\u{202e}b",
        );
    }
}
