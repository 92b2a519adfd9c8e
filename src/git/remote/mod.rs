//! Remotes, as the user's own git reaches them: with their credentials, proxies and settings.
//!
//! git moves the bytes, and it alone talks to the network. What a remote sends is a stranger's: git
//! checks every object that comes in, and names are checked by who asks for them.

pub mod beyond;
pub mod error;
pub mod receive;
pub mod send;

use std::io::{self, IsTerminal as _, Read, Write as _};
use std::process::{Command, Stdio};

use super::refs;
use super::repository::Repository;
use super::user_git::{in_checkout, silent_git, user_git};
use error::{RemoteError, RemoteTrouble};

/// The last bytes of what git said that are looked at, to tell what went wrong.
const WORDS: usize = 16 * 1024;

/// The name of a remote that the user's configuration has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct RemoteName(String);

impl RemoteName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for RemoteName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A ref as a remote lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteRef {
    /// The full name there.
    pub name: String,
    /// What it points at, as hexadecimal digits: nothing of it need be here.
    pub target: String,
}

/// Whether hooks of the user's run while git moves something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunHooks {
    /// They do: `pre-push`.
    Yes,
    /// They do not.
    No,
}

/// Returns the names of the remotes that the configuration has, sorted.
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

/// Returns the remote of a name.
///
/// # Errors
/// There is none of this name.
pub fn named(repository: &Repository, name: &str) -> Result<RemoteName, RemoteError> {
    let known = names(repository);
    let found = known.iter().find(|remote| remote.as_str() == name);
    found
        .cloned()
        .ok_or_else(|| RemoteError::unknown(name, &known))
}

/// Returns the remote from which git would fetch here: that of the branch, the only one, or
/// `origin`.
///
/// # Errors
/// There is none of these.
pub fn to_fetch_from(repository: &Repository) -> Result<RemoteName, RemoteError> {
    chosen(repository, &["branch.{}.remote"])
}

/// Returns the remote to which git would push here.
///
/// # Errors
/// As for [`to_fetch_from`].
pub fn to_push_to(repository: &Repository) -> Result<RemoteName, RemoteError> {
    let keys = [
        "branch.{}.pushRemote",
        "remote.pushDefault",
        "branch.{}.remote",
    ];
    chosen(repository, &keys)
}

/// Returns the remote that one of these settings names, else the only one, else `origin`.
fn chosen(repository: &Repository, keys: &[&str]) -> Result<RemoteName, RemoteError> {
    let branch = refs::branch(repository).ok().flatten();
    let key = |key: &&str| match (key.contains("{}"), &branch) {
        (true, Some(branch)) => Some(key.replace("{}", branch)),
        (true, None) => None,
        (false, _) => Some((*key).to_owned()),
    };
    let known = names(repository);
    let wanted = keys.iter().filter_map(key);
    let mut wanted = wanted.filter_map(|key| repository.config(&key));
    let of_settings = wanted.find_map(|name| known.iter().find(|remote| remote.0 == name));

    match (of_settings, known.as_slice()) {
        (Some(remote), _) | (None, [remote]) => Ok(remote.clone()),
        _ => named(repository, "origin").map_err(|_| RemoteError::none_chosen(&known)),
    }
}

/// Returns whether a name can be part of a ref's, and is no option of git's.
fn is_usable(name: &str) -> bool {
    let reference = format!("refs/teddy/remotes/{name}/a");
    let is_ref = gix::validate::reference::name(reference.as_str().into()).is_ok();
    is_ref && !name.starts_with('-') && name != "change" && !name.ends_with("/change")
}

/// Lists the refs of a remote below these prefixes, such as `refs/teddy/sessions/`. No object is
/// fetched.
///
/// # Errors
/// The remote cannot be reached or read.
pub fn list(
    repository: &Repository,
    remote: &RemoteName,
    prefixes: &[&str],
) -> anyhow::Result<Vec<RemoteRef>> {
    let mut command = transport(repository, RunHooks::No)?;
    command.args(["ls-remote", "--refs", "--quiet", "--", remote.as_str()]);
    command.args(prefixes.iter().map(|prefix| format!("{prefix}*")));
    let said = run(command, remote, FetchProgress::Hidden)?;

    let listed = said.lines().filter_map(|line| {
        let (target, name) = line.split_once('\t')?;
        // To git a pattern may begin at any `/` of a name.
        let is_wanted = prefixes.iter().any(|prefix| name.starts_with(prefix));
        let is_id = target.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_wanted && is_id).then(|| RemoteRef {
            name: name.to_owned(),
            target: target.to_owned(),
        })
    });
    Ok(listed.collect())
}

/// Returns git, ready to talk to a remote.
///
/// # Errors
/// git is not installed.
pub(in crate::git) fn transport(
    repository: &Repository,
    hooks: RunHooks,
) -> anyhow::Result<Command> {
    let mut command = match hooks {
        RunHooks::Yes => user_git(repository.workdir())?,
        RunHooks::No => silent_git(repository.workdir())?,
    };

    // Its words are read, and so are they by the user.
    command
        .env("LC_ALL", "C")
        .env("GIT_NO_REPLACE_OBJECTS", "1");
    if !io::stdin().is_terminal() {
        command.env("GIT_TERMINAL_PROMPT", "0");
    }

    command.args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"]);
    if repository.is_bare() {
        command.env("GIT_DIR", repository.git_dir());
        return Ok(command);
    }
    Ok(in_checkout(command, repository))
}

/// Whether what git says of its progress is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchProgress {
    /// To standard error.
    Shown,
    /// Nothing is.
    Hidden,
}

/// Runs git and returns what it printed.
///
/// # Errors
/// [`RemoteError`] if git fails, with its own words.
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
    let reader = std::thread::spawn(move || stderr.map(|pipe| listen(pipe, progress)));
    let mut said = Vec::new();
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_end(&mut said)?;
    }

    let status = child.wait()?;
    let words = reader.join().ok().flatten().unwrap_or_default();
    if status.success() {
        return Ok(String::from_utf8_lossy(&said).into_owned());
    }

    // What a push did to each ref stands on standard output.
    let words = format!("{words}{}", String::from_utf8_lossy(&said));
    Err(RemoteError::of(remote.clone(), RemoteTrouble::judge(&words), &words).into())
}

/// Returns bytes without what would steer a terminal: a server's words are among them.
fn plain(bytes: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| !byte.is_ascii_control() || b"\n\r\t".contains(byte);
    bytes.iter().copied().filter(is_plain).collect()
}

/// Reads what git says to its end, passes it on, and returns the last of it.
fn listen(mut pipe: impl Read, progress: FetchProgress) -> String {
    let (mut last, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = pipe.read(&mut buffer) {
        if progress == FetchProgress::Shown {
            let _ = io::stderr().write_all(&plain(&buffer[..read]));
        }

        last.extend_from_slice(&buffer[..read]);
        let surplus = last.len().saturating_sub(WORDS);
        last.drain(..surplus);
    }

    String::from_utf8_lossy(&last).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_server_do_not_steer_the_terminal() {
        let check = |words: &[u8], expected: &[u8]| assert_eq!(plain(words), expected);
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
