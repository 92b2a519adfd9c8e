//! Renders the commit message of a step, readable with plain git.

use std::fmt::Write as _;

use super::state::ChangeState;
use crate::session::message::commit_subject;
use crate::text::sanitize::sanitize_line;

/// Renders the message: the title, `lines`, then the trailers.
pub fn commit_message(title: &str, lines: &[String], state: &ChangeState) -> String {
    let mut text = format!("{}\n\n", commit_subject(title));
    for line in lines {
        writeln!(text, "{}", sanitize_line(line)).expect("writing to a string");
    }

    if !lines.is_empty() {
        text.push('\n');
    }

    let mut trailer = |name: &str, value: &str| {
        writeln!(text, "Teddy-{name}: {}", sanitize_line(value)).expect("writing to a string")
    };
    trailer("Change", &state.change_id);
    trailer("Step", state.last_action.as_deref().unwrap_or("none"));
    trailer("Phase", state.phase.word());
    trailer("Iteration", &state.iteration.to_string());

    if let Some(entry) = state.history.last() {
        if let Some(verdict) = entry.verdict {
            trailer("Verdict", verdict.word());
        }

        if let Some(turn) = entry.turn {
            trailer("Turn", &turn.to_string());
        }

        if let Some(usage) = &entry.usage {
            trailer("Model", &usage.model);
        }
    }

    text
}

#[cfg(test)]
mod tests {
    use super::super::entry::ChangeEntry;
    use super::super::phase::ChangeEvent;
    use super::super::state::read;
    use super::super::verdict::ReviewVerdict;
    use super::*;

    #[test]
    fn the_message_reads_well_and_ends_with_trailers() {
        let mut state = read("change_id: greet\nphase: proposed\n").unwrap();
        let entry = ChangeEntry {
            verdict: Some(ReviewVerdict::Approved),
            ..ChangeEntry::of("challenge", "now")
        };
        state
            .apply(ChangeEvent::Challenge(ReviewVerdict::Approved), entry)
            .unwrap();
        assert_eq!(
            commit_message(
                "Challenge 1: approved\nTeddy-Phase: evil",
                &["No issues.\u{1b}[0m".to_owned()],
                &state
            ),
            "Challenge 1: approved\n\nNo issues.\\u{1b}[0m\n\nTeddy-Change: greet\nTeddy-Step: challenge\nTeddy-Phase: challenged\n\
             Teddy-Iteration: 1\nTeddy-Verdict: APPROVED\n"
        );
    }
}
