//! What commands committed in a repository of their own, taken in as from a stranger who pushes.
//!
//! Nothing of that repository is believed: no index of a pack, no list of alternates, no name of an
//! object before its bytes were hashed. What HEAD reaches and the user's repository lacks is put
//! into one pack that nobody sees; git checks that pack by its own rules and that nothing is
//! missing below HEAD; only then does the pack get its name. Where anything is wrong nothing is
//! taken.

mod collect;
pub(in crate::git) mod examine;
mod head;
pub mod quarantine;
mod store;

use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::git::revision;
use crate::host::file::Root;
use collect::Collected;
use quarantine::Quarantine;
use store::ForeignStore;

/// How many refs are named one by one.
const MAX_NAMED: usize = 5;
/// No object may be larger, packed or not.
pub(in crate::git) const MAX_OBJECT: u64 = 512 << 20;

/// What of the commands' commits was taken.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// The newest commit, which follows the one that they began with.
    pub commit: Option<CommitId>,
    /// What was not taken, and why.
    pub remarks: Vec<String>,
}

/// Something that is wrong with what commands committed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct UnsoundCommit(String);

/// Takes in the commits that HEAD of another git directory has on top of `before`.
///
/// # Errors
/// Where the user's repository cannot be read or written.
pub(in crate::git) fn receive(
    repository: &Repository,
    git: &Root,
    before: CommitId,
) -> anyhow::Result<Received> {
    let mut received = Received {
        commit: None,
        remarks: refs_remark(git).into_iter().collect(),
    };
    let Some(head) = head::read(git, repository.gix.object_hash()) else {
        let words =
            "HEAD of the commands' repository names no commit; what they committed was not taken";
        received.remarks.push(words.to_owned());
        return Ok(received);
    };

    if head == before {
        return Ok(received);
    }

    match take(repository, git, head, before) {
        Ok(true) => received.commit = Some(head),
        Ok(false) => {}
        Err(error) => match error.downcast::<UnsoundCommit>() {
            Ok(why) => received.remarks.push(format!(
                "commit {head} of the commands was not taken: {why}"
            )),
            Err(error) => return Err(error),
        },
    }

    Ok(received)
}

/// Takes in a commit with all that it reaches; false where it only stands somewhere else and
/// nothing is new.
fn take(
    repository: &Repository,
    git: &Root,
    head: CommitId,
    before: CommitId,
) -> anyhow::Result<bool> {
    let quarantine = Quarantine::new(repository)?;
    let store = ForeignStore::new(repository, git, &quarantine);
    let Collected { new, edges, pack } = collect::collect(repository, store, head)?;
    let follows = edges.iter().any(|&edge| {
        edge == before || revision::is_ancestor(repository, before, edge).unwrap_or(false)
    });

    if !follows {
        anyhow::ensure!(
            new == 0,
            UnsoundCommit("it does not follow the commit that the plan began with".to_owned())
        );
        return Ok(false);
    }

    let sealed = pack.map(|pack| pack.seal(repository)).transpose()?;
    if let Some(sealed) = &sealed {
        quarantine.show(sealed)?;
        quarantine.check_rules(repository, sealed)?;
    }

    quarantine.check_links(repository, head, before)?;
    // It stays kept until this process ends: by then a ref reaches it, or nobody needs it.
    sealed.map(|sealed| sealed.finish(repository)).transpose()?;
    Ok(true)
}

/// Says which refs commands made, which are gone with their repository.
fn refs_remark(git: &Root) -> Option<String> {
    let made = head::loose_refs(git);
    let named: Vec<_> = made
        .iter()
        .take(MAX_NAMED)
        .map(|name| format!("`{}`", String::from_utf8_lossy(name)))
        .collect();
    let more = made.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 {
        format!(" and {}", crate::text::counted(more, "more ref"))
    } else {
        String::new()
    };

    (!named.is_empty()).then(|| {
        format!(
            "{}{more} made by the commands: refs of their own repository are not taken over",
            named.join(", ")
        )
    })
}
