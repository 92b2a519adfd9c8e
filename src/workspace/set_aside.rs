//! Lists what recovery quarantined as damaged, and restores what is valid.
//!
//! A ref or an intent is restored only if nothing was recorded since, so that an old state never
//! replaces a newer one.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;

use crate::git::history;
use crate::git::keep::damaged::{self, RestoreOutcome, refused};
use crate::git::keep::store_access::is_lost;
use crate::git::object::CommitId;
use crate::git::refs::{self, Expected};
use crate::git::repository::Repository;
use crate::host::file::read_regular_text;
use crate::session::name::{SESSIONS, SessionName};
use crate::session::turn::Turn;
use crate::workspace::Checkout;

/// The file can contain the ref's log, too, which a reftable keeps for it.
const MAX_REF: u64 = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SetAsideKind {
    /// A pack that was empty or cut off.
    Pack,
    /// An empty or malformed loose object.
    Object,
    /// The former value of a repaired ref.
    Ref,
    /// The intent of a turn that could not be finished.
    Intent,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SetAside {
    pub kind: SetAsideKind,
    /// The pack, the object, the ref, or the file of the intent.
    pub name: String,
    #[serde(skip)]
    file: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PutBackResult {
    #[serde(flatten)]
    pub item: SetAside,
    /// Why it stays quarantined. `None` if it was restored.
    pub refused: Option<String>,
}

/// Lists quarantined data: packs first, because refs need their objects.
pub fn set_aside(repository: &Repository) -> anyhow::Result<Vec<SetAside>> {
    let mut items = Vec::new();
    let mut add = |kind, name: Option<String>, file: &Path| {
        items.extend(name.map(|name| SetAside {
            kind,
            name,
            file: file.to_owned(),
        }));
    };

    for file in files(&damaged::quarantined_packs_dir(repository))? {
        let name = file_name(&file);
        let pack = name.strip_suffix(".pack").or(name.strip_suffix(".idx"));
        add(SetAsideKind::Pack, pack.map(str::to_owned), &file);
    }
    for file in files(&damaged::quarantined_objects_dir(repository))? {
        add(SetAsideKind::Object, Some(file_name(&file)), &file);
    }
    for file in files(&refs_dir(repository))? {
        add(
            SetAsideKind::Ref,
            refs::store::ref_of_backup(&file_name(&file)),
            &file,
        );
    }
    for file in files(&repository.teddy_dir())? {
        let name = file_name(&file);
        let is_intent = name.starts_with("pending.json.bad");
        add(SetAsideKind::Intent, is_intent.then_some(name), &file);
    }

    items.sort();
    // The `.pack` and the `.idx` of one pack are one item.
    items.dedup_by(|one, other| one.kind == SetAsideKind::Pack && one.name == other.name);
    Ok(items)
}

/// Restores what is valid. The caller holds the lock and recovers afterwards.
pub fn put_all_back(checkout: &Checkout<'_>) -> anyhow::Result<Vec<PutBackResult>> {
    let mut results = Vec::new();
    for item in set_aside(checkout.repository)? {
        let outcome = match item.kind {
            SetAsideKind::Pack => damaged::restore_pack(checkout.repository, &item.name)?,
            SetAsideKind::Object => damaged::restore_object(checkout.repository, &item.name)?,
            // Only a new handle sees the restored packs.
            SetAsideKind::Ref => put_ref_back(checkout, &item)?,
            SetAsideKind::Intent => put_intent_back(checkout, &item)?,
        };
        let refused = match outcome {
            RestoreOutcome::Restored => None,
            RestoreOutcome::Refused(why) => Some(why),
        };
        results.push(PutBackResult { item, refused });
    }
    Ok(results)
}

pub(super) fn refs_dir(repository: &Repository) -> PathBuf {
    repository.teddy_dir().join("undo").join("refs")
}

/// Restores a ref's former value if it is complete and descends from the current one.
fn put_ref_back(checkout: &Checkout<'_>, item: &SetAside) -> anyhow::Result<RestoreOutcome> {
    let repository = checkout.repository;
    let text = read_regular_text(&item.file, MAX_REF)?;
    let Some(id) = text.lines().next().and_then(|line| line.parse().ok()) else {
        return refused("it named no object");
    };
    if is_lost(repository, id)? || !damaged::is_complete(repository, id)? {
        return refused("something that it reaches is still missing");
    }

    let now = refs::read_unpeeled(repository, &item.name)?;
    // The ref can have moved on since its repair. An older value must not replace newer turns.
    let goes_on = match now {
        Some(now) if now == id => return remove_set_aside(&item.file),
        Some(now) => history::is_ancestor(repository, now, id)?,
        None => true,
    };
    if !goes_on {
        return refused(&format!(
            "the ref has moved on since; `git branch <name> {id}` keeps what it was"
        ));
    }

    let session = item.name.strip_prefix(SESSIONS);
    let session = session.and_then(|name| SessionName::from_ref(name).ok());
    if let Some(session) = &session
        && Turn::read(repository, session, id).is_err()
    {
        return refused("it is no turn of that session");
    }
    move_to(repository, &item.name, now, id)?;
    remove_set_aside(&item.file)
}

fn move_to(
    repository: &Repository,
    name: &str,
    now: Option<CommitId>,
    id: CommitId,
) -> anyhow::Result<()> {
    let expected = now.map_or(Expected::Absent, Expected::At);
    refs::move_to(repository, name, expected, id, "teddy: put back")?;
    refs::sync(repository, name)
}

/// Restores an intent if its turn is still the newest of its session.
fn put_intent_back(checkout: &Checkout<'_>, item: &SetAside) -> anyhow::Result<RestoreOutcome> {
    let journal = checkout.journal();
    if journal.has_intent() {
        return refused("another turn is being finished");
    }
    let Some(pending) = journal.read_quarantined(&item.file)? else {
        return refused("it is damaged");
    };
    let session = SessionName::from_ref(&pending.session)?;
    let tip = refs::read(checkout.repository, &session.reference())?;
    if tip != Some(pending.commit) {
        return refused(
            "its turn is no longer the newest of its session; `teddy restore` applies any turn to your files",
        );
    }
    journal.restore_quarantined(&item.file)?;
    Ok(RestoreOutcome::Restored)
}

fn remove_set_aside(file: &Path) -> anyhow::Result<RestoreOutcome> {
    std::fs::remove_file(file).with_context(|| format!("removing `{}`", file.display()))?;
    Ok(RestoreOutcome::Restored)
}

/// The files in a directory; none if it does not exist.
fn files(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let list = || -> std::io::Result<Vec<PathBuf>> {
        let entries = match std::fs::read_dir(dir) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?.collect::<std::io::Result<Vec<_>>>()?,
        };
        let paths = entries.into_iter().map(|entry| entry.path());
        Ok(paths.filter(|path| path.is_file()).collect())
    };
    list().with_context(|| format!("cannot list `{}`", dir.display()))
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
