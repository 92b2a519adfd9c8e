//! Text for notes of a restore, shown after the changed files.

use super::drift;
use super::notice::obstacle;
use crate::git::object::CommitId;
use crate::text::counted;
use crate::text::path::lossy;
use crate::text::sanitize::sanitize_line;
use crate::workflow::land::turns;
use crate::workflow::restore::outcome::{RestoreNote, UndoneCommit};
use crate::workspace::drift::NO_RECORD;

const SHORT_ID_LENGTH: usize = 8;

/// Returns the text of a note.
pub fn restore_note(note: &RestoreNote) -> String {
    match note {
        RestoreNote::NoRecord => NO_RECORD.to_owned(),
        RestoreNote::Obstacle(cause) => obstacle(cause),
        RestoreNote::StillLanded(commits) => still_landed(commits),
        RestoreNote::NotInSnapshot(paths) => format!(
            "{} in the way and in no snapshot, so nothing was changed; move {} away, or `--ours` leaves {} there",
            paths_with_verb(paths),
            pronoun_of(paths),
            pronoun_of(paths)
        ),
        RestoreNote::OutsidePaths(paths) => format!(
            "{} in the way and not on the paths that you named, so nothing was changed; name {} as well, or move {} away",
            paths_with_verb(paths),
            pronoun_of(paths),
            pronoun_of(paths)
        ),
        RestoreNote::PlanWaits(title) => format!(
            "the plan that waits was made before this: {}; `teddy execute` checks it against your files as they are now",
            sanitize_line(title)
        ),
        RestoreNote::TakenFromOthers(turns) => {
            let other = turns.first().map_or("", |turn| turn.session.as_str());
            format!(
                "this took {} out of your files as well; `teddy switch {}` and `teddy restore @` restore {}",
                drift::list_of(turns),
                sanitize_line(other),
                if turns.len() == 1 { "it" } else { "them" }
            )
        }
    }
}

/// Returns some paths as the subject of a sentence: "`a` is", "`a` and 2 more files are".
fn paths_with_verb(paths: &[Vec<u8>]) -> String {
    let first = paths.first().map_or_else(String::new, |path| lossy(path));
    let first = sanitize_line(&first);
    match paths.len() {
        0 | 1 => format!("`{first}` is"),
        all => format!("`{first}` and {} more are", counted(all as u64 - 1, "file")),
    }
}

fn pronoun_of(paths: &[Vec<u8>]) -> &'static str {
    if paths.len() > 1 { "them" } else { "it" }
}

/// Says where turns are that were taken out of the files only, and how they are taken out there.
fn still_landed(landed: &[UndoneCommit]) -> String {
    let (here, elsewhere): (Vec<_>, Vec<_>) = landed.iter().partition(|landed| landed.is_current);
    let mut sentences = Vec::new();
    if !here.is_empty() {
        let stays = if here.len() == 1 {
            "it stays"
        } else {
            "they stay"
        };
        let commits: Vec<String> = here.iter().map(|landed| short_id(&landed.commit)).collect();
        sentences.push(format!(
            "{}, where {stays}; commit your files as they are now, or `teddy redo` and then `git revert {}`",
            landed_turns(&here),
            commits.join(" ")
        ));
    }

    for landed in elsewhere {
        sentences.push(format!(
            "{}, where it stays until `git revert {}` there",
            landed_turns(&[landed]),
            short_id(&landed.commit)
        ));
    }
    sentences.join("; ")
}

fn landed_turns(landed: &[&UndoneCommit]) -> String {
    let describe = |landed: &&UndoneCommit| {
        let has = if landed.turns.len() == 1 {
            "has"
        } else {
            "have"
        };
        let (turns, branch) = (turns(&landed.turns), sanitize_line(&landed.branch));
        let id = short_id(&landed.commit);
        format!("{turns} {has} landed as {id} on {branch}")
    };
    let notes: Vec<String> = landed.iter().map(describe).collect();
    notes.join(" and ")
}

fn short_id(id: &CommitId) -> String {
    id.to_string()[..SHORT_ID_LENGTH].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_restore_left_on_a_branch_is_told_once() {
        let landed = |digit: &str, turns: &[u64], branch: &str| UndoneCommit {
            commit: digit.repeat(40).parse().unwrap(),
            turns: turns.to_vec(),
            branch: branch.to_owned(),
            is_current: branch == "main",
        };
        let note = RestoreNote::StillLanded(vec![
            landed("a", &[1], "main"),
            landed("b", &[2, 3], "main"),
            landed("c", &[4], "other"),
        ]);
        assert_eq!(
            restore_note(&note),
            "turn 1 has landed as aaaaaaaa on main and turns 2, 3 have landed as bbbbbbbb on main, where they stay; commit your files as they are now, or `teddy redo` and then `git revert aaaaaaaa bbbbbbbb`; turn 4 has landed as cccccccc on other, where it stays until `git revert cccccccc` there"
        );
    }
}
