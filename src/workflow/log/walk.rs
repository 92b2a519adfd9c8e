//! Rows of a session in which something is damaged, or of which only the newest are wanted: one
//! turn after the other, and what cannot be read is passed over.

use super::{LogRow, NewRows, row_at, row_without_files};
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
    let mut ailing = None;
    let rows = match project.store().tip_id(session) {
        Ok(tip) => rows(project, (session, tip), most, &mut ailing).after(Vec::new()),
        Err(error) => {
            ailing = Some(format!("{error:#}"));
            Vec::new()
        }
    };
    let rows = rows.into_iter().rev().collect();
    WalkedRows { rows, ailing }
}

/// Reads turns from the newest on, and notes the first that cannot be read.
fn rows(
    project: &Project,
    (session, tip): (&SessionName, CommitId),
    most: usize,
    ailing: &mut Option<String>,
) -> NewRows {
    let (mut new, mut next) = (NewRows::default(), Some(tip));
    let mut unreadable = 0;
    while let Some(id) = next
        && new.rows.len() < most
        && unreadable < MAX_UNREADABLE
    {
        match Turn::read(&project.repository, session, id) {
            Ok(turn) => {
                next = turn.previous;
                unreadable = 0;
                let row = row_at(project, &turn, 0, &mut new.budget);
                let row = row.unwrap_or_else(|error| {
                    let why = format!("the files of turn {}: {error:#}", turn.number());
                    ailing.get_or_insert(why);
                    row_without_files(&turn)
                });
                new.add(&turn, row);
            }
            Err(error) => {
                ailing.get_or_insert(format!("{error:#}"));
                unreadable += 1;
                let last = new.rows.last().map(|(row, _)| row.number);
                next = below(project, id, last, unreadable);
            }
        }
    }

    new
}

/// Returns the turn before one that cannot be read, as far as its commit says it; `last` is the
/// number of the one that could be read last, and so many have come since.
fn below(project: &Project, id: CommitId, last: Option<u64>, unreadable: u32) -> Option<CommitId> {
    if last.is_some_and(|last| last <= u64::from(unreadable)) {
        return None;
    }
    let commit = project.repository.commit(id).ok()?;
    commit.parents.first().copied()
}
