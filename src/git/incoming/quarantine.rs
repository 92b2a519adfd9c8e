//! The place where a stranger's objects are looked at before anybody sees them, and git's own
//! checks of them.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;

use super::examine::examine;
use super::{MAX_OBJECT, UnsoundCommit};
use crate::git::keep::pack::Sealed;
use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::host::file::{Root, make_folders};

/// The folder below `teddy/` that holds what is looked at.
const FOLDER: &str = "incoming";
/// More bytes of a stranger's packs than this are not looked at.
const MAX_PACKS: u64 = 512 << 20;
/// How long git may take for one check.
const PATIENCE: Duration = Duration::from_secs(120);

/// Returns the folder of what commands made and nobody has looked at yet. What lies in it while
/// no process of ours works is what a killed one left.
pub fn incoming_dir(repository: &Repository) -> PathBuf {
    repository.teddy_dir().join(FOLDER)
}

/// A folder of objects that only we know of; removed when dropped.
pub(super) struct Quarantine {
    /// The folder.
    folder: tempfile::TempDir,
}

impl Quarantine {
    /// Makes an empty one.
    pub(super) fn new(repository: &Repository) -> anyhow::Result<Quarantine> {
        let all = incoming_dir(repository);
        let made =
            make_folders(&all).and_then(|()| tempfile::Builder::new().prefix("").tempdir_in(&all));
        let folder = made.with_context(|| format!("cannot write in `{}`", all.display()))?;
        for name in ["ours/pack", "theirs/pack"] {
            std::fs::create_dir_all(folder.path().join(name))?;
        }

        Ok(Quarantine { folder })
    }

    /// Returns the folder of objects with the pack that was collected.
    fn ours(&self) -> PathBuf {
        self.folder.path().join("ours")
    }

    /// Shows a pack to git's checks, and to nobody else.
    pub(super) fn show(&self, sealed: &Sealed) -> anyhow::Result<()> {
        for (ending, file) in [("pack", sealed.stream()), ("idx", sealed.index())] {
            std::os::unix::fs::symlink(file, self.shown(sealed).with_extension(ending))?;
        }
        Ok(())
    }

    /// Returns where a pack is shown, without its ending.
    fn shown(&self, sealed: &Sealed) -> PathBuf {
        self.ours().join(format!("pack/pack-{}", sealed.name()))
    }

    /// Has git check a pack by the rules for what is pushed: well-formed objects, no forbidden
    /// names, nothing missing that one of them names.
    pub(super) fn check_rules(
        &self,
        repository: &Repository,
        sealed: &Sealed,
    ) -> anyhow::Result<()> {
        // `--strict` asks for every object that one of these names as well, and in a partial clone
        // the server has some of them.
        let rules = if repository.is_partial() {
            "--fsck-objects"
        } else {
            "--strict"
        };

        let mut command = self.git(repository)?;
        command
            .args(["index-pack", "--verify", rules])
            .arg(self.shown(sealed).with_extension("pack"));
        judged(command)
    }

    /// Has git check that nothing is missing below a commit, as far as the user's refs do not reach
    /// it.
    pub(super) fn check_links(
        &self,
        repository: &Repository,
        head: CommitId,
        before: CommitId,
    ) -> anyhow::Result<()> {
        let mut command = self.git(repository)?;
        command.args(["rev-list", "--objects", "--quiet"]);
        if repository.is_partial() {
            command.arg("--exclude-promisor-objects");
        }

        // A ref of the user's that is broken is not the commands' fault.
        command.args(["--ignore-missing", &head.to_string()]).args([
            "--not",
            &before.to_string(),
            "--all",
        ]);
        judged(command)
    }

    /// Copies a stranger's packs and indexes them anew; nothing where there are none.
    pub(super) fn copy_packs(
        &self,
        repository: &Repository,
        git: &Root,
    ) -> anyhow::Result<Option<gix::OdbHandle>> {
        let Ok(theirs) = git.folder(Path::new("objects/pack")) else {
            return Ok(None);
        };
        let objects = self.folder.path().join("theirs");
        let (mut number, mut bytes) = (0, 0);

        for name in theirs.names().unwrap_or_default() {
            if !name.as_bytes().ends_with(b".pack") {
                continue;
            }

            let Ok(pack) = theirs.read(Path::new(&name), MAX_PACKS) else {
                continue;
            };
            bytes += pack.len() as u64;
            anyhow::ensure!(
                bytes <= MAX_PACKS,
                UnsoundCommit("the packs that they made are too large".to_owned())
            );
            number += 1;
            let copy = objects.join(format!("pack/pack-{number:040x}.pack"));

            File::create_new(&copy)?.write_all(&pack)?;
            let mut command = self.git(repository)?;
            command
                .args(["index-pack", "-o"])
                .args([copy.with_extension("idx"), copy]);
            judged(command)?;
        }

        if number == 0 {
            return Ok(None);
        }

        Ok(Some(
            gix::odb::at(objects, repository.gix.object_hash())?.into(),
        ))
    }

    /// Returns git in the user's repository, which sees the collected pack as well.
    fn git(&self, repository: &Repository) -> anyhow::Result<Command> {
        // Without git there is nobody to check, and who committed used something else.
        let command = repository.git();
        let mut command = command.map_err(|error| UnsoundCommit(format!("{error:#}")))?;
        let ours = self.ours();
        command
            .args(["-c", "pack.writeReverseIndex=false", "-c", "pack.threads=1"])
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", in_list(&ours))
            .env("GIT_GRAFT_FILE", "/dev/null")
            // What a few bytes become must not take all memory.
            .env("GIT_ALLOC_LIMIT", (2 * MAX_OBJECT).to_string());

        Ok(command)
    }
}

/// Returns a path as a list of folders has it, in which colons and quotes stand for themselves.
pub(in crate::git) fn in_list(path: &Path) -> std::ffi::OsString {
    let mut text = vec![b'"'];
    for &byte in path.as_os_str().as_bytes() {
        if matches!(byte, b'"' | b'\\') {
            text.push(b'\\');
        }
        text.push(byte);
    }

    text.push(b'"');
    OsStr::from_bytes(&text).to_owned()
}

/// Runs a check of git's, and returns its judgement.
fn judged(command: Command) -> anyhow::Result<()> {
    match examine(command, Stdio::null(), Some(PATIENCE))? {
        None => Ok(()),
        Some(why) => anyhow::bail!(UnsoundCommit(why)),
    }
}
