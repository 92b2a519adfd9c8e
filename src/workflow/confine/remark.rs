//! Whether the sandbox may be why a command failed, and which setting opens what it lacked.
//!
//! Only words can tell: the error is the program's own. Landlock answers EACCES and the filter of
//! system calls EPERM, which is how the two are told apart.

use crate::host::sandbox::{Network, Policy};

/// How much of the end of the output is looked at.
const TAIL: usize = 64 * 1024;
/// What a program says that finds no terminal.
const TERMINAL: [&str; 3] = ["out of pty devices", "openpty", "forkpty"];
/// What programs say that were refused a socket, or find no name server.
const NETWORK: [&str; 12] = [
    "Operation not permitted",
    "EPERM",
    "Could not resolve host",
    "Couldn't resolve host",
    "name resolution",
    "Name or service not known",
    "failed to lookup address",
    "ENOTFOUND",
    "EAI_AGAIN",
    "Network is unreachable",
    "getaddrinfo",
    "dial tcp",
];
/// What programs say that were refused a file.
const FILES: [&str; 3] = ["Permission denied", "permission denied", "EACCES"];

/// What git says that may not write a ref, its settings, or its objects anew.
const GIT: [&str; 3] = [
    "cannot lock ref",
    "could not lock config file",
    "gc.pid.lock",
];
/// What `git stash` says then, which does not say why.
const STASH: &str = "Cannot save the current status";
/// The names about which git complains in vain: its temporary ones of objects, and a lock after a
/// commit.
const HARMLESS: [&str; 2] = ["/tmp_obj_", "/packed-refs.lock"];

/// Tells whether one of some words is in a text.
fn says(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

/// Tells whether git says in a line that it was refused a file of its own.
fn is_refused(line: &str) -> bool {
    line.contains(".git/") && says(line, &["Permission denied", "unable to create directory"])
}

/// Returns what git was refused, however the command ended: a script goes on after it, and `||
/// true` forgives it.
fn refused(text: &str) -> Option<&'static str> {
    let is_work = |line: &str| line == STASH || (is_refused(line) && says(line, &GIT));
    (text.lines().any(is_refused) && text.lines().any(is_work)).then_some(
        "in the sandbox git can commit, and change no branch, tag, stash or setting: do that yourself, or let `execute.sandbox: off` in your own configuration allow it",
    )
}

/// Returns what to think of words that git prints in vain.
fn excuse(text: &str) -> Option<&'static str> {
    text.lines()
        .any(|line| is_refused(line) && says(line, &HARMLESS))
        .then_some("in the sandbox git can add objects and remove nothing: what it says about `tmp_obj` and `packed-refs.lock` is harmless")
}

/// Returns what a person is told about a command's end, as far as it looks like its sandbox's
/// doing.
pub(in crate::workflow) fn remark(
    policy: &Policy,
    exit_code: i32,
    output: &[u8],
) -> Option<&'static str> {
    let text = String::from_utf8_lossy(&output[output.len().saturating_sub(TAIL)..]);
    refused(&text).or_else(|| {
        if exit_code == 0 {
            excuse(&text)
        } else {
            blame(policy, &text)
        }
    })
}

/// Returns what a person can do about a failure that looks like the sandbox's doing.
fn blame(policy: &Policy, text: &str) -> Option<&'static str> {
    if says(text, &TERMINAL) {
        return Some(
            "the sandbox has no pseudo-terminals; `execute.sandbox: off` in your own configuration runs commands without it",
        );
    }
    if policy.network == Network::Off && says(text, &NETWORK) {
        return Some(
            "the sandbox has no network, be it on this machine; `execute.network: true` in your own configuration opens it",
        );
    }
    says(text, &FILES).then_some(
        "the sandbox lets commands write in the worktree and `$TMPDIR`; `execute.writable` in your own configuration names more folders",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(network: Network, output: &str, expected: Option<&str>) {
        let policy = Policy {
            network,
            ..Policy::default()
        };
        let blamed = remark(&policy, 1, output.as_bytes());
        assert_eq!(
            blamed.and_then(|words| expected.filter(|part| words.contains(part))),
            expected,
            "{output}: {blamed:?}"
        );
        assert_eq!(blamed.is_some(), expected.is_some(), "{output}: {blamed:?}");
    }

    #[test]
    fn a_refused_file_names_the_setting_for_folders() {
        check(
            Network::Off,
            "sh: cannot create /root/.foo: Permission denied",
            Some("execute.writable"),
        );
        check(
            Network::Off,
            "Error: EACCES: permission denied, mkdir '/x'",
            Some("execute.writable"),
        );
    }

    #[test]
    fn a_refused_socket_names_the_setting_for_the_network() {
        check(
            Network::Off,
            "PermissionError: [Errno 1] Operation not permitted",
            Some("execute.network"),
        );
        check(
            Network::Off,
            "curl: (6) Could not resolve host: example.org",
            Some("execute.network"),
        );
        check(
            Network::On,
            "curl: (6) Could not resolve host: example.org",
            None,
        );
    }

    #[test]
    fn a_missing_terminal_names_the_sandbox_itself() {
        check(
            Network::On,
            "OSError: out of pty devices",
            Some("execute.sandbox"),
        );
    }

    #[test]
    fn what_git_says_in_vain_is_explained_where_the_command_succeeded() {
        let said = "warning: unable to unlink '/p/.git/objects/58/tmp_obj_iBiYzj': Permission denied\n[main 1234567] x\n";
        let remark = |exit_code, said: &str| remark(&Policy::default(), exit_code, said.as_bytes());
        assert!(remark(0, said).is_some_and(|words| words.contains("harmless")));
        assert!(
            remark(
                0,
                "error: Unable to create '/p/.git/packed-refs.lock': Permission denied\n"
            )
            .is_some()
        );
        assert_eq!(
            remark(0, "rm: cannot remove 'x': Permission denied\n"),
            None
        );
    }

    #[test]
    fn what_git_was_refused_is_said_even_where_the_command_succeeded() {
        for said in [
            "fatal: cannot lock ref 'refs/heads/x': Unable to create '/p/.git/refs/heads/x.lock': Permission denied\n",
            "fatal: cannot lock ref 'refs/notes/commits': unable to create directory for /p/.git/refs/notes/commits\n",
            "error: could not lock config file /p/.git/config: Permission denied\n",
            "fatal: Unable to create '/p/.git/gc.pid.lock': Permission denied\n",
            "warning: unable to unlink '/p/.git/objects/58/tmp_obj_a': Permission denied\nCannot save the current status\n",
        ] {
            for exit_code in [0, 128] {
                let remark = remark(&Policy::default(), exit_code, said.as_bytes());
                assert!(
                    remark.is_some_and(|words| words.contains("no branch, tag, stash or setting")),
                    "{said}"
                );
            }
        }
        let theirs = "fatal: cannot lock ref 'refs/heads/x': reference already exists\n";
        assert_eq!(remark(&Policy::default(), 128, theirs.as_bytes()), None);
    }

    #[test]
    fn a_failure_of_its_own_blames_nobody() {
        check(Network::Off, "assertion failed: left == right", None);
        check(Network::Off, "", None);
    }
}
