//! Workflows of a change (plan, impl, archive) and the steps they consist of.
//!
//! A step asks a model or the user for one thing and records the answer as one commit, so an
//! interrupted call loses at most one answer. Workflows decide by the phase only; a step reads the
//! documents to see what is left to do.

pub mod archive;
mod ask;
pub mod discarded;
pub mod implement;
pub mod judge;
pub mod plan;
mod reopen;
pub mod status;
pub mod work;

use std::collections::BTreeSet;

use anyhow::Context as _;

use self::reopen::reopen_undone;
use crate::change::document::Documents;
use crate::change::finding::is_usable;
use crate::change::id::ChangeId;
use crate::change::phase::{self, ChangeStep};
use crate::change::spec;
use crate::change::state::{Base, ChangeEntry, ChangeState, StepUsage};
use crate::change::store::{self, Change, ChangeError, ChangeStore};
use crate::git::diff::TreeChange;
use crate::git::keep::protect::{self, MergePolicy};
use crate::git::object::TreeId;
use crate::git::refs::{self, Expected, MoveError};
use crate::host::clock;
use crate::host::lock::{Lock, patience};
use crate::project::Project;
use crate::session::turn::Turn;
use crate::text::path::lossy;
use crate::text::secret::redact;
use crate::workflow::user::{Event, Notice, User, telling};
use crate::workspace::Checkout;
use crate::workspace::drift::{Drift, MissingChange, TurnName, WhyMissing, drift};
use crate::workspace::file_move::changes_of;
use crate::workspace::recover::Depth;
use crate::workspace::snapshot;
use crate::workspace::stack::is_patch;

/// What the user asked for.
#[derive(Debug, Clone)]
pub struct ChangeRequest {
    pub id: ChangeId,
    /// Required for a new change, ignored otherwise.
    pub description: Option<String>,
    /// For all roles, instead of the configured models.
    pub model: Option<String>,
    /// To the author: what to revise. To the implementer: an answer to its question, or additional
    /// instructions.
    pub message: Option<String>,
}

impl ChangeRequest {
    pub fn of(id: ChangeId) -> ChangeRequest {
        ChangeRequest {
            id,
            description: None,
            model: None,
            message: None,
        }
    }
}

/// A change under its lock, which is held for the whole command, unlike that of the repository.
pub struct OpenChange<'a> {
    pub change: Change,
    project: &'a Project,
    request: &'a ChangeRequest,
    user: &'a mut dyn User,
    command: &'static str,
    /// Of a model, for the step that records it.
    answer: Option<(String, StepUsage)>,
    _lock: Lock,
}

impl<'a> OpenChange<'a> {
    pub fn open(
        project: &'a mut Project,
        request: &'a ChangeRequest,
        command: &'static str,
        user: &'a mut dyn User,
    ) -> anyhow::Result<OpenChange<'a>> {
        let read = |project: &Project| change_store(project).read(&request.id);
        OpenChange::lock(project, request, command, user, &read)
    }

    /// A change that does not exist begins with its first step, and needs a description.
    pub fn open_or_begin(
        project: &'a mut Project,
        request: &'a ChangeRequest,
        command: &'static str,
        user: &'a mut dyn User,
    ) -> anyhow::Result<OpenChange<'a>> {
        let read =
            |project: &Project| match refs::read(&project.repository, &request.id.reference())? {
                Some(_) => change_store(project).read(&request.id),
                None => begin(project, request),
            };
        OpenChange::lock(project, request, command, user, &read)
    }

    /// Also recovers. The project's session is that of the change from then on.
    fn lock(
        project: &'a mut Project,
        request: &'a ChangeRequest,
        command: &'static str,
        user: &'a mut dyn User,
        read: &dyn Fn(&Project) -> anyhow::Result<Change>,
    ) -> anyhow::Result<OpenChange<'a>> {
        let lock = Lock::take(&change_dir(project, &request.id), command, patience())?;
        project.recover(Depth::Tips, &mut telling(user))?;
        project.work_on(&request.id.session());
        let mut change = read(project)?;
        reopen_undone(project, &mut change)?;
        Ok(OpenChange {
            change,
            project,
            request,
            user,
            command,
            answer: None,
            _lock: lock,
        })
    }

    fn allow(&self, step: ChangeStep) -> Result<(), ChangeError> {
        if phase::allows(self.change.state.phase, step) {
            Ok(())
        } else {
            Err(self.not_ready())
        }
    }

    fn not_ready(&self) -> ChangeError {
        ChangeError::ChangeNotReady {
            id: self.change.id.clone(),
            phase: self.change.state.phase,
            wanted: self.command,
        }
    }

    /// Reports mistakes, and fails if the documents are unusable.
    fn require_usable(&mut self) -> anyhow::Result<()> {
        let id = self.change.id.clone();
        let findings = self.change.documents.check(&id);
        if is_usable(&findings) {
            return Ok(());
        }

        let (count, phase) = (findings.len(), self.change.state.phase);
        self.user
            .report(Event::Notice(Notice::DocumentMistakes(findings)));
        Err(ChangeError::Invalid { id, phase, count }.into())
    }

    fn require_done(&self) -> Result<(), ChangeError> {
        let (done, tasks) = self.change.documents.progress();
        match tasks - done {
            0 => Ok(()),
            open => Err(ChangeError::OpenTasks {
                id: self.change.id.clone(),
                open,
            }),
        }
    }

    /// Reports turns of the work that are not in the user's files.
    fn report_lacking(&mut self) -> anyhow::Result<()> {
        let (store, session) = (self.project.store(), self.change.id.session());
        if store.has(&session)? {
            let files = files_now(self.project)?;
            let (checkout, tip) = (self.project.checkout(), store.tip(&session)?);
            let drift = drift(&checkout, &tip, files)?;
            let turns = lacking_of(&checkout, &drift, &tip)?;
            if !turns.is_empty() {
                let is_exact = drift.same_turns == Some(true);
                let notice = Notice::WorkLacking(session, turns, is_exact);
                self.user.report(Event::Notice(notice));
            }
        }
        Ok(())
    }

    /// Takes the repository lock. An answer that cannot be recorded is kept for the user, and counts.
    fn save(
        &mut self,
        step: ChangeStep,
        entry: ChangeEntry,
        title: &str,
        lines: &[String],
    ) -> anyhow::Result<()> {
        let answer = self.answer.take();
        let lock = self
            .project
            .checkout()
            .lock("change")
            .map_err(anyhow::Error::from);
        let saved = lock.and_then(|_lock| self.save_locked(step, entry, title, lines));
        let (Err(error), Some((text, usage))) = (&saved, answer) else {
            return saved;
        };
        discarded::add(self.project, &self.change.id, &usage)
            .with_context(|| format!("{error:#}"))?;
        let location = self.keep(&text);
        saved.with_context(|| format!("the answer was not recorded{location}"))
    }

    /// Records a step as one commit. The caller holds the repository lock.
    fn save_locked(
        &mut self,
        step: ChangeStep,
        mut entry: ChangeEntry,
        title: &str,
        lines: &[String],
    ) -> anyhow::Result<()> {
        let repository = &self.project.repository;
        let before = &self.change;
        let mut after = before.clone();
        entry.at = now();
        after
            .state
            .apply(step, entry)
            .map_err(|_| self.not_ready())?;
        let message = store::commit_message(title, lines, &after.state);
        let (commit, tree) = change_store(self.project).write(&after, &message)?;
        let reached = before.commit.map(|_| before.tree);
        let protected = protect::protect_commits(
            repository,
            &[commit],
            reached.as_slice(),
            MergePolicy::Merge,
        )?;
        let protected = protected.context("`git gc` removed objects of the step while it was recorded; nothing was changed, try again")?;
        let reference = before.id.reference();
        let expected = before.commit.map_or(Expected::Absent, Expected::At);
        let log = format!("teddy: change {}", step.word());

        // The ref moves last: a crash before this line leaves only unreachable objects.
        refs::move_to(repository, &reference, expected, commit, &log).map_err(
            |error| match error {
                MoveError::Moved { .. } => anyhow::anyhow!(
                    "another process added a step to change `{}`; nothing was changed",
                    before.id
                ),
                MoveError::Store(error) => error,
            },
        )?;

        refs::sync(repository, &reference)?;
        protect::release_protected(repository, &protected)?;
        self.change = Change {
            commit: Some(commit),
            tree,
            ..after
        };
        Ok(())
    }
}

/// Turns of the session of a change that are not in the user's files.
fn lacking_of(checkout: &Checkout<'_>, drift: &Drift, tip: &Turn) -> anyhow::Result<Vec<TurnName>> {
    let session = tip.session.as_str();
    let mut turns = drift.lacking.clone();
    turns.retain(|turn| turn.session == session);
    if drift.branch.is_none() || drift.missing.is_empty() {
        return Ok(turns);
    }

    // git took the files of these turns away when it changed to another branch.
    let is_gone = |missing: &MissingChange| {
        matches!(
            missing.why,
            WhyMissing::NotOnBranch { .. } | WhyMissing::TakenBack { .. }
        )
    };
    let gone = drift.missing.iter().filter(|missing| is_gone(missing));
    let gone: BTreeSet<&str> = gone.map(|missing| missing.path.as_str()).collect();
    for turn in checkout.store().history(tip.clone()) {
        let turn = turn?;
        let Some(workspace) = turn.meta.workspace.as_ref().filter(|_| is_patch(&turn)) else {
            continue;
        };
        let changes = changes_of(checkout.repository, workspace.change())?;
        let is_gone = |change: &TreeChange| gone.contains(lossy(&change.path).as_str());
        let is_listed = turns.iter().any(|listed| listed.turn == turn.number());
        if !is_listed && changes.iter().any(is_gone) {
            turns.push(TurnName {
                session: session.to_owned(),
                turn: turn.number(),
                is_deleted: false,
            });
        }
    }
    Ok(turns)
}

fn now() -> String {
    clock::now().timestamp().to_string()
}

/// For its lock and for answers that were not recorded.
fn change_dir(project: &Project, id: &ChangeId) -> std::path::PathBuf {
    let changes = project.repository.teddy_dir().join("changes");
    changes.join(id.as_str())
}

fn begin(project: &Project, request: &ChangeRequest) -> anyhow::Result<Change> {
    let id = &request.id;
    let description = request.description.as_deref().map(str::trim);
    let description = description
        .filter(|text| !text.is_empty())
        .ok_or_else(|| ChangeError::MissingDescription(id.clone()))?;
    let (tree, specs) = change_store(project).beginning(files_now(project)?)?;
    let base = Base {
        commit: refs::head(&project.repository)?,
        specs,
    };

    Ok(Change {
        id: id.clone(),
        commit: None,
        tree,
        state: ChangeState::new(id, &redact(description), base, &now()),
        documents: Documents::default(),
        undone: Vec::new(),
    })
}

pub fn change_store(project: &Project) -> ChangeStore<'_> {
    ChangeStore {
        repository: &project.repository,
    }
}

/// For reading, also if its session is damaged.
pub fn open_change(project: &Project, id: &ChangeId) -> anyhow::Result<Change> {
    let mut change = change_store(project).read(id)?;
    let _ = reopen_undone(project, &mut change);
    Ok(change)
}

/// Specs count even if git ignores them.
fn spec_paths(project: &Project) -> Vec<Vec<u8>> {
    let dir = project.repository.workdir().join(spec::DIR);
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let names = files.filter_map(|entry| entry.file_name().into_string().ok());
    let paths = names.map(|name| format!("{}{name}", spec::DIR));
    paths
        .filter(|path| spec::id_of(path).is_some())
        .map(String::into_bytes)
        .collect()
}

fn files_now(project: &Project) -> anyhow::Result<TreeId> {
    let _lock = project.checkout().lock("change")?;
    Ok(
        snapshot::snapshot(&project.checkout(), &spec_paths(project))
            .context("recording your files")?
            .tree,
    )
}

/// In a change and its session. A replay continues with the answer after these.
pub fn answers_in_change(project: &Project, id: &ChangeId, model: &str) -> anyhow::Result<usize> {
    let mut count = match refs::read(&project.repository, &id.reference())? {
        Some(_) => open_change(project, id)?.state.answers_of(model),
        None => 0,
    };
    let (store, session) = (project.store(), id.session());
    if store.has(&session)? {
        for turn in store.history(store.tip(&session)?) {
            count += usize::from(turn?.meta.model.is_some_and(|used| used.asked == model));
        }
    }

    Ok(count)
}
