//! Checks for objects from someone we do not trust: commands of a plan, and bundles.
//!
//! Such objects wait in a directory of their own below `teddy/incoming`, invisible to other
//! processes, until git has checked them and that no object is missing below their refs. Only then
//! do they enter the repository, with the refs. A killed process leaves its directory for
//! `teddy gc`.
//!
//! The object checks themselves differ on purpose: commands made their commits just now and get all
//! rules of git, while a bundle can contain an old history that fails harmless ones. `git fetch`
//! checks what it receives itself, see [`remote`](super::remote).

use std::ffi::{OsStr, OsString};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::Signal;

use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::host::file::{make_dirs, temporary_parent};
use crate::host::helper;

/// Maximum size of an object, packed or not.
pub(super) const MAX_OBJECT: u64 = 512 << 20;

/// Returns the directory for untrusted objects. If no TeDDy process is running, its contents are
/// leftovers.
pub fn incoming_dir(repository: &Repository) -> PathBuf {
    repository.teddy_dir().join("incoming")
}

/// Makes a scratch directory in `all`. Dropping it deletes it.
pub(super) fn scratch_dir(all: &Path) -> anyhow::Result<tempfile::TempDir> {
    let created = make_dirs(all).and_then(|()| tempfile::Builder::new().prefix("").tempdir_in(all));
    created.with_context(|| format!("cannot write in `{}`", all.display()))
}

/// Returns a git command in the user's repository that also sees the objects in a directory.
pub(super) fn checking_git(repository: &Repository, objects: &Path) -> anyhow::Result<Command> {
    let mut command = repository.git()?;
    command
        .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", in_list(objects))
        // Grafts would hide missing parents from the check.
        .env("GIT_GRAFT_FILE", "/dev/null");
    Ok(command)
}

/// A few compressed bytes must not expand to all memory.
pub(super) fn limit_memory(command: &mut Command) {
    command.env("GIT_ALLOC_LIMIT", (2 * MAX_OBJECT).to_string());
}

/// Checks that no object is missing below some commits, except those that the user's refs and
/// `known` reach. Returns the reason if the check failed.
pub(super) fn check_links(
    mut git: Command,
    repository: &Repository,
    tips: impl IntoIterator<Item = CommitId>,
    known: Option<CommitId>,
    patience: Option<Duration>,
) -> anyhow::Result<Option<String>> {
    git.args(["rev-list", "--objects", "--quiet"]);
    if repository.is_partial() {
        git.arg("--exclude-promisor-objects");
    }
    // A file, because there can be more tips than fit into a command line or a pipe.
    let mut input = tempfile::tempfile_in(temporary_parent())?;
    let tips = tips.into_iter().map(|tip| format!("{tip}\n"));
    let known = known.map(|known| format!("^{known}\n"));
    input.write_all(tips.chain(known).collect::<String>().as_bytes())?;
    input.rewind()?;
    // A broken ref of the user's must not fail the check.
    git.args(["--ignore-missing", "--stdin", "--single-worktree"])
        .args(["--not", "--all"])
        .stdin(Stdio::from(input));
    run_check(git, Stdio::null(), patience)
}

/// Quotes a path for a list of directories, so colons and quotes are literal.
fn in_list(path: &Path) -> OsString {
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

const MAX_STDERR: u64 = 16 * 1024;

/// Reason of a failure if the reader of the output has gone.
pub(super) const CLOSED: &str = "its output was closed";

/// Runs git with a timeout. Returns the reason if the check failed.
pub(super) fn run_check(
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
    let reader = std::thread::Builder::new().spawn(move || {
        let mut text = Vec::new();
        if let Some(mut stderr) = stderr {
            let _ = stderr.by_ref().take(MAX_STDERR).read_to_end(&mut text);
            // Drain the rest, otherwise git blocks on a full pipe.
            let _ = std::io::copy(&mut stderr, &mut std::io::sink());
        }
        text
    })?;

    let deadline = patience.map(|patience| Instant::now() + patience);
    let ended = helper::wait(&mut child, deadline).context("waiting for git")?;
    if ended.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    let text = reader.join().unwrap_or_default();
    Ok(match ended {
        Some(status) if status.success() => None,
        Some(status) if status.signal() == Some(Signal::PIPE.as_raw()) => Some(CLOSED.to_owned()),
        Some(_) => Some(format!("git says: {}", first_message_line(&text))),
        None => Some("git took too long to check it".to_owned()),
    })
}

fn first_message_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line_starting = |start: &str| text.lines().find(|line| line.starts_with(start));
    let line = line_starting("error:").or_else(|| line_starting("fatal:"));
    line.or_else(|| text.lines().next())
        .unwrap_or("nothing")
        .to_owned()
}
