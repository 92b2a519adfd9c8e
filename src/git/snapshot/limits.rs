//! Limits of a snapshot: what it leaves out although `git add -A` would include it, and why.
//!
//! The names of files that usually contain secrets are collected from the file rules of gitleaks
//! (key stores), from the signatures of gitrob and shhgit, and from the documentation of the tools
//! that write these files. Names that projects also use for sources are missing; for them there is
//! the search for keys in the content.

use std::collections::BTreeMap;
use std::io::{self, Read};

use crate::git::object::BlobId;
use crate::git::paths;
use crate::text::{counted, secret};

/// Limits for untracked files. Tracked files and files that a plan wrote are always included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotLimits {
    /// Size in bytes above which an untracked file is left out.
    pub max_file_size: u64,
    /// Maximum number of new untracked files in one snapshot. More are probably a directory that
    /// belongs in `.gitignore`.
    pub max_new_files: usize,
    /// Maximum number of bytes in all of them.
    pub max_new_size: u64,
    /// Whether to leave out untracked files that look like secrets, by name or content.
    pub leave_secrets: bool,
    /// More names to leave out; `*` matches any characters.
    pub exclude: Vec<String>,
    /// Names, or paths if they contain a slash, to include although they look like secrets.
    pub include: Vec<String>,
}

/// A path to include even if git ignores it. A secret is left out all the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Forced {
    pub path: Vec<u8>,
    /// Version that a turn created. Exactly this version is included regardless of its size and of
    /// keys in it, because a commit already contains it.
    pub created: Option<CreatedFile>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CreatedFile {
    pub id: BlobId,
    /// Its size on disk in bytes.
    pub size: u64,
}

impl Forced {
    pub fn new(path: impl Into<Vec<u8>>) -> Forced {
        Forced {
            path: path.into(),
            created: None,
        }
    }
}

impl Default for SnapshotLimits {
    fn default() -> SnapshotLimits {
        SnapshotLimits {
            max_file_size: 10 * 1024 * 1024,
            max_new_files: 100_000,
            max_new_size: 1 << 30,
            leave_secrets: true,
            exclude: Vec::new(),
            include: Vec::new(),
        }
    }
}

impl SnapshotLimits {
    /// Returns limits that leave nothing out, like git.
    pub fn none() -> SnapshotLimits {
        SnapshotLimits {
            max_file_size: u64::MAX,
            max_new_files: usize::MAX,
            max_new_size: u64::MAX,
            leave_secrets: false,
            exclude: Vec::new(),
            include: Vec::new(),
        }
    }

    /// Returns whether a file's name looks like a secret, or is excluded.
    pub fn is_secret(&self, path: &[u8]) -> bool {
        self.name_reason(path).is_some()
    }

    pub fn is_named_like_secret(&self, path: &[u8]) -> bool {
        self.name_reason(path) == Some(Reason::Secret)
    }

    /// Why a file with this name is left out.
    pub(super) fn name_reason(&self, path: &[u8]) -> Option<Reason> {
        if !self.leave_secrets {
            return None;
        }

        if self.exclude.iter().any(|pattern| fits(pattern, path)) {
            return Some(Reason::Excluded);
        }

        let is_secret = is_secret_name(&path.to_ascii_lowercase()) && !self.is_included(path);
        is_secret.then_some(Reason::Secret)
    }

    fn is_included(&self, path: &[u8]) -> bool {
        self.include.iter().any(|pattern| fits(pattern, path))
    }
}

/// Matches a pattern with the path if it contains a slash, else with the file name.
fn fits(pattern: &str, path: &[u8]) -> bool {
    let pattern = pattern.to_ascii_lowercase();
    let subject = if pattern.contains('/') {
        path
    } else {
        paths::split(path).1
    };
    matches(pattern.as_bytes(), &subject.to_ascii_lowercase())
}

/// Returns whether a name matches a pattern in which `*` matches any characters.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut position) = (0, 0);
    // Position of the last star and the end of its match. Backtracking to that star alone suffices.
    let mut star = None;
    while position < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, position));
                at += 1;
            }
            Some(byte) if *byte == name[position] => (at, position) = (at + 1, position + 1),
            _ => {
                let Some((before, reach)) = star else {
                    return false;
                };
                star = Some((before, reach + 1));
                (at, position) = (before + 1, reach + 1);
            }
        }
    }

    pattern[at..].iter().all(|&byte| byte == b'*')
}

/// A snapshot would contain too many new files, so none was recorded.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{} with {} would be recorded for the first time, most of them in `{most}`; \
     the limits are {} (`snapshot.max_new_files`) and {} (`snapshot.max_new_size`)",
    counted(*files as u64, "untracked file"),
    counted(*size, "byte"),
    counted(*max_files as u64, "file"),
    counted(*max_size, "byte")
)]
pub struct OverBudget {
    pub files: usize,
    /// Their total size in bytes.
    pub size: u64,
    /// Top-level name that contains most of them, by what exceeds a limit.
    pub most: String,
    /// Whether the others are within the limits.
    pub is_enough: bool,
    pub max_files: usize,
    pub max_size: u64,
}

impl OverBudget {
    pub fn hint(&self) -> String {
        let files = format!("-c snapshot.max_new_files={}", self.files);
        let size = format!("-c snapshot.max_new_size={}", self.size);
        let settings = match (self.files > self.max_files, self.size > self.max_size) {
            (true, true) => format!("{files} {size}"),
            (true, false) => files,
            (false, _) => size,
        };

        // Don't offer a command for a name that the shell would interpret.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let ignore = if self.is_enough && self.most.chars().all(is_plain) {
            format!("`echo '/{}' >> .gitignore` leaves them out", self.most)
        } else {
            "`.gitignore` leaves them out".to_owned()
        };
        format!("{ignore}; `{settings}` takes them once")
    }
}

impl SnapshotLimits {
    pub(super) fn allow<'a>(
        &self,
        new: impl Iterator<Item = (&'a [u8], u64)>,
    ) -> Result<(), OverBudget> {
        let (mut files, mut size) = (0, 0_u64);
        let mut tops: BTreeMap<&[u8], (usize, u64)> = BTreeMap::new();
        for (path, bytes) in new {
            (files, size) = (files + 1, size.saturating_add(bytes));
            let top = path.split(|&byte| byte == b'/').next().unwrap_or(path);
            let (top_files, top_size) = tops.entry(top).or_default();
            (*top_files, *top_size) = (*top_files + 1, top_size.saturating_add(bytes));
        }

        let has_many = |files: usize| files > self.max_new_files;
        let is_over = |files: usize, size: u64| has_many(files) || size > self.max_new_size;
        if !is_over(files, size) {
            return Ok(());
        }

        let most = tops.into_iter().max_by_key(|(_, (top_files, top_size))| {
            if has_many(files) {
                *top_files as u64
            } else {
                *top_size
            }
        });
        let (most, (top_files, top_size)) = most.unwrap_or_default();
        Err(OverBudget {
            files,
            size,
            most: display_path(most),
            is_enough: !is_over(files - top_files, size.saturating_sub(top_size)),
            max_files: self.max_new_files,
            max_size: self.max_new_size,
        })
    }
}

/// A path that is not in the snapshot, or not in its current state.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    /// Path from the top of the worktree. Bytes that are not UTF-8 are written as `\xNN`.
    pub path: String,
    pub reason: Reason,
}

impl LeftOut {
    /// Returns whether its permissions are the reason.
    pub fn is_closed(&self) -> bool {
        let denied = std::io::ErrorKind::PermissionDenied.to_string();
        matches!(&self.reason, Reason::Unreadable(why) if *why == denied)
    }
}

/// Reason why a path was left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Reason {
    /// Untracked and larger than [`SnapshotLimits::max_file_size`]; its size in bytes.
    #[error("untracked and large ({0} bytes)")]
    TooLarge(u64),
    #[error("untracked and named like a secret")]
    Secret,
    /// A name of [`SnapshotLimits::exclude`].
    #[error("untracked and named by `snapshot.exclude`")]
    Excluded,
    #[error("untracked, and looks as if it held a key ({0})")]
    Key(&'static str),
    /// Unreadable. A tracked file is recorded as in the index.
    #[error("unreadable: {0}")]
    Unreadable(String),
    #[error("not a file, directory or link")]
    Special,
    #[error("a repository without a commit")]
    EmbeddedWithoutCommit,
    #[error("a repository with another hash function")]
    EmbeddedOtherHash,
    #[error("a name that git refuses")]
    Name,
    #[error("a directory, and git requires a file of this name")]
    MustBeFile,
    #[error("a link, and git requires a file of this name")]
    MustNotBeLink,
    #[error("{0}")]
    Refused(String),
    #[error("too deep in other folders")]
    TooDeep,
}

/// Returns a path as text, with bytes that are not UTF-8 as `\xNN`.
pub fn display_path(path: &[u8]) -> String {
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

/// A NUL in this many first bytes makes a file binary, as in git.
const BINARY_CHECK: usize = 8000;

const KEY_BLOCK: usize = 4 << 20;

/// Overlap of the blocks. No key is longer.
const KEY_OVERLAP: usize = 64 << 10;

impl SnapshotLimits {
    pub fn key_in(&self, path: &[u8], bytes: &[u8]) -> Option<&'static str> {
        if !self.looks_for_keys(path, bytes) {
            return None;
        }
        secret::find_secret(&String::from_utf8_lossy(bytes))
    }

    /// Like [`SnapshotLimits::key_in`], for a large file.
    pub(super) fn key_in_parts(
        &self,
        path: &[u8],
        source: &mut dyn Read,
    ) -> io::Result<Option<&'static str>> {
        let (mut part, mut is_first) = (Vec::new(), true);
        loop {
            let filled = part.len();
            let space = (KEY_BLOCK - filled) as u64;
            let read = Read::take(&mut *source, space).read_to_end(&mut part)?;
            if is_first && !self.looks_for_keys(path, &part) {
                return Ok(None);
            }

            is_first = false;
            if let Some(kind) = secret::find_secret(&String::from_utf8_lossy(&part)) {
                return Ok(Some(kind));
            }

            if (read as u64) < space {
                return Ok(None);
            }

            // A key can continue in the next block.
            part.drain(..part.len() - KEY_OVERLAP);
        }
    }

    fn looks_for_keys(&self, path: &[u8], start: &[u8]) -> bool {
        let is_binary = || memchr::memchr(0, &start[..start.len().min(BINARY_CHECK)]).is_some();
        self.leave_secrets && !is_binary() && !self.is_included(path)
    }
}

/// Names in lower case. `*` matches any characters.
pub(super) const SECRETS: &[&str] = &[
    // Variables and values of a project.
    ".env*",
    ".secrets",
    ".secrets.*",
    "secret.json",
    "secret.toml",
    "secret.yaml",
    "secret.yml",
    "secrets.ini",
    "secrets.json",
    "secrets.properties",
    "secrets.toml",
    "secrets.yaml",
    "secrets.yml",
    "local.settings.json",
    "master.key",
    "*.tfstate",
    "*.tfstate.*",
    "*.tfvars",
    "*.tfvars.json",
    ".vault_pass*",
    ".vault-password*",
    // Key stores and keys.
    "*.agilekeychain",
    "*.bek",
    "*.bks",
    "*.fve",
    "*.jceks",
    "*.jks",
    "*.kdb",
    "*.kdbx",
    "*.key",
    "*.keychain",
    "*.keychain-db",
    "*.keystore",
    "*.ovpn",
    "*.p12",
    "*.p8",
    "*.pem",
    "*.pfx",
    "*.pk8",
    "*.pkcs12",
    "*.ppk",
    "*.psafe3",
    "*_dsa",
    "*_ecdsa",
    "*_ed25519",
    "*_rsa",
    "secring.gpg",
    // Credentials of clouds and clusters.
    "*.kubeconfig",
    "*.publishsettings",
    "*-firebase-adminsdk-*.json",
    "*service-account*.json",
    "*service_account*.json",
    "*serviceaccount*.json",
    ".boto",
    ".databrickscfg",
    ".s3cfg",
    ".vault-token",
    "accesstokens.json",
    "application_default_credentials.json",
    "client_secret*.json",
    "credentials",
    "credentials.csv",
    "credentials.db",
    "credentials.ini",
    "credentials.json",
    "credentials.toml",
    "credentials.xml",
    "credentials.yaml",
    "credentials.yml",
    "gcp-key*.json",
    "gha-creds-*.json",
    "kubeconfig",
    "kubeconfig.*",
    "oauth_creds.json",
    "rootkey.csv",
    // Registries, repositories and servers.
    ".authinfo",
    ".authinfo.gpg",
    ".dockercfg",
    ".dockerconfigjson",
    ".fetchmailrc",
    ".ftpconfig",
    ".ftppass",
    ".git-credentials",
    ".htdigest",
    ".htpasswd",
    ".msmtprc",
    ".my.cnf",
    ".mylogin.cnf",
    ".netrc",
    ".netrc.*",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".remote-sync.json",
    ".terraformrc",
    "_netrc",
    "filezilla.xml",
    "htpasswd",
    "passwords.txt",
    "pgpass.conf",
    "recentservers.xml",
    "settings-security.xml",
    "sftp-config.json",
    "sitemanager.xml",
    "terraform.rc",
];

/// Directories in which every file is a secret.
pub(super) const SECRET_DIRS: &[&str] = &[".aws", ".azure", ".gnupg", ".password-store", ".ssh"];

/// Files that are secrets only in a directory of this name.
pub(super) const SECRETS_IN: &[(&str, &str)] = &[
    (".bundle", "config"),
    (".docker", "config.json"),
    (".gem", "credentials"),
    (".kube", "*"),
    (".m2", "settings.xml"),
    ("gcloud", "*.db"),
    ("gh", "hosts.yml"),
];

/// Beginnings of the names of ssh's private keys, which copies keep (`id_rsa.bak`).
const KEY_FILES: [&str; 6] = [
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_rsa",
    "id_xmss",
    "identity.pem",
];
/// Public files next to secrets.
const PUBLIC: [&str; 3] = ["*.pub", "known_hosts*", "authorized_keys*"];

/// Returns whether a path in lower case is a secret's.
fn is_secret_name(path: &[u8]) -> bool {
    let (dirs, name) = paths::split(path);
    let fits = |pattern: &&str| matches(pattern.as_bytes(), name);
    if PUBLIC.iter().any(fits) {
        return false;
    }

    // `id_deploy` is a private key; `id_map.rs` is not.
    let is_key = name.starts_with(b"id_") && !name.contains(&b'.');
    let is_copy = KEY_FILES.iter().any(|key| name.starts_with(key.as_bytes()));
    if is_key || is_copy || SECRETS.iter().any(fits) {
        return true;
    }

    let mut dirs = dirs
        .split(|&byte| byte == b'/')
        .filter(|dir| !dir.is_empty());
    let last = dirs.clone().next_back().unwrap_or_default();
    dirs.any(|dir| SECRET_DIRS.iter().any(|secret| secret.as_bytes() == dir))
        || SECRETS_IN
            .iter()
            .any(|(dir, pattern)| dir.as_bytes() == last && fits(pattern))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: bool) {
        assert_eq!(
            SnapshotLimits::default().is_secret(name.as_bytes()),
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
            "credentials.json",
            "prod.tfvars",
            "terraform.tfstate.backup",
            ".git-credentials",
            "kubeconfig",
            "config/secrets.yml",
            ".htpasswd",
            "id_rsa.bak",
            "deploy_ed25519",
            "my-service-account.json",
            "config/master.key",
            ".aws/credentials",
            "deep/.ssh/config",
            ".docker/config.json",
            "Secrets.YAML",
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
            ".docker/Dockerfile",
            "config.json",
            ".ssh/known_hosts",
            "src/credentials.rs",
            "secrets.rs",
            "tokens.json",
        ] {
            check(name, false);
        }
    }

    #[test]
    fn more_patterns_can_be_given_and_all_switched_off() {
        let mut limits = SnapshotLimits {
            exclude: vec!["*.token".to_owned()],
            ..SnapshotLimits::default()
        };
        assert!(limits.is_secret(b"ci.token"));
        assert_eq!(limits.name_reason(b"ci.token"), Some(Reason::Excluded));
        assert_eq!(limits.name_reason(b".env"), Some(Reason::Secret));
        limits.leave_secrets = false;
        assert!(!limits.is_secret(b"ci.token") && !limits.is_secret(b".env"));
    }

    #[test]
    fn promise_b7_what_is_included_is_taken_whatever_it_looks_like() {
        let limits = SnapshotLimits {
            include: vec![".env.ci".to_owned(), "Fixtures/*.pem".to_owned()],
            exclude: vec!["b.pem".to_owned()],
            ..SnapshotLimits::default()
        };
        let key = format!("key = \"ghp_{}\"\n", "a9Zk3Qx7Lm2Vt8Rb5Nw4".repeat(2));
        let check = |path: &str, expected: (bool, bool)| {
            let (path, key) = (path.as_bytes(), key.as_bytes());
            let actual = (limits.is_secret(path), limits.key_in(path, key).is_some());
            assert_eq!(actual, expected, "{}", String::from_utf8_lossy(path));
        };
        check("sub/.env.ci", (false, false));
        check("sub/.env", (true, true));
        check("fixtures/deep/a.pem", (false, false));
        check("fixtures/b.pem", (true, false));
        check("other/a.pem", (true, true));
        check("a.md", (false, true));
        assert_eq!(limits.key_in(b"a", &[b"\0", key.as_bytes()].concat()), None);
    }

    #[test]
    fn stars_stand_for_any_characters() {
        let check = |pattern: &str, name: &str, expected: bool| {
            let actual = matches(pattern.as_bytes(), name.as_bytes());
            assert_eq!(actual, expected, "{pattern} {name}");
        };
        check("*.pem", ".pem", true);
        check("a*b*c", "a-bb-bc", true);
        check("a*b*c", "a-bb-b", false);
        check("*", "", true);
        check("", "a", false);
        check(&"*a".repeat(30), &"a".repeat(29), false);
    }

    #[test]
    fn what_is_new_has_a_budget() {
        let limits = SnapshotLimits {
            max_new_files: 3,
            max_new_size: 100,
            ..SnapshotLimits::default()
        };
        let allow = |new: &[(&str, u64)]| {
            limits.allow(new.iter().map(|(path, size)| (path.as_bytes(), *size)))
        };
        assert_eq!(allow(&[("a", 40), ("b/c", 40), ("b/d", 20)]), Ok(()));
        let over_budget = |files, size| {
            Err(OverBudget {
                files,
                size,
                most: "b".to_owned(),
                is_enough: true,
                max_files: 3,
                max_size: 100,
            })
        };
        assert_eq!(
            allow(&[("a", 1), ("b/c", 1), ("b/d", 1), ("c", 1)]),
            over_budget(4, 4)
        );
        assert_eq!(allow(&[("b/c", 101)]), over_budget(1, 101));
        // Bug: the directory with most files was named, which has few bytes.
        assert_eq!(
            allow(&[("a/c", 1), ("a/d", 1), ("b/c", 100)]),
            over_budget(3, 102)
        );
    }

    #[test]
    fn advice_on_a_budget_helps() {
        let hint = |files, size, is_enough| {
            let over_budget = OverBudget {
                files,
                size,
                most: "b".to_owned(),
                is_enough,
                max_files: 3,
                max_size: 100,
            };
            over_budget.hint()
        };
        assert_eq!(
            hint(2, 101, true),
            "`echo '/b' >> .gitignore` leaves them out; `-c snapshot.max_new_size=101` takes them once"
        );
        assert_eq!(
            hint(4, 101, false),
            "`.gitignore` leaves them out; `-c snapshot.max_new_files=4 -c snapshot.max_new_size=101` takes them once"
        );
        let limits = SnapshotLimits {
            max_new_size: 100,
            ..SnapshotLimits::default()
        };
        let new = [("a", 101_u64), ("b", 102)];
        let new = new.iter().map(|(path, size)| (path.as_bytes(), *size));
        let over_budget = limits.allow(new).unwrap_err();
        assert_eq!(
            (over_budget.most.as_str(), over_budget.is_enough),
            ("b", false)
        );
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_shown_as_numbers() {
        assert_eq!(display_path(b"a\xff/\xc3\xa4"), "a\\xff/\u{e4}");
    }
}

#[cfg(test)]
mod keys_tests {
    use super::*;

    fn found_behind(length: usize) -> Option<&'static str> {
        let mut text = b"plain words\n".repeat(length / 12 + 1);
        text.truncate(length);
        let key = format!("\nkey = \"ghp_{}\"\n", "a9Zk3Qx7Lm2Vt8Rb5Nw4".repeat(2));
        text.extend(key.as_bytes());
        text.extend(b"more words\n".repeat(KEY_BLOCK / 11));
        let mut source = text.as_slice();
        SnapshotLimits::default()
            .key_in_parts(b"a.txt", &mut source)
            .unwrap()
    }

    #[test]
    fn promise_d5_a_key_is_found_wherever_it_is_in_a_large_file() {
        let key = Some("github token");
        for length in [
            0,
            KEY_BLOCK - KEY_OVERLAP,
            KEY_BLOCK - 20,
            KEY_BLOCK,
            2 * KEY_BLOCK - KEY_OVERLAP - 20,
        ] {
            assert_eq!(found_behind(length), key, "behind {length} bytes");
        }
    }

    #[test]
    fn no_key_is_looked_for_in_a_large_file_that_is_not_text() {
        let text = format!("\0key = \"ghp_{}\"\n", "a9Zk3Qx7Lm2Vt8Rb5Nw4".repeat(2));
        let actual = SnapshotLimits::default().key_in_parts(b"a.txt", &mut text.as_bytes());
        assert_eq!(actual.unwrap(), None);
    }
}
