//! What `list`, `status` and `validate` tell: read, never written, without a lock.

use serde::Serialize;

use crate::change::document::REVIEW;
use crate::change::error::next_step;
use crate::change::finding::Finding;
use crate::change::id::ChangeId;
use crate::change::phase::ChangePhase;
use crate::change::review::{self, Issues};
use crate::change::store::Change;
use crate::change::usage::ChangeUsage;
use crate::change::{proposal, tasks};
use crate::git::object::CommitId;
use crate::git::refs;
use crate::text::counted;
use crate::workflow::change;
use crate::workflow::change::change;
use crate::workflow::project::Project;

/// A change, as `list` shows it.
#[derive(Debug, Clone, Serialize)]
pub struct ChangeListRow {
    /// Its id.
    pub change: ChangeId,
    /// Its ref.
    #[serde(rename = "ref")]
    pub reference: String,
    /// Its newest commit.
    pub tip: CommitId,
    /// Its phase.
    pub phase: ChangePhase,
    /// The iteration of its proposal.
    pub iteration: u32,
    /// Its summary, or else its description.
    pub title: String,
    /// How many tasks are done.
    pub done: usize,
    /// How many there are.
    pub tasks: usize,
    /// When it was last changed, RFC 3339.
    pub updated: Option<String>,
}

/// Where a change stands.
#[derive(Debug, Clone, Serialize)]
pub struct ChangeStatus {
    /// The change, as `list` shows it.
    #[serde(flatten)]
    pub row: ChangeListRow,
    /// What the user asked for.
    pub description: Option<String>,
    /// The last step.
    pub last_action: Option<String>,
    /// The latest review of what is at hand: its status.
    pub verdict: Option<String>,
    /// Its issues.
    pub issues: Issues,
    /// Whether only minor ones remain.
    pub only_minor_issues: bool,
    /// Documents that were edited since they were challenged.
    pub stale: Vec<String>,
    /// How many mistakes the documents have.
    pub findings: usize,
    /// What the models took.
    pub usage: Total,
    /// The session that implements it, if it has begun.
    pub session: Option<String>,
    /// What comes next.
    pub next: String,
}

/// What the models of a change took; what no call told is unknown.
#[derive(Debug, Clone, Serialize)]
pub struct Total {
    /// How many answers there were.
    pub calls: u64,
    /// Tokens read.
    pub tokens_in: Option<u64>,
    /// Tokens written.
    pub tokens_out: Option<u64>,
    /// Dollars.
    pub cost: Option<f64>,
}

impl Total {
    /// Tells what is known of a sum to which unknown numbers were added as nothing.
    fn of(usage: &ChangeUsage) -> Total {
        let is_known = |is_more: bool| usage.calls == 0 || is_more;
        Total {
            calls: usage.calls,
            tokens_in: is_known(usage.tokens_in > 0).then_some(usage.tokens_in),
            tokens_out: is_known(usage.tokens_out > 0).then_some(usage.tokens_out),
            cost: is_known(usage.cost > 0.0).then_some(usage.cost),
        }
    }

    /// Returns it in words.
    pub fn words(&self) -> String {
        let calls = counted(usize::try_from(self.calls).unwrap_or(usize::MAX), "answer");
        let tokens = self
            .tokens_in
            .zip(self.tokens_out)
            .map(|(read, written)| format!(", {read} tokens in, {written} out"));
        let cost = self.cost.map(|cost| format!(", ${cost:.2}"));

        format!(
            "{calls}{}{}",
            tokens.unwrap_or_default(),
            cost.unwrap_or_default()
        )
    }
}

/// Lists the changes, archived ones too if that is wanted; one that cannot be read is returned
/// with its error.
///
/// # Errors
/// Where the refs cannot be read.
pub fn change_rows(
    project: &Project,
    archived: bool,
) -> anyhow::Result<(Vec<ChangeListRow>, Vec<String>)> {
    let (mut rows, mut damaged) = (Vec::new(), Vec::new());
    for (id, commit) in change::changes(project).ids()? {
        match change::changes(project).at(&id, commit) {
            Ok(change) if archived || change.state.phase != ChangePhase::Archived => {
                rows.push(row(&change, commit))
            }
            Ok(_) => {}
            Err(error) => damaged.push(format!("`{id}`: {error:#}")),
        }
    }

    Ok((rows, damaged))
}

/// Returns where a change stands.
///
/// # Errors
/// [`crate::change::error::ChangeError::ChangeNotFound`], or where it cannot be read.
pub fn change_standing(project: &Project, id: &ChangeId) -> anyhow::Result<ChangeStatus> {
    let change = change(project, id)?;
    let commit = change
        .commit
        .ok_or_else(|| anyhow::anyhow!("the change `{id}` has no commit"))?;
    let implementing = matches!(
        change.state.phase,
        ChangePhase::Implementing | ChangePhase::Complete | ChangePhase::Archived
    );
    let reviews =
        review::read(
            change
                .documents
                .text(if implementing { REVIEW } else { proposal::FILE }),
        );
    let latest = review::latest(&reviews);
    let issues = latest.map(review::ChangeReview::issues).unwrap_or_default();
    let session = id.session();
    let begun = refs::read(&project.repository, &session.reference())?.is_some();

    Ok(ChangeStatus {
        row: row(&change, commit),
        description: change.state.description.clone(),
        last_action: change.state.last_action.clone(),
        verdict: latest.map(|review| review.status.clone()),
        issues,
        only_minor_issues: issues.only_minor(),
        stale: change.state.stale(&change.documents),
        findings: change.documents.check(id).len(),
        usage: Total::of(&change.state.usage),
        session: begun.then(|| session.to_string()),
        next: next_step(id, change.state.phase),
    })
}

/// Returns every mistake of a change's documents.
///
/// # Errors
/// As for [`change_standing`].
pub fn validate_change(project: &Project, id: &ChangeId) -> anyhow::Result<Vec<Finding>> {
    Ok(change(project, id)?.documents.check(id))
}

/// Returns a change as a row.
fn row(change: &Change, tip: CommitId) -> ChangeListRow {
    let tasks = tasks::read(change.documents.text(tasks::FILE));
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
        done: tasks.iter().filter(|task| task.done).count(),
        tasks: tasks.len(),
        updated: change.state.updated_at.clone(),
    }
}
