//! Holds untrusted objects while git checks them, invisible to other processes.
//!
//! The untrusted packs are limited in size, and each check in time. The objects are deleted after
//! the import; those of a killed process stay until `teddy gc`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::{MAX_OBJECT, UnsoundCommit};
use crate::git::keep::pack::Sealed;
use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::host::file::{Root, make_dirs};

const DIR_NAME: &str = "incoming";

/// Maximum total size of the untrusted packs in bytes.
const MAX_PACKS: u64 = 512 << 20;

const CHECK_TIMEOUT: Duration = Duration::from_secs(120);

/// Returns the directory for untrusted objects. If no TeDDy process is running, its contents are
/// leftovers.
pub fn incoming_dir(repository: &Repository) -> PathBuf {
    repository.teddy_dir().join(DIR_NAME)
}

/// A temporary object directory. Dropping it deletes it.
pub(super) struct Quarantine {
    dir: tempfile::TempDir,
}

impl Quarantine {
    pub(super) fn new(repository: &Repository) -> anyhow::Result<Quarantine> {
        let all = incoming_dir(repository);
        let created =
            make_dirs(&all).and_then(|()| tempfile::Builder::new().prefix("").tempdir_in(&all));
        let dir = created.with_context(|| format!("cannot write in `{}`", all.display()))?;
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
        let mut command = self.git(repository)?;
        command.args(["rev-list", "--objects", "--quiet"]);
        if repository.is_partial() {
            command.arg("--exclude-promisor-objects");
        }

        // A broken ref of the user's must not fail the check.
        command
            .args(["--ignore-missing", "--single-worktree", &head.to_string()])
            .args(["--not", &before.to_string(), "--all"]);
        ensure_sound(command)
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
        let command = repository.git();
        let mut command = command.map_err(|error| UnsoundCommit(format!("{error:#}")))?;
        let own_dir = self.own_dir();
        command
            .args(["-c", "pack.writeReverseIndex=false", "-c", "pack.threads=1"])
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", in_list(&own_dir))
            // Grafts would hide missing parents from the check.
            .env("GIT_GRAFT_FILE", "/dev/null")
            // A few compressed bytes must not expand to all memory.
            .env("GIT_ALLOC_LIMIT", (2 * MAX_OBJECT).to_string());

        Ok(command)
    }
}

/// Quotes a path for a list of directories, so colons and quotes are literal.
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

fn ensure_sound(command: Command) -> anyhow::Result<()> {
    match run_check(command, Stdio::null(), Some(CHECK_TIMEOUT))? {
        None => Ok(()),
        Some(why) => anyhow::bail!(UnsoundCommit(why)),
    }
}

/// Initial and longest delay between checks whether git has finished.
const POLL_DELAYS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(50)];

const MAX_STDERR: u64 = 16 * 1024;

/// Runs git with a timeout. Returns the reason if the check failed.
pub(in crate::git) fn run_check(
    mut command: Command,
    out: Stdio,
    patience: Option<Duration>,
) -> anyhow::Result<Option<String>> {
    let mut child = command
        .stdout(out)
        .stderr(Stdio::piped())
        .spawn()
        .context("starting git")?;
    let stderr = child.stderr.take();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut stderr) = stderr {
            let _ = stderr.by_ref().take(MAX_STDERR).read_to_end(&mut text);
            // Drain the rest, otherwise git blocks on a full pipe.
            let _ = std::io::copy(&mut stderr, &mut std::io::sink());
        }
        text
    });

    let ended = wait_with_timeout(&mut child, patience)?;
    let text = reader.join().unwrap_or_default();
    Ok(match ended {
        Some(status) if status.success() => None,
        Some(_) => Some(format!("git says: {}", first_message_line(&text))),
        None => Some("git took too long to check it".to_owned()),
    })
}

/// Waits for git, and kills it after the timeout. `None` if it was killed.
fn wait_with_timeout(
    child: &mut Child,
    patience: Option<Duration>,
) -> anyhow::Result<Option<ExitStatus>> {
    let deadline = patience.map(|patience| Instant::now() + patience);
    let [mut pause, longest] = POLL_DELAYS;
    loop {
        if let Some(status) = child.try_wait().context("waiting for git")? {
            return Ok(Some(status));
        }

        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            let _ = child.kill();
            let _ = child.wait();
            return Ok(None);
        }

        std::thread::sleep(pause);
        pause = (pause * 2).min(longest);
    }
}

fn first_message_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line_starting = |start: &str| text.lines().find(|line| line.starts_with(start));
    let line = line_starting("error:").or_else(|| line_starting("fatal:"));
    line.or_else(|| text.lines().next())
        .unwrap_or("nothing")
        .to_owned()
}
