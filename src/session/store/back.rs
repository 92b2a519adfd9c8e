//! Random access to the earlier turns of a session.
//!
//! Reads each commit once, and the metadata only of requested turns.

use std::cell::RefCell;
use std::collections::BTreeMap;

use anyhow::Context as _;

use super::Store;
use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::session::meta::Status;
use crate::session::turn::{Turn, trailer};

pub struct TurnsBack<'a> {
    repository: &'a Repository,
    tip: Turn,
    /// Newest first, starting with the tip.
    walked: RefCell<Vec<WalkedCommit>>,
    read: RefCell<BTreeMap<u64, Turn>>,
}

struct WalkedCommit {
    id: CommitId,
    previous: Option<CommitId>,
    is_landing: bool,
}

impl<'a> Store<'a> {
    pub fn back_from(&self, tip: Turn) -> TurnsBack<'a> {
        TurnsBack {
            repository: self.repository,
            tip,
            walked: RefCell::default(),
            read: RefCell::default(),
        }
    }
}

impl TurnsBack<'_> {
    /// Fails like [`Store::turn`].
    pub fn turn(&self, number: u64) -> anyhow::Result<Turn> {
        let tip = &self.tip;
        let Some(back) = tip.number().checked_sub(number) else {
            let store = Store {
                repository: self.repository,
            };
            return store.turn(&tip.session, &number.to_string());
        };
        if back == 0 {
            return Ok(tip.clone());
        }
        if let Some(cached) = self.read.borrow().get(&number) {
            return Ok(cached.clone());
        }

        let back = usize::try_from(back)?;
        self.walk(back + 1)?;
        let id = self.walked.borrow().get(back).map(|commit| commit.id);
        let id = id.with_context(|| format!("the session ends before turn {number}"))?;
        let turn = Turn::read(self.repository, &tip.session, id)?;
        self.read.borrow_mut().insert(number, turn.clone());
        Ok(turn)
    }

    /// Newest first. Trusts the trailers of the commits.
    pub fn landings_after(&self, number: u64) -> anyhow::Result<Vec<Turn>> {
        let count = usize::try_from(self.tip.number().saturating_sub(number))?;
        self.walk(count)?;

        let walked = self.walked.borrow();
        let landings = walked.iter().take(count).filter(|commit| commit.is_landing);
        landings
            .map(|commit| Turn::read(self.repository, &self.tip.session, commit.id))
            .collect()
    }

    fn walk(&self, count: usize) -> anyhow::Result<()> {
        let mut walked = self.walked.borrow_mut();
        while walked.len() < count {
            let next = match walked.last() {
                Some(last) => last.previous,
                None => Some(self.tip.commit),
            };
            let Some(id) = next else { break };

            let commit = self.repository.commit(id)?;
            walked.push(WalkedCommit {
                id,
                previous: commit.parents.first().copied(),
                is_landing: is_landed_message(&commit.message),
            });
        }

        Ok(())
    }
}

fn is_landed_message(message: &str) -> bool {
    trailer(message, "Teddy-Status") == Some(Status::Landed.word())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_landing_says_so_in_its_last_status() {
        let check = |message: &str, expected: bool| {
            assert_eq!(is_landed_message(message), expected, "{message}");
        };
        check(
            "Land 1\n\nTeddy-Turn: 2\nTeddy-Status: landed\nTeddy-Agent: a\n",
            true,
        );
        check("Land 1\n\nTeddy-Turn: 2\nTeddy-Status: executed\n", false);
        check("x\n\nTeddy-Status: landed\n\nTeddy-Status: failed\n", false);
        check("Teddy-Status: landed or so\n", false);
        check("Land 1\n", false);
    }
}
