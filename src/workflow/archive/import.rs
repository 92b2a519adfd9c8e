//! `fetch FILE`: reads sessions from a bundle.
//!
//! The bundle is untrusted: everything is checked in a separate object store before anything is
//! kept, nothing is executed, and no existing session changes.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::git::bundle::{self, BundledRef, ReceivedBundle, SizeLimit};
use crate::git::history;
use crate::git::object::CommitId;
use crate::git::object::id::TagId;
use crate::git::refs::{self, SIGNED_PREFIX};
use crate::git::repository::Repository;
use crate::host::file::open_regular;
use crate::project::Project;
use crate::session::name::{DRAFTS, SESSIONS, SessionName};
use crate::session::signature;
use crate::session::store::Store;
use crate::session::turn::Turn;
use crate::session::verify::{Checked, Fault, check};
use crate::text::hint::error_with_hint;
use crate::text::sanitize::{sanitize_bytes, sanitize_line};
use crate::workflow::archive::{self, BundledSession, Manifest, add_bundle_hint};
use crate::workflow::user::User;

const MAX_FAULTS: usize = 5;

#[derive(Debug)]
pub struct ImportOptions {
    /// Empty for all.
    pub sessions: Vec<SessionName>,
    /// New name, if exactly one session is imported.
    pub called: Option<SessionName>,
    /// Checks only; keeps nothing.
    pub is_trial: bool,
    pub limit: SizeLimit,
}

#[derive(Debug, Serialize)]
pub struct Imported {
    pub sessions: Vec<ImportedSession>,
    /// In the bundle, and not of TeDDy.
    pub ignored: Vec<String>,
    pub manifest: bool,
}

#[derive(Debug, Serialize)]
pub struct ImportedSession {
    pub session: SessionName,
    /// Newest turn in the bundle.
    pub tip: CommitId,
    pub turns: u64,
    pub title: String,
    pub state: ImportState,
    pub signed: bool,
    pub draft: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ImportState {
    Imported,
    /// Already here, with the same turns or more.
    Here,
}

pub fn import(
    project: &Project,
    path: &Path,
    options: &ImportOptions,
    user: &mut dyn User,
) -> anyhow::Result<Imported> {
    let repository = &project.repository;
    let unsound = |why: String| anyhow::anyhow!("cannot import `{}`: {why}", path.display());
    let explain = |error: anyhow::Error| {
        add_bundle_hint(error).context(format!("cannot import `{}`", path.display()))
    };

    let opened = bundle::open(repository, open_regular(path)?, options.limit).map_err(explain)?;
    let bundle_refs = group_refs(opened.refs()).map_err(unsound)?;
    let chosen = choose(&bundle_refs, options)?;
    let requested = list_requested_refs(&bundle_refs, &chosen);
    let received = opened.receive(repository, &requested).map_err(explain)?;

    let manifest = match bundle_refs.manifest {
        Some(commit) => Some(archive::read_manifest(&received.combined, commit)?),
        None => None,
    };
    if let Some(manifest) = &manifest {
        agree(manifest, &chosen).map_err(unsound)?;
    }

    let arrivals = chosen.iter().map(|(name, refs)| {
        let called = options.called.as_ref().unwrap_or(name);
        // Check all sessions before keeping any.
        check_session(project, &received, name, called, refs)
    });
    let arrivals: Vec<Arrival> = arrivals.collect::<anyhow::Result<_>>()?;
    let new_refs: Vec<_> = arrivals.iter().flat_map(|it| it.refs.clone()).collect();
    // Everything was checked without the lock: no object is in the repository yet.
    if !options.is_trial && !new_refs.is_empty() {
        let (_lock, _transaction);
        // A bare repository has no files to recover.
        match repository.is_bare() {
            true => _lock = project.checkout().lock("import")?,
            false => _transaction = project.enter("import", user)?,
        }
        received.keep(&new_refs, "teddy: import")?;
    }

    Ok(Imported {
        sessions: arrivals.into_iter().map(|it| it.session).collect(),
        ignored: bundle_refs.ignored,
        manifest: manifest.is_some(),
    })
}

struct Arrival {
    session: ImportedSession,
    /// Empty if the session is already here.
    refs: Vec<(String, CommitId)>,
}

fn choose(
    bundle_refs: &BundleRefs,
    options: &ImportOptions,
) -> anyhow::Result<Vec<(SessionName, SessionRefs)>> {
    let names: Vec<&str> = bundle_refs
        .sessions
        .keys()
        .map(SessionName::as_str)
        .collect();
    anyhow::ensure!(!names.is_empty(), "the bundle has no session");
    for name in &options.sessions {
        anyhow::ensure!(
            bundle_refs.sessions.contains_key(name),
            "the bundle has no session `{name}`; it has {}",
            names.join(", ")
        );
    }

    let is_wanted =
        |name: &&SessionName| options.sessions.is_empty() || options.sessions.contains(name);
    let chosen = bundle_refs
        .sessions
        .iter()
        .filter(|(name, _)| is_wanted(name));
    let chosen: Vec<_> = chosen
        .map(|(name, refs)| (name.clone(), refs.clone()))
        .collect();
    if options.called.is_some() && chosen.len() > 1 {
        return Err(error_with_hint(
            format!(
                "`--as` names one session, and the bundle has {}",
                names.join(", ")
            ),
            "name the one that you mean: `teddy fetch FILE SESSION --as NAME`",
        ));
    }

    Ok(chosen)
}

fn list_requested_refs(
    bundle_refs: &BundleRefs,
    chosen: &[(SessionName, SessionRefs)],
) -> Vec<(String, CommitId)> {
    let mut requested = Vec::new();
    requested.extend(
        bundle_refs
            .manifest
            .map(|id| (archive::MANIFEST_REF.to_owned(), id)),
    );
    for (name, refs) in chosen {
        requested.extend(list_session_refs(name, refs));
    }
    requested
}

fn list_session_refs(name: &SessionName, refs: &SessionRefs) -> Vec<(String, CommitId)> {
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
        // A manifest that differs from the refs is damaged or forged.
        let entry = manifest.sessions.iter().find(|it| it.name == name.as_str());
        let is_so = entry.is_some_and(|entry| {
            entry.tip == refs.tip
                && entry.signed == refs.signature.is_some()
                && entry.draft == refs.draft.is_some()
        });
        if !is_so {
            return Err(format!(
                "its manifest says something else of session `{name}` than its refs"
            ));
        }
    }

    Ok(())
}

/// Decides whether a session is imported. Fails if one of that name has other turns.
fn check_session(
    project: &Project,
    received: &ReceivedBundle<'_>,
    name: &SessionName,
    called: &SessionName,
    refs: &SessionRefs,
) -> anyhow::Result<Arrival> {
    let incoming = &received.combined;
    let verified = verify_session(incoming, name, refs)?;
    let mut session = ImportedSession {
        session: called.clone(),
        tip: refs.tip,
        turns: verified.turns,
        title: verified.title,
        state: ImportState::Imported,
        signed: refs.signature.is_some() && name == called,
        draft: refs.draft.is_some(),
    };

    // An existing session never moves.
    if let Some(current) = refs::read(&project.repository, &called.reference())? {
        if current != refs.tip && !history::is_ancestor(incoming, refs.tip, current)? {
            return Err(conflict(incoming, called, current, refs.tip));
        }
        session.state = ImportState::Here;
        return Ok(Arrival {
            session,
            refs: Vec::new(),
        });
    }

    // A signature covers the name of its session (T19), so a renamed session loses it.
    let retained = SessionRefs {
        signature: refs.signature.filter(|_| name == called),
        ..refs.clone()
    };
    let mut new_refs = Vec::new();
    for (reference, to) in list_session_refs(called, &retained) {
        match refs::read_unpeeled(&project.repository, &reference)? {
            None => new_refs.push((reference, to)),
            Some(existing) if existing == to => {}
            Some(_) => anyhow::bail!("`{reference}` is here already, for something else"),
        }
    }

    Ok(Arrival {
        session,
        refs: new_refs,
    })
}

fn verify_session(
    incoming: &Repository,
    name: &SessionName,
    refs: &SessionRefs,
) -> anyhow::Result<BundledSession> {
    let Checked { turns, faults } = check(incoming, name, refs.tip);
    let mut wrong: Vec<String> = faults.iter().map(Fault::to_string).collect();

    if let Some(tag) = refs.signature {
        wrong.extend(signature::mismatch(incoming, name, TagId::of(tag), &turns));
    }

    // Without a readable turn, `check` has already reported a fault.
    if let (Some(draft), Some(_)) = (refs.draft, turns.first()) {
        let tip = Turn::read(incoming, name, refs.tip)?;
        let saved = Store {
            repository: incoming,
        }
        .saved_draft(&tip)?;
        if saved.is_none_or(|saved| saved.id != draft) {
            wrong.push("its turn in progress is that of another turn".to_owned());
        }
    }

    if wrong.is_empty() {
        return BundledSession::of(incoming, name, refs.tip);
    }

    let more = wrong.len().saturating_sub(MAX_FAULTS);
    wrong.truncate(MAX_FAULTS);
    let more = match more {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let wrong = sanitize_line(&wrong.join("; ")).into_owned();
    Err(error_with_hint(
        format!("session `{name}` fails verification: {wrong}{more}"),
        "nothing was imported; ask its author for another bundle",
    ))
}

fn conflict(
    incoming: &Repository,
    name: &SessionName,
    current: CommitId,
    imported: CommitId,
) -> anyhow::Error {
    let is_ahead = history::is_ancestor(incoming, current, imported).unwrap_or(false);
    let difference = match is_ahead {
        true => "with fewer turns, and an import changes no existing session",
        false => "with other turns",
    };
    // A name like that of a change is reserved.
    let other =
        SessionName::parse(&name.as_str().replace('/', "-")).unwrap_or_else(|_| name.clone());
    error_with_hint(
        format!("there is a session `{name}` already, {difference}"),
        format!(
            "`teddy fetch FILE {name} --as {}` imports it under another name",
            other.numbered(2)
        ),
    )
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct BundleRefs {
    pub(super) sessions: BTreeMap<SessionName, SessionRefs>,
    pub(super) manifest: Option<CommitId>,
    /// Escaped for display.
    pub(super) ignored: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionRefs {
    pub(super) tip: CommitId,
    pub(super) signature: Option<CommitId>,
    pub(super) draft: Option<CommitId>,
}

/// Fails on duplicate or invalid session names. Ignores signatures and drafts without a session.
pub(super) fn group_refs(refs: &[BundledRef]) -> Result<BundleRefs, String> {
    let mut by_name: BTreeMap<&str, CommitId> = BTreeMap::new();
    let mut selected = BundleRefs::default();
    for reference in refs {
        let label = display_ref_name(&reference.name);
        let Some(name) = parse_own_name(&reference.name) else {
            selected.ignored.push(label);
            continue;
        };
        if by_name.insert(name, reference.target).is_some() {
            return Err(format!("it has `{label}` twice"));
        }
    }

    selected.manifest = by_name.remove(archive::MANIFEST_REF);
    for (name, target) in strip_prefix_of(&by_name, SESSIONS) {
        let session = SessionName::from_ref(name).map_err(|error| error.to_string())?;
        let refs = SessionRefs {
            tip: target,
            signature: None,
            draft: None,
        };
        selected.sessions.insert(session, refs);
    }

    for (prefix, is_draft) in [(SIGNED_PREFIX, false), (DRAFTS, true)] {
        for (name, target) in strip_prefix_of(&by_name, prefix) {
            let session = SessionName::from_ref(name).map_err(|error| error.to_string())?;
            match selected.sessions.get_mut(&session) {
                Some(refs) if is_draft => refs.draft = Some(target),
                Some(refs) => refs.signature = Some(target),
                None => selected.ignored.push(format!("{prefix}{name}")),
            }
        }
    }

    Ok(selected)
}

/// `None` for refs that are not TeDDy's, or not UTF-8.
fn parse_own_name(name: &[u8]) -> Option<&str> {
    let prefixes = [SESSIONS, SIGNED_PREFIX, DRAFTS];
    let is_ours = name == archive::MANIFEST_REF.as_bytes()
        || prefixes
            .iter()
            .any(|prefix| name.starts_with(prefix.as_bytes()));
    is_ours.then(|| str::from_utf8(name).ok())?
}

fn strip_prefix_of<'a>(
    by_name: &'a BTreeMap<&str, CommitId>,
    prefix: &'a str,
) -> impl Iterator<Item = (&'a str, CommitId)> {
    let all = by_name.iter();
    all.filter_map(move |(name, target)| Some((name.strip_prefix(prefix)?, *target)))
}

fn display_ref_name(name: &[u8]) -> String {
    sanitize_line(&sanitize_bytes(name)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "1465b844761618fe5910618bbc86deda6df5f057";

    #[track_caller]
    fn check(names: &[&[u8]], expected: Result<(&str, &str), &str>) {
        let one = |name: &&[u8]| BundledRef {
            name: name.to_vec(),
            target: ONE.parse().unwrap(),
        };
        let refs: Vec<_> = names.iter().map(one).collect();
        let actual = group_refs(&refs).map(|selected| {
            let word = |(name, refs): (&SessionName, &SessionRefs)| {
                let marks = [(refs.signature, "+signed"), (refs.draft, "+draft")];
                let marks = marks.iter().filter(|(id, _)| id.is_some());
                format!("{name}{}", marks.map(|(_, mark)| *mark).collect::<String>())
            };
            let sessions: Vec<_> = selected.sessions.iter().map(word).collect();
            (sessions.join(" "), selected.ignored.join(" "))
        });

        let expected = expected.map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(actual, expected.map_err(str::to_owned));
    }

    #[test]
    fn b3_refs_of_other_kinds_are_ignored() {
        check(
            &[
                b"refs/teddy/sessions/b",
                b"refs/teddy/sessions/change/a",
                b"refs/teddy/signed/b",
                b"refs/teddy/drafts/b",
                b"refs/teddy/manifest",
            ],
            Ok(("b+signed+draft change/a", "")),
        );
        check(
            &[
                b"refs/heads/main",
                b"HEAD",
                b"refs/teddy/published/main",
                b"refs/teddy/signed/alone",
                b"../\x1b[2Jx",
                b"refs/teddy/sessions/a",
            ],
            Ok((
                "a",
                "refs/heads/main HEAD refs/teddy/published/main ../\\u{1b}[2Jx \
                 refs/teddy/signed/alone",
            )),
        );
    }

    #[test]
    fn b3_names_that_no_session_can_have_are_refused() {
        let odd = |name: &str| {
            format!(
                "`{name}` is not a valid session name: use lower-case letters, digits and single \
                 hyphens, such as `add-auth`"
            )
        };
        for name in ["A", "../x", "change", "a.lock", ""] {
            let full = format!("refs/teddy/sessions/{name}");
            check(&[full.as_bytes()], Err(&odd(name)));
        }
        let twice: &[u8] = b"refs/teddy/sessions/a";
        check(&[twice, twice], Err("it has `refs/teddy/sessions/a` twice"));
    }
}
