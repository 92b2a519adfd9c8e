//! Builds the sandbox policy for commands and agents.
//!
//! Only the user's own configuration can widen it (docs/decisions/0024-sandbox.md).

pub mod backend;
mod private;

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;

use private::private_defaults;

use crate::config::settings::Sandbox;
use crate::git::snapshot::secrets::secrets_in;
use crate::git::worktree::{SessionWorktree, worktree_dirs};
use crate::host::file::make_dirs;
use crate::host::sandbox::{Availability, Network, Policy, availability, describe};
use crate::host::{clock, env};
use crate::text::path_alias::PathAliases;
use crate::workflow::hint::error_with_hint;
use crate::workflow::project::Project;

/// A few words for the approval prompt.
pub fn confinement(project: &Project) -> String {
    // The description does not depend on paths.
    let nowhere = Path::new("/nonexistent");
    let policy = policy_of(
        project,
        RunPaths {
            worktree: nowhere,
            common_dir: nowhere,
            workspace: nowhere,
            caches: nowhere,
        },
    );
    describe(policy.as_ref())
}

/// `None` if commands are not confined. Fails if `execute.sandbox` is `require` and the machine
/// cannot enforce it.
pub fn policy(project: &Project, worktree: &SessionWorktree) -> anyhow::Result<Option<Policy>> {
    if project.settings.execute.sandbox == Sandbox::Require
        && let Availability::None(why) | Availability::Partly(why) = availability()
    {
        return Err(error_with_hint(
            format!("`execute.sandbox` is `require`, which this machine cannot do: {why}"),
            "`-c execute.sandbox=on` confines commands as far as it can",
        ));
    }

    let common = project.repository.common_dir();
    let caches = tool_caches(project);
    let mut policy = policy_of(
        project,
        RunPaths {
            worktree: &worktree.path,
            common_dir: &common,
            workspace: project.repository.workdir(),
            caches: &caches,
        },
    );

    if let Some(policy) = &mut policy {
        policy.read.extend(worktree.borrowed_paths());
        let worktrees = worktree_dirs(&project.repository, &project.worktrees());
        // Worktrees of other sessions, which can have other secrets.
        policy.hidden.extend(worktrees);
        policy.hidden.extend(secrets_beside_programs(project)?);
        prepare_caches(&caches, &policy.write)
            .with_context(|| format!("making `{}`", caches.display()))?;
    }

    Ok(policy)
}

/// Like [`policy`], with network access and writable state directories.
pub fn policy_for_agent(
    project: &Project,
    worktree: &SessionWorktree,
    state: &[PathBuf],
) -> anyhow::Result<Option<Policy>> {
    let Some(mut policy) = policy(project, worktree)? else {
        return Ok(None);
    };

    // Landlock can only allow paths that exist. A name with an extension is assumed to be a file.
    let is_lost = |path: &&PathBuf| !path.exists() && path.extension().is_none();
    for dir in state.iter().filter(is_lost) {
        make_dirs(dir).with_context(|| format!("making `{}`", dir.display()))?;
    }

    policy.network = Network::On;
    policy.write.extend_from_slice(state);
    Ok(Some(policy))
}

/// Points tools to writable caches.
pub fn cache_variables(project: &Project, policy: &Policy) -> Vec<(String, String)> {
    cache_dir_variables(&tool_caches(project), policy.network)
}

/// Names for the directories of a run, in what is recorded and shown of its output.
pub fn aliases(project: &Project, worktree: &Path) -> PathAliases {
    let mut aliases = PathAliases::of_worktree(worktree);
    aliases.add(&tool_caches(project), "$XDG_CACHE_HOME");
    aliases
}

/// One directory for each repository.
pub fn tool_caches(project: &Project) -> PathBuf {
    let tools = project.user_dirs.cache.join("tools");
    tools.join(project.repository.identity())
}

fn policy_of(project: &Project, paths: RunPaths<'_>) -> Option<Policy> {
    let settings = &project.settings.execute;
    if settings.sandbox == Sandbox::Off {
        return None;
    }

    let mut policy = default_policy(paths);
    policy.network = if settings.network {
        Network::On
    } else {
        Network::Off
    };

    // The linked paths of the worktree lead to the workspace, which is otherwise hidden.
    policy.read.extend(
        project
            .settings
            .worktree
            .link
            .iter()
            .map(|name| project.repository.workdir().join(name)),
    );
    policy
        .write
        .extend(settings.writable.iter().map(|dir| expand(project, dir)));
    Some(policy)
}

fn secrets_beside_programs(project: &Project) -> anyhow::Result<Vec<PathBuf>> {
    let workdir = project.repository.workdir();
    // Their directories are readable, so the secrets inside must be hidden one by one.
    let dirs = program_dirs_in_path(workdir).into_iter();
    let dirs = dirs.filter_map(|dir| {
        let inside = dir.strip_prefix(workdir).ok()?;
        Some(inside.as_os_str().as_bytes().to_vec())
    });
    let secrets = secrets_in(workdir, &project.limits(), dirs.collect())
        .context("looking for secrets beside the programs of your PATH")?;
    let paths = secrets.iter().map(|path| OsStr::from_bytes(path));
    Ok(paths.map(|path| workdir.join(path)).collect())
}

/// Relative to the home directory with `~/`, else to the project.
fn expand(project: &Project, dir: &str) -> PathBuf {
    match (dir.strip_prefix("~/"), &project.user_dirs.home) {
        (Some(suffix), Some(home)) => home.join(suffix),
        _ => project.repository.workdir().join(dir),
    }
}

#[derive(Debug, Clone, Copy)]
struct RunPaths<'p> {
    /// Has a git directory of its own.
    pub worktree: &'p Path,
    pub common_dir: &'p Path,
    /// Hidden, because the snapshot can have left out secrets in them.
    pub workspace: &'p Path,
    pub caches: &'p Path,
}

const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// Commands get a private one.
const SHARED_MEMORY: &str = "/dev/shm";

/// Readable in the user's git directory. Objects come from a store of what refs reach.
const LFS: &str = "lfs";

/// Can be a symbolic link that leads out of the git directory.
const OBJECTS: &str = "objects";

/// Writable are the worktree, including its git directory, and the caches. Hidden are keys,
/// credentials, the user's files and their git directory. No network.
fn default_policy(paths: RunPaths<'_>) -> Policy {
    let RunPaths {
        worktree,
        common_dir,
        workspace,
        caches,
    } = paths;
    let mut policy = Policy {
        write: [worktree, caches].map(Path::to_owned).to_vec(),
        add: Vec::new(),
        read: vec![common_dir.join(LFS)],
        hidden: vec![
            workspace.to_owned(),
            common_dir.to_owned(),
            common_dir.join(OBJECTS),
        ],
        private: vec![SHARED_MEMORY.into()],
        network: Network::Off,
    };

    policy.write.extend(DEVICES.map(PathBuf::from));
    policy.read.extend(program_dirs_in_path(workspace));
    policy.hidden.extend(private_defaults());
    policy
}

fn program_dirs_in_path(workspace: &Path) -> Vec<PathBuf> {
    program_dirs(&env::var("PATH").unwrap_or_default(), workspace)
}

/// Below the workspace, including the libraries next to them.
fn program_dirs(path: &str, workspace: &Path) -> Vec<PathBuf> {
    // Resolve symlinks and `..` before the comparison: `scripts/..` would open the whole workspace.
    let real = |dir: PathBuf| dir.canonicalize().unwrap_or(dir);
    // A directory that does not exist keeps its `..`.
    let leads_back = |dir: &PathBuf| dir.components().any(|part| part == Component::ParentDir);
    let inside = std::env::split_paths(path)
        .map(real)
        .filter(|dir| dir.starts_with(workspace) && dir != workspace)
        .filter(|dir| !leads_back(dir));
    let with_libraries = |dir: PathBuf| match dir.parent() {
        Some(parent) if parent != workspace => parent.to_owned(),
        _ => dir,
    };
    inside.map(with_libraries).collect()
}

// Caches of build tools: commands read the user's and write to separate ones. Cache content is
// executed later: hook interpreters, compiled modules, packages. A command that could write to the
// user's caches would run code outside the sandbox at the user's next build. Tools that must write
// to their cache start with an empty one.

/// Not linked, because their tools fail or lose all state if they cannot write: compiler output,
/// and what can be downloaded again.
const UNLINKED_CACHES: [&str; 14] = [
    "bazel",
    "ccache",
    "clangd",
    "dune",
    "go-build",
    "golangci-lint",
    "gopls",
    "nix",
    "pip",
    "sccache",
    "staticcheck",
    "uv",
    "yarn",
    "zig",
];

/// `opened` lists caches that commands can write to anyway; they are linked too.
fn prepare_caches(dir: &Path, opened: &[PathBuf]) -> io::Result<()> {
    make_dirs(dir)?;
    // Says to `gc` when a command could last use it.
    std::fs::File::open(dir)?.set_modified(clock::now().timestamp().into())?;
    let entries = env::cache_home()
        .and_then(|caches| std::fs::read_dir(caches).ok())
        .into_iter()
        .flatten()
        .flatten();

    for entry in entries {
        let name = entry.file_name();
        let is_own = UNLINKED_CACHES.iter().any(|own| *own == name);
        let is_opened = opened.iter().any(|other| *other == entry.path());
        if name != "teddy" && (is_opened || !is_own) {
            // It usually exists. If a command has replaced the link, only commands see that.
            let _ = std::os::unix::fs::symlink(entry.path(), dir.join(name));
        }
    }

    Ok(())
}

fn cache_dir_variables(dir: &Path, network: Network) -> Vec<(String, String)> {
    let Some(dir) = dir.to_str() else {
        return Vec::new();
    };
    let own_caches = [
        ("XDG_CACHE_HOME", ""),
        // ccache prefers an existing `~/.ccache` to `XDG_CACHE_HOME`.
        ("CCACHE_DIR", "/ccache"),
    ];
    let fetched = match network {
        Network::On => &[("npm_config_cache", "/npm"), ("GOMODCACHE", "/go-mod")][..],
        // Without network an empty cache could not be filled, so packages are read from the user's.
        Network::Off => &[],
    };

    let all = own_caches.iter().chain(fetched);
    all.map(|(name, suffix)| ((*name).to_owned(), format!("{dir}{suffix}")))
        .collect()
}

// Guesses whether the sandbox made a command fail, and names the setting that would help. The only
// evidence is the program's error message. Landlock fails with EACCES and seccomp with EPERM, which
// distinguishes files from network.

const MAX_ERROR_TAIL: usize = 64 * 1024;
const TERMINAL_ERRORS: [&str; 3] = ["out of pty devices", "openpty", "forkpty"];

/// Of programs that were refused a namespace, a mount, or a change of another process.
const NAMESPACE_ERRORS: [&str; 6] = [
    "unshare",
    "namespace",
    "bwrap",
    "mount:",
    "sched_set",
    "setpriority",
];

/// Of programs that were refused a socket, or find no name server.
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

/// `None` if the failure does not look like an effect of the sandbox.
pub(super) fn explain_refusal(
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

    #[test]
    fn an_active_environment_of_the_workspace_can_be_read() {
        let actual = program_dirs(
            "/usr/bin:/w/.venv/bin:/w/bin:/w:/w2/x/bin:bin",
            Path::new("/w"),
        );
        assert_eq!(actual, ["/w/.venv", "/w/bin"].map(PathBuf::from));
    }

    /// Regression: such a path opened the whole workspace, including its secrets.
    #[test]
    fn a_path_that_leads_back_opens_what_it_leads_to() {
        let outer = tempfile::tempdir().unwrap();
        let workspace = outer.path().canonicalize().unwrap();
        for dir in ["bin", "scripts"] {
            std::fs::create_dir(workspace.join(dir)).unwrap();
        }
        let check = |path: &str, expected: &[&str]| {
            let actual = program_dirs(&workspace.join(path).to_string_lossy(), &workspace);
            let expected: Vec<_> = expected.iter().map(|path| workspace.join(path)).collect();
            assert_eq!(actual, expected, "{path}");
        };
        check("scripts/../bin", &["bin"]);
        check("gone/../bin", &[]);
        check("scripts/..", &[]);
    }

    #[test]
    fn the_standard_policy_opens_the_worktree_and_closes_the_workspace() {
        let [worktree, common_dir, workspace, caches] =
            ["/t", "/c/.git", "/w", "/tools"].map(Path::new);
        let policy = default_policy(RunPaths {
            worktree,
            common_dir,
            workspace,
            caches,
        });
        assert_eq!(policy.network, Network::Off);
        assert!(
            policy
                .write
                .starts_with(&["/t", "/tools"].map(PathBuf::from))
        );
        assert!(!policy.write.iter().any(|path| path.starts_with("/c")));
        assert!(policy.add.is_empty());
        assert!(policy.hidden.starts_with(&["/w".into(), "/c/.git".into()]));
        assert!(policy.hidden.contains(&"/c/.git/objects".into()));
        assert!(policy.read.contains(&"/c/.git/lfs".into()));
        assert_eq!(policy.private, [PathBuf::from("/dev/shm")]);
    }
}

#[cfg(test)]
mod refusal_tests {
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
