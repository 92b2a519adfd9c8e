//! Text of the comparison of waiting plans with each other and with the user's files.

use crate::query::history::{NotCompared, PlanOverlap};
use crate::text::counted;
use crate::text::sanitize::sanitize_line;
use crate::ui::style::{StyledLine, Tone};
use crate::workflow::overlap::{MAX_PLANS, Overlaps};

const MAX_PATHS: usize = 3;

pub fn status_lines(overlap: &PlanOverlap) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    if !overlap.paths.is_empty() {
        let text = sentence("the waiting plan", "your edits", &overlap.paths);
        lines.push(StyledLine::of(Tone::Warning, &text));
    }

    let skipped = overlap.not_compared.iter();
    let skipped = skipped.map(|it| format!("Not compared with your edits: {}", why(it)));
    lines.extend(skipped.map(|text| StyledLine::plain(&text)));
    lines
}

/// One line for each pair, the plans with the user's edits first.
pub fn lines(overlaps: &Overlaps) -> Vec<String> {
    let plan = |session: &str| format!("the plan of {}", sanitize_line(session));
    let mut lines = Vec::new();
    for compared in &overlaps.plans {
        let paths = &compared.overlap.paths;
        if !paths.is_empty() {
            lines.push(sentence(&plan(&compared.session), "your edits", paths));
        }
    }

    for pair in &overlaps.pairs {
        let (one, other) = (plan(&pair.session), plan(&pair.other));
        lines.push(sentence(&one, &other, &pair.paths));
    }

    if lines.is_empty() {
        lines.push(match overlaps.plans.len() {
            0 => "No plan is waiting".to_owned(),
            1 => "No overlap found between the waiting plan and your edits".to_owned(),
            plans => format!("No overlap found among {plans} waiting plans and your edits"),
        });
    }
    lines
}

/// What the comparison leaves out.
pub fn limits(overlaps: &Overlaps) -> Vec<String> {
    let mut lines = Vec::new();
    for compared in &overlaps.plans {
        let session = sanitize_line(&compared.session);
        for skipped in &compared.overlap.not_compared {
            lines.push(format!("Not compared, of {session}: {}", why(skipped)));
        }
        if compared.commands > 0 {
            let commands = counted(compared.commands, "command");
            lines.push(format!(
                "What {commands} of {session} would change is unknown before the run."
            ));
        }
    }

    for session in &overlaps.unreadable {
        let session = sanitize_line(session);
        lines.push(format!(
            "Not compared: session {session} cannot be read; `teddy doctor` says why."
        ));
    }
    if overlaps.late_pairs > 0 {
        let pairs = counted(overlaps.late_pairs, "pair");
        lines.push(format!("Not compared: {pairs} of plans; it took too long."));
    }
    if overlaps.omitted > 0 {
        lines.push(format!(
            "Not compared: {} beyond the {MAX_PLANS} sessions that changed last.",
            counted(overlaps.omitted, "plan")
        ));
    }
    lines
}

fn sentence(one: &str, other: &str, paths: &[String]) -> String {
    let named: Vec<_> = paths
        .iter()
        .take(MAX_PATHS)
        .map(|path| sanitize_line(path))
        .collect();
    let more = match paths.len().saturating_sub(MAX_PATHS) {
        0 => String::new(),
        more => format!(" and {}", counted(more, "other file")),
    };
    let one = one.replacen("the ", "The ", 1);
    format!("{one} and {other} conflict in {}{more}", named.join(", "))
}

fn why(skipped: &NotCompared) -> String {
    let reason = sanitize_line(&skipped.reason);
    match &skipped.path {
        Some(path) => format!("{} ({reason})", sanitize_line(path)),
        None => reason.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap(paths: &[&str], not_compared: Vec<NotCompared>) -> PlanOverlap {
        PlanOverlap {
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
            not_compared,
        }
    }

    #[test]
    fn status_names_three_files_and_counts_the_others() {
        let skipped = NotCompared {
            path: Some("big\u{202e}.txt".to_owned()),
            reason: "larger than 1.0 MiB".to_owned(),
        };
        let one = overlap(&["a", "b", "c", "d"], vec![skipped]);
        let expected = [
            "The waiting plan and your edits conflict in a, b, c and 1 other file",
            "Not compared with your edits: big\\u{202e}.txt (larger than 1.0 MiB)",
        ];
        let lines: Vec<String> = status_lines(&one).iter().map(StyledLine::text).collect();
        assert_eq!(lines, expected);
        assert_eq!(status_lines(&PlanOverlap::default()), []);
    }

    #[test]
    fn plans_beyond_the_limit_are_counted() {
        let overlaps = Overlaps {
            omitted: 2,
            ..Overlaps::default()
        };
        let expected = ["Not compared: 2 plans beyond the 32 sessions that changed last."];
        assert_eq!(limits(&overlaps), expected);
    }
}
