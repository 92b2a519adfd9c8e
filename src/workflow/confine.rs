//! Builds the sandbox policy for commands and agents.
//!
//! Only the user's own configuration can widen it (docs/decisions/0024-sandbox.md).

pub mod backend;
mod private;

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;
use rustix::fs::StatVfsMountFlags;

use private::private_defaults;

use crate::config::settings::Sandbox;
use crate::git::snapshot::secrets::secrets_in;
use crate::git::worktree::{SessionWorktree, worktree_dirs};
use crate::host::file::{Root, make_dirs, make_writable};
use crate::host::sandbox::{Availability, Isolation, Network, Policy, availability, describe};
use crate::host::shell::{FinishedScript, ScriptEnd, explain_missing_target, explain_syntax};
use crate::host::{clock, env};
use crate::project::Project;
use crate::text::hint::error_with_hint;
use crate::text::path_alias::PathAliases;

/// A few words for the approval prompt.
pub fn confinement(project: &Project) -> String {
    describe(bare_policy(project).as_ref())
}

/// The policy for commands without a worktree; `None` if they are not confined.
fn bare_policy(project: &Project) -> Option<Policy> {
    let nowhere = Path::new("/nonexistent");
    policy_of(
        project,
        RunPaths {
            worktree: nowhere,
            common_dir: nowhere,
            workspace: nowhere,
            caches: nowhere,
            covered: false,
        },
    )
}

/// Returns whether commands run in a sandbox.
pub fn is_confined(project: &Project) -> bool {
    let is_on = project.settings.execute.sandbox != Sandbox::Off;
    is_on && !matches!(availability(), Availability::None(_))
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

    for dir in &project.settings.execute.writable {
        refuse_link(project, dir)?;
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
            covered: worktree.covers_checkout(),
        },
    );

    if let Some(policy) = &mut policy {
        let workdir = project.repository.workdir();
        policy.read.extend(worktree.borrowed_paths());
        let linked = linked_dirs(project, worktree);
        // They are in the workspace, which is otherwise hidden.
        policy
            .read
            .extend(linked.iter().map(|dir| workdir.join(dir)));
        let worktrees = worktree_dirs(&project.repository, &project.worktrees());
        // Worktrees of other sessions, which can have other secrets.
        policy.hidden.extend(worktrees);
        policy.hidden.extend(own_config(project));
        policy.hidden.extend(secrets_in_opened(project, &linked)?);
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

/// Points tools to writable caches, and Python to the modules in a copy.
pub fn variables(
    project: &Project,
    worktree: &SessionWorktree,
    policy: Option<&Policy>,
) -> Vec<(String, String)> {
    let caches = policy.map(|policy| cache_dir_variables(&tool_caches(project), policy.network));
    let kept = &project.settings.execute.keep_env;
    let own = env::var(PYTHON_PATH).filter(|_| kept.iter().any(|name| name == PYTHON_PATH));
    let mut dirs: Vec<PathBuf> = worktree
        .module_dirs
        .iter()
        .map(|dir| worktree.path.join(dir))
        .collect();
    let is_needed = !dirs.is_empty();
    dirs.extend(own.iter().flat_map(std::env::split_paths));
    let joined = std::env::join_paths(dirs).ok().filter(|_| is_needed);
    let modules = joined.and_then(|path| Some((PYTHON_PATH.to_owned(), path.into_string().ok()?)));
    caches.into_iter().flatten().chain(modules).collect()
}

/// Comes before the path files of an environment.
pub const PYTHON_PATH: &str = "PYTHONPATH";

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

    policy
        .write
        .extend(settings.writable.iter().map(|dir| expand(project, dir)));
    Some(policy)
}

/// The user's configuration if `TEDDY_CONFIG` names a file outside of the project: it can have keys.
fn own_config(project: &Project) -> Option<PathBuf> {
    let file = project.user_dirs.config_file.canonicalize().ok()?;
    let top = project.repository.workdir().canonicalize().ok()?;
    // Not `/dev/null`.
    (file.is_file() && !file.starts_with(top)).then_some(file)
}

/// Returns the files and directories in the workspace to which a copy links, relative to it. Nothing
/// that a symlink of the workspace leads to outside: it is readable, or hidden for a reason.
fn linked_dirs(project: &Project, worktree: &SessionWorktree) -> Vec<PathBuf> {
    let workdir = project.repository.workdir();
    let Ok(top) = workdir.canonicalize() else {
        return Vec::new();
    };
    let linked = worktree.linked.iter();
    let real = linked.flat_map(|path| workdir.join(OsStr::from_bytes(path)).canonicalize());
    let inside = real.filter_map(|path| Some(path.strip_prefix(&top).ok()?.to_owned()));
    let is_opened = |path: &PathBuf| {
        let mut parts = path.components();
        !path.as_os_str().is_empty() && parts.all(|part| part.as_os_str() != GIT_DIR)
    };
    inside.filter(is_opened).collect()
}

/// Secrets in the directories of the workspace that are readable: programs, and what a copy links to.
fn secrets_in_opened(project: &Project, linked: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let workdir = project.repository.workdir();
    let programs = program_dirs_in_path(workdir).into_iter();
    let programs = programs.filter_map(|dir| Some(dir.strip_prefix(workdir).ok()?.to_owned()));
    let linked = linked.iter().filter(|dir| workdir.join(dir).is_dir());
    let dirs = programs.chain(linked.cloned());
    let dirs = dirs.map(|dir| dir.into_os_string().into_vec()).collect();
    let secrets = secrets_in(workdir, &project.limits(), dirs);
    let secrets = secrets.context("looking for secrets in what commands can read of your files")?;
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

/// Fails if a writable path in the project leads through a link: a command or a clone can have made it.
fn refuse_link(project: &Project, dir: &str) -> anyhow::Result<()> {
    let (path, top) = (
        expand(project, dir),
        project.repository.workdir().canonicalize()?,
    );
    let is_top = |above: &&Path| above.canonicalize().is_ok_and(|real| real == top);
    let Some(below) = path.ancestors().find(is_top) else {
        return Ok(());
    };
    let below = path.strip_prefix(below)?;
    if path
        .canonicalize()
        .is_ok_and(|real| real != top.join(below))
    {
        return Err(error_with_hint(
            format!(
                "`execute.writable` has `{dir}`, which is a symbolic link in the project, or below one"
            ),
            "remove the link, or name the directory to which it leads",
        ));
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
struct RunPaths<'p> {
    /// Has a git directory of its own.
    pub worktree: &'p Path,
    pub common_dir: &'p Path,
    /// Hidden, because the snapshot can have left out secrets in them.
    pub workspace: &'p Path,
    pub caches: &'p Path,
    /// The overlay is mounted over the user's files, so commands find the overlay at their paths.
    pub covered: bool,
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

const GIT_DIR: &str = ".git";

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
        covered,
    } = paths;
    // Without the overlay's own paths. The directory of objects can be a link that leads elsewhere.
    let objects = common_dir.join(OBJECTS);
    let mut hidden = vec![workspace.to_owned(), common_dir.to_owned(), objects.clone()];
    if covered {
        hidden.extend(objects.canonicalize());
        hidden.retain(|path| !path.starts_with(workspace) && !path.starts_with(worktree));
    }
    let mut policy = Policy {
        write: [worktree, caches].map(Path::to_owned).to_vec(),
        add: Vec::new(),
        read: vec![common_dir.join(LFS)],
        hidden,
        private: vec![SHARED_MEMORY.into()],
        sockets: [worktree, caches].map(Path::to_owned).to_vec(),
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
    // A command can have closed it.
    if let (Some(parent), Some(name)) = (dir.parent(), dir.file_name()) {
        make_writable(&Root::open(parent)?, name);
    }
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

// Guesses whether the sandbox made a command fail, and names the setting that would help.
//
// The only evidence is the program's error message. Landlock fails with EACCES, a read-only mount with
// EROFS and seccomp with EPERM, which distinguishes files from network.

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

/// What programs say that were refused a socket, on machines without network namespaces.
const SOCKET_ERRORS: [&str; 2] = ["Operation not permitted", "EPERM"];

/// What programs say that find no name server or no route.
const NETWORK_ERRORS: [&str; 13] = [
    "Connection refused",
    "ECONNREFUSED",
    "ENETUNREACH",
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

/// Error messages of programs that were denied a file.
pub(super) const FILE_ERRORS: [&str; 6] = [
    "Permission denied",
    "permission denied",
    "EACCES",
    "Read-only file system",
    "read-only file system",
    "EROFS",
];

/// Those of [`FILE_ERRORS`] that only a write causes.
pub(super) const READ_ONLY_ERRORS: [&str; 3] =
    ["Read-only file system", "read-only file system", "EROFS"];

/// Exit code of a shell for a program that it finds and cannot execute.
const NOT_EXECUTABLE: i32 = 126;

fn contains_any(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|word| text.contains(word))
}

/// The directories of a command, as it sees them.
pub(super) struct CommandDirs<'a> {
    pub worktree: &'a Path,
    pub cwd: &'a Path,
    pub temporary: &'a Path,
    /// The user's files.
    pub workspace: &'a Path,
}

/// Returns a hint for the user if the failure of a command looks like an effect of the shell, the
/// sandbox, a file system without programs, or a program that leads nowhere.
pub(super) fn explain_failure(
    policy: Option<&Policy>,
    dirs: &CommandDirs<'_>,
    finished: &FinishedScript,
) -> Option<String> {
    // What ended a command from outside was not refused.
    let ScriptEnd::Exited(1..) = finished.end else {
        return None;
    };
    // The error is usually at the end.
    let output = finished.output.joined();
    let text = String::from_utf8_lossy(&output[output.len().saturating_sub(MAX_ERROR_TAIL)..]);
    if let Some(hint) = explain_missing_target(&text, dirs.cwd, dirs.workspace) {
        return Some(hint);
    }
    let hint = explain_syntax(&text).or_else(|| explain_refusal(policy?, dirs, finished, &text));
    hint.map(str::to_owned)
}

fn explain_refusal(
    policy: &Policy,
    dirs: &CommandDirs<'_>,
    finished: &FinishedScript,
    text: &str,
) -> Option<&'static str> {
    let is_not_executable = finished.end == ScriptEnd::Exited(NOT_EXECUTABLE);
    if contains_any(text, &FILE_ERRORS) && (is_not_executable || text.contains("exec")) {
        if runs_no_programs(dirs.worktree) {
            return Some(
                "the worktree is on a file system that runs no programs (`noexec`); `worktree.root` in your own configuration names another place",
            );
        }
        if runs_no_programs(dirs.temporary) {
            return Some(
                "`$TMPDIR` is on a file system that runs no programs (`noexec`); set `TMPDIR` to a directory on another one",
            );
        }
    }
    // The shell could not execute a program, so the command wrote nothing that was refused.
    if is_not_executable {
        return None;
    }
    match_refusal(policy, finished.isolation, text)
}

fn runs_no_programs(dir: &Path) -> bool {
    let flags = rustix::fs::statvfs(dir).map(|stat| stat.f_flag);
    flags.is_ok_and(|flags| flags.contains(StatVfsMountFlags::NOEXEC))
}

fn match_refusal(policy: &Policy, isolation: Isolation, text: &str) -> Option<&'static str> {
    if !isolation.terminals && contains_any(text, &TERMINAL_ERRORS) {
        return Some(
            "the sandbox has no pseudo-terminals on this machine; `execute.sandbox: off` in your own configuration runs commands without it",
        );
    }

    if text.contains("Operation not permitted") && contains_any(text, &NAMESPACE_ERRORS) {
        return Some(
            "the sandbox has no namespaces and no mounts, and no command changes how another process is scheduled; `execute.sandbox: off` in your own configuration runs commands without it",
        );
    }

    if policy.network == Network::Off {
        if isolation.network && contains_any(text, &NETWORK_ERRORS) {
            return Some(
                "the sandbox has a network of its own, with loopback only; in the review, `m` and then `i` grants one command yours, and `execute.network: true` in your own configuration grants it to all",
            );
        }
        if !isolation.network
            && (contains_any(text, &NETWORK_ERRORS) || contains_any(text, &SOCKET_ERRORS))
        {
            return Some(
                "the sandbox has no network, not even to this machine; in the review, `m` and then `i` grants it to one command, and `execute.network: true` in your own configuration to all",
            );
        }
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
            covered: false,
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

    #[test]
    fn an_overlay_over_the_workspace_is_open_and_a_git_directory_elsewhere_is_closed() {
        let [workspace, caches] = ["/w", "/tools"].map(Path::new);
        let hidden = |common_dir: &str| {
            let policy = default_policy(RunPaths {
                worktree: workspace,
                common_dir: Path::new(common_dir),
                workspace,
                caches,
                covered: true,
            });
            let dirs = policy
                .hidden
                .iter()
                .filter(|dir| ["/w", "/c"].iter().any(|top| dir.starts_with(top)));
            dirs.map(|dir| dir.display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(hidden("/w/.git"), Vec::<String>::new());
        assert_eq!(hidden("/c/.git"), ["/c/.git", "/c/.git/objects"]);
    }
}

#[cfg(test)]
mod refusal_tests {
    use super::*;

    const ALONE: Isolation = Isolation {
        mounts: true,
        network: true,
        terminals: true,
    };

    /// Expects a part of the hint.
    #[track_caller]
    fn check(network: Network, isolation: Isolation, output: &str, expected: Option<&str>) {
        let policy = Policy {
            network,
            ..Policy::default()
        };
        let hint = match_refusal(&policy, isolation, output);
        assert_eq!(
            hint.and_then(|text| expected.filter(|part| text.contains(part))),
            expected,
            "{output}: {hint:?}"
        );
        assert_eq!(hint.is_some(), expected.is_some(), "{output}: {hint:?}");
    }

    #[test]
    fn a_refused_file_names_the_setting_for_folders() {
        for output in [
            "sh: cannot create /root/.foo: Permission denied",
            "Error: EACCES: permission denied, mkdir '/x'",
            "touch: cannot touch '/x': Read-only file system",
        ] {
            check(Network::Off, ALONE, output, Some("execute.writable"));
        }
    }

    #[test]
    fn an_unreachable_network_names_the_setting_for_the_network() {
        for output in [
            "curl: (6) Could not resolve host: example.org",
            "connect ENETUNREACH 192.0.2.1:80",
        ] {
            check(Network::Off, ALONE, output, Some("loopback only"));
            let hint = Some("not even to this machine");
            check(Network::Off, Isolation::default(), output, hint);
            check(Network::On, ALONE, output, None);
        }
    }

    #[test]
    fn a_refused_socket_is_explained_where_there_is_no_network_at_all() {
        let output = "PermissionError: [Errno 1] Operation not permitted";
        let hint = Some("execute.network");
        check(Network::Off, Isolation::default(), output, hint);
        check(Network::Off, ALONE, output, None);
    }

    #[test]
    fn a_refused_namespace_names_the_sandbox_itself() {
        for output in [
            "unshare: unshare failed: Operation not permitted",
            "bwrap: No permissions to create new namespace: Operation not permitted",
        ] {
            check(Network::Off, ALONE, output, Some("execute.sandbox"));
        }
    }

    #[test]
    fn a_missing_terminal_names_the_sandbox_itself() {
        let output = "OSError: out of pty devices";
        let hint = Some("execute.sandbox");
        check(Network::On, Isolation::default(), output, hint);
        check(Network::On, ALONE, output, None);
    }

    #[test]
    fn a_failure_of_its_own_has_no_hint() {
        check(Network::Off, ALONE, "assertion failed: left == right", None);
        check(Network::Off, ALONE, "", None);
    }
}
