//! Classifies failures of `git fetch` and `git push`, and offers help.
//!
//! git has no error codes for them, so its messages are searched. An unknown one is `Other`.

use crate::text::near::nearest;
use crate::text::sanitize::sanitize_line;

use super::RemoteName;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteTrouble {
    NotConfigured,
    /// The repository does not exist, or the user cannot see it.
    NotFound,
    Denied,
    Unreachable,
    Dropped,
    /// The server does not accept these refs, or any outside of branches and tags.
    RefRefused,
    /// The server refused a push for another reason, which its message tells.
    Rejected,
    Shallow,
    OtherHash,
    /// A hook declined: the user's `pre-push` or one of the server's.
    HookDeclined,
    NotFastForward,
    Unsound,
    /// A disk of this machine is full, or a limit of its is reached.
    NotWritten,
    NoSuchRef,
    Other,
}

/// Parts of messages of a disk that takes no more, in lower case.
const DISK_SIGNS: [&str; 4] = [
    "no space left on device",
    "disk quota exceeded",
    "file too large",
    "read-only file system",
];

/// Returns whether git could not write on this machine. Lines of the server do not count.
pub fn is_disk_trouble(stderr: &str) -> bool {
    let own = |line: &&str| !line.trim_start().starts_with("remote:");
    let mut lines = stderr.lines().filter(own).map(str::to_lowercase);
    lines.any(|line| DISK_SIGNS.iter().any(|sign| line.contains(sign)))
}

/// The end of each push that failed.
const PUSH_FAILED: &str = "failed to push some refs";

/// Lines of an error that are shown.
const MOST_LINES: usize = 4;

/// Parts of git's messages in lower case. The first match counts.
const SIGNS: [(&str, RemoteTrouble); 40] = [
    ("fetch first", RemoteTrouble::NotFastForward),
    ("non-fast-forward", RemoteTrouble::NotFastForward),
    ("stale info", RemoteTrouble::NotFastForward),
    ("cannot lock ref", RemoteTrouble::NotFastForward),
    ("hook declined", RemoteTrouble::HookDeclined),
    ("insufficient permission", RemoteTrouble::Denied),
    ("shallow update not allowed", RemoteTrouble::Shallow),
    ("repository's hash algorithm", RemoteTrouble::OtherHash),
    ("mismatched algorithms", RemoteTrouble::OtherHash),
    ("hidden ref", RemoteTrouble::RefRefused),
    ("funny refname", RemoteTrouble::RefRefused),
    ("refusing to create", RemoteTrouble::RefRefused),
    ("prohibited by", RemoteTrouble::RefRefused),
    // Also on the line of a more specific reason, so these come first.
    ("[remote rejected]", RemoteTrouble::Rejected),
    ("couldn't find remote ref", RemoteTrouble::NoSuchRef),
    ("fsck error", RemoteTrouble::Unsound),
    ("did not send all necessary objects", RemoteTrouble::Unsound),
    ("remote did not send", RemoteTrouble::Unsound),
    ("invalid index-pack output", RemoteTrouble::Dropped),
    ("early eof", RemoteTrouble::Dropped),
    ("inflate", RemoteTrouble::Dropped),
    ("unexpected disconnect", RemoteTrouble::Dropped),
    ("hung up unexpectedly", RemoteTrouble::Dropped),
    ("connection reset", RemoteTrouble::Dropped),
    ("broken pipe", RemoteTrouble::Dropped),
    ("rpc failed", RemoteTrouble::Dropped),
    // Follows a lost connection, too, so the signs of that come first.
    ("index-pack failed", RemoteTrouble::Unsound),
    ("authentication failed", RemoteTrouble::Denied),
    ("could not read username", RemoteTrouble::Denied),
    ("could not read password", RemoteTrouble::Denied),
    ("permission denied", RemoteTrouble::Denied),
    ("error: 403", RemoteTrouble::Denied),
    ("access denied", RemoteTrouble::Denied),
    ("could not resolve host", RemoteTrouble::Unreachable),
    ("unable to look up", RemoteTrouble::Unreachable),
    ("unable to connect", RemoteTrouble::Unreachable),
    ("failed to connect", RemoteTrouble::Unreachable),
    ("connection refused", RemoteTrouble::Unreachable),
    (
        "does not appear to be a git repository",
        RemoteTrouble::NotFound,
    ),
    // The least specific sign.
    ("not found", RemoteTrouble::NotFound),
];

impl RemoteTrouble {
    pub fn classify(stderr: &str) -> RemoteTrouble {
        if is_disk_trouble(stderr) {
            return RemoteTrouble::NotWritten;
        }
        let stderr = stderr.to_lowercase();
        let matched = SIGNS.iter().find(|(sign, _)| stderr.contains(sign));
        matched.map_or(RemoteTrouble::Other, |(_, trouble)| *trouble)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct RemoteError {
    pub trouble: RemoteTrouble,
    pub remote: Option<RemoteName>,
    message: String,
    /// Help that is more specific than the kind of failure.
    help: Option<String>,
}

impl RemoteError {
    pub fn of(remote: RemoteName, stderr: &str) -> RemoteError {
        let (trouble, message) = match RemoteTrouble::classify(stderr) {
            // git does not report that the user's own hook declined.
            RemoteTrouble::Other if stderr.contains(PUSH_FAILED) => {
                let lines = lines(stderr).filter(|line| !line.contains(PUSH_FAILED));
                let output = plain(lines.take(MOST_LINES));
                let colon = if output.is_empty() { "" } else { ": " };
                (
                    RemoteTrouble::HookDeclined,
                    format!("the `pre-push` hook declined{colon}{output}"),
                )
            }
            trouble => (trouble, essence(stderr)),
        };
        RemoteError {
            trouble,
            message: format!("remote `{remote}`: {message}"),
            remote: Some(remote),
            help: None,
        }
    }

    pub fn unknown(name: &str, remotes: &[RemoteName]) -> RemoteError {
        let near = nearest(name, remotes.iter().map(RemoteName::as_str));
        RemoteError {
            trouble: RemoteTrouble::NotConfigured,
            remote: None,
            message: format!("there is no remote `{}`", sanitize_line(name)),
            help: Some(match (near, remotes) {
                (Some(near), _) => format!("did you mean `{near}`?"),
                (None, []) => "`git remote add origin <url>` adds one".to_owned(),
                (None, [only]) => {
                    format!("the only remote is {}", listed(std::slice::from_ref(only)))
                }
                (None, remotes) => format!("the remotes are {}", listed(remotes)),
            }),
        }
    }

    pub fn none_chosen(remotes: &[RemoteName]) -> RemoteError {
        let (message, help) = match remotes {
            [] => (
                "this repository has no remote",
                "`git remote add origin <url>` adds one".to_owned(),
            ),
            remotes => (
                "this repository has several remotes, and none of them is the default",
                format!("name one of {}", listed(remotes)),
            ),
        };
        RemoteError {
            trouble: RemoteTrouble::NotConfigured,
            remote: None,
            message: message.to_owned(),
            help: Some(help),
        }
    }

    pub fn several_addresses(remote: RemoteName, count: usize) -> RemoteError {
        RemoteError {
            trouble: RemoteTrouble::NotConfigured,
            message: format!(
                "a push to remote `{remote}` goes to {count} addresses, and each can have other \
                 sessions"
            ),
            remote: Some(remote),
            help: Some(
                "`git remote add <name> <address>` makes a remote of one of them, for `teddy push \
                 --remote <name>`"
                    .to_owned(),
            ),
        }
    }

    pub fn no_session(remote: RemoteName, session: &str) -> RemoteError {
        RemoteError {
            trouble: RemoteTrouble::NoSuchRef,
            message: format!("remote `{remote}` has no session `{session}`"),
            remote: Some(remote),
            help: None,
        }
    }

    pub fn helped(mut self, help: impl Into<String>) -> RemoteError {
        self.help = Some(help.into());
        self
    }

    pub fn hint(&self) -> Option<String> {
        let remote = self.remote.as_ref().map_or("origin", RemoteName::as_str);
        let hint = match self.trouble {
            RemoteTrouble::NotConfigured
            | RemoteTrouble::HookDeclined
            | RemoteTrouble::Rejected
            | RemoteTrouble::Other => None,
            RemoteTrouble::NotFound => Some(format!(
                "`git remote get-url {remote}` shows where it is looked for"
            )),
            RemoteTrouble::Denied => Some(format!(
                "`git ls-remote {remote}` tries the same without TeDDy; git's credentials are used"
            )),
            RemoteTrouble::Unreachable => Some("nothing was changed; try again".to_owned()),
            RemoteTrouble::Dropped => {
                Some("what came through has changed nothing; try again".to_owned())
            }
            RemoteTrouble::RefRefused => Some(
                "the server must allow refs below `refs/teddy/`; docs/sharing.md says how"
                    .to_owned(),
            ),
            RemoteTrouble::Shallow => Some(
                "this clone has only a part of the history; `git fetch --unshallow` gets the rest"
                    .to_owned(),
            ),
            RemoteTrouble::OtherHash => Some(
                "one of the two repositories has SHA-1 ids, the other SHA-256; use a remote with the same, as `git init --object-format` makes it"
                    .to_owned(),
            ),
            RemoteTrouble::NotFastForward => {
                Some(format!("`teddy fetch {remote}` gets what the remote has"))
            }
            RemoteTrouble::Unsound => Some(
                "what the remote sent is damaged or not what it says; nothing of it is used"
                    .to_owned(),
            ),
            RemoteTrouble::NotWritten => Some(
                "free some disk space, then try again; nothing of what the remote sent is used"
                    .to_owned(),
            ),
            RemoteTrouble::NoSuchRef => {
                Some(format!("`teddy fetch -n {remote}` lists what the remote has"))
            }
        };
        self.help.clone().or(hint)
    }
}

fn listed(remotes: &[RemoteName]) -> String {
    let names: Vec<String> = remotes.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// Ends of lines that git adds to every failure of a connection.
const CONNECTION_ADVICE: [&str; 3] = [
    "Could not read from remote repository.",
    "Please make sure you have the correct access rights",
    "and the repository exists.",
];

/// Returns the lines of git's messages that contain the reason, without progress and advice, and
/// without credentials in URLs.
fn essence(stderr: &str) -> String {
    let is_reason = |line: &&str| {
        let starts = ["fatal:", "error:", "remote:", " ! ", "! "];
        starts.iter().any(|start| line.starts_with(start))
    };
    let is_advice = |line: &&str| CONNECTION_ADVICE.iter().any(|end| line.ends_with(end));
    let lines: Vec<&str> = lines(stderr).filter(|line| !is_advice(line)).collect();
    let reasons: Vec<&str> = lines.iter().copied().filter(is_reason).collect();
    let chosen = match (reasons.as_slice(), lines.last()) {
        ([], Some(last)) => vec![*last],
        ([], None) => vec!["git failed and said nothing"],
        (reasons, _) => reasons.iter().take(MOST_LINES).copied().collect(),
    };
    plain(chosen.into_iter())
}

fn lines(stderr: &str) -> impl Iterator<Item = &str> {
    let lines = stderr.split(['\n', '\r']).map(str::trim_end);
    lines.filter(|line| !line.trim().is_empty())
}

fn plain<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let plain = lines.map(|line| {
        let line = line
            .trim_start_matches("fatal: ")
            .trim_start_matches("error: ");
        sanitize_line(&without_secrets(line)).trim().to_owned()
    });
    plain.collect::<Vec<_>>().join("; ")
}

/// Removes user names and passwords from URLs, as in `https://ada:secret@host/`.
pub fn without_secrets(line: &str) -> String {
    let mut remaining = line;
    let mut plain = String::with_capacity(line.len());
    while let Some(at) = remaining.find("://") {
        let (before, address) = remaining.split_at(at + 3);
        plain.push_str(before);
        let end = address
            .find(|c: char| c == '/' || c.is_whitespace() || c == '\'')
            .unwrap_or(address.len());
        let host = address[..end].rfind('@').map_or(0, |at| at + 1);
        plain.push_str(&address[host..end]);
        remaining = &address[end..];
    }

    plain.push_str(remaining);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_git_tell_what_went_wrong() {
        let check = |stderr: &str, expected: RemoteTrouble| {
            assert_eq!(RemoteTrouble::classify(stderr), expected, "{stderr}");
        };
        check(
            " ! [rejected]        a -> b (fetch first)\nerror: failed to push some refs",
            RemoteTrouble::NotFastForward,
        );
        check(
            "fatal: '/x.git' does not appear to be a git repository\nfatal: Could not read from \
             remote repository.",
            RemoteTrouble::NotFound,
        );
        check(
            "fatal: Authentication failed for 'http://127.0.0.1:1/x.git/'",
            RemoteTrouble::Denied,
        );
        check(
            "! [remote rejected] a -> b (deny updating a hidden ref)",
            RemoteTrouble::RefRefused,
        );
        check(
            "! [remote rejected] a -> b (pre-receive hook declined)",
            RemoteTrouble::HookDeclined,
        );
        check(
            "! [remote rejected] a -> b (shallow update not allowed)",
            RemoteTrouble::Shallow,
        );
        check(
            "fatal: the receiving end does not support this repository's hash algorithm\nfatal: the \
             remote end hung up unexpectedly",
            RemoteTrouble::OtherHash,
        );
        check(
            "fatal: mismatched algorithms: client sha1; server sha256",
            RemoteTrouble::OtherHash,
        );
        check("fetch-pack: unexpected disconnect", RemoteTrouble::Dropped);
        check("fatal: fsck error in packed object", RemoteTrouble::Unsound);
        check(
            "fatal: write error: No space left on device\nfatal: fetch-pack: invalid index-pack \
             output",
            RemoteTrouble::NotWritten,
        );
        check(
            "error: unable to write file: Disk quota exceeded\nerror: index-pack failed",
            RemoteTrouble::NotWritten,
        );
        // The disk of the server.
        check(
            "remote: fatal: write error: No space left on device\n ! [remote rejected] a -> a \
             (unpacker error)",
            RemoteTrouble::Rejected,
        );
        check("", RemoteTrouble::Other);
    }

    #[test]
    fn the_reason_is_shown_and_no_secret_of_an_address() {
        let check = |stderr: &str, expected: &str| assert_eq!(essence(stderr), expected);
        let advice = "fatal: Could not read from remote repository.\n\nPlease make sure you have the \
                      correct access rights\nand the repository exists.\n";
        check(
            &format!("git@localhost: Permission denied (publickey).\r\n{advice}"),
            "git@localhost: Permission denied (publickey).",
        );
        check(
            "Enumerating objects: 3\rhint: do this\nfatal: unable to access \
             'https://ada:s3cret@host/x.git/': refused\n",
            "unable to access 'https://host/x.git/': refused",
        );
        check("one\ntwo\n", "two");
        check("", "git failed and said nothing");
        check("error: https://u@h a://p@q/r@s", "https://h a://q/r@s");
    }
}
