//! Repairs ref files that a crash damaged, and removes the lock files that one left.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::{FileRefs, MAX_LOG};
use crate::git::object::id::CommitId;
use crate::git::refs::files::LockedRef;
use crate::git::refs::store::is_stale_lock;
use crate::git::refs::store::{Expected, RefStore as _, Reference, TEDDY_PREFIX};
use crate::git::refs::store::{free_backup_file, free_backup_log};
use crate::host::file::{is_out_of_reach, make_dirs, read_regular, write_atomic};

const MAX_REF: u64 = 8 << 10;

impl FileRefs {
    /// Returns TeDDy's refs whose files contain neither an id nor the name of another ref.
    pub(super) fn unborn_refs(&self) -> anyhow::Result<Vec<String>> {
        let mut names = Vec::new();
        let files = self.loose()?;
        for path in files.into_iter().filter(|path| !is_lock(path)) {
            let text = match read_regular(&path, MAX_REF) {
                Err(error) if is_out_of_reach(&error) => return Err(error.into()),
                read => read.unwrap_or_default(),
            };
            let text = String::from_utf8_lossy(&text);
            let is_valid = text.starts_with("ref: ") || text.trim_end().parse::<CommitId>().is_ok();
            if !is_valid && let Some(name) = self.name_of(&path) {
                names.push(name);
            }
        }

        Ok(names)
    }

    /// Backs up a ref: its file, or its id in `packed-refs`.
    pub(super) fn back_up(&self, name: &str, backup_dir: &Path) -> anyhow::Result<()> {
        let path = self.common.join(name);
        make_dirs(backup_dir)?;
        let file = free_backup_file(backup_dir, name);
        let copied = if path.is_file() {
            std::fs::copy(&path, file).map(drop)
        } else if let Ok(Some(id)) = self.read_unpeeled(name) {
            write_atomic(&file, format!("{id}\n").as_bytes())
        } else {
            return Ok(());
        };
        copied.with_context(|| format!("keeping what `{name}` was"))
    }

    /// Deletes a broken ref. Its entry in `packed-refs` goes too, but only if that is broken as
    /// well.
    pub(super) fn delete_loose(
        &self,
        name: &str,
        is_there: &dyn Fn(CommitId) -> bool,
    ) -> anyhow::Result<()> {
        let path = self.common.join(name);
        if path.is_file() {
            std::fs::remove_file(&path).with_context(|| format!("removing `{name}`"))?;
        }

        let packed = self.list(TEDDY_PREFIX)?;
        let is_broken = |other: &&Reference| other.name == name && !is_there(other.target);
        if packed.iter().any(|other| is_broken(&other)) {
            self.delete(&[name], Expected::Any)?;
        }

        Ok(())
    }

    pub(super) fn write_loose(&self, name: &str, commit: CommitId) -> anyhow::Result<()> {
        let mut locked = LockedRef::take(self, name)?;
        locked
            .write(commit, true)
            .and_then(|()| locked.set())
            .with_context(|| format!("writing `{name}`"))
    }

    /// Removes lines from a ref's log that name missing commits, because `git fsck` would report
    /// them forever. The old log is kept in `backup_dir`.
    pub(super) fn trim_log(
        &self,
        name: &str,
        backup_dir: &Path,
        is_there: &dyn Fn(CommitId) -> bool,
    ) -> anyhow::Result<()> {
        let path = self.log_of(name);
        let Ok(text) = read_regular(&path, MAX_LOG) else {
            return Ok(());
        };
        let text = String::from_utf8_lossy(&text);
        let is_intact = |id: &str| {
            let null = id.bytes().all(|byte| byte == b'0');
            null || id.parse().is_ok_and(is_there)
        };

        let retained: String = text
            .split_inclusive('\n')
            .filter(|line| line.splitn(3, ' ').take(2).all(is_intact))
            .collect();
        if retained.len() == text.len() {
            return Ok(());
        }

        make_dirs(backup_dir)?;
        std::fs::copy(&path, free_backup_log(backup_dir, name))
            .with_context(|| format!("keeping the log of `{name}`"))?;
        write_atomic(&path, retained.as_bytes())
            .with_context(|| format!("writing the log of `{name}`"))
    }

    /// Removes lock files of TeDDy's refs whose process is gone.
    pub(super) fn unlock_stale(
        &self,
        is_in_use: &dyn Fn(&str) -> bool,
    ) -> anyhow::Result<Vec<String>> {
        let mut removed = Vec::new();
        for path in self.loose()?.into_iter().filter(|path| is_lock(path)) {
            let Some(name) = self.name_of(&path.with_extension("")) else {
                continue;
            };
            // A ref that moves without the repository lock can be locked right now.
            if !is_in_use(&name) && is_stale_lock(&path) {
                std::fs::remove_file(&path)
                    .with_context(|| format!("removing `{}`", path.display()))?;
                removed.push(name);
            }
        }

        Ok(removed)
    }

    fn loose(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        self.each_file(TEDDY_PREFIX, |path, kind| {
            files.extend(kind.is_file().then(|| path.to_owned()));
            Ok(())
        })?;
        files.sort();
        Ok(files)
    }

    fn name_of(&self, path: &Path) -> Option<String> {
        let name = path.strip_prefix(&self.common).ok()?.to_str()?;
        gix::refs::FullName::try_from(name)
            .ok()
            .map(|_| name.to_owned())
    }
}

fn is_lock(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "lock")
}
