//! Branches a session at a turn, and switches sessions.
//!
//! None of these changes the user's files.

use uuid::Uuid;

use crate::git::history;
use crate::git::object::CommitId;
use crate::git::refs::{self, Expected, MoveError};
use crate::host::clock;
use crate::project::Project;
use crate::session::artifact::{self, Artifacts};
use crate::session::meta::{self, Meta, NextMeta, SCHEMA, Status};
use crate::session::name::SessionName;
use crate::session::store::{NewTurn, StoreError};
use crate::session::transition::Agent;
use crate::session::turn::Turn;
use crate::text::hint::error_with_hint;
use crate::workflow::conversation;
use crate::workflow::gc::forget;
use crate::workflow::model::agents;
use crate::workflow::open_session::OpenSession;
use crate::workflow::user::{Event, Notice, User};
use crate::workspace::complete::SessionMove;
use crate::workspace::stack::record::Written;
use crate::workspace::transaction::Transaction;

/// Switches to the new session.
pub fn branch_session(
    project: &mut Project,
    turn: &str,
    name: &SessionName,
    user: &mut dyn User,
) -> anyhow::Result<CommitId> {
    let commit = fork_session(project, turn, name, user)?;
    project.use_session(name)?;
    Ok(commit)
}

/// Like [`branch_session`], without switching.
pub(in crate::workflow) fn fork_session(
    project: &Project,
    turn: &str,
    name: &SessionName,
    user: &mut dyn User,
) -> anyhow::Result<CommitId> {
    let _lock = project.enter("branch", user)?;
    let from = project.store().turn(&project.session_of(turn)?, turn)?;
    if from.without_code {
        return Err(error_with_hint(
            format!(
                "the files of session `{}` were not pushed, so no turn can follow",
                from.session
            ),
            "`teddy push --code` on the other side sends them",
        ));
    }

    ensure_free(project, name)?;
    project.checkout().record_branch(&from, name)?;
    let log = format!("teddy: branch from {}", from.commit);
    refs::move_to(
        &project.repository,
        &name.reference(),
        Expected::Absent,
        from.commit,
        &log,
    )
    .map_err(|error| taken(error, name))?;
    project.journal().forget_model(name);
    if let Some(model) = project.session_model(&from.session) {
        project.journal().record_model(name, &model)?;
    }

    Ok(from.commit)
}

/// `Expected::Absent` alone is not enough: moving an existing ref to its own value succeeds.
fn ensure_free(project: &Project, name: &SessionName) -> anyhow::Result<()> {
    let is_taken = project.store().has(name)?;
    anyhow::ensure!(!is_taken, StoreError::Taken(name.clone()));
    Ok(())
}

fn taken(error: MoveError, name: &SessionName) -> anyhow::Error {
    match error {
        MoveError::Moved { .. } => StoreError::Taken(name.clone()).into(),
        MoveError::Store(error) => error,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenamedSession {
    /// The signature names the session, so it cannot follow.
    pub was_signed: bool,
}

/// With the plan that waits in it. Other checkouts that use it have to switch.
pub fn rename_session(
    project: &mut Project,
    old: &SessionName,
    new: &SessionName,
    user: &mut dyn User,
) -> anyhow::Result<RenamedSession> {
    let is_change = |name: &SessionName| name.as_str().starts_with("change/");
    anyhow::ensure!(!is_change(old), "session `{old}` is named after its change");
    let is_current = project.session().is_ok_and(|session| session == *old);
    let _old_lock = project.lock_session(old, "branch")?;
    // The lock of the same session would wait for itself.
    let _new_lock = (new != old).then(|| project.lock_session(new, "branch"));
    let _new_lock = _new_lock.transpose()?;
    let lock = project.enter("branch", user)?;
    let repository = &project.repository;
    let tip = project.store().tip(old)?;
    let draft = refs::read(repository, &old.draft_reference())?;
    let was_signed = refs::read_tag(repository, &old.signed_reference())?.is_some();
    let model = project.session_model(old);
    let is_own_draft = draft.is_some_and(|id| project.journal().own_drafts(old).contains(&id));

    // Every step before the last one leaves the old session whole.
    let messages = refs::log_messages(repository, old.reference().as_str())?;
    let earlier = messages
        .iter()
        .find_map(|message| earlier_names(message, old));
    let earlier = earlier.map_or(String::new(), |names| format!("{names}{THEN}"));
    let log = format!("{RENAME}{earlier}{old}{THEN}{new}");
    let (new_ref, new_draft) = (new.reference(), new.draft_reference());
    let absent = |name, to| refs::RefMove {
        name,
        expected: Expected::Absent,
        to,
    };
    ensure_free(project, new)?;
    project.checkout().record_branch(&tip, new)?;
    if let Some(draft) = draft.filter(|_| is_own_draft) {
        project.journal().record_draft(new, draft, None)?;
    }
    let mut moves = vec![absent(new_ref.as_str(), tip.commit)];
    moves.extend(draft.map(|draft| absent(new_draft.as_str(), draft)));
    refs::apply(repository, &moves, &log).map_err(|error| taken(error, new))?;
    conversation::rename(project, old, new)?;
    if let Some(model) = model {
        project.journal().record_model(new, &model)?;
    }
    forget(project, old)?;
    drop(lock);

    if is_current {
        project.use_session(new)?;
    }
    Ok(RenamedSession { was_signed })
}

/// Begins a rename in the log of a ref. All names that the session had follow.
const RENAME: &str = "teddy: rename ";
const THEN: &str = " to ";

/// Returns the names in the log of a rename to `name`.
fn earlier_names<'a>(message: &'a str, name: &SessionName) -> Option<&'a str> {
    let names = message.strip_prefix(RENAME)?.strip_suffix(name.as_str())?;
    names.strip_suffix(THEN)
}

/// Goes on with the name that another process gave the session of `tip` meanwhile. Returns whether
/// another process moved its tip.
pub fn follow_session(
    project: &mut Project,
    tip: &Turn,
    user: &mut dyn User,
) -> anyhow::Result<bool> {
    let old = &tip.session;
    let is_in_use = project.session().map_or(true, |session| session == *old);
    if !is_in_use {
        return Ok(false);
    }

    let new = current_name(project, tip, user)?;
    if new != *old {
        project.work_on(&new);
    }
    Ok(project.store().tip(&new)?.commit != tip.commit)
}

/// Returns the name that the session of `tip` has now. Fails if the session is gone, and no log of a
/// session says that it was this one.
pub(in crate::workflow) fn current_name(
    project: &Project,
    tip: &Turn,
    user: &mut dyn User,
) -> anyhow::Result<SessionName> {
    let old = &tip.session;
    if project.store().has(old)? {
        return Ok(old.clone());
    }

    let Some(new) = renamed_to(project, old, Some(tip.commit))? else {
        return Err(error_with_hint(
            format!("session `{old}` is gone: it was renamed or deleted meanwhile"),
            "`teddy sessions` lists the sessions, and `teddy switch <session>` goes to one",
        ));
    };
    user.report(Event::Notice(Notice::SessionRenamed {
        old: old.clone(),
        new: new.clone(),
    }));
    Ok(new)
}

/// Returns the session that had a name, and a turn. `None` if it is not certain.
pub(in crate::workflow) fn renamed_to(
    project: &Project,
    old: &SessionName,
    turn: Option<CommitId>,
) -> anyhow::Result<Option<SessionName>> {
    let repository = &project.repository;
    let mut found = Vec::new();
    for (name, newest) in project.store().sessions()? {
        // Another session can have had the name earlier.
        let has = |turn| history::is_ancestor(repository, turn, newest).unwrap_or(false);
        if turn.is_none_or(has)
            && (refs::log_messages(repository, &name.reference())?.iter())
                .filter_map(|message| earlier_names(message, &name))
                .any(|names| names.split(THEN).any(|name| name == old.as_str()))
        {
            found.push(name);
        }
    }
    let is_certain = found.len() == 1;
    Ok(found.pop().filter(|_| is_certain))
}

pub fn switch_session(project: &mut Project, name: &SessionName) -> anyhow::Result<()> {
    name.writable()?;
    project.store().tip(name)?;
    project.use_session(name)
}

/// Takes effect with the next plan. The new agent has no caller, so its CONCLUDE ends the work.
pub fn hand_to_agent(project: &Project, name: &str, user: &mut dyn User) -> anyhow::Result<String> {
    let agent = agents::agent(project, name)?;
    let mut session = OpenSession::current(project, "agent", user)?;
    let draft = &mut session.draft;
    if draft.is_planned() {
        return Err(error_with_hint(
            format!("a plan of the agent {} is waiting", draft.meta.agent),
            "`teddy execute` runs it",
        ));
    }

    draft.meta.agent.clone_from(&agent.name);
    draft.meta.caller_turn_id = None;
    draft
        .artifacts
        .insert(artifact::SYSTEM_PROMPT, agent.system_prompt);
    session.save_draft()?;
    Ok(agent.name)
}

const SESSION_CONTEXT: &str =
    "# Files, folders, patterns and pages that every turn of this session shows, one a line.\n";

/// Makes the session the current one. Returns its first commit.
pub fn start_session(
    transaction: &Transaction,
    project: &mut Project,
    name: &SessionName,
    agent: &Agent,
) -> anyhow::Result<CommitId> {
    let commit = create_session(transaction, project, name, agent)?;
    project.use_session(name)?;
    Ok(commit)
}

/// Named after `title`, with the configured agent. `command` is shown to processes that wait.
pub fn create_titled(
    project: &Project,
    title: &str,
    command: &str,
    user: &mut dyn User,
) -> anyhow::Result<(SessionName, CommitId)> {
    let agent = agents::agent(project, &project.settings.agent)?;
    let transaction = project.enter(command, user)?;
    let name = project.free_name(SessionName::from_title(title))?;
    let first = create_session(&transaction, project, &name, &agent)?;
    Ok((name, first))
}

/// Without making it the current one.
pub fn create_session(
    transaction: &Transaction,
    project: &Project,
    name: &SessionName,
    agent: &Agent,
) -> anyhow::Result<CommitId> {
    ensure_free(project, name)?;
    // The journal and the records of turns are JSON and YAML.
    let workdir = project.repository.workdir();
    if workdir.to_str().is_none() {
        return Err(error_with_hint(
            format!("the path `{}` is not valid UTF-8", workdir.display()),
            "rename the directory; TeDDy records paths in files that must be UTF-8",
        ));
    }

    project.journal().forget_model(name);
    let commit = write_first_turn(project, name, agent)?;
    let step = SessionMove {
        expected: Expected::Absent,
        new: commit,
        published: Written::default(),
        log: "teddy: start".to_owned(),
        anyway: false,
        overwrite: false,
    };

    let completed = transaction.complete(&project.checkout(), name, &step, None);
    completed.map_err(|error| match error.downcast_ref::<MoveError>() {
        Some(MoveError::Moved { .. }) => StoreError::Taken(name.clone()).into(),
        _ => error,
    })?;
    Ok(commit)
}

fn write_first_turn(
    project: &Project,
    name: &SessionName,
    agent: &Agent,
) -> anyhow::Result<CommitId> {
    let turn_id = Uuid::now_v7();
    let now = Some(clock::stamp());
    let meta = Meta {
        started: now.clone(),
        ended: now,
        ..Meta::of(turn_id, 0, Status::Started, &agent.name)
    };
    let next = NextMeta {
        schema: SCHEMA,
        parent_turn_id: turn_id,
        caller_turn_id: None,
        agent: agent.name.clone(),
    };

    let mut artifacts = Artifacts::default();
    artifacts.insert(artifact::SESSION_CONTEXT, SESSION_CONTEXT);
    artifacts.insert(&format!("{}{}", artifact::NEXT, artifact::TURN_CONTEXT), "");
    artifacts.insert(
        &format!("{}{}", artifact::NEXT, artifact::SYSTEM_PROMPT),
        agent.system_prompt.as_str(),
    );
    artifacts.insert(
        &format!("{}{}", artifact::NEXT, artifact::META),
        meta::write(&next),
    );
    let title = format!("Start session {name}");
    let store = project.store();

    store.write(NewTurn {
        session: name,
        title: &title,
        results: &[],
        artifacts,
        meta: &meta,
        previous: None,
        workspace: None,
        publication: None,
    })
}
