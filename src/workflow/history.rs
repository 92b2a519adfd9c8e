//! What `sessions`, `status` and `diff` tell: read, never written, without a lock.

use anyhow::Context as _;
use serde::Serialize;

use crate::git::object::{CommitId, TreeId};
use crate::host::clock;
use crate::plan;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::meta::MessageOrigin;
use crate::session::name::SessionName;
use crate::session::store::tips::SessionTip;
use crate::session::turn::Turn;
use crate::workflow::hooks::{self, trouble};
use crate::workflow::land::latest::{Latest, latest};
use crate::workflow::project::Project;
use crate::workspace::changed::{Changed, changed_since};

/// What is said of a rewritten session.
pub const REWRITTEN: &str = "another tool, such as `git filter-branch` or `git filter-repo`, has rewritten this session; its turns are shown with the commits that exist now";

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
    /// Of a remote's session: whether it came with the files, and not as a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<bool>,
}

/// Where things stand.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SessionStatus {
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
    /// The newest landing, and what has come since.
    pub landed: Option<Latest>,
    /// The user's files.
    pub workspace: Changed,
    /// Another tool, such as `git filter-repo`, rewrote the session.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rewritten: bool,
    /// What went wrong in the hooks of agents since they recorded a turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hook_troubles: Vec<String>,
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
        .filter(|(_, origin)| *origin == MessageOrigin::User)
        .map(|(message, _)| message)
}

/// Compares the user's files with the newest turn of the session in use.
///
/// # Errors
/// If there is no session.
pub fn changed(project: &Project) -> anyhow::Result<(Turn, Changed)> {
    let tip = project.store().tip(&project.session()?)?;
    let changed = changed_since(&project.checkout(), &tip);
    Ok((tip, changed))
}

/// Returns whether another tool rewrote a session; its newest turn was rewritten then, too.
pub fn is_rewritten(project: &Project, session: &SessionName) -> bool {
    let tip = project.store().tip(session);
    tip.is_ok_and(|tip| tip.rewritten)
}

/// Returns the files at the start of a session: those before its first turn.
///
/// # Errors
/// There is no such session, or nothing has run in it yet.
pub fn start_tree(project: &Project, session: &SessionName) -> anyhow::Result<TreeId> {
    let store = project.store();
    let mut first = None;
    for turn in store.history(store.tip(session)?) {
        if let Some(workspace) = turn?.meta.workspace {
            first = Some(workspace.before);
        }
    }

    let before = first.with_context(|| {
        format!("session `{session}` has no code yet: nothing has run since its start")
    })?;
    Ok(project.repository.commit(before)?.tree)
}

/// Returns what the user asked for in the session in use, the newest last.
///
/// # Errors
/// Where there is no session, or the repository cannot be read.
pub fn messages(project: &Project, most: usize) -> anyhow::Result<Vec<String>> {
    let tip = project.store().tip(&project.session()?)?;
    let mut messages = Vec::new();
    for turn in project.store().history(tip).take(most) {
        let turn = turn?;
        let text = turn.text(&project.repository, artifact::USER_PROMPT)?;
        let own = text.filter(|_| turn.meta.origin == MessageOrigin::User);
        messages.extend(own.filter(|text| !text.trim().is_empty()));
    }

    messages.reverse();
    messages.dedup();
    Ok(messages)
}

/// Lists the sessions, the one that changed last first.
///
/// # Errors
/// Where the repository cannot be read.
pub fn session_rows(project: &Project) -> anyhow::Result<Vec<SessionRow>> {
    rows_of(project, project.store().sessions()?)
}

/// Lists the sessions of all remotes as they were last fetched, the one that changed last first.
///
/// # Errors
/// Where the repository cannot be read.
pub fn remote_rows(project: &Project) -> anyhow::Result<Vec<SessionRow>> {
    rows_of(project, project.store().remote_sessions(None)?)
}

/// Returns a row for each session that can be read.
fn rows_of(
    project: &Project,
    sessions: Vec<(SessionName, CommitId)>,
) -> anyhow::Result<Vec<SessionRow>> {
    let current = project.session().ok();
    let tips = project.store().newest(sessions)?;
    let row = |tip: SessionTip| SessionRow {
        reference: tip.session.reference(),
        tip: tip.commit,
        turns: tip.number,
        title: tip.title,
        updated: clock::of_seconds(tip.seconds),
        current: current.as_ref() == Some(&tip.session),
        code: tip.code,
        name: tip.session.to_string(),
    };
    Ok(tips.into_iter().map(row).collect())
}

/// Returns where things stand.
///
/// # Errors
/// Where the repository or the files cannot be read.
pub fn standing(project: &Project) -> anyhow::Result<SessionStatus> {
    let hook_troubles = trouble::noted(&hooks::folder(&project.repository.teddy_dir()));
    let Ok(session) = project.session() else {
        return Ok(SessionStatus {
            state: "none",
            hook_troubles,
            ..SessionStatus::default()
        });
    };

    let tip = project.store().tip(&session)?;
    let draft = project.store().draft(&tip)?;
    let (plan, _) = plan::parse(&draft.artifacts.text_or_empty(artifact::PLAN));
    let is_open = !draft.is_planned() && !draft.is_asked_by_user();
    Ok(SessionStatus {
        hook_troubles,
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
        question: tip.question(&project.repository)?.filter(|_| is_open),
        conclusion: tip.conclusion(&project.repository)?.filter(|_| is_open),
        failure: draft.meta.failure.clone().filter(|_| !draft.is_planned()),
        landed: latest(project, &tip)?,
        workspace: changed_since(&project.checkout(), &tip),
        rewritten: tip.rewritten,
    })
}
