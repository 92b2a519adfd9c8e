//! Repairs a reftable after a crash: refs without objects, and a stale lock.

use std::path::Path;

use anyhow::Context as _;

use super::{Reftable, tables};
use crate::git::object::id::CommitId;
use crate::git::refs::aside::free_file;
use crate::git::refs::reftable::transaction;
use crate::git::refs::stale::outlives;
use crate::host::boot;
use crate::host::file::{make_folders, write_atomic};
use crate::host::lock::{Lock, patience};

const MOST_LINES: usize = 50;

impl Reftable {
    /// Returns the newest lines of a ref's log, newest first: their index, and their commit if that
    /// exists.
    pub(super) fn log_of(&self, name: &str) -> anyhow::Result<Vec<(usize, Option<CommitId>)>> {
        let asked: String = (0..MOST_LINES)
            .map(|number| format!("{name}@{{{number}}}\n"))
            .collect();
        // git prints nothing for indexes beyond the end of the log.
        let told = self.tell(&["cat-file", "--batch-check=%(objectname)"], &asked)?;
        let ids = told.lines().map(|line| line.parse().ok());
        Ok(ids.enumerate().collect())
    }

    pub(super) fn keep(&self, name: &str, aside: &Path) -> anyhow::Result<()> {
        let now = self.seen()?.refs.get(name).copied();
        let mut text = now.map(|id| format!("{id}\n")).unwrap_or_default();
        for id in self.log_of(name)?.into_iter().filter_map(|(_, id)| id) {
            text.push_str(&format!("{id}\n"));
        }

        make_folders(aside)?;
        write_atomic(&free_file(aside, name), text.as_bytes())
            .with_context(|| format!("keeping what `{name}` was"))
    }

    /// Removes lines from a ref's log that name missing commits, because `git fsck` would report
    /// them forever.
    pub(super) fn trim_log(
        &self,
        name: &str,
        is_there: &dyn Fn(CommitId) -> bool,
    ) -> anyhow::Result<()> {
        let log = self.log_of(name)?.into_iter().rev();
        let gone = log.filter(|(_, id)| !id.is_some_and(is_there));
        // Highest index first: deleting a line renumbers the later ones.
        let gone: Vec<_> = gone
            .map(|(number, _)| format!("{name}@{{{number}}}"))
            .collect();
        if gone.is_empty() {
            return Ok(());
        }

        let args = ["reflog", "delete", "--rewrite"];
        let args = args.into_iter().chain(gone.iter().map(String::as_str));
        self.ask(&args.collect::<Vec<_>>())
            .with_context(|| format!("writing the log of `{name}`"))?;
        Ok(())
    }

    /// Waits for a git process that survived its TeDDy, then removes `tables.list.lock` if one of
    /// our processes left it or it is older than the system start.
    pub(super) fn unlock_stale(&self) -> anyhow::Result<Vec<String>> {
        let folder = transaction::lock_folder(self);
        let lock = tables::lock(&self.common);
        if !folder.join("lock").exists() {
            return Ok(Vec::new());
        }

        // Also waits for a git that outlived its TeDDy, because it inherited this lock.
        let held = Lock::insist(&folder, "removing locks", patience())?;
        if !held.abandoned && !is_of_an_earlier_start(&lock) {
            return Ok(Vec::new());
        }

        let is_removed = self.unlock()?;
        Ok(is_removed
            .then(|| "reftable/tables.list".to_owned())
            .into_iter()
            .collect())
    }

    /// Removes `tables.list.lock` if it stays unchanged for a moment. Returns `false` if it doesn't
    /// exist. The caller holds TeDDy's own lock of the refs.
    pub(super) fn unlock(&self) -> anyhow::Result<bool> {
        let lock = tables::lock(&self.common);
        if !outlives(&lock) {
            return Ok(false);
        }
        std::fs::remove_file(&lock).with_context(|| format!("removing `{}`", lock.display()))?;
        Ok(true)
    }
}

/// Returns whether a file was written before the system started, so that its process cannot exist.
fn is_of_an_earlier_start(path: &Path) -> bool {
    let written = path
        .symlink_metadata()
        .and_then(|metadata| metadata.modified());
    let age = written.ok().and_then(|written| written.elapsed().ok());
    matches!((age, boot::uptime()), (Some(age), Some(up)) if age > up)
}
