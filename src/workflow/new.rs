//! Starts a session.

use uuid::Uuid;

use crate::git::object::CommitId;
use crate::git::refs::{self, Expected, MoveError};
use crate::host::clock;
use crate::session::artifact::{self, Artifacts};
use crate::session::meta::{self, Meta, NextMeta, SCHEMA, Status};
use crate::session::name::SessionName;
use crate::session::store::{NewTurn, StoreError};
use crate::session::transition::Agent;
use crate::workflow::project::Project;
use crate::workspace::complete::SessionMove;
use crate::workspace::stack::record::Written;
use crate::workspace::transaction::Transaction;

const SESSION_CONTEXT: &str =
    "# Files, folders, patterns and pages that every turn of this session shows, one a line.\n";

/// Starts a session and makes it the current one. Returns its first commit.
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

/// Starts a session without making it the current one.
pub fn create_session(
    transaction: &Transaction,
    project: &Project,
    name: &SessionName,
    agent: &Agent,
) -> anyhow::Result<CommitId> {
    if refs::read(&project.repository, &name.reference())?.is_some() {
        return Err(StoreError::Taken(name.clone()).into());
    }

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

/// Writes turn 0.
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
