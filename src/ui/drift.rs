//! Describes how the user's files differ from the newest turn.

use std::path::Path;

use crate::query::paths::seen_from;
use crate::session::name::SessionName;
use crate::text::hint::with_session;
use crate::text::sanitize::sanitize_line;
use crate::text::shell_word::{shell_operands, shell_word};
use crate::text::{counted, first_names};
use crate::workspace::drift::{Drift, MissingChange, NO_RECORD, NotBrought, TurnName, WhyMissing};

/// Turns or files named in one sentence.
const MAX_NAMED: usize = 4;

/// Returns the sentences, with missing files indented. `tip` is the number of the newest turn, and
/// `dir` the current directory, relative to the project's root.
pub fn lines(drift: &Drift, tip: u64, dir: &Path) -> Vec<String> {
    let mut lines: Vec<String> = sentences(drift, tip)
        .iter()
        .map(|text| with_session(&sentence(text)).into_owned())
        .collect();
    if drift.same_turns == Some(true) && !drift.missing.is_empty() {
        let files = counted(drift.missing.len(), "file");
        lines.push(format!("Your files match turn {tip} except for {files}:"));
        let compared = drift.compared.unwrap_or(tip);
        let missing_lines = describe_missing(&drift.missing, &compared.to_string(), dir);
        lines.extend(
            missing_lines
                .iter()
                .map(|line| format!("  {}", with_session(line))),
        );
    }

    lines
}

/// Returns what the user should know before continuing. `tip` is the number of the newest turn.
pub fn sentences(drift: &Drift, tip: u64) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(branch) = &drift.branch {
        let branch_name = |name: &str| match name {
            "HEAD" => "no branch".to_owned(),
            name => format!("`{}`", sanitize_line(name)),
        };
        let [then, now] = [&branch.then, &branch.now].map(|name| branch_name(name));
        let turn = branch.turn;

        sentences.push(format!(
            "you were on {then} at turn {turn}, you are on {now} now"
        ));
    }

    if drift.no_record.is_some() {
        sentences.push(NO_RECORD.to_owned());
    }

    sentences.extend(other_turns(drift, tip));
    if let Some(NotBrought { turn, files }) = &drift.not_brought {
        let files = quoted_names(files, MAX_NAMED);
        sentences.push(format!(
            "the result of turn {turn} is not in your files ({files}); `teddy restore {turn} --theirs` takes it, `--markers` writes conflict markers, `--ours` keeps your side"
        ));
    }

    if !drift.marked.is_empty() {
        let files = quoted_names(&drift.marked, MAX_NAMED);
        sentences.push(format!("conflict markers are in {files}"));
    }

    sentences
}

/// Names the first of some files.
pub fn quoted_names(names: &[String], most: usize) -> String {
    let names = names.iter();
    first_names(names.map(|name| format!("`{}`", sanitize_line(name))), most)
}

fn other_turns(drift: &Drift, tip: u64) -> Option<String> {
    let is_told = |lacking: &TurnName| {
        let unapplied = drift.not_brought.as_ref();
        unapplied.is_some_and(|unapplied| unapplied.turn == lacking.turn && unapplied.turn == tip)
    };
    let difference = match (drift.extra.as_slice(), drift.lacking.as_slice()) {
        ([], []) => return None,
        // The sentence about `not_brought` already covers this turn.
        ([], [one]) if is_told(one) => return None,
        ([], [one]) if drift.interrupted && one.turn == tip => {
            return Some(format!(
                "turn {tip} was interrupted and nothing of it is in your files; `teddy restore {tip}` applies what it did"
            ));
        }
        ([], _) if drift.untouched => {
            return Some(format!(
                "TeDDy has not written to these files before, so everything in them counts as your own; `teddy restore @` restores them to turn {tip}"
            ));
        }
        ([], lacking) => format!("they lack {}", list_of(lacking)),
        (extra, []) => format!("they have {}", list_of(extra)),
        (extra, lacking) => {
            format!("they have {} and lack {}", list_of(extra), list_of(lacking))
        }
    };
    Some(format!(
        "your files do not match turn {tip}: {difference}; `teddy restore @` takes them there"
    ))
}

/// What a session did that is not in the files.
pub fn lacking(session: &SessionName, turns: &[TurnName], is_exact: bool) -> String {
    let turns = list_of(turns);
    let exact = if is_exact { " --exact" } else { "" };
    format!(
        "your files lack {turns}; `teddy --session {session} restore @{exact}` restores them to its newest turn"
    )
}

/// Lists turns by session, in order within each, as in `turns 1 and 2 of one`.
pub fn list_of(turns: &[TurnName]) -> String {
    let mut sessions: Vec<(&TurnName, Vec<u64>)> = Vec::new();
    for turn in turns {
        let is_same =
            |one: &TurnName| one.session == turn.session && one.is_deleted == turn.is_deleted;
        match sessions.iter_mut().find(|(first, _)| is_same(first)) {
            Some((_, numbers)) => numbers.push(turn.turn),
            None => sessions.push((turn, vec![turn.turn])),
        }
    }

    let name = |(first, mut numbers): (&TurnName, Vec<u64>)| {
        numbers.sort_unstable();
        let deleted = if first.is_deleted { " (deleted)" } else { "" };
        let session = sanitize_line(&first.session);
        format!("{} of {session}{deleted}", numbered(&numbers))
    };
    first_names(sessions.into_iter().map(name), MAX_NAMED)
}

fn numbered(numbers: &[u64]) -> String {
    let join_numbers = |numbers: &[u64]| {
        let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
        numbers.join(", ")
    };
    match numbers {
        [one] => format!("turn {one}"),
        [first, .., last] if numbers.len() > 3 && is_run(numbers) => {
            format!("turns {first} to {last}")
        }
        [first @ .., last] if numbers.len() <= MAX_NAMED => {
            format!("turns {} and {last}", join_numbers(first))
        }
        _ => {
            let (first, more) = numbers.split_at(MAX_NAMED.min(numbers.len()));
            format!("turns {} and {} more", join_numbers(first), more.len())
        }
    }
}

fn is_run(numbers: &[u64]) -> bool {
    numbers.windows(2).all(|pair| pair[1] == pair[0] + 1)
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    let first: String = first.into_iter().flatten().collect();
    format!("{first}{}.", letters.as_str())
}

/// Files listed individually.
const MAX_MISSING_LINES: usize = 10;

/// Returns one line per file. `turn_name` is the name of the turn whose state is expected, and `dir`
/// the current directory, relative to the project's root.
pub fn describe_missing(missing: &[MissingChange], turn_name: &str, dir: &Path) -> Vec<String> {
    let mut lines: Vec<String> = missing
        .iter()
        .take(MAX_MISSING_LINES)
        .map(|missing| describe_missing_change(missing, turn_name, dir))
        .collect();
    let more = missing.len().saturating_sub(MAX_MISSING_LINES);
    if more > 0 {
        lines.push(format!("... and {more} more; `--json` lists them all"));
    }

    lines
}

/// Names the turn: after a restore, `@` is the restore itself.
fn describe_missing_change(missing: &MissingChange, turn_name: &str, dir: &Path) -> String {
    let path = sanitize_line(&missing.path);
    let command = exact_restore_command(turn_name, &[missing.path.as_str()], dir);
    let how = format!("`{command}` restores it");
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
        WhyMissing::Repository { commit: None } => {
            format!("{path}: a repository of its own, which TeDDy does not make")
        }
        WhyMissing::Repository {
            commit: Some(commit),
        } => {
            let at = shell_word(seen_from(dir, &missing.path));
            format!(
                "{path}: a repository of its own, which TeDDy does not move; `git -C {at} checkout {commit}` does"
            )
        }
        WhyMissing::Blocked { file } => format!(
            "{path}: `{}` is in the way; `{}` puts the directory back",
            sanitize_line(file),
            exact_restore_command(turn_name, &[file.as_str()], dir)
        ),
        WhyMissing::Committed { commit } => {
            format!("{path}: as in your commit {commit:.8}, not as turn {turn_name} left it; {how}")
        }
    }
}

/// Returns the command that restores files of a turn, as it is typed in `dir`.
pub fn exact_restore_command(turn_name: &str, paths: &[&str], dir: &Path) -> String {
    let seen: Vec<String> = paths.iter().map(|path| seen_from(dir, path)).collect();
    let (turn_name, operands) = (shell_word(turn_name), shell_operands(&seen));
    format!("teddy restore {turn_name} --exact {operands}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::drift::{MissingChange, OtherBranch, WhyMissing};

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
            lines(&drift, 2, Path::new("")),
            [
                "Conflict markers are in `a`.",
                "Your files match turn 2 except for 1 file:",
                "  b: deleted since by you; `teddy restore 2 --exact b` restores it",
            ]
        );
    }

    fn turns(session: &str, numbers: &[u64]) -> Vec<TurnName> {
        let name = |turn: &u64| TurnName {
            is_deleted: false,
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
                "TeDDy has no record of which turns are in your files, so everything in them counts as your own",
                "the result of turn 3 is not in your files (`a\\u{7}`); `teddy restore 3 --theirs` takes it, `--markers` writes conflict markers, `--ours` keeps your side",
                "conflict markers are in `b`",
            ]
        );
    }

    fn check_list(listed: &[(&str, &[u64])], expected: &str) {
        let listed = listed
            .iter()
            .flat_map(|(session, numbers)| turns(session, numbers));
        assert_eq!(list_of(&listed.collect::<Vec<_>>()), expected);
    }

    #[test]
    fn turns_are_named_session_by_session() {
        check_list(&[("one", &[3])], "turn 3 of one");
        check_list(&[("one", &[2, 1])], "turns 1 and 2 of one");
        check_list(
            &[("one", &[3]), ("two", &[1]), ("one", &[1, 2])],
            "turns 1, 2 and 3 of one, turn 1 of two",
        );
        check_list(&[("one", &[6, 5, 4, 3, 2, 1])], "turns 1 to 6 of one");
        check_list(&[("one", &[1, 3, 5, 7])], "turns 1, 3, 5 and 7 of one");
        check_list(
            &[("one", &[1, 3, 5, 7, 9])],
            "turns 1, 3, 5, 7 and 1 more of one",
        );
    }

    #[test]
    fn an_interrupted_turn_is_called_so() {
        let drift = Drift {
            lacking: turns("one", &[3]),
            interrupted: true,
            ..Drift::default()
        };
        assert_eq!(
            sentences(&drift, 3),
            [
                "turn 3 was interrupted and nothing of it is in your files; `teddy restore 3` applies what it did"
            ]
        );
    }

    #[test]
    fn files_that_teddy_never_wrote_are_said_to_lack_nothing() {
        let drift = Drift {
            lacking: turns("one", &[2, 3]),
            untouched: true,
            ..Drift::default()
        };
        assert_eq!(
            sentences(&drift, 3),
            [
                "TeDDy has not written to these files before, so everything in them counts as your own; `teddy restore @` restores them to turn 3"
            ]
        );
    }
}

#[cfg(test)]
mod missing_tests {
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
                "3",
                Path::new("")
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
        let lines = describe_missing(&many, "1", Path::new(""));
        assert_eq!(
            (lines.len(), lines[10].as_str()),
            (11, "... and 3 more; `--json` lists them all")
        );
    }
}
