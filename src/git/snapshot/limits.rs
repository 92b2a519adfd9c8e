//! Limits: what a snapshot leaves out although git would take it, and why.

use std::fmt;

/// What is left out of a snapshot; tracked files and what the plan wrote are always taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The size, in bytes, over which an untracked file is left out.
    pub max_file_size: u64,
    /// Whether untracked files that look like secrets by their name are left out.
    pub leave_secrets: bool,
    /// More names of secrets; `*` stands for any characters.
    pub secrets: Vec<String>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_file_size: 10 * 1024 * 1024, leave_secrets: true, secrets: Vec::new() }
    }
}

impl Limits {
    /// Returns limits that leave nothing out, as git does.
    pub fn none() -> Limits {
        Limits { max_file_size: u64::MAX, leave_secrets: false, secrets: Vec::new() }
    }

    /// Returns whether a file of this name is a secret.
    pub fn is_secret(&self, name: &[u8]) -> bool {
        if !self.leave_secrets {
            return false;
        }
        let name = name.to_ascii_lowercase();
        // `id_ed25519` is a private key; `id_map.rs` and `id_ed25519.pub` are not.
        let key = name.starts_with(b"id_") && !name.contains(&b'.');
        key || SECRETS.iter().any(|pattern| matches(pattern.as_bytes(), &name))
            || self.secrets.iter().any(|pattern| matches(pattern.to_ascii_lowercase().as_bytes(), &name))
    }
}

/// Names that secrets have by custom, in lower case.
const SECRETS: [&str; 14] = [
    ".env*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".npmrc",
    ".pypirc",
];

/// Returns whether a name matches a pattern in which `*` stands for any characters.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) => (0..=name.len()).any(|skip| matches(rest, &name[skip..])),
        Some((first, rest)) => name.first() == Some(first) && matches(rest, &name[1..]),
    }
}

/// Something that is not in a snapshot, or not as it stands on disk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    /// The path from the top of the worktree; bytes that are not UTF-8 are written `\xNN`.
    pub path: String,
    /// Why.
    pub reason: Reason,
}

/// Why something was left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It is untracked and has more than [`Limits::max_file_size`] bytes, namely these.
    TooLarge(u64),
    /// It is untracked and looks like a secret by its name.
    Secret,
    /// It cannot be read; if it is tracked, the state that git knows stands in.
    Unreadable(String),
    /// It is a pipe, a socket or a device.
    Special,
    /// It is a repository of its own that has no commit yet.
    EmbeddedWithoutCommit,
    /// Git refuses its name.
    Name,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::TooLarge(size) => write!(f, "untracked and large ({size} bytes)"),
            Reason::Secret => f.write_str("untracked and named like a secret"),
            Reason::Unreadable(why) => write!(f, "unreadable: {why}"),
            Reason::Special => f.write_str("neither file, folder nor link"),
            Reason::EmbeddedWithoutCommit => f.write_str("a repository without a commit"),
            Reason::Name => f.write_str("a name that git refuses"),
        }
    }
}

/// Returns a path as text, with bytes that are not UTF-8 as `\xNN`.
pub(super) fn shown(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: bool) {
        assert_eq!(Limits::default().is_secret(name.as_bytes()), expected, "{name}");
    }

    #[test]
    fn a_secret_is_known_by_its_name() {
        for name in [".env", ".env.local", "server.pem", "TLS.KEY", "id_rsa", "id_deploy", "a.p12", ".netrc"] {
            check(name, true);
        }
    }

    #[test]
    fn a_source_file_is_no_secret() {
        for name in ["environment.rs", "id_map.rs", "id_rsa.pub", "keys.txt", "key", "pem", "a.env"] {
            check(name, false);
        }
    }

    #[test]
    fn more_patterns_can_be_given_and_all_switched_off() {
        let mut limits = Limits { secrets: vec!["*.token".to_owned()], ..Limits::default() };
        assert!(limits.is_secret(b"ci.token"));
        limits.leave_secrets = false;
        assert!(!limits.is_secret(b"ci.token") && !limits.is_secret(b".env"));
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_shown_as_numbers() {
        assert_eq!(shown(b"a\xff/\xc3\xa4"), "a\\xff/\u{e4}");
    }
}
