//! Reads the rows of a damaged session, or only its newest ones. Unreadable turns are skipped.

use super::{LogRow, NewRows, row_at, row_without_files};
use crate::git::object::CommitId;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::workflow::project::Project;

/// After this many unreadable turns in a row the walk stops: below the start of a session is the
/// user's own history.
const MAX_UNREADABLE: u32 = 16;

/// The readable rows.
#[derive(Debug, Default)]
pub struct WalkedRows {
    /// Rows, newest first.
    pub rows: Vec<LogRow>,
    /// The first error, if a turn was unreadable.
    pub error: Option<String>,
}

/// Reads the newest turns of a session, and skips damaged ones.
pub fn walk_rows(project: &Project, session: &SessionName, most: usize) -> WalkedRows {
    let mut first_error = None;
    let rows = match project.store().tip_id(session) {
        Ok(tip) => readable_rows(project, (session, tip), most, &mut first_error).after(Vec::new()),
        Err(error) => {
            first_error = Some(format!("{error:#}"));
            Vec::new()
        }
    };
    let rows = rows.into_iter().rev().collect();
    WalkedRows {
        rows,
        error: first_error,
    }
}

fn readable_rows(
    project: &Project,
    (session, tip): (&SessionName, CommitId),
    most: usize,
    first_error: &mut Option<String>,
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
                    first_error.get_or_insert(why);
                    row_without_files(&turn)
                });
                new.add(&turn, row);
            }
            Err(error) => {
                first_error.get_or_insert(format!("{error:#}"));
                unreadable += 1;
                let last = new.rows.last().map(|(row, _)| row.number);
                next = parent_of_unreadable(project, id, last, unreadable);
            }
        }
    }

    new
}

/// Parent of an unreadable turn. `last` is the number of the last readable turn; it bounds how many
/// turns can still follow.
fn parent_of_unreadable(
    project: &Project,
    id: CommitId,
    last: Option<u64>,
    unreadable: u32,
) -> Option<CommitId> {
    if last.is_some_and(|last| last <= u64::from(unreadable)) {
        return None;
    }
    let commit = project.repository.commit(id).ok()?;
    commit.parents.first().copied()
}
