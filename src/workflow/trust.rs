//! `trust`: shows what a repository's `.teddy/` contains, or how it changed since it was trusted,
//! and remembers the decision.
//!
//! Also accepts sessions of others.

use crate::config::trust::{Trust, TrustRecord};
use crate::git::refs;
use crate::git::refs::Expected;
use crate::project::Project;
use crate::session::artifact;
use crate::session::journal::OwnTip;
use crate::session::name::SessionName;
use crate::session::verify;
use crate::text::diff::unified;
use crate::text::hint::error_with_hint;
use crate::text::sanitize::{sanitize_block, sanitize_line};
use crate::workflow::lifecycle::branch_session;
use crate::workflow::open_session::OpenSession;
use crate::workflow::user::User;

pub struct TrustProposal {
    /// The contents, or a diff to the trusted ones.
    pub text: String,
    /// Exactly this is already trusted.
    pub is_trusted: bool,
    /// No file requires trust.
    pub is_empty: bool,
}

pub fn trust_proposal(project: &Project) -> anyhow::Result<TrustProposal> {
    let now = &project.proposed;
    let record = trust_store(project).record();
    let mut text = String::new();
    let names: std::collections::BTreeSet<&String> =
        now.keys().chain(record.files.keys()).collect();

    for name in names {
        let (old, new) = (record.files.get(name), now.get(name));
        let diff = match (old, new) {
            (Some(old), Some(new)) if old == new => continue,
            (None, Some(new)) => format!(
                "--- .teddy/{}\n{}\n",
                sanitize_line(name),
                sanitize_block(new)
            ),
            (Some(old), new) => sanitize_block(&unified(
                old,
                new.map_or("", String::as_str),
                ("trusted", &sanitize_line(name)),
            ))
            .into_owned(),
            (None, None) => continue,
        };
        text.push_str(&diff);
    }

    Ok(TrustProposal {
        text,
        is_trusted: record.covers(now),
        is_empty: now.is_empty(),
    })
}

/// Trusts exactly what [`trust_proposal`] showed, even if the files changed since, or revokes all
/// trust.
pub fn remember_trust(project: &Project, trusted: bool) -> anyhow::Result<()> {
    let record = if trusted {
        TrustRecord {
            files: project.proposed.clone(),
        }
    } else {
        TrustRecord::default()
    };
    Ok(trust_store(project).remember(&record)?)
}

fn trust_store(project: &Project) -> Trust {
    Trust::of(&project.user_dirs.config, &project.repository.common_dir())
}

// Which sessions the user made or accepted is recorded in the git directory, which fetch and clone
// do not copy. A session of someone else's can be read, but its plan does not run.

#[derive(Debug, Clone)]
pub struct Adopted {
    /// Number of the newest turn.
    pub turns: u64,
    pub plan: Option<String>,
}

/// Branches the session to a local one of its own name, or appends its new turns to that one.
pub fn adopt_remote(
    project: &mut Project,
    session: &SessionName,
    user: &mut dyn User,
) -> anyhow::Result<Adopted> {
    require_sound(project, session)?;
    let own = session.own();
    if !fast_forward(project, session, &own, user)? {
        branch_session(project, &format!("{session}:@"), &own, user)?;
    }
    accept(project, &own, user)
}

/// A session that plain git fetched was not checked.
fn require_sound(project: &Project, session: &SessionName) -> anyhow::Result<()> {
    let tip = project.store().tip_id(session)?;
    match verify::check(&project.repository, session, tip)
        .faults
        .first()
    {
        None => Ok(()),
        Some(fault) => Err(error_with_hint(
            format!("session `{session}` is not sound, so it was not adopted: {fault}"),
            format!("`teddy verify {session}` lists its faults"),
        )),
    }
}

/// Moves the user's session to the newest turn of the remote's, unless it has that turn. Returns
/// `false`, with nothing changed, if that one does not continue it, came without code, or a draft
/// waits in the user's.
fn fast_forward(
    project: &Project,
    session: &SessionName,
    own: &SessionName,
    user: &mut dyn User,
) -> anyhow::Result<bool> {
    let (repository, store) = (&project.repository, project.store());
    if !store.has(own)? {
        return Ok(false);
    }

    let _session_lock = project.lock_session(own, "switch")?;
    let _lock = project.enter("switch", user)?;
    let (old, new) = (store.tip(own)?, store.turn(session, "@")?);
    if new.number() <= old.number() {
        return Ok(store.earlier(&old, new.number())?.commit == new.commit);
    }
    let has_draft = refs::read(repository, &own.draft_reference())?.is_some();
    if has_draft || new.without_code {
        return Ok(false);
    }
    let shared = store.earlier(&new, old.number())?;
    if shared.commit != old.commit {
        return Ok(false);
    }

    project.checkout().record_branch(&new, own)?;
    let log = format!("teddy: switch to {session}");
    let expected = Expected::At(old.commit);
    refs::move_to(repository, &own.reference(), expected, new.commit, &log)?;
    Ok(true)
}

/// With a waiting plan.
pub fn adopt_session(
    project: &Project,
    session: &SessionName,
    user: &mut dyn User,
) -> anyhow::Result<Adopted> {
    require_sound(project, session)?;
    accept(project, session, user)
}

fn accept(
    project: &Project,
    session: &SessionName,
    user: &mut dyn User,
) -> anyhow::Result<Adopted> {
    let mut opened = OpenSession::open(project, session, "switch", user)?;
    let tip = opened.tip.commit;
    if let Some(foreign) = project.checkout().newest_foreign(session, tip) {
        project.journal().record_adopted(foreign)?;
        if foreign == tip {
            project.journal().forget_model(session);
        }
    }

    if opened.draft.commit.is_some() {
        // A new turn id: the author of the draft, or the session that it was copied from, can still
        // run it under the old one.
        opened.draft.begin();
        let artifacts = &mut opened.draft.artifacts;
        // The user reads the plan before it runs, so nothing may take its place: `execute` would
        // parse the reply again. Comments would be sent as the user's.
        artifacts.remove(artifact::REPLY);
        artifacts.remove(artifact::COMMENTS);
        opened.save_draft()?;
    }
    // After the draft is saved: adopting also accepts its entries.
    project.journal().record_tips(session, &[OwnTip::of(tip)])?;

    let draft = &opened.draft;
    let plan = draft
        .is_planned()
        .then(|| draft.artifacts.text_or_empty(artifact::PLAN));
    Ok(Adopted {
        turns: opened.tip.number(),
        plan,
    })
}
