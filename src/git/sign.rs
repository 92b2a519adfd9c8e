//! Signatures, created and verified by git with the user's settings, keys and programs.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus};

use anyhow::Context as _;

use crate::git::command::run_checked;
use crate::git::intake;
use crate::git::land::branch::check_identity;
use crate::git::object;
use crate::git::object::id::{CommitId, TagId};
use crate::git::repository::Repository;
use crate::git::scratch::BorrowingRepository;
use crate::git::user_git::{git_for, silent_git, user_git};
use crate::host::file::read_regular;
use crate::host::foreground::{self, Foreground};
use crate::host::interrupt;
use crate::text::sanitize::sanitize_line;

/// Variables through which a program could open a window or ask at another terminal.
const PROMPT_VARIABLES: [&str; 4] = ["DISPLAY", "WAYLAND_DISPLAY", "GPG_TTY", "SSH_ASKPASS"];

/// Makes programs fail instead of asking for a passphrase.
fn disable_prompts(command: &mut Command) {
    for name in PROMPT_VARIABLES {
        command.env_remove(name);
    }

    command
        .env("GIT_TERMINAL_PROMPT", "0")
        // ssh-keygen opens the terminal of its session even if none of its streams is one. With
        // SSH_ASKPASS_REQUIRE=force it runs a program instead, and this one fails.
        .env("SSH_ASKPASS_REQUIRE", "force")
        .env("SSH_ASKPASS", "false");
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedSignature {
    /// Owner of the key according to the user's configuration.
    pub signer: String,
    /// The key, as named by the verifying program.
    pub key: String,
}

/// Lets git verify a tag's signature. The inner error is the reason why it is not valid.
pub fn verify_tag(
    repository: &Repository,
    tag: TagId,
) -> anyhow::Result<Result<AcceptedSignature, String>> {
    let mut git = user_git(repository.workdir())?;
    disable_prompts(&mut git);
    git.env("GIT_DIR", repository.git_dir())
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("LC_ALL", "C")
        .args(["verify-tag", "--raw", &tag.to_string()]);
    let output = git.output()?;

    let stderr = String::from_utf8_lossy(&output.stderr);
    Ok(match (output.status.success(), parse_accepted(&stderr)) {
        (true, Some(accepted)) => Ok(accepted),
        _ => Err(explain_refusal(&stderr)),
    })
}

fn parse_accepted(stderr: &str) -> Option<AcceptedSignature> {
    let of_ssh = |line: &str| {
        let tail = line.strip_prefix("Good \"git\" signature for ")?;
        let (signer, key) = tail.rsplit_once(" with ")?;
        let key = key.rsplit_once(" key ").map_or(key, |(_, key)| key);
        Some((signer.to_owned(), key.to_owned()))
    };
    let of_gpg = |line: &str| {
        let tail = line.strip_prefix("[GNUPG:] GOODSIG ")?;
        let (key, signer) = tail.split_once(' ')?;
        Some((signer.to_owned(), key.to_owned()))
    };

    let mut lines = stderr.lines();
    let (signer, key) = lines.find_map(|line| of_ssh(line).or_else(|| of_gpg(line)))?;
    Some(AcceptedSignature { signer, key })
}

/// Parts of the messages of git and ssh, and what they mean.
const REFUSALS: [(&str, &str); 4] = [
    (
        "allowedSignersFile",
        "git cannot tell whose key it is: `gpg.ssh.allowedSignersFile` names no existing file",
    ),
    (
        "No principal matched",
        "its key is not in the file that `gpg.ssh.allowedSignersFile` names",
    ),
    ("incorrect signature", "it is not what the key has signed"),
    ("no signature found", "it has no signature"),
];

fn explain_refusal(stderr: &str) -> String {
    let after = |start: &str| {
        let mut lines = stderr.lines();
        let tail = lines.find_map(|line| line.strip_prefix(start))?;
        Some(sanitize_line(tail.split(' ').next().unwrap_or_default()).into_owned())
    };
    if let Some(key) = after("[GNUPG:] NO_PUBKEY ") {
        return format!("git cannot tell whose key it is: the public key {key} is not here");
    }

    if let Some(key) = after("[GNUPG:] BADSIG ") {
        return format!("it is not what the key {key} has signed");
    }

    let known = REFUSALS.iter().find(|(sign, _)| stderr.contains(sign));
    if let Some((_, explanation)) = known {
        return (*explanation).to_owned();
    }

    let mut messages = stderr.lines().filter(|line| !line.starts_with("[GNUPG:]"));
    match messages.next_back() {
        Some(line) => format!("git does not accept it: {}", sanitize_line(line.trim())),
        None => "git does not accept it".to_owned(),
    }
}

// Creates signed tag objects without a ref in the user's repository.
//
// `git tag` only writes to `refs/tags`, which belongs to the user. So it runs in an empty scratch
// repository that borrows the user's objects, with the user's settings for identity, keys and
// programs. The tag object is read from there.

/// Sections of the user's settings that determine identity, keys and programs.
const SIGNING_SECTIONS: [&str; 4] = ["author.", "committer.", "gpg.", "user."];

/// File for the messages of git and its child processes.
const STDERR_FILE: &str = "words";

const MAX_STDERR: u64 = 16 << 10;

pub struct TagRequest<'a> {
    pub name: &'a str,
    pub commit: CommitId,
    pub message: &'a str,
}

/// Whether the user can be asked for a passphrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passphrase {
    Ask,
    /// No user is present, so a key that needs a passphrase cannot be used.
    Never,
}

#[derive(Debug, thiserror::Error)]
pub enum SignError {
    #[error("git has no key to sign with: `user.signingKey` is not set")]
    NoKey,
    /// git failed, and the user saw its messages at the terminal.
    #[error("git made no signature ({0})")]
    Exited(ExitStatus),
    #[error("git made no signature: {0}")]
    Failed(String),
}

impl SignError {
    pub fn hint(&self) -> String {
        match self {
            SignError::NoKey => {
                "`git config --global gpg.format ssh` and `git config --global user.signingKey \
                 ~/.ssh/id_ed25519.pub` sign with a key of ssh"
                    .to_owned()
            }
            SignError::Failed(message) if mentions_passphrase(message) => {
                "add the key to your agent first (`ssh-add`, or sign something with `gpg`), or run \
                 the command at a terminal"
                    .to_owned()
            }
            SignError::Exited(_) | SignError::Failed(_) => {
                "see `gpg.format`, `gpg.program` and `user.signingKey` in `git help config`; `git \
                 tag -s` must work here"
                    .to_owned()
            }
        }
    }
}

/// Lets git sign a tag and returns the content of the tag object. `all` is the directory for
/// scratch repositories.
///
/// Fails with [`SignError`], or with [`Obstacle`](crate::git::land::branch::Obstacle) if the user's
/// identity is unknown.
pub fn sign_tag(
    repository: &Repository,
    all: &Path,
    request: &TagRequest<'_>,
    passphrase: Passphrase,
) -> anyhow::Result<Vec<u8>> {
    check_identity(repository)?;
    let settings = signing_settings(repository)?;
    check_key(&settings)?;
    let scratch = BorrowingRepository::make(repository, intake::scratch_dir(all)?)?;
    let git = || -> anyhow::Result<Command> {
        // In the user's worktree, so relative paths in settings stay valid.
        let mut git = silent_git(repository.workdir())?;
        git.env("GIT_DIR", scratch.path());
        Ok(git)
    };
    let mut signing = git()?;
    signing.env("GIT_CONFIG_COUNT", settings.len().to_string());
    for (number, (key, value)) in settings.iter().enumerate() {
        signing.env(format!("GIT_CONFIG_KEY_{number}"), key);
        signing.env(format!("GIT_CONFIG_VALUE_{number}"), value);
    }
    create_tag(signing, scratch.dir.path(), request, passphrase)?;

    let name = format!("refs/tags/{}", request.name);
    let mut read = git()?;
    let bytes = run_checked(read.args(["cat-file", "tag", &name]), "read what it signed")?;
    let parsed = object::parse_tag(&bytes).context("reading what git signed")?;
    anyhow::ensure!(
        parsed.commit == request.commit && parsed.name == request.name,
        "git signed something else than commit {}",
        request.commit
    );

    Ok(bytes)
}

fn signing_settings(repository: &Repository) -> anyhow::Result<Vec<(String, OsString)>> {
    let mut git = git_for(repository)?;
    let listed = run_checked(git.args(["config", "--list", "-z"]), "list its settings")?;

    let entries = listed.split(|&byte| byte == 0).filter_map(|entry| {
        let (key, value) = match entry.iter().position(|&byte| byte == b'\n') {
            Some(at) => (&entry[..at], &entry[at + 1..]),
            // A key without a value means true.
            None => (entry, &b"true"[..]),
        };
        let key = std::str::from_utf8(key).ok()?.to_owned();
        let is_wanted = SIGNING_SECTIONS
            .iter()
            .any(|section| key.starts_with(section));

        is_wanted.then(|| (key, OsString::from_vec(value.to_vec())))
    });
    Ok(entries.collect())
}

/// Rejects an ssh signature without a configured key, because git's message for that depends on its
/// version. gpg finds a key without a setting.
fn check_key(settings: &[(String, OsString)]) -> anyhow::Result<()> {
    let value = |key: &str| settings.iter().rev().find(|(name, _)| name == key);
    let is_ssh = value("gpg.format").is_some_and(|(_, format)| format == "ssh");
    let has_key = value("user.signingkey").is_some_and(|(_, key)| !key.is_empty())
        || value("gpg.ssh.defaultkeycommand").is_some();
    anyhow::ensure!(has_key || !is_ssh, SignError::NoKey);
    Ok(())
}

fn mentions_passphrase(message: &str) -> bool {
    let message = message.to_lowercase();
    ["passphrase", "ioctl", "pinentry", "no tty"]
        .iter()
        .any(|sign| message.contains(sign))
}

/// Creates the tag with a git command. `dir` is for files of this function.
fn create_tag(
    mut git: Command,
    dir: &Path,
    request: &TagRequest<'_>,
    passphrase: Passphrase,
) -> anyhow::Result<()> {
    let message = dir.join("message");
    std::fs::write(&message, request.message)?;
    git.args(["tag", "--sign", "--cleanup=verbatim", "--file"])
        .arg(&message)
        .args([request.name, &request.commit.to_string()]);

    let stderr_path = dir.join(STDERR_FILE);
    let mode = match passphrase {
        Passphrase::Ask => Foreground::Terminal,
        Passphrase::Never => {
            disable_prompts(&mut git);
            git.stderr(File::create(&stderr_path)?);
            Foreground::Watched
        }
    };

    let status = foreground::run(&mut git, mode).context("cannot start `git tag`")?;
    anyhow::ensure!(
        !interrupt::requested(),
        "interrupted before anything was changed"
    );
    if status.success() {
        return Ok(());
    }

    Err(match passphrase {
        Passphrase::Ask => SignError::Exited(status),
        Passphrase::Never => SignError::Failed(read_reason(&stderr_path)),
    }
    .into())
}

fn read_reason(path: &Path) -> String {
    let text = read_regular(path, MAX_STDERR).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines = text.lines().map(|line| {
        let line = line.trim();
        let line = line.strip_prefix("error: ").unwrap_or(line);
        line.strip_prefix("fatal: ").unwrap_or(line)
    });

    // Skip status lines for programs, and the path of a message file that is deleted with the
    // scratch repository.
    let reasons = lines.filter(|line| {
        !line.is_empty() && !line.starts_with("[GNUPG:]") && !line.contains("TAG_EDITMSG")
    });
    let reasons: Vec<&str> = reasons
        .map(|line| line.trim_end_matches(['.', '?', ':']))
        .collect();
    match reasons.is_empty() {
        true => "it did not say why".to_owned(),
        false => reasons.join("; "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_signature_it_is_is_read() {
        let check = |stderr: &str, expected: Option<(&str, &str)>| {
            let actual = parse_accepted(stderr);
            let actual = actual.map(|signature| (signature.signer, signature.key));
            let expected = expected.map(|(signer, key)| (signer.to_owned(), key.to_owned()));
            assert_eq!(actual, expected);
        };
        check(
            "Good \"git\" signature for a with b@c with ED25519 key SHA256:x/y+z\n",
            Some(("a with b@c", "SHA256:x/y+z")),
        );
        check(
            "[GNUPG:] NEWSIG\n[GNUPG:] GOODSIG 9A1 Ada L <ada@x>\n[GNUPG:] VALIDSIG F\n",
            Some(("Ada L <ada@x>", "9A1")),
        );
        check(
            "Good \"git\" signature with ED25519 key SHA256:x\nNo principal matched.\n",
            None,
        );
        check("", None);
    }

    #[test]
    fn why_a_signature_is_refused_is_said() {
        let check = |stderr: &str, expected: &str| assert_eq!(explain_refusal(stderr), expected);
        check(
            "[GNUPG:] ERRSIG 9 1\n[GNUPG:] NO_PUBKEY 9A1\n",
            "git cannot tell whose key it is: the public key 9A1 is not here",
        );
        check(
            "[GNUPG:] BADSIG 9A1 Ada <ada@x>\n",
            "it is not what the key 9A1 has signed",
        );
        check("error: no signature found\n", "it has no signature");
        check(
            "[GNUPG:] X\nhe\u{1b}y\n",
            "git does not accept it: he\\u{1b}y",
        );
        check("", "git does not accept it");
    }
}

#[cfg(test)]
mod make_tests {
    use super::*;

    #[test]
    fn a_key_must_be_named_for_ssh_alone() {
        let check = |settings: &[(&str, &str)], expected: bool| {
            let own = |(key, value): &(&str, &str)| ((*key).to_owned(), OsString::from(value));
            let settings: Vec<_> = settings.iter().map(own).collect();
            assert_eq!(check_key(&settings).is_ok(), expected, "{settings:?}");
        };
        check(&[], true);
        check(&[("gpg.format", "openpgp")], true);
        check(&[("gpg.format", "ssh")], false);
        check(&[("gpg.format", "ssh"), ("user.signingkey", "")], false);
        check(&[("gpg.format", "ssh"), ("user.signingkey", "~/key")], true);
        check(
            &[("gpg.format", "ssh"), ("gpg.ssh.defaultkeycommand", "x")],
            true,
        );
        check(&[("gpg.format", "ssh"), ("gpg.format", "openpgp")], true);
    }
}
