//! Rows of a session in which something is damaged, or of which only the newest are wanted: one
//! turn after the other, and what cannot be read is passed over.

use std::collections::HashMap;

use super::{LogRow, row_at, row_without_files};
use crate::git::object::CommitId;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::workflow::project::Project;

/// So many turns in a row may be unreadable before the rest is given up: below the start of a
/// session lies the user's own history.
const MAX_UNREADABLE: u32 = 16;

/// The rows that could be read.
#[derive(Debug, Default)]
pub struct WalkedRows {
    /// The rows, newest first.
    pub rows: Vec<LogRow>,
    /// Why not all that were wanted are there.
    pub ailing: Option<String>,
}

/// Reads the newest turns of a session, however many of them are damaged.
pub fn walk(project: &Project, session: &SessionName, most: usize) -> WalkedRows {
    let mut walked = WalkedRows::default();
    let turns = match project.store().tip_id(session) {
        Ok(tip) => turns(project, (session, tip), most, &mut walked.ailing),
        Err(error) => {
            walked.ailing = Some(format!("{error:#}"));
            return walked;
        }
    };

    // Callers come before whom they call.
    let mut depths = HashMap::new();
    for turn in turns.iter().rev() {
        let caller = turn.meta.caller_turn_id;
        let depth = caller.map_or(0, |id| 1 + depths.get(&id).copied().unwrap_or(0));
        depths.insert(turn.meta.turn_id, depth);
        let row = row_at(project, turn, depth).unwrap_or_else(|error| {
            let why = format!("the files of turn {}: {error:#}", turn.number());
            walked.ailing.get_or_insert(why);
            LogRow {
                depth,
                ..row_without_files(turn)
            }
        });
        walked.rows.push(row);
    }

    walked.rows.reverse();
    walked
}

/// Reads turns from the newest on, and notes the first that cannot be read.
fn turns(
    project: &Project,
    (session, tip): (&SessionName, CommitId),
    most: usize,
    ailing: &mut Option<String>,
) -> Vec<Turn> {
    let (mut turns, mut next) = (Vec::<Turn>::new(), Some(tip));
    let mut unreadable = 0;
    while let Some(id) = next
        && turns.len() < most
        && unreadable < MAX_UNREADABLE
    {
        match Turn::read(&project.repository, session, id) {
            Ok(turn) => {
                next = turn.previous;
                unreadable = 0;
                turns.push(turn);
            }
            Err(error) => {
                ailing.get_or_insert(format!("{error:#}"));
                unreadable += 1;
                next = below(project, id, turns.last(), unreadable);
            }
        }
    }

    turns
}

/// Returns the turn before one that cannot be read, as far as its commit says it; `last` is the
/// one that could be read last, and so many have come since.
fn below(
    project: &Project,
    id: CommitId,
    last: Option<&Turn>,
    unreadable: u32,
) -> Option<CommitId> {
    if last.is_some_and(|last| last.number() <= u64::from(unreadable)) {
        return None;
    }
    let commit = project.repository.commit(id).ok()?;
    commit.parents.first().copied()
}
