//! What `log` and `show` tell of a turn: a row for each, worked out once and remembered.

mod remembered;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use self::remembered::Remembered;
use crate::git::object::CommitId;
use crate::host::clock;
use crate::session::meta::{ModelUse, Status};
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::workflow::paths::lossy;
use crate::workflow::project::Project;

/// So few rows are worked out faster than they are remembered.
const FEW: usize = 32;

/// A turn, as `log` lists it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// Its number.
    pub number: u64,
    /// Its id.
    pub turn_id: uuid::Uuid,
    /// Its commit.
    pub commit: CommitId,
    /// How it ended.
    pub status: Status,
    /// The subject.
    pub title: String,
    /// The agent.
    pub agent: String,
    /// How many agents have handed over to this one.
    pub depth: usize,
    /// The model that was asked.
    pub model: Option<String>,
    /// Tokens read.
    pub tokens_in: Option<u64>,
    /// Tokens written.
    pub tokens_out: Option<u64>,
    /// Dollars.
    pub cost: Option<f64>,
    /// Dollars that every call of the turn counts, answers that never ran included.
    pub spent: Option<f64>,
    /// The workspace commit before.
    pub before: Option<CommitId>,
    /// The workspace commit after.
    pub after: Option<CommitId>,
    /// The files that it changed.
    pub files: Vec<String>,
    /// Those among them in which its result is not, as it could not be brought.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_brought: Vec<String>,
    /// When it was recorded, RFC 3339; nothing if its commit has a time that no calendar has.
    pub time: Option<String>,
}

impl Project {
    /// Lists the turns of the session in use, newest first.
    ///
    /// # Errors
    /// Where there is no session, or the repository cannot be read.
    pub fn log(&self, most: usize) -> anyhow::Result<Vec<Row>> {
        let session = self.session()?;
        let tip = self.store().tip(&session)?;
        let mut rows = if most <= FEW {
            let turns = self.store().history(tip.clone()).take(most);
            turns
                .map(|turn| self.row(&turn?))
                .collect::<anyhow::Result<Vec<Row>>>()?
        } else {
            let mut rows = self.whole_log(&session, tip.clone())?;
            rows.reverse();
            rows.truncate(most);
            rows
        };
        self.mark_not_brought(&tip, &mut rows)?;
        Ok(rows)
    }

    /// Forgets what was worked out of a session's turns.
    pub fn forget_log(&self, session: &SessionName) {
        let _ = std::fs::remove_file(remembered::path(&self.repository, session));
    }

    /// Returns a row for every turn up to one, the oldest first.
    fn whole_log(&self, session: &SessionName, tip: Turn) -> anyhow::Result<Vec<Row>> {
        let mut remembered = Remembered::read(&self.repository, session);
        let (mut new, mut met) = (Vec::new(), None);
        for turn in self.store().history(tip) {
            let turn = turn?;
            if remembered.has(turn.commit) {
                met = Some(turn.commit);
                break;
            }
            new.push(turn);
        }

        let mut rows = remembered.take_up_to(met);
        // A turn names its caller by an id, and the newest turn before it that has the id is meant.
        let mut depths: HashMap<Uuid, usize> =
            rows.iter().map(|row| (row.turn_id, row.depth)).collect();
        for turn in new.iter().rev() {
            let caller = turn.meta.caller_turn_id;
            let depth = caller.map_or(0, |id| 1 + depths.get(&id).copied().unwrap_or(0));
            depths.insert(turn.meta.turn_id, depth);
            rows.push(self.row_at(turn, depth)?);
        }
        if new.len() > FEW {
            remembered.keep(&rows);
        }
        Ok(rows)
    }

    /// Returns a single turn as a row.
    ///
    /// # Errors
    /// Where the repository cannot be read.
    pub fn one_row(&self, turn: &Turn) -> anyhow::Result<Row> {
        let mut row = [self.row(turn)?];
        self.mark_not_brought(&self.store().tip(&turn.session)?, &mut row)?;
        let [row] = row;
        Ok(row)
    }

    /// Says of the turn whose result could not be brought in which files it is not.
    fn mark_not_brought(&self, tip: &Turn, rows: &mut [Row]) -> anyhow::Result<()> {
        let stacks = self.stacks();
        let now = || Ok(self.snapshot(&[])?.tree);
        if let Some(found) = self.not_brought(&stacks, tip, &now)?
            && let Some(row) = rows.iter_mut().find(|row| row.number == found.turn)
        {
            row.not_brought = found.files;
        }
        Ok(())
    }

    /// Returns a turn as a row.
    fn row(&self, turn: &Turn) -> anyhow::Result<Row> {
        self.row_at(turn, self.nesting(turn)?)
    }

    /// Returns a turn as a row, whose agent so many others have handed over to.
    fn row_at(&self, turn: &Turn, depth: usize) -> anyhow::Result<Row> {
        let (meta, model) = (&turn.meta, turn.meta.model.as_ref());
        let tokens = model.and_then(ModelUse::tokens);
        let workspace = meta.workspace.as_ref();
        let files = match workspace {
            Some(w) if w.before != w.after => self.files_between(w.before, w.after)?,
            _ => Vec::new(),
        };
        Ok(Row {
            number: meta.number,
            turn_id: meta.turn_id,
            commit: turn.commit,
            status: meta.status,
            title: turn.title.clone(),
            agent: meta.agent.clone(),
            depth,
            model: model.map(|m| m.asked.clone()),
            tokens_in: tokens.map(|(read, _)| read),
            tokens_out: tokens.map(|(_, written)| written),
            cost: model.and_then(|m| m.cost),
            spent: meta.spent,
            before: workspace.map(|w| w.before),
            after: workspace.map(|w| w.after),
            files,
            not_brought: Vec::new(),
            time: clock::of_seconds(turn.seconds),
        })
    }

    /// Returns the paths that differ between two workspace commits.
    fn files_between(&self, before: CommitId, after: CommitId) -> anyhow::Result<Vec<String>> {
        let changes = self
            .repository
            .changes(self.tree(before)?, self.tree(after)?)?;
        Ok(changes.iter().map(|change| lossy(&change.path)).collect())
    }

    /// Returns how many agents have handed over to a turn's agent.
    fn nesting(&self, turn: &Turn) -> anyhow::Result<usize> {
        let (mut depth, mut caller) = (0, turn.meta.caller_turn_id);
        // A turn from elsewhere may say that it called itself.
        let mut seen = std::collections::BTreeSet::new();
        while let Some(id) = caller.filter(|id| seen.insert(*id)) {
            depth += 1;
            caller = self
                .caller(turn, Some(id))?
                .and_then(|found| found.caller_turn_id);
        }
        Ok(depth)
    }
}
