//! Compares displaced files a final time, when no process can have them open for writing, and
//! restores those that changed.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::sync::Arc;

use anyhow::Context as _;

use super::{Publisher, cannot_write};
use crate::git::place::{IfMissing, Place, WalkResult};
use crate::git::publish::displaced;
use crate::git::publish::replaced::KeptAs;
use crate::git::publish::rescue;
use crate::git::version;
use crate::git::version::Mark;

/// A replaced or deleted file that a process might still write to.
pub(super) struct DisplacedFile {
    pub(super) path: Vec<u8>,
    pub(super) temporary: Vec<u8>,
    /// Content when the change was judged.
    pub(super) was: Mark,
    /// Content that we put in its place; `Absent` after a deletion.
    pub(super) ours: Mark,
    /// Open handle, as in `StagedVersion`.
    pub(super) lies: Option<Arc<Place>>,
    /// Set if git cannot make its bytes again.
    pub(super) kept_as: Option<KeptAs>,
}

/// Moves displaced files to `undo/displaced`. A file that changed, or that a process has open for
/// writing, gets its name back and becomes a conflict.
pub(super) fn settle(publisher: &mut Publisher<'_>) -> anyhow::Result<()> {
    let held = std::mem::take(&mut publisher.held);
    // Displaced files are compared with their own mark, so the trees are not needed.
    let settled = publisher.spread(
        held,
        |_| Vec::new(),
        |part, held| {
            let mut undone = Vec::new();
            let outcome = settle_all(part, held, &mut undone);
            (undone, outcome)
        },
    )?;
    let (undone, outcomes): (Vec<_>, Vec<_>) = settled.into_iter().unzip();
    let undone: HashSet<Vec<u8>> = undone.into_iter().flatten().collect();

    for done in [&mut publisher.done.deleted, &mut publisher.done.written] {
        done.retain(|path| !undone.contains(path));
    }

    outcomes.into_iter().collect()
}

/// `undone` collects the paths of restored files, also if an error follows.
fn settle_all(
    publisher: &mut Publisher<'_>,
    all: Vec<DisplacedFile>,
    undone: &mut Vec<Vec<u8>>,
) -> anyhow::Result<()> {
    for held in all {
        let WalkResult::Place(place) = publisher.walk(&held.path, IfMissing::Stop)? else {
            // Its folder was moved away with it. Bytes that git cannot make again are named.
            let known = match &held.kept_as {
                Some(_) => &Mark::Other,
                None => &held.was,
            };
            held.lies.as_ref().map_or(Ok(()), |lies| {
                rescue::let_go(publisher, lies, known, &held.path)
            })?;
            continue;
        };

        let temporary = place.sibling(&held.temporary);
        let found = temporary.find()?;
        // Ask for writers before reading: a process that writes in between is then noticed either
        // way.
        let writers = found.writers();
        if version::look_at(publisher.repository, &found)?.mark == held.was {
            if !writers.are_there() {
                let kept_as = held.kept_as.as_ref();
                displaced::put_away(publisher, &temporary, &held.was, kept_as, &held.path)?;
                continue;
            }
            publisher.done.busy.push(held.path.clone());
        }

        give_back(publisher, &place, &temporary, &held)?;
        publisher.conflict(&held.path);
        undone.push(held.path);
    }

    Ok(())
}

/// Restores the user's file after a swap or deletion of a file that had changed.
///
/// A newer save of the user's that has taken the name since keeps it; the file in `temporary` is
/// then rescued.
pub(super) fn give_back(
    publisher: &mut Publisher<'_>,
    place: &Place,
    temporary: &Place,
    held: &DisplacedFile,
) -> anyhow::Result<()> {
    if held.ours == Mark::Absent {
        return match temporary.move_to(place) {
            Ok(()) => Ok(()),
            // The user saved again: that save keeps the name.
            Err(_) => rescue::let_go(publisher, temporary, &Mark::Absent, &held.path),
        };
    }

    let returned = match temporary.exchange(place) {
        Ok(returned) => returned,
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => return Err(error).with_context(|| cannot_write(&held.path)),
    };
    if returned && version::look(publisher.repository, temporary)?.mark != held.ours {
        // The user replaced our version after the swap: swap again, so the newer save keeps the
        // name.
        let _ = temporary.exchange(place);
    }

    rescue::let_go(publisher, temporary, &held.ours, &held.path)
}
