//! Describes files that differ from the state that turns left them in.

use crate::text::sanitize::sanitize_line;
use crate::text::shell_word::{shell_operand, shell_word};
use crate::workspace::missing::{MissingChange, WhyMissing};

/// Files listed individually.
const MAX_MISSING_LINES: usize = 10;

/// Returns one line per file. `named` is the name of the turn whose state is expected.
pub fn describe_missing(missing: &[MissingChange], turn_name: &str) -> Vec<String> {
    let mut lines: Vec<String> = missing
        .iter()
        .take(MAX_MISSING_LINES)
        .map(|missing| describe_missing_change(missing, turn_name))
        .collect();
    let more = missing.len().saturating_sub(MAX_MISSING_LINES);
    if more > 0 {
        lines.push(format!("... and {more} more; `--json` lists them all"));
    }

    lines
}

/// Names the turn: after a restore, `@` is the restore itself.
fn describe_missing_change(missing: &MissingChange, turn_name: &str) -> String {
    let path = sanitize_line(&missing.path);
    let how = format!(
        "`teddy restore {} --exact {}` restores it",
        shell_word(turn_name),
        shell_operand(&missing.path)
    );
    match &missing.why {
        WhyMissing::Deleted => format!("{path}: deleted since by you; {how}"),
        WhyMissing::Ignored => format!("{path}: ignored by git now, and not in snapshots any more"),
        WhyMissing::NotOnBranch { branch } if branch == "HEAD" => {
            format!("{path}: not in the commit that you are on; {how}")
        }
        WhyMissing::NotOnBranch { branch } => {
            format!(
                "{path}: not on your branch `{}`; {how}",
                sanitize_line(branch)
            )
        }
        WhyMissing::TakenBack { session, turn } => format!(
            "{path}: what turn {turn} of {} changed was taken back since; {how}",
            sanitize_line(session)
        ),
        WhyMissing::Committed { commit } => format!(
            "{path}: as in your commit {}, not as turn {turn_name} left it; {how}",
            &commit.to_string()[..8]
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deleted(path: &str) -> MissingChange {
        MissingChange {
            path: path.to_owned(),
            why: WhyMissing::Deleted,
        }
    }

    #[test]
    fn each_file_is_named_with_what_brings_it_back() {
        let undone = MissingChange {
            path: "b".to_owned(),
            why: WhyMissing::TakenBack {
                session: "demo".to_owned(),
                turn: 2,
            },
        };
        let committed = MissingChange {
            path: "c".to_owned(),
            why: WhyMissing::Committed {
                commit: "1".repeat(40).parse().unwrap(),
            },
        };
        assert_eq!(
            describe_missing(
                &[deleted("a\u{7}"), deleted("-a;b"), undone, committed],
                "3"
            ),
            [
                "a\\u{7}: deleted since by you; `teddy restore 3 --exact $'a\\x07'` restores it",
                "-a;b: deleted since by you; `teddy restore 3 --exact -- '-a;b'` restores it",
                "b: what turn 2 of demo changed was taken back since; `teddy restore 3 --exact b` restores it",
                "c: as in your commit 11111111, not as turn 3 left it; `teddy restore 3 --exact c` restores it",
            ]
        );
    }

    #[test]
    fn many_are_counted() {
        let many: Vec<MissingChange> = (0..13).map(|number| deleted(&number.to_string())).collect();
        let lines = describe_missing(&many, "1");
        assert_eq!(
            (lines.len(), lines[10].as_str()),
            (11, "... and 3 more; `--json` lists them all")
        );
    }
}
