//! How far the user's files are from the newest turn, in words.

use crate::text::counted;
use crate::text::visible::visible;
use crate::ui::missing;
use crate::workspace::drift::{Drift, NotBrought, TurnName, no_record};

/// How many turns or files a sentence names.
const MAX_NAMED: usize = 4;

/// Returns the sentences that say it; `tip` is the number of the newest turn. What was taken away
/// is indented.
pub fn lines(drift: &Drift, tip: u64) -> Vec<String> {
    let mut lines: Vec<String> = sentences(drift, tip)
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

/// Returns what the user should know before they go on; `tip` is the number of the newest turn.
pub fn sentences(drift: &Drift, tip: u64) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(branch) = &drift.branch {
        let place = |name: &str| match name {
            "HEAD" => "no branch".to_owned(),
            name => format!("`{}`", visible(name)),
        };
        let [then, now] = [&branch.then, &branch.now].map(|name| place(name));
        let turn = branch.turn;

        sentences.push(format!(
            "you were on {then} at turn {turn}, you are on {now} now"
        ));
    }

    if let Some(reference) = &drift.no_record {
        sentences.push(no_record(reference));
    }

    sentences.extend(other_turns(drift, tip));
    if let Some(NotBrought { turn, files }) = &drift.not_brought {
        let files = named(files.iter().map(|file| format!("`{}`", visible(file))));
        sentences.push(format!(
            "the result of turn {turn} is not in your files ({files}); `teddy restore {turn} --theirs` takes it, `--markers` writes conflict markers, `--ours` keeps your side"
        ));
    }

    if !drift.marked.is_empty() {
        let files = named(
            drift
                .marked
                .iter()
                .map(|file| format!("`{}`", visible(file))),
        );
        sentences.push(format!("conflict markers are in {files}"));
    }

    sentences
}

/// Returns that other turns are in the files than after the newest one.
fn other_turns(drift: &Drift, tip: u64) -> Option<String> {
    let is_told = |lacking: &TurnName| {
        let told = drift.not_brought.as_ref();
        told.is_some_and(|told| told.turn == lacking.turn && told.turn == tip)
    };
    let what = match (drift.extra.as_slice(), drift.lacking.as_slice()) {
        ([], []) => return None,
        ([], [one]) if is_told(one) => return None,
        ([], lacking) => format!("they lack {}", list_of(lacking)),
        (extra, []) => format!("they have {}", list_of(extra)),
        (extra, lacking) => {
            format!("they have {} and lack {}", list_of(extra), list_of(lacking))
        }
    };
    Some(format!(
        "your files are not as after turn {tip}: {what}; `teddy restore @` takes them there"
    ))
}

/// Returns some turns as a sentence names them.
pub fn list_of(turns: &[TurnName]) -> String {
    let name = |turn: &TurnName| format!("turn {} of {}", turn.turn, visible(&turn.session));
    named(turns.iter().map(name))
}

/// Returns the first of some names, and how many more there are.
fn named(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(MAX_NAMED);
    let mut text = names.take(MAX_NAMED).collect::<Vec<_>>().join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
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
    use crate::workspace::branch::OtherBranch;
    use crate::workspace::missing::{MissingChange, WhyMissing};

    #[test]
    fn what_is_missing_is_listed_behind_the_rest() {
        let drift = Drift {
            same_turns: Some(true),
            marked: vec!["a".to_owned()],
            missing: vec![MissingChange {
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

    /// Returns turns of a session.
    fn turns(session: &str, numbers: &[u64]) -> Vec<TurnName> {
        let name = |turn: &u64| TurnName {
            session: session.to_owned(),
            turn: *turn,
        };
        numbers.iter().map(name).collect()
    }

    #[test]
    fn files_that_are_as_after_the_turn_need_no_word() {
        let drift = Drift {
            same_turns: Some(true),
            ..Drift::default()
        };
        assert_eq!(sentences(&drift, 3), [""; 0]);
    }

    #[test]
    fn all_that_is_wrong_is_said() {
        let drift = Drift {
            lacking: turns("one", &[3]),
            not_brought: Some(NotBrought {
                turn: 3,
                files: vec!["a\u{7}".to_owned()],
            }),
            marked: vec!["b".to_owned()],
            branch: Some(OtherBranch {
                turn: 3,
                then: "feature".to_owned(),
                now: "HEAD".to_owned(),
            }),
            no_record: Some("refs/teddy/published/main".to_owned()),
            ..Drift::default()
        };
        assert_eq!(
            sentences(&drift, 3),
            [
                "you were on `feature` at turn 3, you are on no branch now",
                "it is not known which turns are in your files, as `refs/teddy/published/main` is not there: all that is in them counts as yours",
                "the result of turn 3 is not in your files (`a\\u{7}`); `teddy restore 3 --theirs` takes it, `--markers` writes conflict markers, `--ours` keeps your side",
                "conflict markers are in `b`",
            ]
        );
    }

    #[test]
    fn many_turns_are_counted() {
        let drift = Drift {
            extra: turns("two", &[6, 5, 4, 3, 2, 1]),
            ..Drift::default()
        };
        assert_eq!(
            sentences(&drift, 1),
            [
                "your files are not as after turn 1: they have turn 6 of two, turn 5 of two, turn 4 of two, turn 3 of two and 2 more; `teddy restore @` takes them there"
            ]
        );
    }
}
