//! `push`: sends sessions to a remote, bare or with their code. Never forces, and never sends
//! before the user has seen what.
//!
//! git sends, with the user's credentials. What would not be accepted by `fetch` is not sent.

pub mod error;
pub mod findings;
pub mod preview;
pub mod remote_state;

use serde::Serialize;

use self::error::PushError;
use self::findings::LeakFinding;
use self::preview::{PreparedSession, Sender, SessionPreview};
use self::remote_state::read_remote_states;
use remote_state::{RemoteState, number, references};

use crate::config::settings::PushMode;
use crate::git::object::CommitId;
use crate::git::remote::error::{RemoteError, RemoteTrouble};
use crate::git::remote::transfer::{RefUpdate, SentRef, send_refs};
use crate::git::remote::{self, FetchProgress, RemoteName};
use crate::project::Project;
use crate::session::name::SessionName;
use crate::session::verify::{SharedChecks, check_newest};
use crate::text::hint::error_with_hint;
use crate::workflow::push::preview::PushOptions;

pub struct PreparedPush<'a> {
    pub remote: RemoteName,
    pub sessions: Vec<PreparedSession<'a>>,
}

/// What a push would send, or has sent.
#[derive(Debug, Clone, Serialize)]
pub struct PushResult {
    pub remote: RemoteName,
    pub sent: bool,
    pub sessions: Vec<SessionPreview>,
    pub findings: Vec<LeakFinding>,
}

/// The given remote, the configured one, or the one that git would use.
pub fn chosen_remote(project: &Project, remote_name: Option<&str>) -> anyhow::Result<RemoteName> {
    let remote_name = remote_name.or(project.settings.push.remote.as_deref());
    Ok(match remote_name {
        Some(name) => remote::find_by_name(&project.repository, name)?,
        None => remote::to_push_to(&project.repository)?,
    })
}

/// Asks the remote what it has, and scans what it lacks. Sends nothing.
pub fn prepare_push<'a>(
    project: &'a Project,
    options: &PushOptions,
) -> anyhow::Result<PreparedPush<'a>> {
    let remote = chosen_remote(project, options.remote.as_deref())?;
    let mut sessions = options.sessions.clone();
    if sessions.is_empty() {
        sessions.push(project.session()?);
    }
    for session in &sessions {
        let tip = project.store().tip_id(session).map(drop);
        tip.map_err(|error| meant_remote(error, project, session))?;
    }

    let targets: Vec<&SessionName> = match &options.target {
        Some(target) => vec![target],
        None => sessions.iter().collect(),
    };
    let listed = read_remote_states(&project.repository, &remote, &targets)?;
    let sender = Sender {
        project,
        remote: &remote,
        branches: remote::branches_to_push(&project.repository, &remote)?,
        options,
        home: home(project),
        redact: options.redacted(&project.settings),
    };
    let prepared = sessions.iter().zip(&listed);
    let prepared = prepared.map(|(session, remote_state)| sender.prepare(session, remote_state));
    let sessions = prepared.collect::<anyhow::Result<_>>()?;

    Ok(PreparedPush { remote, sessions })
}

/// `git push` takes a remote as its first argument; `teddy push` takes a session.
fn meant_remote(error: anyhow::Error, project: &Project, session: &SessionName) -> anyhow::Error {
    match remote::find_by_name(&project.repository, session.as_str()) {
        Ok(remote) => error_with_hint(
            error.to_string(),
            format!("`teddy push --remote {remote}` names the remote"),
        ),
        Err(_) => error,
    }
}

pub fn home(project: &Project) -> Option<String> {
    let home = project.user_dirs.home.as_ref()?;
    home.to_str().map(str::to_owned)
}

impl PreparedPush<'_> {
    pub fn preview(&self) -> PushResult {
        let sessions = self.sessions.iter();
        PushResult {
            remote: self.remote.clone(),
            sent: false,
            sessions: sessions
                .clone()
                .map(|session| session.preview.clone())
                .collect(),
            findings: sessions
                .flat_map(|session| session.findings.clone())
                .collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.sessions
            .iter()
            .all(|session| session.updates.is_empty())
    }

    /// Fails if the user has not allowed all findings.
    pub fn check(&self) -> Result<(), PushError> {
        let sessions = self
            .sessions
            .iter()
            .filter(|session| !session.updates.is_empty());
        let findings = sessions.flat_map(|session| {
            let is_plain = session.preview.redacted.is_empty();
            let disallowed = session.findings.iter().filter(|finding| !finding.allowed);
            disallowed.map(move |finding| (finding, is_plain && !finding.in_code))
        });
        let findings: Vec<(&LeakFinding, bool)> = findings.collect();
        match findings.first() {
            None => Ok(()),
            Some((first, _)) => Err(PushError::Findings {
                count: findings.len(),
                first: first.name.clone(),
                can_redact: findings.iter().any(|(_, can_redact)| *can_redact),
                // The same key or path can be in a file, too.
                in_code: self
                    .sessions
                    .iter()
                    .any(|session| session.preview.mode == PushMode::Code),
            }),
        }
    }

    pub fn send(self, project: &Project, progress: FetchProgress) -> anyhow::Result<()> {
        let mut updates = Vec::new();
        let mut sent = Vec::new();
        for session in self.sessions {
            if session.updates.is_empty() {
                continue;
            }

            // Objects of a copy are written only now; a preview leaves none.
            if let Some((copy, batch)) = session.copy {
                copy.write(&batch)?;
                batch.finish()?;
            }
            // What `fetch` would refuse must not be sent.
            check_as_fetched(project, &self.remote, &session.preview)?;
            updates.extend(session.updates);
            sent.push(session.preview);
        }

        let result = send_refs(&project.repository, &self.remote, &updates, progress);
        match result {
            Err(error) => classify_failure(error, project, &self.remote, &updates, &sent),
            Ok(()) => Ok(()),
        }
    }
}

/// Under the name that the session has for others.
fn check_as_fetched(
    project: &Project,
    remote: &RemoteName,
    sent: &SessionPreview,
) -> anyhow::Result<()> {
    let name = sent.target.at(remote.as_str());
    let new = usize::try_from(sent.new_turns).unwrap_or(usize::MAX);
    let checked = check_newest(
        &project.repository,
        &name,
        sent.to,
        new,
        &mut SharedChecks::default(),
    );
    match checked.faults.into_iter().next() {
        None => Ok(()),
        Some(fault) => Err(PushError::Unsound {
            session: sent.session.clone(),
            fault,
        }
        .into()),
    }
}

fn classify_failure(
    error: anyhow::Error,
    project: &Project,
    remote: &RemoteName,
    updates: &[RefUpdate],
    sent: &[SessionPreview],
) -> anyhow::Result<()> {
    let error: RemoteError = error.downcast()?;
    let is_race = error.trouble == RemoteTrouble::NotFastForward;
    let is_cut = matches!(
        error.trouble,
        RemoteTrouble::Dropped | RemoteTrouble::Unreachable | RemoteTrouble::Other
    );
    if !is_race && !is_cut {
        return Err(error.into());
    }

    // The remote can have accepted a push whose answer was lost.
    let names: Vec<&str> = updates.iter().map(|update| update.name.as_str()).collect();
    let Ok(listed) = remote::list_to_push(&project.repository, remote, &names) else {
        let hint = "the remote cannot be asked what has arrived; push again";
        return Err(error.helped(hint).into());
    };
    let is_done = |update: &&RefUpdate| {
        let reference = listed
            .iter()
            .find(|reference| reference.name == update.name);
        match (&update.to, reference) {
            (SentRef::Object(id), Some(reference)) => reference.target == *id,
            (SentRef::Deleted(_), reference) => reference.is_none(),
            (SentRef::Object(_), None) => false,
        }
    };
    let arrived = updates.iter().filter(is_done).count();

    let hint = match arrived {
        arrived if arrived == updates.len() => return Ok(()),
        0 if is_race => return Err(raced(error, project, remote, sent)),
        0 => "nothing was moved on the remote; push again",
        _ => "a part of it has arrived; push again",
    };
    Err(error.helped(hint).into())
}

fn raced(
    error: RemoteError,
    project: &Project,
    remote: &RemoteName,
    sent: &[SessionPreview],
) -> anyhow::Error {
    for preview in sent {
        let options = PushOptions {
            sessions: vec![preview.session.clone()],
            remote: Some(remote.to_string()),
            mode: Some(preview.mode),
            target: Some(preview.target.clone()),
            ..PushOptions::default()
        };
        let again = prepare_push(project, &options).err();
        if let Some(refusal) = again.filter(|error| error.is::<PushError>()) {
            return refusal;
        }
    }
    error.into()
}

#[derive(Debug, Clone, Serialize)]
pub struct DeletedSession {
    pub session: SessionName,
    pub refs: Vec<String>,
    /// Number of the newest turn, if that exists here.
    pub turns: Option<u64>,
    /// A local session of that name exists. It stays.
    pub is_here: bool,
    #[serde(skip)]
    updates: Vec<RefUpdate>,
}

/// Fails if a session does not exist on the remote.
pub fn sessions_to_delete(
    project: &Project,
    remote: &RemoteName,
    sessions: &[SessionName],
) -> anyhow::Result<Vec<DeletedSession>> {
    let names: Vec<&SessionName> = sessions.iter().collect();
    let listed = read_remote_states(&project.repository, remote, &names)?;
    let pairs = sessions.iter().zip(listed);
    pairs
        .map(|(session, remote_state)| session_to_delete(project, remote, session, &remote_state))
        .collect()
}

fn session_to_delete(
    project: &Project,
    remote: &RemoteName,
    session: &SessionName,
    remote_state: &RemoteState,
) -> anyhow::Result<DeletedSession> {
    let ids = [remote_state.code, remote_state.bare, remote_state.signature];
    let remote_refs = references(session).into_iter().zip(ids);
    let updates: Vec<RefUpdate> = remote_refs
        .filter_map(|(name, id)| {
            let to = SentRef::Deleted(id?);
            Some(RefUpdate { name, to })
        })
        .collect();
    if updates.is_empty() {
        return Err(error_with_hint(
            format!("remote `{remote}` has no session `{session}`"),
            format!("`git ls-remote {remote} 'refs/teddy/*'` lists what the remote has"),
        ));
    }

    let tip: Option<CommitId> = remote_state.code.or(remote_state.bare);
    let repository = &project.repository;
    Ok(DeletedSession {
        session: session.clone(),
        refs: updates.iter().map(|update| update.name.clone()).collect(),
        turns: tip.and_then(|tip| number(repository, tip)),
        is_here: project.store().tip_id(session).is_ok(),
        updates,
    })
}

/// Deletes a ref only if it still has the value that was shown.
pub fn delete_sessions(
    project: &Project,
    remote: &RemoteName,
    sessions: &[DeletedSession],
    progress: FetchProgress,
) -> anyhow::Result<()> {
    let updates = sessions.iter().flat_map(|one| one.updates.clone());
    let updates: Vec<RefUpdate> = updates.collect();
    send_refs(&project.repository, remote, &updates, progress)
}
