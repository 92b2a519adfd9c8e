//! How far the user's files are from the newest turn, in words.

use crate::text::counted;
use crate::ui::missing;
use crate::workspace::drift::Drift;

/// Returns the sentences that say it; `tip` is the number of the newest turn. What was taken away
/// is indented.
pub fn lines(drift: &Drift, tip: u64) -> Vec<String> {
    let mut lines: Vec<String> = drift
        .sentences(tip)
        .iter()
        .map(|text| sentence(text))
        .collect();
    if drift.same_turns == Some(true) && !drift.missing.is_empty() {
        let files = counted(drift.missing.len(), "file");
        lines.push(format!(
            "Your files are as after turn {tip} except for {files}:"
        ));
        let named = missing::lines(&drift.missing, &tip.to_string());
        lines.extend(named.iter().map(|line| format!("  {line}")));
    }
    lines
}

/// Returns a text with a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    let first: String = first.into_iter().flatten().collect();
    format!("{first}{}.", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::missing::{Missing, WhyMissing};

    #[test]
    fn what_is_missing_is_listed_behind_the_rest() {
        let drift = Drift {
            same_turns: Some(true),
            marked: vec!["a".to_owned()],
            missing: vec![Missing {
                path: "b".to_owned(),
                why: WhyMissing::Deleted,
            }],
            ..Drift::default()
        };
        assert_eq!(
            lines(&drift, 2),
            [
                "Conflict markers are in `a`.",
                "Your files are as after turn 2 except for 1 file:",
                "  b: deleted since by you; `teddy restore 2 --exact b` brings it back",
            ]
        );
    }
}
