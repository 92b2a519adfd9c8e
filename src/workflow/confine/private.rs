//! Paths that commands must not read: keys, credentials, histories, private data.
//!
//! A list of known places. What is elsewhere is readable.

use std::path::PathBuf;

use crate::host::env;
use crate::model::acting::preset;

const HOME: &[&str] = &[
    // Keys.
    ".ssh",
    ".authinfo",
    ".authinfo.gpg",
    ".gnupg",
    ".password-store",
    ".1password",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".subversion/auth",
    ".pki",
    ".git-credentials",
    ".netrc",
    ".vault-token",
    // Clouds and servers.
    ".aws",
    ".azure",
    ".boto",
    ".databrickscfg",
    ".docker",
    ".fly",
    ".kube",
    ".my.cnf",
    ".oci",
    ".pgpass",
    ".s3cfg",
    ".terraform.d/credentials.tfrc.json",
    // Package registries.
    ".bundle/config",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".composer/auth.json",
    ".gem/credentials",
    ".ivy2/.credentials",
    ".m2/settings-security.xml",
    ".m2/settings.xml",
    ".npmrc",
    ".pip/pip.conf",
    ".pypirc",
    ".sbt/.credentials",
    ".yarnrc.yml",
    // Agents and models besides the known agents.
    ".anthropic",
    ".codeium",
    ".continue",
    ".copilot",
    ".cursor",
    ".factory",
    ".huggingface",
    ".kiro",
    ".llm",
    ".local/share/amp",
    ".local/share/crush",
    ".local/share/goose",
    ".ollama",
    ".openai",
    // Browsers and mail.
    ".mozilla",
    ".thunderbird",
    // Command histories.
    ".bash_history",
    ".lesshst",
    ".local/share/atuin",
    ".local/share/fish/fish_history",
    ".mysql_history",
    ".node_repl_history",
    ".psql_history",
    ".python_history",
    ".sqlite_history",
    ".viminfo",
    ".zsh_history",
];

const CONFIG: &[&str] = &[
    "teddy",
    // Keys.
    "age",
    "gh",
    "git/credentials",
    "glab-cli",
    "hub",
    "op",
    "sops",
    // Clouds and package registries.
    "composer/auth.json",
    "containers",
    "doctl",
    "gcloud",
    "hcloud",
    "helm",
    "pip",
    "pypoetry/auth.toml",
    "rclone",
    "stripe",
    // Agents and models.
    "Claude",
    "Cursor",
    "aichat",
    "amp",
    "claude",
    "crush",
    "cursor",
    "github-copilot",
    "goose",
    "io.datasette.llm",
    "openai",
    "opencode",
    // Browsers.
    "BraveSoftware",
    "chromium",
    "google-chrome",
];

const CACHE: &[&str] = &[
    "teddy",
    "BraveSoftware",
    "chromium",
    "google-chrome",
    "huggingface/stored_tokens",
    "huggingface/token",
    "mozilla",
    "thunderbird",
];

/// Password files, which matter if TeDDy runs as root, and secrets of services. `/dev` contains the
/// terminals of other programs; harmless devices are allowed one by one.
const MACHINE: &[&str] = &[
    "/dev",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/shadow",
    "/etc/shadow-",
    "/run/credentials",
    "/run/secrets",
];

/// With TeDDy's own directories. The worktrees can be elsewhere.
pub(super) fn private_defaults() -> Vec<PathBuf> {
    let join_all = |dir: Option<PathBuf>, names: &'static [&'static str]| {
        let dir = dir.into_iter();
        dir.flat_map(|dir| names.iter().map(move |name| dir.join(name)))
    };
    let cargo = env::dir_var("CARGO_HOME");
    let machine = MACHINE.iter().map(PathBuf::from);
    let agents = preset::all().flat_map(|agent| agent.state).copied();
    let agents = agents.filter_map(|path| Some(env::home()?.join(path.strip_prefix("~/")?)));

    machine
        .chain(join_all(env::home(), HOME))
        .chain(agents)
        .chain(join_all(env::config_home(), CONFIG))
        .chain(join_all(env::cache_home(), CACHE))
        .chain(join_all(env::data_home(), &["teddy"]))
        .chain(join_all(env::state_home(), &["teddy"]))
        .chain(join_all(cargo, &["credentials", "credentials.toml"]))
        // Sockets of the login session, and other runtime secrets.
        .chain(env::dir_var("XDG_RUNTIME_DIR"))
        .collect()
}

/// Also by their real path if the home directory is a symlink.
pub(super) fn private_paths() -> Vec<PathBuf> {
    let mut all = private_defaults();
    if let Some(home) = env::home()
        && let Ok(real) = home.canonicalize()
        && real != home
    {
        let relative = all.iter().filter_map(|path| path.strip_prefix(&home).ok());
        let moved: Vec<PathBuf> = relative.map(|path| real.join(path)).collect();
        all.extend(moved);
    }
    all
}
