//! Limits: what a snapshot leaves out although git would take it, and why.

use std::collections::BTreeMap;
use std::fmt;

/// What is left out of a snapshot; tracked files and what the plan wrote are always taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The size, in bytes, over which an untracked file is left out.
    pub max_file_size: u64,
    /// As many untracked files may be new in one snapshot: more are a folder that nobody meant to
    /// record.
    pub max_new_files: usize,
    /// As many bytes may be in them.
    pub max_new_size: u64,
    /// Whether untracked files that look like secrets by their name are left out.
    pub leave_secrets: bool,
    /// More names of secrets; `*` stands for any characters.
    pub secrets: Vec<String>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_file_size: 10 * 1024 * 1024,
            max_new_files: 100_000,
            max_new_size: 1 << 30,
            leave_secrets: true,
            secrets: Vec::new(),
        }
    }
}

impl Limits {
    /// Returns limits that leave nothing out, as git does.
    pub fn none() -> Limits {
        Limits {
            max_file_size: u64::MAX,
            max_new_files: usize::MAX,
            max_new_size: u64::MAX,
            leave_secrets: false,
            secrets: Vec::new(),
        }
    }

    /// Returns whether a file of this name is a secret.
    pub fn is_secret(&self, name: &[u8]) -> bool {
        if !self.leave_secrets {
            return false;
        }
        let name = name.to_ascii_lowercase();
        // `id_ed25519` is a private key; `id_map.rs` and `id_ed25519.pub` are not.
        let key = name.starts_with(b"id_") && !name.contains(&b'.');
        key || SECRETS
            .iter()
            .any(|pattern| matches(pattern.as_bytes(), &name))
            || self
                .secrets
                .iter()
                .any(|pattern| matches(pattern.to_ascii_lowercase().as_bytes(), &name))
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

/// More is new than a snapshot may take; nothing was recorded.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{files} untracked files with {size} bytes would be recorded for the first time, most of them in `{most}`; \
     ignore what is no work of yours in `.gitignore`, or raise `snapshot.max_new_files` ({max_files}) or `snapshot.max_new_size` ({max_size})"
)]
pub struct OverBudget {
    /// How many files.
    pub files: usize,
    /// Their bytes.
    pub size: u64,
    /// The name at the top that has most of them.
    pub most: String,
    /// As many may be new.
    pub max_files: usize,
    /// As many bytes may be.
    pub max_size: u64,
}

impl Limits {
    /// Finds out whether the new files, given by path and size, are few and small enough.
    ///
    /// # Errors
    /// Where they are not.
    pub(super) fn allow<'a>(
        &self,
        new: impl Iterator<Item = (&'a [u8], u64)>,
    ) -> Result<(), OverBudget> {
        let (mut files, mut size) = (0, 0_u64);
        let mut tops: BTreeMap<&[u8], usize> = BTreeMap::new();
        for (path, bytes) in new {
            (files, size) = (files + 1, size.saturating_add(bytes));
            *tops
                .entry(path.split(|&byte| byte == b'/').next().unwrap_or(path))
                .or_default() += 1;
        }
        if files <= self.max_new_files && size <= self.max_new_size {
            return Ok(());
        }
        let most = tops
            .into_iter()
            .max_by_key(|(_, count)| *count)
            .map(|(top, _)| shown(top))
            .unwrap_or_default();
        Err(OverBudget {
            files,
            size,
            most,
            max_files: self.max_new_files,
            max_size: self.max_new_size,
        })
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
        chunk
            .invalid()
            .iter()
            .for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: bool) {
        assert_eq!(
            Limits::default().is_secret(name.as_bytes()),
            expected,
            "{name}"
        );
    }

    #[test]
    fn a_secret_is_known_by_its_name() {
        for name in [
            ".env",
            ".env.local",
            "server.pem",
            "TLS.KEY",
            "id_rsa",
            "id_deploy",
            "a.p12",
            ".netrc",
        ] {
            check(name, true);
        }
    }

    #[test]
    fn a_source_file_is_no_secret() {
        for name in [
            "environment.rs",
            "id_map.rs",
            "id_rsa.pub",
            "keys.txt",
            "key",
            "pem",
            "a.env",
        ] {
            check(name, false);
        }
    }

    #[test]
    fn more_patterns_can_be_given_and_all_switched_off() {
        let mut limits = Limits {
            secrets: vec!["*.token".to_owned()],
            ..Limits::default()
        };
        assert!(limits.is_secret(b"ci.token"));
        limits.leave_secrets = false;
        assert!(!limits.is_secret(b"ci.token") && !limits.is_secret(b".env"));
    }

    #[test]
    fn what_is_new_has_a_budget() {
        let limits = Limits {
            max_new_files: 3,
            max_new_size: 100,
            ..Limits::default()
        };
        let allow = |new: &[(&str, u64)]| {
            limits.allow(new.iter().map(|(path, size)| (path.as_bytes(), *size)))
        };
        assert_eq!(allow(&[("a", 40), ("b/c", 40), ("b/d", 20)]), Ok(()));
        let over = |files, size| {
            Err(OverBudget {
                files,
                size,
                most: "b".to_owned(),
                max_files: 3,
                max_size: 100,
            })
        };
        assert_eq!(
            allow(&[("a", 1), ("b/c", 1), ("b/d", 1), ("c", 1)]),
            over(4, 4)
        );
        assert_eq!(allow(&[("b/c", 101)]), over(1, 101));
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_shown_as_numbers() {
        assert_eq!(shown(b"a\xff/\xc3\xa4"), "a\\xff/\u{e4}");
    }
}
