//! `import`: reads sessions from a bundle.
//!
//! The bundle is untrusted: everything is checked in a separate object store before anything is
//! kept, nothing is executed, and no existing session changes.

use std::path::Path;

use serde::Serialize;

use super::export::explained;
use super::manifest::{self, BundledSession, Manifest};
use super::select::{BundleRefs, SessionRefs, select};
use crate::git::bundle::{self, ReceivedBundle, SizeLimit};
use crate::git::object::tag::signed_tag;
use crate::git::object::{CommitId, id::TagId};
use crate::git::refs;
use crate::git::repository::Repository;
use crate::git::revision;
use crate::host::file::open_regular;
use crate::session::name::SessionName;
use crate::session::signature::tag_name;
use crate::session::store::Store;
use crate::session::turn::Turn;
use crate::session::verify::{Checked, Fault, check};
use crate::text::visible::visible;
use crate::workflow::hinted::hinted;
use crate::workflow::project::Project;
use crate::workflow::user::User;

const MAX_FAULTS: usize = 5;

/// Options of an import.
#[derive(Debug)]
pub struct ImportWish {
    /// Sessions to import; empty for all.
    pub sessions: Vec<SessionName>,
    /// New name, if exactly one session is imported.
    pub called: Option<SessionName>,
    /// Check only; keep nothing.
    pub is_trial: bool,
    /// Maximum size of the bundle.
    pub limit: SizeLimit,
}

/// Result of an import.
#[derive(Debug, Serialize)]
pub struct Imported {
    /// The requested sessions.
    pub sessions: Vec<ImportedSession>,
    /// Refs in the bundle that TeDDy does not use.
    pub ignored: Vec<String>,
    /// Whether the bundle has a manifest.
    pub manifest: bool,
}

/// A session in a bundle.
#[derive(Debug, Serialize)]
pub struct ImportedSession {
    /// Its local name.
    pub session: SessionName,
    /// Its newest turn in the bundle.
    pub tip: CommitId,
    /// Number of that turn.
    pub turns: u64,
    /// Title of that turn.
    pub title: String,
    /// Whether it was imported.
    pub state: ImportState,
    /// Whether its signature was imported.
    pub signed: bool,
    /// Whether its draft was imported.
    pub draft: bool,
}

/// Result for one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ImportState {
    /// New.
    Imported,
    /// Already here, with the same turns or more.
    Here,
}

/// Imports sessions from a bundle.
pub fn import(
    project: &Project,
    path: &Path,
    wish: &ImportWish,
    user: &mut dyn User,
) -> anyhow::Result<Imported> {
    let repository = &project.repository;
    let unsound = |why: String| anyhow::anyhow!("cannot import `{}`: {why}", path.display());
    let explain = |error: anyhow::Error| {
        explained(error).context(format!("cannot import `{}`", path.display()))
    };

    let opened = bundle::open(repository, open_regular(path)?, wish.limit).map_err(explain)?;
    let found = select(opened.refs()).map_err(unsound)?;
    let chosen = choose(&found, wish)?;
    let wanted = wanted(&found, &chosen);
    let received = opened.receive(repository, &wanted).map_err(explain)?;

    let manifest = match found.manifest {
        Some(commit) => Some(manifest::read(&received.seen, commit)?),
        None => None,
    };
    if let Some(manifest) = &manifest {
        agree(manifest, &chosen).map_err(unsound)?;
    }

    let arrivals = chosen.iter().map(|(name, refs)| {
        let called = wish.called.as_ref().unwrap_or(name);
        // Check all sessions before keeping any.
        look(project, &received, (name, called), refs)
    });
    let arrivals: Vec<Arrival> = arrivals.collect::<anyhow::Result<_>>()?;
    let made: Vec<_> = arrivals.iter().flat_map(|it| it.refs.clone()).collect();
    if !wish.is_trial && !made.is_empty() {
        let _transaction = project.enter("import", user)?;
        received.keep(&made, "teddy: import")?;
    }

    Ok(Imported {
        sessions: arrivals.into_iter().map(|it| it.session).collect(),
        ignored: found.ignored,
        manifest: manifest.is_some(),
    })
}

struct Arrival {
    session: ImportedSession,
    /// Empty if the session is already here.
    refs: Vec<(String, CommitId)>,
}

fn choose(
    found: &BundleRefs,
    wish: &ImportWish,
) -> anyhow::Result<Vec<(SessionName, SessionRefs)>> {
    let names: Vec<&str> = found.sessions.keys().map(SessionName::as_str).collect();
    anyhow::ensure!(!names.is_empty(), "the bundle has no session");
    for name in &wish.sessions {
        anyhow::ensure!(
            found.sessions.contains_key(name),
            "the bundle has no session `{name}`; it has {}",
            names.join(", ")
        );
    }

    let is_wanted = |name: &&SessionName| wish.sessions.is_empty() || wish.sessions.contains(name);
    let chosen = found.sessions.iter().filter(|(name, _)| is_wanted(name));
    let chosen: Vec<_> = chosen
        .map(|(name, refs)| (name.clone(), refs.clone()))
        .collect();
    if wish.called.is_some() && chosen.len() > 1 {
        return Err(hinted(
            format!(
                "`--as` names one session, and the bundle has {}",
                names.join(", ")
            ),
            "name the one that you mean: `teddy import FILE SESSION --as NAME`",
        ));
    }

    Ok(chosen)
}

fn wanted(found: &BundleRefs, chosen: &[(SessionName, SessionRefs)]) -> Vec<(String, CommitId)> {
    let mut wanted = Vec::new();
    wanted.extend(
        found
            .manifest
            .map(|id| (manifest::REFERENCE.to_owned(), id)),
    );
    for (name, refs) in chosen {
        wanted.extend(named(name, refs));
    }
    wanted
}

fn named(name: &SessionName, refs: &SessionRefs) -> Vec<(String, CommitId)> {
    let signature = refs.signature.map(|tag| (name.signed_reference(), tag));
    let draft = refs.draft.map(|draft| (name.draft_reference(), draft));
    [(name.reference(), refs.tip)]
        .into_iter()
        .chain(signature)
        .chain(draft)
        .collect()
}

fn agree(manifest: &Manifest, chosen: &[(SessionName, SessionRefs)]) -> Result<(), String> {
    for (name, refs) in chosen {
        let said = manifest.sessions.iter().find(|it| it.name == name.as_str());
        let is_so = said.is_some_and(|said| {
            said.tip == refs.tip
                && said.signed == refs.signature.is_some()
                && said.draft == refs.draft.is_some()
        });
        if !is_so {
            return Err(format!(
                "its manifest says something else of session `{name}` than its refs"
            ));
        }
    }

    Ok(())
}

/// Checks a session and decides whether it is imported. Fails if a session of that name exists with
/// other turns.
fn look(
    project: &Project,
    received: &ReceivedBundle<'_>,
    (name, called): (&SessionName, &SessionName),
    refs: &SessionRefs,
) -> anyhow::Result<Arrival> {
    let seen = &received.seen;
    let said = truth(seen, name, refs)?;
    let mut session = ImportedSession {
        session: called.clone(),
        tip: refs.tip,
        turns: said.turns,
        title: said.title,
        state: ImportState::Imported,
        signed: refs.signature.is_some() && name == called,
        draft: refs.draft.is_some(),
    };

    if let Some(here) = refs::read(&project.repository, &called.reference())? {
        if here != refs.tip && !revision::is_ancestor(seen, refs.tip, here)? {
            return Err(conflict(seen, called, (here, refs.tip)));
        }
        session.state = ImportState::Here;
        return Ok(Arrival {
            session,
            refs: Vec::new(),
        });
    }

    // A signature covers the name of its session (T19), so a renamed session loses it.
    let kept = SessionRefs {
        signature: refs.signature.filter(|_| name == called),
        ..refs.clone()
    };
    let mut made = Vec::new();
    for (reference, to) in named(called, &kept) {
        match refs::held(&project.repository, &reference)? {
            None => made.push((reference, to)),
            Some(held) if held == to => {}
            Some(_) => anyhow::bail!("`{reference}` is here already, for something else"),
        }
    }

    Ok(Arrival {
        session,
        refs: made,
    })
}

fn truth(
    seen: &Repository,
    name: &SessionName,
    refs: &SessionRefs,
) -> anyhow::Result<BundledSession> {
    let Checked { turns, faults } = check(seen, name, refs.tip);
    let mut wrong: Vec<String> = faults.iter().map(Fault::to_string).collect();

    let covers = |commit: CommitId| turns.iter().any(|turn| turn.commit == commit);
    if let Some(tag) = refs.signature {
        match signed_tag(seen, TagId::of(tag)) {
            Ok(tag) if tag.name == tag_name(name) && covers(tag.commit) => {}
            Ok(_) => wrong.push("its signature is of something else (T19)".to_owned()),
            Err(error) => wrong.push(format!("its signature: {error:#} (T19)")),
        }
    }

    // Without a readable turn, `check` has already reported a fault.
    if let (Some(draft), Some(_)) = (refs.draft, turns.first()) {
        let tip = Turn::read(seen, name, refs.tip)?;
        let saved = Store { repository: seen }.saved_draft(&tip)?;
        if saved.is_none_or(|saved| saved.id != draft) {
            wrong.push("its turn in progress is that of another turn".to_owned());
        }
    }

    if wrong.is_empty() {
        return BundledSession::of(seen, name, refs.tip);
    }

    let more = wrong.len().saturating_sub(MAX_FAULTS);
    wrong.truncate(MAX_FAULTS);
    let more = match more {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let wrong = visible(&wrong.join("; ")).into_owned();
    Err(hinted(
        format!("session `{name}` does not tell the truth: {wrong}{more}"),
        "nothing was imported; ask its author for another bundle",
    ))
}

fn conflict(
    seen: &Repository,
    name: &SessionName,
    (here, there): (CommitId, CommitId),
) -> anyhow::Error {
    let is_ahead = revision::is_ancestor(seen, here, there).unwrap_or(false);
    let what = match is_ahead {
        true => "with fewer turns, and an import changes no existing session",
        false => "with other turns",
    };
    hinted(
        format!("there is a session `{name}` already, {what}"),
        format!(
            "`teddy import FILE {name} --as {}` imports it under another name",
            name.numbered(2)
        ),
    )
}
