//! Names of files that usually contain secrets, for snapshots and for commands in the sandbox.
//!
//! Collected from the file rules of gitleaks (key stores), from the signatures of gitrob and shhgit,
//! and from the documentation of the tools that write these files. Names that projects also use for
//! sources are missing; for them there is the search for keys in the content.

use super::matches;
use crate::git::paths;

/// Names in lower case. `*` matches any characters.
pub(in crate::git::snapshot) const SECRETS: &[&str] = &[
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
pub(in crate::git::snapshot) const SECRET_DIRS: &[&str] =
    &[".aws", ".azure", ".gnupg", ".password-store", ".ssh"];

/// Files that are secrets only in a directory of this name.
pub(in crate::git::snapshot) const SECRETS_IN: &[(&str, &str)] = &[
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
pub(super) fn is_secret(path: &[u8]) -> bool {
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
