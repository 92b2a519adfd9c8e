//! Repairs a reftable after a crash: refs without objects, and a stale lock.

use std::path::Path;

use anyhow::Context as _;

use super::{Reftable, tables};
use crate::git::object::id::CommitId;
use crate::git::refs::backup::free_backup_file;
use crate::git::refs::reftable::transaction;
use crate::git::refs::stale::is_stale_lock;
use crate::host::file::{make_dirs, write_atomic};
use crate::host::lock::{Lock, patience};
use crate::host::machine;

const MAX_LOG_LINES: usize = 50;

impl Reftable {
    /// Returns the newest lines of a ref's log, newest first: their index, and their commit if that
    /// exists.
    pub(super) fn log_of(&self, name: &str) -> anyhow::Result<Vec<(usize, Option<CommitId>)>> {
        let queries: String = (0..MAX_LOG_LINES)
            .map(|number| format!("{name}@{{{number}}}\n"))
            .collect();
        // git prints nothing for indexes beyond the end of the log.
        let output = self.run_with_input(&["cat-file", "--batch-check=%(objectname)"], &queries)?;
        let ids = output.lines().map(|line| line.parse().ok());
        Ok(ids.enumerate().collect())
    }

    pub(super) fn back_up(&self, name: &str, backup_dir: &Path) -> anyhow::Result<()> {
        let now = self.load()?.refs.get(name).copied();
        let mut text = now.map(|id| format!("{id}\n")).unwrap_or_default();
        for id in self.log_of(name)?.into_iter().filter_map(|(_, id)| id) {
            text.push_str(&format!("{id}\n"));
        }

        make_dirs(backup_dir)?;
        write_atomic(&free_backup_file(backup_dir, name), text.as_bytes())
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
        let missing = log.filter(|(_, id)| !id.is_some_and(is_there));
        // Highest index first: deleting a line renumbers the later ones.
        let missing: Vec<_> = missing
            .map(|(number, _)| format!("{name}@{{{number}}}"))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }

        let args = ["reflog", "delete", "--rewrite"];
        let args = args.into_iter().chain(missing.iter().map(String::as_str));
        self.run_git(&args.collect::<Vec<_>>())
            .with_context(|| format!("writing the log of `{name}`"))?;
        Ok(())
    }

    /// Waits for a git process that survived its TeDDy, then removes `tables.list.lock` if one of
    /// our processes left it or it is older than the system start.
    pub(super) fn unlock_stale(&self) -> anyhow::Result<Vec<String>> {
        let dir = transaction::lock_dir(self);
        let lock = tables::lock(&self.common);
        if !dir.join("lock").exists() {
            return Ok(Vec::new());
        }

        // Also waits for a git that outlived its TeDDy, because it inherited this lock.
        let refs_lock = Lock::take_uninterrupted(&dir, "removing locks", patience())?;
        if !refs_lock.holder_crashed && !predates_boot(&lock) {
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
        if !is_stale_lock(&lock) {
            return Ok(false);
        }
        std::fs::remove_file(&lock).with_context(|| format!("removing `{}`", lock.display()))?;
        Ok(true)
    }
}

/// Returns whether a file was written before the system started, so that its process cannot exist.
fn predates_boot(path: &Path) -> bool {
    let written = path
        .symlink_metadata()
        .and_then(|metadata| metadata.modified());
    let age = written.ok().and_then(|written| written.elapsed().ok());
    matches!((age, machine::uptime()), (Some(age), Some(up)) if age > up)
}
