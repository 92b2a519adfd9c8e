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
use std::process::{Command, Stdio};

use super::refs;
use super::repository::Repository;
use super::user_git::{in_checkout, silent_git, user_git};
use error::{RemoteError, RemoteTrouble};

/// Number of bytes at the end of git's messages that are kept to classify a failure.
const MAX_STDERR: usize = 16 * 1024;

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteRef {
    pub name: String,
    /// Object id in hexadecimal. The object need not exist locally.
    pub target: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunHooks {
    Yes,
    No,
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

/// Lists refs of a remote below prefixes such as `refs/teddy/sessions/`. Fetches no objects.
pub fn list(
    repository: &Repository,
    remote: &RemoteName,
    prefixes: &[&str],
) -> anyhow::Result<Vec<RemoteRef>> {
    let mut command = transport(repository, RunHooks::No)?;
    command.args(["ls-remote", "--refs", "--quiet", "--", remote.as_str()]);
    command.args(prefixes.iter().map(|prefix| format!("{prefix}*")));
    let output = run(command, remote, FetchProgress::Hidden)?;

    let listed = output.lines().filter_map(|line| {
        let (target, name) = line.split_once('\t')?;
        // git matches a pattern at any `/` of a name.
        let is_wanted = prefixes.iter().any(|prefix| name.starts_with(prefix));
        let is_id = target.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_wanted && is_id).then(|| RemoteRef {
            name: name.to_owned(),
            target: target.to_owned(),
        })
    });
    Ok(listed.collect())
}

pub(in crate::git) fn transport(
    repository: &Repository,
    hooks: RunHooks,
) -> anyhow::Result<Command> {
    let mut command = match hooks {
        RunHooks::Yes => user_git(repository.workdir())?,
        RunHooks::No => silent_git(repository.workdir())?,
    };

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
        return Ok(command);
    }
    Ok(in_checkout(command, repository))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchProgress {
    Visible,
    Hidden,
}

/// Runs git and returns its output. Fails with [`RemoteError`] if git fails.
pub(in crate::git) fn run(
    mut command: Command,
    remote: &RemoteName,
    progress: FetchProgress,
) -> anyhow::Result<String> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
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
    Err(RemoteError::of(remote.clone(), RemoteTrouble::classify(&message), &message).into())
}

/// Removes control characters, because a server's messages must not control the terminal.
fn plain(bytes: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| !byte.is_ascii_control() || b"\n\r\t".contains(byte);
    bytes.iter().copied().filter(is_plain).collect()
}

/// Reads git's messages, passes them on, and returns the end of them.
fn listen(mut pipe: impl Read, progress: FetchProgress) -> String {
    let (mut last, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = pipe.read(&mut buffer) {
        if progress == FetchProgress::Visible {
            let _ = io::stderr().write_all(&plain(&buffer[..read]));
        }

        last.extend_from_slice(&buffer[..read]);
        let surplus = last.len().saturating_sub(MAX_STDERR);
        last.drain(..surplus);
    }

    String::from_utf8_lossy(&last).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_server_do_not_steer_the_terminal() {
        let check = |bytes: &[u8], expected: &[u8]| assert_eq!(plain(bytes), expected);
        check(b"remote: 50%\r100%\n", b"remote: 50%\r100%\n");
        check(b"\x1b]0;title\x07\x1b[2Jx\x08", b"]0;title[2Jx");
        check("é\t".as_bytes(), "é\t".as_bytes());
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
