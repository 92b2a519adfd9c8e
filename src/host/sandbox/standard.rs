//! The policy that a plan's commands get unless the user says otherwise.

use std::path::{Path, PathBuf};

use super::{Network, Policy};
use crate::host::env;

/// Where a plan runs.
#[derive(Debug, Clone, Copy)]
pub struct Places<'p> {
    /// The worktree in which commands run.
    pub worktree: &'p Path,
    /// The worktree's own folder in the git directory (`.git/worktrees/<id>`).
    pub git_dir: &'p Path,
    /// The user's git directory.
    pub common_dir: &'p Path,
    /// The user's own files, which commands must not see: the snapshot may have left out secrets.
    pub workspace: &'p Path,
}

/// Caches of build tools below the home folder.
const CACHES: [&str; 24] = [
    ".npm",
    ".yarn/berry",
    ".pnpm-store",
    ".local/share/pnpm/store",
    ".bun/install/cache",
    ".deno",
    "go/pkg",
    ".gradle/caches",
    ".gradle/wrapper",
    ".gradle/daemon",
    ".gradle/native",
    ".m2/repository",
    ".ivy2",
    ".sbt",
    ".nuget/packages",
    ".cabal/packages",
    ".stack/pantry",
    ".composer/cache",
    ".bundle/cache",
    ".pub-cache",
    ".hex",
    ".mix",
    ".ccache",
    "Library/Caches",
];
/// Caches below Cargo's folder. Its programs and credentials are not among them.
const CARGO: [&str; 5] = [
    "registry",
    "git",
    ".package-cache",
    ".package-cache-mutate",
    ".global-cache",
];
/// Devices that harm nobody, and memory shared between processes.
const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/shm",
];
/// Keys, credentials and private files below the home folder.
const PRIVATE: [&str; 30] = [
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".kube",
    ".docker",
    ".netrc",
    ".git-credentials",
    ".pypirc",
    ".vault-token",
    ".password-store",
    ".1password",
    ".terraform.d/credentials.tfrc.json",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".local/share/keyrings",
    ".mozilla",
    ".thunderbird",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    "Library/Keychains",
    "Library/Mail",
    "Library/Messages",
];
/// The same below the folder of configuration files.
const PRIVATE_CONFIG: [&str; 11] = [
    "teddy",
    "gh",
    "glab-cli",
    "hub",
    "gcloud",
    "git/credentials",
    "op",
    "google-chrome",
    "chromium",
    "BraveSoftware",
    "rclone",
];

impl Policy {
    /// Returns the usual policy: the worktree, its part of git and the tools' caches may be
    /// written, git objects added; keys, credentials and the user's own files may not be read;
    /// no network.
    pub fn standard(places: Places<'_>) -> Policy {
        let mut policy = Policy {
            network: Network::Off,
            ..Policy::default()
        };
        policy
            .write
            .extend([places.worktree, places.git_dir].map(Path::to_owned));
        policy.write.extend(DEVICES.map(PathBuf::from));
        policy.write.extend(caches());
        // Not the whole folder: git would leave the lock of its maintenance in it for ever.
        policy
            .add
            .extend((0..=0xff).map(|start| places.common_dir.join(format!("objects/{start:02x}"))));
        policy.read.push(places.common_dir.to_owned());
        policy.read.extend(programs(
            &env::var("PATH").unwrap_or_default(),
            places.workspace,
        ));
        policy.hidden.push(places.workspace.to_owned());
        policy.hidden.push(places.common_dir.join("teddy"));
        policy.hidden.extend(private());
        policy
    }
}

/// Returns the folders of the workspace from which the user runs programs, such as an active
/// virtual environment: what `PATH` names there, with the libraries beside it.
fn programs(path: &str, workspace: &Path) -> Vec<PathBuf> {
    let inside = std::env::split_paths(path)
        .filter(|folder| folder.starts_with(workspace) && folder != workspace);
    let with_libraries = |folder: PathBuf| match folder.parent() {
        Some(parent) if parent != workspace => parent.to_owned(),
        _ => folder,
    };
    inside.map(with_libraries).collect()
}

/// Returns the caches that tools need to write.
fn caches() -> Vec<PathBuf> {
    let home = env::home();
    let below_home = home
        .iter()
        .flat_map(|home| CACHES.map(|name| home.join(name)));
    let cargo = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(home.as_ref()?.join(".cargo")));
    let below_cargo = cargo
        .iter()
        .flat_map(|cargo| CARGO.map(|name| cargo.join(name)));
    below_home
        .chain(below_cargo)
        .chain(env::cache_home())
        .collect()
}

/// Returns what commands must not read. Our own cache holds the worktrees of other sessions.
fn private() -> Vec<PathBuf> {
    let below_home = env::home()
        .into_iter()
        .flat_map(|home| PRIVATE.map(|name| home.join(name)));
    let below_config = env::config_home()
        .into_iter()
        .flat_map(|config| PRIVATE_CONFIG.map(|name| config.join(name)));
    let cargo =
        env::var_os("CARGO_HOME").map(|cargo| PathBuf::from(cargo).join("credentials.toml"));
    let own = [env::cache_home(), env::data_home(), env::state_home()]
        .into_iter()
        .flatten()
        .map(|folder| folder.join("teddy"));
    below_home
        .chain(below_config)
        .chain(cargo)
        .chain(own)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_active_environment_of_the_workspace_can_be_read() {
        let found = programs(
            "/usr/bin:/w/.venv/bin:/w/bin:/w:/w2/x/bin:bin",
            Path::new("/w"),
        );
        assert_eq!(found, ["/w/.venv", "/w/bin"].map(PathBuf::from));
    }

    #[test]
    fn the_standard_policy_opens_the_worktree_and_closes_the_workspace() {
        let [worktree, git_dir, common_dir, workspace] =
            ["/t", "/w/.git/worktrees/t", "/w/.git", "/w"].map(Path::new);
        let policy = Policy::standard(Places {
            worktree,
            git_dir,
            common_dir,
            workspace,
        });
        assert_eq!(policy.network, Network::Off);
        assert!(
            policy
                .write
                .starts_with(&["/t".into(), "/w/.git/worktrees/t".into()])
        );
        assert_eq!(
            (policy.add.first(), policy.add.len()),
            (Some(&PathBuf::from("/w/.git/objects/00")), 256)
        );
        assert!(policy.hidden.contains(&"/w".into()) && policy.read.contains(&"/w/.git".into()));
    }
}
