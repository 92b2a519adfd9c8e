//! Guesses whether the sandbox made a command fail, and names the setting that would help.
//!
//! The only evidence is the program's error message. Landlock fails with EACCES and seccomp with
//! EPERM, which distinguishes files from network.

use crate::host::sandbox::{Network, Policy};

const MAX_ERROR_TAIL: usize = 64 * 1024;
const TERMINAL_ERRORS: [&str; 3] = ["out of pty devices", "openpty", "forkpty"];
/// What programs say that were refused a namespace, a mount, or a change of another process.
const NAMESPACE_ERRORS: [&str; 6] = [
    "unshare",
    "namespace",
    "bwrap",
    "mount:",
    "sched_set",
    "setpriority",
];
/// What programs say that were refused a socket, or find no name server.
const NETWORK_ERRORS: [&str; 12] = [
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
const FILE_ERRORS: [&str; 3] = ["Permission denied", "permission denied", "EACCES"];

fn contains_any(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|word| text.contains(word))
}

/// Returns a hint for the user if the failure of a command looks like an effect of the sandbox.
pub(in crate::workflow) fn explain_refusal(
    policy: &Policy,
    exit_code: i32,
    output: &[u8],
) -> Option<&'static str> {
    // The error is usually at the end.
    let text = String::from_utf8_lossy(&output[output.len().saturating_sub(MAX_ERROR_TAIL)..]);
    (exit_code != 0)
        .then(|| match_refusal(policy, &text))
        .flatten()
}

fn match_refusal(policy: &Policy, text: &str) -> Option<&'static str> {
    if contains_any(text, &TERMINAL_ERRORS) {
        return Some(
            "the sandbox has no pseudo-terminals; `execute.sandbox: off` in your own configuration runs commands without it",
        );
    }

    if text.contains("Operation not permitted") && contains_any(text, &NAMESPACE_ERRORS) {
        return Some(
            "the sandbox has no namespaces and no mounts, and no command changes how another process is scheduled; `execute.sandbox: off` in your own configuration runs commands without it",
        );
    }

    if policy.network == Network::Off && contains_any(text, &NETWORK_ERRORS) {
        return Some(
            "the sandbox has no network, be it on this machine; `execute.network: true` in your own configuration opens it",
        );
    }

    contains_any(text, &FILE_ERRORS).then_some(
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
        let blamed = explain_refusal(&policy, 1, output.as_bytes());
        assert_eq!(
            blamed.and_then(|text| expected.filter(|part| text.contains(part))),
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
    fn a_refused_namespace_names_the_sandbox_itself() {
        for output in [
            "unshare: unshare failed: Operation not permitted",
            "bwrap: No permissions to create new namespace: Operation not permitted",
        ] {
            check(Network::Off, output, Some("execute.sandbox"));
        }
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
    fn a_failure_of_its_own_blames_nobody() {
        check(Network::Off, "assertion failed: left == right", None);
        check(Network::Off, "", None);
    }
}
