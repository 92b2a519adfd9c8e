//! Data for `list`, `status` and `validate`. Read-only, without a lock.

use serde::Serialize;

use crate::change::id::ChangeId;
use crate::change::phase::ChangePhase;
use crate::change::proposal;
use crate::change::review::{self, Issues};
use crate::change::state::ChangeUsage;
use crate::change::store::Change;
use crate::git::object::CommitId;
use crate::project::Project;
use crate::session::name::SessionName;
use crate::text::counted;
use crate::workflow::change::{self, discarded, lacking_of, open_change};
use crate::workspace::changed::changed_since;
use crate::workspace::drift::TurnName;

#[derive(Debug, Clone, Serialize)]
pub struct ChangeListRow {
    pub change: ChangeId,
    #[serde(rename = "ref")]
    pub reference: String,
    pub tip: CommitId,
    pub phase: ChangePhase,
    pub iteration: u32,
    /// Summary of the proposal, else the first line of the description.
    pub title: String,
    pub done: usize,
    pub tasks: usize,
    /// In RFC 3339.
    pub updated: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct ChangeStatus {
    #[serde(flatten)]
    pub row: ChangeListRow,
    pub description: Option<String>,
    pub last_action: Option<String>,
    /// Of the latest review in the current phase.
    pub verdict: Option<String>,
    pub issues: Issues,
    pub only_minor_issues: bool,
    /// Edited since they were challenged.
    pub stale: Vec<String>,
    pub findings: usize,
    pub usage: Total,
    /// Once the implementation started.
    pub session: Option<SessionName>,
    /// Turns of the session that were undone, so that their work is open again.
    pub undone: Vec<u64>,
    /// Turns of the session that are not in the user's files.
    pub lacking: Vec<TurnName>,
    /// Only `restore --exact` restores them: git took their files away.
    #[serde(skip)]
    pub is_exact: bool,
    /// Suggested command.
    pub next: String,
}

/// `None` if no answer reported the number.
#[derive(Debug, Clone, Serialize)]
pub struct Total {
    pub calls: u64,
    pub tokens_in: Option<u64>,
    pub tokens_out: Option<u64>,
    /// In dollars.
    pub cost: Option<f64>,
}

impl Total {
    fn of(usage: &ChangeUsage) -> Total {
        // Unknown numbers are added as zero, so a sum of zero despite answers means unknown.
        let is_known = |is_more: bool| usage.calls == 0 || is_more;
        Total {
            calls: usage.calls,
            tokens_in: is_known(usage.tokens_in > 0).then_some(usage.tokens_in),
            tokens_out: is_known(usage.tokens_out > 0).then_some(usage.tokens_out),
            cost: is_known(usage.cost > 0.0).then_some(usage.cost),
        }
    }

    pub fn describe(&self) -> String {
        let calls = counted(usize::try_from(self.calls).unwrap_or(usize::MAX), "answer");
        let tokens = self
            .tokens_in
            .zip(self.tokens_out)
            .map(|(read, written)| format!(", {} in, {written} out", counted(read, "token")));
        let cost = self.cost.map(|cost| format!(", ${cost:.2}"));

        format!(
            "{calls}{}{}",
            tokens.unwrap_or_default(),
            cost.unwrap_or_default()
        )
    }
}

/// Unreadable changes are returned as error messages.
pub fn change_rows(
    project: &Project,
    archived: bool,
) -> anyhow::Result<(Vec<ChangeListRow>, Vec<String>)> {
    let (mut rows, mut damaged) = (Vec::new(), Vec::new());
    for (id, commit) in change::change_store(project).ids()? {
        match open_change(project, &id) {
            Ok(change) if archived || change.state.phase != ChangePhase::Archived => {
                rows.push(row(&change, commit))
            }
            Ok(_) => {}
            Err(error) => damaged.push(format!("`{id}`: {error:#}")),
        }
    }

    Ok((rows, damaged))
}

pub fn change_status(project: &Project, id: &ChangeId) -> anyhow::Result<ChangeStatus> {
    let change = open_change(project, id)?;
    let commit = change
        .commit
        .ok_or_else(|| anyhow::anyhow!("the change `{id}` has no commit"))?;
    let implementing = matches!(
        change.state.phase,
        ChangePhase::Implementing | ChangePhase::Complete | ChangePhase::Archived
    );
    let reviews = review::read(change.documents.text(if implementing {
        review::FILE
    } else {
        proposal::FILE
    }));
    let latest = review::latest(&reviews);
    let issues = latest.map(review::ChangeReview::issues).unwrap_or_default();
    let mut usage = change.state.usage.clone();
    usage.add(&discarded::read(project, id)?);
    let session = id.session();
    let store = project.store();
    let has_session = store.has(&session)?;
    let mut is_exact = false;
    // A damaged session has none.
    let lacking = match store.tip(&session) {
        Ok(tip) => {
            let drift = changed_since(&project.checkout(), &tip).drift;
            is_exact = drift.same_turns == Some(true);
            lacking_of(&project.checkout(), &drift, &tip).unwrap_or_default()
        }
        Err(_) => Vec::new(),
    };

    Ok(ChangeStatus {
        row: row(&change, commit),
        description: change.state.description.clone(),
        last_action: change.state.last_action.clone(),
        verdict: latest.map(|review| review.status.clone()),
        issues,
        only_minor_issues: issues.only_minor(),
        stale: change.state.stale(&change.documents),
        findings: change.documents.check(id).len(),
        usage: Total::of(&usage),
        session: has_session.then_some(session),
        undone: change.undone.clone(),
        lacking,
        is_exact,
        next: change.next_step(),
    })
}

fn row(change: &Change, tip: CommitId) -> ChangeListRow {
    let (done, tasks) = change.documents.progress();
    let summary = proposal::read(change.documents.text(proposal::FILE)).summary;
    let described = || {
        change
            .state
            .description
            .as_deref()
            .and_then(|text| text.lines().next())
            .unwrap_or_default()
            .to_owned()
    };

    ChangeListRow {
        change: change.id.clone(),
        reference: change.id.reference(),
        tip,
        phase: change.state.phase,
        iteration: change.state.iteration,
        title: if summary.is_empty() {
            described()
        } else {
            summary
        },
        done,
        tasks,
        updated: change.state.updated_at.clone(),
    }
}
