//! Data for `sessions`, `status` and `diff`. Read-only, without a lock.

use std::collections::HashSet;

use anyhow::Context as _;
use serde::Serialize;

use crate::git::history::is_on_branch;
use crate::git::merge::merge_in_memory;
use crate::git::object::{CommitId, TreeId};
use crate::git::refs;
use crate::git::repository::Repository;
use crate::host::clock;
use crate::host::lock::LockHolder;
use crate::plan;
use crate::project::Project;
use crate::project::active_process;
use crate::query::contained::is_contained;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::meta::{self, MessageOrigin, Meta, Status};
use crate::session::name::{DRAFTS, SessionName};
use crate::session::requests::{MAX_LIST_SIZE, RequestState, Requests, UserRequest};
use crate::session::store::SessionTip;
use crate::session::turn::{Turn, in_next};
use crate::workspace::changed::{Changed, changed_since};
use crate::workspace::file_move::trees_of;
use crate::workspace::landing::{LandingClaims, landed_as, landed_on_remote};
use crate::workspace::stack::{Stacks, is_patch};

pub const REWRITTEN: &str = "another tool, such as `git filter-branch` or `git filter-repo`, has rewritten this session; its turns are shown with the commits that exist now";

/// As `sessions` lists it.
#[derive(Debug, Clone, Serialize)]
pub struct SessionRow {
    pub name: String,
    #[serde(rename = "ref")]
    pub reference: String,
    pub tip: CommitId,
    pub turns: u64,
    /// Of the newest turn.
    pub title: String,
    /// First line of the user's first request in the session. Only of [`MAX_WITH_REQUEST`] sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    pub updated: Option<String>,
    /// Of this checkout.
    pub current: bool,
    /// That the user chose for the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// For fetched sessions: includes the files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<bool>,
    /// Title of the waiting plan. Only of [`MAX_WITH_REQUEST`] sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Another process that, for example, reviews or runs a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_work: Option<LockHolder>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct SessionStatus {
    pub session: Option<String>,
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    pub tip: Option<CommitId>,
    pub turn: Option<u64>,
    /// That the user chose for the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `none`, `ready` or `planned`.
    pub state: &'static str,
    pub draft: Option<DraftRow>,
    /// With a waiting plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<PlanOverlap>,
    /// No plan was made from it yet.
    pub message: Option<String>,
    pub question: Option<String>,
    /// Set if the model concluded the work.
    pub conclusion: Option<String>,
    /// Of the last request for a plan.
    pub failure: Option<String>,
    pub landed: Option<LatestLanding>,
    pub workspace: Changed,
    /// Another process that, for example, reviews or runs a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_work: Option<LockHolder>,
    /// By another tool, such as `git filter-repo`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rewritten: bool,
    /// Since a hook of an agent last recorded a turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hook_troubles: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct DraftRow {
    pub title: String,
    pub actions: usize,
    /// Another user's, so it does not run.
    #[serde(rename = "foreign", skip_serializing_if = "std::ops::Not::not")]
    pub is_foreign: bool,
}

/// Where a waiting plan and the user's edits since its snapshot change the same lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PlanOverlap {
    /// Lossily decoded.
    pub paths: Vec<String>,
    pub not_compared: Vec<NotCompared>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotCompared {
    /// `None` for the whole plan.
    pub path: Option<String>,
    pub reason: String,
}

/// Sessions whose request is read, those that changed last. A request costs four objects, the title
/// of a turn only one.
const MAX_WITH_REQUEST: usize = 500;

/// In bytes, for the list of requests of a session.
const MAX_REQUESTS: u64 = 2 * MAX_LIST_SIZE as u64;

fn waiting(draft: &Draft) -> Option<String> {
    draft
        .waiting_message()
        .filter(|(_, origin)| *origin == MessageOrigin::User)
        .map(|(message, _)| message)
}

pub fn changed(project: &Project) -> anyhow::Result<(Turn, Changed)> {
    let tip = project.store().tip(&project.session()?)?;
    let changed = changed_since(&project.checkout(), &tip);
    Ok((tip, changed))
}

/// Another tool that rewrites a session rewrites its newest turn, too.
pub fn is_rewritten(project: &Project, session: &SessionName) -> bool {
    let tip = project.store().tip(session);
    tip.is_ok_and(|tip| tip.rewritten)
}

/// Before the first turn.
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

/// Oldest first, from the last `most` turns.
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

/// Most recently changed first.
pub fn session_rows(project: &Project) -> anyhow::Result<Vec<SessionRow>> {
    rows_of(project, project.store().sessions()?)
}

/// Of all remotes, most recently changed first.
pub fn remote_rows(project: &Project) -> anyhow::Result<Vec<SessionRow>> {
    rows_of(project, project.store().remote_sessions(None)?)
}

fn rows_of(
    project: &Project,
    sessions: Vec<(SessionName, CommitId)>,
) -> anyhow::Result<Vec<SessionRow>> {
    let current = project.session().ok();
    let names: HashSet<String> = sessions
        .iter()
        .map(|(name, _)| name.own().to_string())
        .collect();
    let tips = project.store().newest(sessions)?;
    let drafts: HashSet<String> = refs::list(&project.repository, DRAFTS)?
        .into_iter()
        .map(|reference| reference.name)
        .collect();
    let row = |(at, tip): (usize, SessionTip)| SessionRow {
        request: (at < MAX_WITH_REQUEST)
            .then(|| first_request(&project.repository, &tip, &names))
            .flatten(),
        plan: (at < MAX_WITH_REQUEST && drafts.contains(&tip.session.draft_reference()))
            .then(|| waiting_plan(project, &tip.session))
            .flatten(),
        reference: tip.session.reference(),
        tip: tip.commit,
        turns: tip.number,
        title: tip.title,
        updated: clock::of_seconds(tip.seconds),
        current: current.as_ref() == Some(&tip.session),
        model: project.session_model(&tip.session),
        code: tip.code,
        at_work: match tip.session.remote() {
            None => active_process(project, &tip.session),
            Some(_) => None,
        },
        name: tip.session.to_string(),
    };
    Ok(tips.into_iter().enumerate().map(row).collect())
}

/// Title of the plan that waits in a session. A damaged session must not hide the others.
fn waiting_plan(project: &Project, session: &SessionName) -> Option<String> {
    let (store, repository) = (project.store(), &project.repository);
    let draft = store.saved_draft(&store.tip(session).ok()?).ok()??;
    let text = |name: &str| {
        let bytes = repository.file(draft.tree, name).ok()??;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let meta: Meta = meta::read(&text(artifact::META)?).ok()?;
    let is_planned = meta.status == Status::Planned;
    is_planned.then(|| Some(plan::parse(&text(artifact::PLAN)?).0.title))?
}

impl SessionRow {
    /// The request, or the title of the newest turn of a session without one.
    pub fn label(&self) -> &str {
        self.request.as_deref().unwrap_or(&self.title)
    }
}

/// First line of the user's first request in a session. A branch starts with the requests of the
/// session that it shares turns with; `names` are the sessions that exist.
fn first_request(
    repository: &Repository,
    tip: &SessionTip,
    names: &HashSet<String>,
) -> Option<String> {
    let path = in_next(artifact::REQUESTS);
    let text = repository
        .file_up_to(tip.tree, &path, MAX_REQUESTS)
        .ok()??;
    let requests = Requests::read(&String::from_utf8_lossy(&text)).ok()?;
    let name = tip.session.own().to_string();
    // A renamed session has requests of its earlier name.
    let is_own =
        |request: &UserRequest| request.session == name || !names.contains(&request.session);
    let is_first = |request: &&UserRequest| {
        is_own(request) && request.work.is_none() && request.state != RequestState::Replaced
    };
    let first = requests.requests.iter().find(is_first)?;
    let mut lines = first.text.lines().map(str::trim);
    lines.find(|line| !line.is_empty()).map(str::to_owned)
}

/// `overlap_of` is called if a plan waits and the user's files could be read.
pub fn session_status(
    project: &Project,
    hook_troubles: Vec<String>,
    overlap_of: impl FnOnce(&Project) -> Option<PlanOverlap>,
) -> anyhow::Result<SessionStatus> {
    // `status` must work without a session.
    let Ok(session) = project.session() else {
        return Ok(SessionStatus {
            state: "none",
            hook_troubles,
            ..SessionStatus::default()
        });
    };

    let tip = project.store().tip(&session)?;
    let draft = project.store().draft(&tip)?;
    let planned = draft.is_planned().then(|| {
        let (plan, _) = plan::parse(&draft.artifacts.text_or_empty(artifact::PLAN));
        DraftRow {
            title: plan.title,
            actions: plan.actions.len(),
            is_foreign: !project.journal().owns_draft(&session, &draft),
        }
    });
    let is_open = planned.is_none() && !draft.is_asked_by_user();
    let workspace = changed_since(&project.checkout(), &tip);
    let is_comparable = draft.is_planned() && workspace.unknown.is_none();
    Ok(SessionStatus {
        hook_troubles,
        overlap: is_comparable.then(|| overlap_of(project)).flatten(),
        session: Some(session.to_string()),
        reference: Some(session.reference()),
        tip: Some(tip.commit),
        turn: Some(tip.number()),
        model: project.session_model(&session),
        state: match planned {
            Some(_) => "planned",
            None => "ready",
        },
        draft: planned,
        message: waiting(&draft),
        question: tip.question(&project.repository)?.filter(|_| is_open),
        conclusion: tip
            .conclusion(&project.repository)?
            .filter(|_| is_open && tip.is_concluding()),
        failure: draft.meta.failure.clone().filter(|_| !draft.is_planned()),
        landed: latest_landing(project, &tip)?,
        at_work: active_process(project, &session),
        workspace,
        rewritten: tip.rewritten,
    })
}

// In turns.
const MAX_TURNS_BACK: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LatestLanding {
    pub turn: u64,
    pub branch: String,
    /// A reset or `--amend` removes the newest commit.
    pub on_branch: bool,
    /// The branch was deleted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// Oldest first.
    pub commits: Vec<CommitId>,
    /// Commits with the turns after a rewrite, oldest first, if the branch has all of them, or
    /// `here`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub now: Vec<CommitId>,
    /// The remote-tracking branch that has the newest commit, if the branch has it in no form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// The current branch, if it has all commits in some form, and that branch does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub here: Option<String>,
    pub turns: Vec<u64>,
    /// Applied, not landed, and not in HEAD.
    pub waiting: Vec<u64>,
}

/// Among the last turns.
pub fn latest_landing(project: &Project, tip: &Turn) -> anyhow::Result<Option<LatestLanding>> {
    let (mut latest, mut landed_ids, mut others) = (None, HashSet::new(), Vec::new());
    let mut claims = LandingClaims::new(&project.repository, &tip.session);
    for turn in project.store().history(tip.clone()).take(MAX_TURNS_BACK) {
        let turn = turn?;
        let Some(landed) = claims.of(&turn) else {
            others.push(turn);
            continue;
        };
        let turns = landed.commits.iter().flat_map(|commit| &commit.turns);
        landed_ids.extend(turns.map(|turn| turn.turn_id));
        latest.get_or_insert((turn.number(), landed));
    }
    let Some((turn, landed)) = latest else {
        return Ok(None);
    };

    let newest = landed.commits.last();
    let on_branch = newest
        .is_some_and(|newest| is_on_branch(&project.repository, newest.commit, &landed.branch));
    // `None` if the branch lacks one of them.
    let commits_on = |branch: &str| {
        let commits = landed.commits.iter();
        let commits = commits.map(|commit| landed_as(&project.repository, branch, commit));
        let found: anyhow::Result<Option<Vec<CommitId>>> = commits.collect();
        found
    };
    let (mut now, mut gone, mut remote, mut here) = (None, false, None, None);
    if let Some(newest) = newest.filter(|_| !on_branch) {
        let repository = &project.repository;
        now = commits_on(&landed.branch)?;
        if now.is_none() {
            let reference = format!("refs/heads/{}", landed.branch);
            gone = landed.branch != "HEAD" && refs::resolve(repository, &reference).is_err();
            remote = landed_on_remote(repository, &landed.branch, newest)?;
            let current = refs::branch_or_head(repository)?;
            now = commits_on(&current)?;
            here = now.as_ref().map(|_| current);
        }
    }
    // A landing of some turns leaves others before it.
    others.retain(|turn| !landed_ids.contains(&turn.meta.turn_id));
    let turns = landed.commits.iter().flat_map(|commit| &commit.turns);
    Ok(Some(LatestLanding {
        turn,
        on_branch,
        gone,
        now: now.unwrap_or_default(),
        remote,
        here,
        turns: turns.map(|turn| turn.number).collect(),
        commits: landed.commits.iter().map(|landed| landed.commit).collect(),
        waiting: turns_to_land(project, tip, &others)?,
        branch: landed.branch,
    }))
}

/// `unlanded` is newest first, the result oldest first.
fn turns_to_land(project: &Project, tip: &Turn, unlanded: &[Turn]) -> anyhow::Result<Vec<u64>> {
    let stacks = Stacks::new(&project.repository);
    let (mut next, mut applied) = (stacks.after(tip)?.top, HashSet::new());
    while let Some(id) = next.filter(|_| applied.len() < MAX_TURNS_BACK) {
        let patch = stacks.patch(id)?;
        applied.insert(patch.change.after);
        next = patch.base.top;
    }

    let is_waiting = |turn: &&Turn| {
        let after = turn.meta.workspace.as_ref().map(|files| files.after);
        let is_there = after.is_some_and(|after| applied.contains(&after));
        let is_own = turn.meta.restored.is_none() && turn.meta.landed.is_none();
        is_there && is_patch(turn) && is_own
    };
    let waiting: Vec<&Turn> = unlanded.iter().filter(is_waiting).rev().collect();
    let numbers = || waiting.iter().map(|turn| turn.number()).collect();
    // Each is merged, and `status` must stay fast.
    if waiting.len() > MAX_MERGED {
        return Ok(numbers());
    }
    // A commit that cannot be read leaves the turns listed.
    Ok(not_in_head(project, tip, &waiting).unwrap_or_else(|_| numbers()))
}

/// Turns that are compared with HEAD.
const MAX_MERGED: usize = 20;

/// Turns that HEAD does not have already, such as from a landing of another session. Oldest first.
fn not_in_head(project: &Project, tip: &Turn, turns: &[&Turn]) -> anyhow::Result<Vec<u64>> {
    let repository = &project.repository;
    let head = refs::head(repository)?.context("there is no commit yet")?;
    let (mut tree, mut numbers) = (repository.commit(head)?.tree, Vec::new());
    for turn in turns {
        let files = turn.meta.workspace.as_ref().context("it has files")?;
        let [before, after] = trees_of(repository, files.change())?;
        let merged = merge_in_memory(repository, before, tree, after)?;
        let is_there =
            merged.ours == tree && is_contained(project, tip, turn, &merged.paths, true)?;
        if !is_there {
            numbers.push(turn.number());
        }
        if merged.is_clean() {
            tree = merged.ours;
        }
    }

    Ok(numbers)
}
