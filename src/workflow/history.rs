//! What `log`, `sessions`, `status`, `show` and `diff` tell: read, never written, without a lock.

use serde::Serialize;

use crate::git::object::{CommitId, TreeId};
use crate::host::clock;
use crate::plan;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::meta::{ModelUse, Origin, Status};
use crate::session::turn::Turn;
use crate::workflow::changed::Changed;
use crate::workflow::project::Project;
use crate::workflow::restore::lossy;

/// A turn, as `log` lists it.
#[derive(Debug, Clone, Serialize)]
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_brought: Vec<String>,
    /// When it was recorded, RFC 3339; nothing if its commit has a time that no calendar has.
    pub time: Option<String>,
}

/// A session, as `sessions` lists it.
#[derive(Debug, Clone, Serialize)]
pub struct SessionRow {
    /// Its name.
    pub name: String,
    /// Its ref.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Its newest turn.
    pub tip: CommitId,
    /// The number of the newest turn.
    pub turns: u64,
    /// The subject of the newest turn.
    pub title: String,
    /// When it was recorded, as in a row of `log`.
    pub updated: Option<String>,
    /// Whether it is the one in use here.
    pub current: bool,
}

/// Where things stand.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Standing {
    /// The session in use.
    pub session: Option<String>,
    /// Its ref.
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    /// Its newest turn.
    pub tip: Option<CommitId>,
    /// The number of the newest turn.
    pub turn: Option<u64>,
    /// `none`, `ready` or `planned`.
    pub state: &'static str,
    /// The plan that waits.
    pub draft: Option<DraftRow>,
    /// The message that waits for a plan.
    pub message: Option<String>,
    /// What the model asks; it waits for the answer.
    pub question: Option<String>,
    /// What the model said when it called the work done.
    pub conclusion: Option<String>,
    /// Why the model's last answer is none, where no plan waits because of it.
    pub failure: Option<String>,
    /// The user's files.
    pub workspace: Changed,
}

/// A plan that waits.
#[derive(Debug, Clone, Serialize)]
pub struct DraftRow {
    /// Its title.
    pub title: String,
    /// How many actions it has.
    pub actions: usize,
}

/// Returns the user's words that wait for a plan.
fn waiting(draft: &Draft) -> Option<String> {
    draft
        .waiting_message()
        .filter(|(_, origin)| *origin == Origin::User)
        .map(|(message, _)| message)
}

impl Project {
    /// Lists the turns of the session in use, newest first.
    ///
    /// # Errors
    /// Where there is no session, or the repository cannot be read.
    pub fn log(&self, most: usize) -> anyhow::Result<Vec<Row>> {
        let tip = self.store().tip(&self.session()?)?;
        let mut rows = self
            .store()
            .history(tip.clone())
            .take(most)
            .map(|turn| self.row(&turn?))
            .collect::<anyhow::Result<Vec<Row>>>()?;
        self.mark_not_brought(&tip, &mut rows)?;
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
        let (meta, model) = (&turn.meta, turn.meta.model.as_ref());
        let tokens = model.and_then(ModelUse::tokens);
        let workspace = meta.workspace.as_ref();
        let files = match workspace {
            Some(w) => self
                .repository
                .changes(self.tree(w.before)?, self.tree(w.after)?)?
                .iter()
                .map(|c| lossy(&c.path))
                .collect(),
            None => Vec::new(),
        };
        Ok(Row {
            number: meta.number,
            turn_id: meta.turn_id,
            commit: turn.commit,
            status: meta.status,
            title: turn.title.clone(),
            agent: meta.agent.clone(),
            depth: self.nesting(turn)?,
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

    /// Returns the tree of a commit.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn tree(&self, commit: CommitId) -> anyhow::Result<TreeId> {
        Ok(self.repository.commit(commit)?.tree)
    }

    /// Lists the sessions, the one that changed last first.
    ///
    /// # Errors
    /// Where the repository cannot be read.
    pub fn session_rows(&self) -> anyhow::Result<Vec<SessionRow>> {
        let current = self.session().ok();
        let mut rows = Vec::new();
        for (name, commit) in self.store().sessions()? {
            // A ref of ours that holds no turn comes from elsewhere; it must not hide the others.
            let Ok(turn) = Turn::read(&self.repository, &name, commit) else {
                continue;
            };
            rows.push((
                turn.seconds,
                SessionRow {
                    reference: name.reference(),
                    tip: commit,
                    turns: turn.number(),
                    title: turn.title.clone(),
                    updated: clock::of_seconds(turn.seconds),
                    current: current.as_ref() == Some(&name),
                    name: name.to_string(),
                },
            ));
        }
        rows.sort_by_key(|(seconds, _)| std::cmp::Reverse(*seconds));
        Ok(rows.into_iter().map(|(_, row)| row).collect())
    }

    /// Returns where things stand.
    ///
    /// # Errors
    /// Where the repository or the files cannot be read.
    pub fn standing(&self) -> anyhow::Result<Standing> {
        let Ok(session) = self.session() else {
            return Ok(Standing {
                state: "none",
                ..Standing::default()
            });
        };
        let tip = self.store().tip(&session)?;
        let draft = self.store().draft(&tip)?;
        let (plan, _) = plan::parse(&draft.artifacts.text_or_empty(artifact::PLAN));
        let is_open = !draft.is_planned() && !draft.is_asked_by_user();
        Ok(Standing {
            session: Some(session.to_string()),
            reference: Some(session.reference()),
            tip: Some(tip.commit),
            turn: Some(tip.number()),
            state: if draft.is_planned() {
                "planned"
            } else {
                "ready"
            },
            draft: draft.is_planned().then(|| DraftRow {
                title: plan.title.clone(),
                actions: plan.actions.len(),
            }),
            message: waiting(&draft),
            question: tip.question(&self.repository)?.filter(|_| is_open),
            conclusion: tip.conclusion(&self.repository)?.filter(|_| is_open),
            failure: draft.meta.failure.clone().filter(|_| !draft.is_planned()),
            workspace: self.changed_since(&tip),
        })
    }
}
