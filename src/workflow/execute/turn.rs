//! Writes the commit of a turn and completes it.

use super::planned::PlannedTurn;
use super::result::{AppliedFile, ModelQuestion, RecordedTurn, TurnEnding};
use crate::git::diff;
use crate::git::object::CommitId;
use crate::git::refs::Expected;
use crate::git::repository::Repository;
use crate::git::worktree::registered::register_worktree;
use crate::host::clock;
use crate::host::file::Root;
use crate::plan::Plan;
use crate::plan::run::{Ending, Outcome};
use crate::project::Project;
use crate::session::artifact::{self, Artifacts, MAX_MODEL_MESSAGE};
use crate::session::meta::{
    self, Approver, Meta, NextMeta, NotCaptured, SCHEMA, Status, Workspace,
};
use crate::session::report::{
    Modification, Report, bounded_difference, difference_name, output_name, proposed_name,
};
use crate::session::store::NewTurn;
use crate::session::transition::Next;
use crate::text::beginning;
use crate::text::context_list;
use crate::text::damage::{Damage, FileDamage};
use crate::text::path::{lossy, lossy_paths};
use crate::text::resource::Artifact;
use crate::workflow::damage::find_damage;
use crate::workflow::open_session::OpenSession;
use crate::workflow::plan::message_of;
use crate::workspace::complete::{Completed, SessionMove};
use crate::workspace::file_move::{FileMove, PathChange, changes_of, trees_of};
use crate::workspace::notice::obstacles;
use crate::workspace::stack::record::publish_turn;
use crate::workspace::transaction::Transaction;

/// In bytes, with space for the note that the text was truncated. `plan.md` has all of it.
const MOST_SAID: usize = MAX_MODEL_MESSAGE - 64;

pub(super) struct EndedTurn<'a> {
    pub ending: TurnEnding,
    /// As it ran, or as it was proposed.
    pub plan: &'a Plan,
    /// If it differs from the proposed text.
    pub approved: Option<String>,
    /// Whether each memo was applied.
    pub memos: &'a [bool],
    pub modifications: Vec<(usize, Modification)>,
    pub next: Next,
    pub workspace: Workspace,
    /// Made by commands to the repository itself.
    pub repository_changes: Vec<String>,
    pub not_captured: Vec<NotCaptured>,
}

impl EndedTurn<'_> {
    /// Records the turn, and updates the user's files by `files`.
    pub fn record(
        self,
        planned: &PlannedTurn<'_>,
        transaction: &Transaction,
        files: Option<&FileMove>,
    ) -> anyhow::Result<RecordedTurn> {
        let OpenSession { project, tip, .. } = &planned.session;
        let to = files.map(|files| files.to);
        let published = publish_turn(&project.repository, tip, &self.workspace, to, &[])?;
        let (commit, meta) = write(planned, &self, published.id)?;
        let subject = format!("teddy: turn {} {}", meta.number, meta.status.word());
        let step = SessionMove {
            expected: Expected::At(tip.commit),
            new: commit,
            published,
            log: subject,
            // The turn records that the user asked to stop.
            anyway: meta.status == Status::Interrupted,
            overwrite: false,
        };

        // Before the files are replaced: afterwards nothing shows their hard links.
        let damage = damage_by_commands(project, &self);
        let Completed {
            commit,
            published: result,
            ..
        } = transaction.complete(&project.checkout(), &tip.session, &step, files)?;
        if matches!(
            self.ending,
            TurnEnding::Ran { .. } | TurnEnding::Interrupted { .. }
        ) {
            // Only shows the worktree to git. The turn is complete without.
            let folder = tip.session.dir_name();
            let _ = register_worktree(&project.repository, &folder, self.workspace.after);
        }
        let mut overlaps = self.workspace.overlaps.clone();
        overlaps.extend(lossy_paths(&result.conflict_paths()));
        let has_arrived = overlaps.is_empty() && meta.status != Status::Interrupted;
        let applied = if has_arrived {
            list_applied_files(&project.repository, &self.workspace)?
        } else {
            Vec::new()
        };

        // The turn is recorded, whatever is not known of its files.
        let mut damage = damage.unwrap_or_default();
        let cut = Damage::HardLinkCut { others: 1 }.kind();
        damage.retain(|damage| has_arrived || damage.kind != cut);
        Ok(RecordedTurn {
            session: tip.session.clone(),
            turn: meta.number,
            commit,
            before: self.workspace.before,
            after: self.workspace.after,
            plan: self.plan.clone(),
            ending: self.ending,
            question: self.next.question.map(ModelQuestion::open),
            only_read: meta.approved_by == Some(Approver::Reads) && !has_message(self.plan),
            answer: message_of(self.plan).filter(|_| planned.validated.prose.is_some()),
            applied,
            overlaps,
            obstacles: obstacles(&result),
            damage,
            not_captured: Vec::new(),
            drift: planned.drift.clone(),
        })
    }
}

/// What edits do to a file is among the risks of the review already.
fn damage_by_commands(project: &Project, ended: &EndedTurn<'_>) -> anyhow::Result<Vec<FileDamage>> {
    let repository = &project.repository;
    let mut actions = ended.plan.actions.iter();
    if !actions.any(|action| action.kind.command().is_some()) {
        return Ok(Vec::new());
    }
    let [before, after] = trees_of(repository, ended.workspace.change())?;
    let disk = Root::open(repository.workdir())?;
    find_damage(repository, before, after, Some(&disk))
}

fn write(
    planned: &PlannedTurn<'_>,
    ended: &EndedTurn<'_>,
    publication: Option<CommitId>,
) -> anyhow::Result<(CommitId, Meta)> {
    let OpenSession {
        project,
        tip,
        draft,
        ..
    } = &planned.session;
    let now = clock::stamp();
    let status = ended.ending.status();
    let meta = Meta {
        status,
        ended: Some(now),
        planned_on: None,
        // Otherwise of a call whose work was discarded.
        acted: draft.meta.acted.clone().filter(|_| draft.meta.made),
        interruption: ended.ending.interruption().map(ToString::to_string),
        workspace: Some(ended.workspace.clone()),
        mistakes: if status == Status::Rejected {
            planned.validated.mistakes()
        } else {
            Vec::new()
        },
        not_captured: ended.not_captured.clone(),
        repository_changes: ended.repository_changes.clone(),
        ..draft.meta.clone()
    };

    let mut artifacts = draft.artifacts.clone();
    if let Some(approved) = &ended.approved {
        artifacts.insert(artifact::APPROVED, approved.as_str());
    }

    artifacts.insert(artifact::REPORT, report(planned, ended, &meta));
    outputs(&mut artifacts, ended.ending.outcomes());
    changes(&mut artifacts, ended, project.settings.execute.output_limit);
    next_artifacts(&mut artifacts, &ended.next);
    let summary_lines = summary(&project.repository, ended)?;
    let title = if ended.plan.title.is_empty() {
        "(no title)"
    } else {
        &ended.plan.title
    };

    let new = NewTurn {
        session: &tip.session,
        title,
        results: &summary_lines,
        artifacts,
        meta: &meta,
        previous: Some(tip.commit),
        workspace: Some(ended.workspace.after),
        publication,
    };
    Ok((project.store().write(new)?, meta))
}

fn report(planned: &PlannedTurn<'_>, ended: &EndedTurn<'_>, meta: &Meta) -> String {
    let OpenSession {
        project,
        tip,
        draft,
        ..
    } = &planned.session;
    let plan_name = Artifact {
        session: tip.session.to_string(),
        turn: meta.number,
        name: artifact::PLAN.to_owned(),
    }
    .to_string();
    let prompt = draft.artifacts.text_or_empty(artifact::USER_PROMPT);

    // A message by TeDDy is in its own artifact. In the report, later turns would see it.
    let prompt = Some(prompt).filter(|_| draft.is_asked_by_user());
    let rejected = meta.status == Status::Rejected;
    let text = Report {
        plan_name: &plan_name,
        status: meta.status,
        started: meta.started.as_deref().unwrap_or_default(),
        ended: meta.ended.as_deref().unwrap_or_default(),
        user_prompt: prompt.as_deref().unwrap_or_default(),
        plan: ended.plan,
        outcomes: ended.ending.outcomes(),
        memos: ended.memos,
        proposed_memos: &planned.validated.plan.memos,
        modifications: &ended.modifications,
        approved_by: meta.approved_by,
        interruption: meta.interruption.as_deref(),
        repairs: &planned.validated.repaired.notes,
        diagnostics: if rejected {
            planned.validated.diagnostics()
        } else {
            &[]
        },
        outline: planned.validated.outline.as_deref().filter(|_| rejected),
        overlaps: &ended.workspace.overlaps,
        not_captured: &meta.not_captured,
        repository_changes: &meta.repository_changes,
        output_limit: project.settings.execute.output_limit,
    }
    .render();
    // The report goes to the model and can be pushed.
    crate::text::secret::redact(&text).into_owned()
}

fn outputs(artifacts: &mut Artifacts, outcomes: &[Outcome]) {
    for (index, outcome) in outcomes
        .iter()
        .enumerate()
        .filter(|(_, outcome)| !outcome.output.is_empty())
    {
        let text = String::from_utf8_lossy(&outcome.output);
        artifacts.insert(
            &output_name(index),
            crate::text::secret::redact(&text).into_owned(),
        );
    }
}

fn changes(artifacts: &mut Artifacts, ended: &EndedTurn<'_>, limit: usize) {
    let ran = ended.ending.outcomes().iter().enumerate();
    let ran = ran.map(|(index, outcome)| (difference_name(index), &outcome.difference));
    let proposed = ended.modifications.iter().map(|(index, changed)| {
        let (Modification::File(change) | Modification::Action(change)) = changed;
        (proposed_name(*index), change)
    });

    for (name, change) in ran.chain(proposed) {
        let change = crate::text::secret::redact(change);
        // Only if the report truncates it.
        if bounded_difference(&change, limit).is_some() {
            artifacts.insert(&name, change.into_owned());
        }
    }
}

fn next_artifacts(artifacts: &mut Artifacts, next: &Next) {
    // Several forks can continue from here, so the next turn has no id yet.
    let meta = NextMeta {
        schema: SCHEMA,
        parent_turn_id: next.parent_turn_id,
        caller_turn_id: next.caller_turn_id,
        agent: next.agent.clone(),
    };
    let mut put = |name: &str, content: String| {
        artifacts.insert(&format!("{}{name}", artifact::NEXT), content)
    };
    put(artifact::META, meta::write(&meta));
    put(artifact::TURN_CONTEXT, context_list::write(&next.context));
    put(artifact::SYSTEM_PROMPT, next.system_prompt.clone());
    put(artifact::REQUESTS, next.requests.write());

    for (name, text) in [
        (artifact::QUESTION, &next.question),
        (artifact::CONCLUSION, &next.conclusion),
    ] {
        let text = text.as_deref().map(|text| beginning(text, MOST_SAID));
        text.into_iter()
            .for_each(|text| put(name, text.into_owned()));
    }
}

fn list_applied_files(
    repository: &Repository,
    workspace: &Workspace,
) -> anyhow::Result<Vec<AppliedFile>> {
    let row = |change: diff::TreeChange| AppliedFile {
        path: lossy(&change.path),
        change: PathChange::of(&change.old, &change.new),
    };
    Ok(changes_of(repository, workspace.change())?
        .into_iter()
        .map(row)
        .collect())
}

fn summary(repository: &Repository, ended: &EndedTurn<'_>) -> anyhow::Result<Vec<String>> {
    let actions = ended.plan.actions.iter().zip(ended.ending.outcomes());
    let mut lines: Vec<String> = actions
        .map(|(action, outcome)| {
            let ending = match outcome.ending {
                Ending::Success => "done",
                Ending::Failure => "failed",
                Ending::Skipped => "skipped",
            };
            format!("{} {}: {ending}", action.kind.name(), action.kind.target())
        })
        .collect();
    let changes = changes_of(repository, ended.workspace.change())?;

    if !changes.is_empty() {
        lines.push(format!(
            "{} changed",
            crate::text::counted(changes.len(), "file")
        ));
    }

    if let Some(why) = ended.ending.interruption() {
        lines.push(format!("your files were not updated: {why}"));
    } else if !ended.workspace.synced {
        lines
            .push("not applied to the workspace: it overlaps with the user's own edits".to_owned());
    }

    Ok(lines)
}

fn has_message(plan: &Plan) -> bool {
    let mut actions = plan.actions.iter();
    actions.any(|action| action.kind.message().is_some())
}
