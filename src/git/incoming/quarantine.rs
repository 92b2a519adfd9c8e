//! Holds objects of commands while git checks them.
//!
//! The untrusted packs are limited in size, and each check in time.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::git::intake;
use crate::git::keep::pack::Sealed;
use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::host::file::Root;

/// Maximum total size of the untrusted packs in bytes.
const MAX_PACKS: u64 = 512 << 20;

const CHECK_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UnsoundCommit(pub(super) String);

/// A temporary object directory. Dropping it deletes it.
pub(super) struct Quarantine {
    dir: tempfile::TempDir,
}

impl Quarantine {
    pub(super) fn new(repository: &Repository) -> anyhow::Result<Quarantine> {
        let dir = intake::scratch_dir(&intake::incoming_dir(repository))?;
        for name in ["ours/pack", "theirs/pack"] {
            std::fs::create_dir_all(dir.path().join(name))?;
        }

        Ok(Quarantine { dir })
    }

    fn own_dir(&self) -> PathBuf {
        self.dir.path().join("ours")
    }

    /// Makes a pack visible to git's checks only.
    pub(super) fn expose_pack(&self, sealed: &Sealed) -> anyhow::Result<()> {
        for (ending, file) in [("pack", sealed.stream()), ("idx", sealed.index())] {
            // git finds a pack only under its usual name, which it does not have yet.
            std::os::unix::fs::symlink(file, self.pack_path(sealed).with_extension(ending))?;
        }
        Ok(())
    }

    fn pack_path(&self, sealed: &Sealed) -> PathBuf {
        self.own_dir().join(format!("pack/pack-{}", sealed.name()))
    }

    /// Checks a pack with the rules for pushes: well-formed objects, no forbidden names, no missing
    /// references.
    pub(super) fn check_rules(
        &self,
        repository: &Repository,
        sealed: &Sealed,
    ) -> anyhow::Result<()> {
        // `--strict` also requires every referenced object, and in a partial clone the server has
        // some of them.
        let rules = if repository.is_partial() {
            "--fsck-objects"
        } else {
            "--strict"
        };

        let mut command = self.git(repository)?;
        command
            .args(["index-pack", "--verify", rules])
            .arg(self.pack_path(sealed).with_extension("pack"));
        ensure_sound(command)
    }

    /// Checks that no object is missing below a commit, except those that the user's refs reach.
    pub(super) fn check_links(
        &self,
        repository: &Repository,
        head: CommitId,
        before: CommitId,
    ) -> anyhow::Result<()> {
        let (git, patience) = (self.git(repository)?, Some(CHECK_TIMEOUT));
        sound(intake::check_links(
            git,
            repository,
            [head],
            Some(before),
            patience,
        )?)
    }

    /// Copies the untrusted packs and indexes them again. `None` if there are none.
    pub(super) fn copy_packs(
        &self,
        repository: &Repository,
        git: &Root,
    ) -> anyhow::Result<Option<gix::OdbHandle>> {
        let Ok(pack_dir) = git.open_dir(Path::new("objects/pack")) else {
            return Ok(None);
        };
        let objects = self.dir.path().join("theirs");
        let (mut number, mut bytes) = (0, 0);

        for name in pack_dir.names().unwrap_or_default() {
            if !name.as_bytes().ends_with(b".pack") {
                continue;
            }

            let Ok(pack) = pack_dir.read(Path::new(&name), MAX_PACKS) else {
                continue;
            };
            bytes += pack.len() as u64;
            anyhow::ensure!(
                bytes <= MAX_PACKS,
                UnsoundCommit("the packs that they made are too large".to_owned())
            );
            number += 1;
            // The untrusted name is not used.
            let copy = objects.join(format!("pack/pack-{number:040x}.pack"));

            File::create_new(&copy)?.write_all(&pack)?;
            let mut command = self.git(repository)?;
            command
                .args(["index-pack", "-o"])
                .args([copy.with_extension("idx"), copy]);
            ensure_sound(command)?;
        }

        if number == 0 {
            return Ok(None);
        }

        Ok(Some(
            gix::odb::at(objects, repository.gix.object_hash())?.into(),
        ))
    }

    /// Returns a git command in the user's repository that also sees the collected pack.
    fn git(&self, repository: &Repository) -> anyhow::Result<Command> {
        // Commits of a plan on a machine without git cannot be checked, so they are not imported.
        let git = intake::checking_git(repository, &self.own_dir());
        let mut command = git.map_err(|error| UnsoundCommit(format!("{error:#}")))?;
        command.args(["-c", "pack.writeReverseIndex=false", "-c", "pack.threads=1"]);
        intake::limit_memory(&mut command);
        Ok(command)
    }
}

fn ensure_sound(command: Command) -> anyhow::Result<()> {
    sound(intake::run_check(
        command,
        Stdio::null(),
        Some(CHECK_TIMEOUT),
    )?)
}

fn sound(problem: Option<String>) -> anyhow::Result<()> {
    match problem {
        None => Ok(()),
        Some(why) => anyhow::bail!(UnsoundCommit(why)),
    }
}
