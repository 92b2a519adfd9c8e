//! Remotes: refs are fetched and pushed by the user's own git, with their credentials, proxies and settings.
//!
//! Only git accesses the network. What arrives is untrusted: git checks each object, the refs arrive in a
//! temporary namespace of this process, and callers validate names before they move one of ours.
//!
//! Limitation: fetched objects stay in the user's store until `git gc`, even if no ref is accepted.
//!
//! # Example
//!
//! ```
//! # use std::process::Command;
//! # use teddy::git::repository::Repository;
//! # let dir = tempfile::tempdir()?;
//! # let git = |args: &[&str]| {
//! #     let mut git = Command::new("git");
//! #     git.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
//! #     git.current_dir(&dir).args(args).status()
//! # };
//! # git(&["init", "-q", "-b", "main"])?;
//! # git(&["remote", "add", "origin", "https://localhost/a.git"])?;
//! # let repository = Repository::discover(dir.path(), None)?;
//! use teddy::git::remote::{names, to_fetch_from};
//!
//! assert_eq!(to_fetch_from(&repository)?.as_str(), "origin");
//! assert_eq!(names(&repository).len(), 1);
//! # Ok::<(), anyhow::Error>(())
//! ```

pub mod error;
pub mod missing_on_remote;

pub mod transfer;

use std::io::{self, IsTerminal as _, Read, Write as _};
use std::process::{Child, Command, Stdio};

#[cfg(target_os = "linux")]
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use super::object::CommitId;
use super::refs::{self, Reference};
use super::repository::Repository;
use super::user_git::{in_checkout, silent_git};
use crate::text::sanitize::sanitize_line;
use error::RemoteError;

/// Number of bytes at the end of git's messages that are kept to classify a failure.
const MAX_STDERR: usize = 16 * 1024;

/// Enough for two million refs, and for programs that git asks for a password.
const MAX_LIST_MEMORY: u64 = 1 << 30;

const MOST_BRANCHES: usize = 1000;

/// A longer line of git's messages is shown in parts.
const MAX_LINE: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct RemoteName(String);

impl RemoteName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for RemoteName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the names of the configured remotes, sorted.
pub fn names(repository: &Repository) -> Vec<RemoteName> {
    let settings = repository.config_section("remote").into_iter();
    let mut names: Vec<RemoteName> = settings
        .filter_map(|(key, _)| Some(RemoteName(key.rsplit_once('.')?.0.to_owned())))
        .filter(|name| is_usable(&name.0))
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Returns the remote with this name, or an error with suggestions.
pub fn find_by_name(repository: &Repository, name: &str) -> Result<RemoteName, RemoteError> {
    let remotes = names(repository);
    let matched = remotes.iter().find(|remote| remote.as_str() == name);
    matched
        .cloned()
        .ok_or_else(|| RemoteError::unknown(name, &remotes))
}

/// Returns the default remote for fetching: the branch's, the only one, or `origin`.
pub fn to_fetch_from(repository: &Repository) -> Result<RemoteName, RemoteError> {
    chosen(repository, &["branch.{}.remote"])
}

pub fn to_push_to(repository: &Repository) -> Result<RemoteName, RemoteError> {
    let keys = [
        "branch.{}.pushRemote",
        "remote.pushDefault",
        "branch.{}.remote",
    ];
    chosen(repository, &keys)
}

/// Returns the remote named by the first of these settings, else the only one, else `origin`.
fn chosen(repository: &Repository, keys: &[&str]) -> Result<RemoteName, RemoteError> {
    let branch = refs::branch(repository).ok().flatten();
    let key = |key: &&str| match (key.contains("{}"), &branch) {
        (true, Some(branch)) => Some(key.replace("{}", branch)),
        (true, None) => None,
        (false, _) => Some((*key).to_owned()),
    };
    let remotes = names(repository);
    let configured = keys.iter().filter_map(key);
    let mut configured = configured.filter_map(|key| repository.config(&key));
    let of_settings = configured.find_map(|name| remotes.iter().find(|remote| remote.0 == name));

    match (of_settings, remotes.as_slice()) {
        (Some(remote), _) | (None, [remote]) => Ok(remote.clone()),
        _ => find_by_name(repository, "origin").map_err(|_| RemoteError::none_chosen(&remotes)),
    }
}

/// Returns whether a remote's name can be part of a ref and is not an option of git's.
fn is_usable(name: &str) -> bool {
    let reference = format!("refs/teddy/remotes/{name}/a");
    let is_ref = gix::validate::reference::name(reference.as_str().into()).is_ok();
    is_ref && !name.starts_with('-') && name != "change" && !name.ends_with("/change")
}

/// Lists refs of a remote below prefixes such as `refs/teddy/sessions/`. Fetches no objects, so the
/// targets need not exist here.
pub fn list(
    repository: &Repository,
    remote: &RemoteName,
    prefixes: &[&str],
) -> anyhow::Result<Vec<Reference>> {
    list_at(repository, remote, remote.as_str(), prefixes)
}

/// Like [`list`], of the repository to which a push to this remote goes.
pub fn list_to_push(
    repository: &Repository,
    remote: &RemoteName,
    prefixes: &[&str],
) -> anyhow::Result<Vec<Reference>> {
    let address = push_address(repository, remote)?;
    let address = address.as_deref().unwrap_or(remote.as_str());
    list_at(repository, remote, address, prefixes)
}

/// Returns the address of pushes, if it is not that of fetches. Fails if there are several: each can
/// have other sessions.
fn push_address(repository: &Repository, remote: &RemoteName) -> anyhow::Result<Option<String>> {
    let addresses = |options: &[&str]| -> anyhow::Result<Vec<String>> {
        let mut command = transport(silent_git(repository.workdir())?, repository);
        command.args(["remote", "get-url"]).args(options);
        command.args(["--", remote.as_str()]);
        let output = run(
            command,
            remote,
            FetchProgress::Hidden,
            Some(MAX_LIST_MEMORY),
        )?;
        Ok(output.lines().map(str::to_owned).collect())
    };
    let mut pushed = addresses(&["--push", "--all"])?;
    if pushed.len() > 1 {
        return Err(RemoteError::several_addresses(remote.clone(), pushed.len()).into());
    }
    let fetched = addresses(&[])?;
    Ok(pushed
        .pop()
        .filter(|address| fetched.first() != Some(address)))
}

/// Returns commits that the repository of pushes has in its branches, as far as they exist here.
pub fn branches_to_push(
    repository: &Repository,
    remote: &RemoteName,
) -> anyhow::Result<Vec<CommitId>> {
    let listed = match push_address(repository, remote)? {
        // The tracking refs are those of another repository.
        Some(address) => list_at(repository, remote, &address, &["refs/heads/"])?,
        None => refs::list(repository, &format!("refs/remotes/{remote}/"))?,
    };
    let tips = listed.into_iter().map(|reference| reference.target);
    let tips = tips.filter(|id| repository.has(*id));
    Ok(tips.take(MOST_BRANCHES).collect())
}

fn list_at(
    repository: &Repository,
    remote: &RemoteName,
    address: &str,
    prefixes: &[&str],
) -> anyhow::Result<Vec<Reference>> {
    let mut command = transport(silent_git(repository.workdir())?, repository);
    command.args(["ls-remote", "--refs", "--quiet", "--", address]);
    command.args(prefixes.iter().map(|prefix| format!("{prefix}*")));
    let output = run(
        command,
        remote,
        FetchProgress::Hidden,
        Some(MAX_LIST_MEMORY),
    )?;

    let listed = output.lines().filter_map(|line| {
        let (target, name) = line.split_once('\t')?;
        // git matches a pattern at any `/` of a name.
        let is_wanted = prefixes.iter().any(|prefix| name.starts_with(prefix));
        let target = target.parse().ok().filter(|_| is_wanted)?;
        let name = name.to_owned();
        Some(Reference { name, target })
    });
    Ok(listed.collect())
}

/// Prepares a command of the user's git for an exchange with a remote.
pub(in crate::git) fn transport(mut command: Command, repository: &Repository) -> Command {
    // In English, because TeDDy parses the messages.
    command
        .env("LC_ALL", "C")
        .env("GIT_NO_REPLACE_OBJECTS", "1");
    // Otherwise git would ask for credentials where no user can answer.
    if !io::stdin().is_terminal() {
        command.env("GIT_TERMINAL_PROMPT", "0");
    }

    // Maintenance would run in the background and prune objects.
    command.args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"]);
    if repository.is_bare() {
        command.env("GIT_DIR", repository.git_dir());
        return command;
    }
    in_checkout(command, repository)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchProgress {
    Visible,
    Hidden,
}

impl FetchProgress {
    fn flag(self) -> &'static str {
        match self {
            FetchProgress::Visible => "--progress",
            FetchProgress::Hidden => "--no-progress",
        }
    }
}

/// Runs git and returns its output. `memory` is an upper bound in bytes, if git runs no hook of the
/// user's. Fails with [`RemoteError`] if git fails.
pub(in crate::git) fn run(
    mut command: Command,
    remote: &RemoteName,
    progress: FetchProgress,
    memory: Option<u64>,
) -> anyhow::Result<String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(memory) = memory {
        limit_memory(&child, memory);
    }
    let stderr = child.stderr.take();
    // In a thread: git blocks if either pipe is full.
    let reader = std::thread::Builder::new();
    let reader = reader.spawn(move || stderr.map(|pipe| listen(pipe, progress)))?;
    let mut stdout = Vec::new();
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_end(&mut stdout)?;
    }

    let status = child.wait()?;
    let message = reader.join().ok().flatten().unwrap_or_default();
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }

    // `git push` reports the result of each ref on standard output.
    let message = format!("{message}{}", String::from_utf8_lossy(&stdout));
    Err(RemoteError::of(remote.clone(), &message).into())
}

/// Limits the memory of git and of the processes that it starts from now on: git keeps all refs in
/// memory that a server lists, and a hostile one lists without end. Only Linux can do this from
/// outside. Ignores errors: without the limit git works, too.
#[cfg(target_os = "linux")]
fn limit_memory(child: &Child, memory: u64) {
    let limit = Rlimit {
        current: Some(memory),
        maximum: Some(memory),
    };
    let _ = prlimit(Some(Pid::from_child(child)), Resource::Data, limit);
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(_child: &Child, _memory: u64) {}

/// Returns a line of git's messages for display. It can contain text of the server, which must not
/// control the terminal. Only progress is overwritten by the next line.
fn displayed(line: &[u8]) -> String {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    let end = match &line[text.len()..] {
        b"\r" if is_progress(text) => "\r",
        b"" => "",
        _ => "\n",
    };
    let text = String::from_utf8_lossy(text);
    format!("{}{end}", sanitize_line(&text))
}

/// Returns whether a line counts, as `Receiving objects:  50% (1/2)`.
fn is_progress(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    let counter = text.rsplit_once(": ").map(|(_, tail)| tail.trim_start());
    counter.is_some_and(|counter| counter.starts_with(|c: char| c.is_ascii_digit()))
}

/// Takes the complete lines from the start of a buffer: up to the last line end, or all of a line
/// that is too long.
fn take_lines(buffer: &mut Vec<u8>) -> String {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let end = match buffer.iter().rposition(is_end) {
        Some(at) => at + 1,
        None if buffer.len() > MAX_LINE => buffer.len(),
        None => 0,
    };
    let complete: Vec<u8> = buffer.drain(..end).collect();
    let mut rest = &complete[..];
    let mut lines = String::new();
    while !rest.is_empty() {
        let length = match rest.iter().position(is_end) {
            Some(at) if rest[at..].starts_with(b"\r\n") => at + 2,
            Some(at) => at + 1,
            None => rest.len(),
        };
        lines += &displayed(&rest[..length]);
        rest = &rest[length..];
    }
    lines
}

/// Reads git's messages, passes them on, and returns the end of them.
fn listen(mut pipe: impl Read, progress: FetchProgress) -> String {
    let (mut last, mut buffer) = (Vec::new(), [0; 4096]);
    let mut pending = Vec::new();
    let show = |text: &str| {
        if progress == FetchProgress::Visible {
            let _ = io::stderr().write_all(text.as_bytes());
        }
    };
    while let Ok(read @ 1..) = pipe.read(&mut buffer) {
        pending.extend_from_slice(&buffer[..read]);
        show(&take_lines(&mut pending));

        last.extend_from_slice(&buffer[..read]);
        let surplus = last.len().saturating_sub(MAX_STDERR);
        last.drain(..surplus);
    }

    show(&displayed(&pending));
    String::from_utf8_lossy(&last).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_server_do_not_steer_the_terminal() {
        let check = |text: &str, expected: &str| {
            // In pieces of any length, as they come from a pipe.
            for length in 1..=text.len() {
                let mut pending = Vec::new();
                let mut shown = String::new();
                for piece in text.as_bytes().chunks(length) {
                    pending.extend_from_slice(piece);
                    shown += &take_lines(&mut pending);
                }
                shown += &displayed(&pending);
                assert_eq!(shown, expected, "in pieces of {length}");
            }
        };
        let progress = "remote: Counting objects:  50% (1/2)        \rUnpacking objects: 7\r";
        check(progress, progress);
        check(
            "To ../x.git\n * [new ref] a -> b\n",
            "To ../x.git\n * [new ref] a -> b\n",
        );
        check("remote: é\rother\n", "remote: é\nother\n");
        check(
            "\x1b]0;title\x07\u{9b}2J\u{202e}x\u{200b}\x08",
            "\\u{1b}]0;title\\u{7}\\u{9b}2J\\u{202e}x\\u{200b}\\u{8}",
        );
    }

    #[test]
    fn a_long_line_of_a_server_is_shown_in_parts() {
        let mut pending = vec![b'x'; MAX_LINE + 1];
        assert_eq!(take_lines(&mut pending).len(), MAX_LINE + 1);
        assert!(pending.is_empty());
        let mut ended = b"a\r\nb".to_vec();
        assert_eq!(take_lines(&mut ended), "a\n");
        assert_eq!(ended, b"b");
    }

    #[test]
    fn a_remote_is_used_if_its_name_can_be_part_of_a_ref() {
        for good in ["origin", "team/ada", "up.stream", "Origin"] {
            assert!(is_usable(good), "{good}");
        }
        for bad in [
            "", "-u", "a b", "a..b", "a.lock", "change", "x/change", "a//b", "/a",
        ] {
            assert!(!is_usable(bad), "{bad}");
        }
    }
}
