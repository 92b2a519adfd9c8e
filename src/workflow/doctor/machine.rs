//! Checks that do not depend on the repository: git, sandbox, overlay, disk space.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{HealthCheck, Patient, display_path};
use crate::config::settings::{Backend, Sandbox};
use crate::git::command::git_in;
use crate::git::worktree;
use crate::host::file::temporary_parent;
use crate::host::machine::{DiskSpace, disk_space};
use crate::host::sandbox::{Availability, availability};
use crate::host::shell::Shell;
use crate::host::{env, helper};
use crate::project::Project;
use crate::text::sanitize::sanitize_line;
use crate::text::shell_word::shell_word;
use crate::text::{counted, sized};
use crate::workflow::confine::backend::{self, CommandFiles};
use crate::workflow::confine::{self};
use crate::workflow::gc::{file_size, files_below};

const LIMIT: Duration = Duration::from_secs(2);

/// For `git repack --geometric` (git 2.32).
const OLDEST: GitVersion = GitVersion([2, 32, 0]);

/// For reftables.
const REFTABLE: GitVersion = GitVersion([2, 45, 0]);

/// Cloning a repository with hooks fails, for example with Git LFS. Fixed in the next patch release
/// of each.
const BAD: [GitVersion; 7] = [
    GitVersion([2, 45, 1]),
    GitVersion([2, 44, 1]),
    GitVersion([2, 43, 4]),
    GitVersion([2, 42, 2]),
    GitVersion([2, 41, 1]),
    GitVersion([2, 40, 2]),
    GitVersion([2, 39, 4]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct GitVersion([u32; 3]);

impl GitVersion {
    fn parse(output: &str) -> Option<GitVersion> {
        let text = output.trim().strip_prefix("git version ")?;
        let word = text.split_whitespace().next()?;
        let mut numbers = word.split(['.', '-', '+']).map_while(|n| n.parse().ok());
        Some(GitVersion([
            numbers.next()?,
            numbers.next()?,
            // Distributors append suffixes: `2.39.5 (Apple Git-154)`, `2.51.GIT`.
            numbers.next().unwrap_or(0),
        ]))
    }
}

impl std::fmt::Display for GitVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

pub(super) fn run_checks(patient: &Patient) -> Vec<HealthCheck> {
    let mut checks = vec![git(patient), sandbox(patient.settings.execute.sandbox)];
    // Commands never run in a bare repository.
    let project = patient.project.as_ref().ok();
    let project = project.filter(|project| !project.repository.is_bare());
    checks.extend(project.map(command_files));
    checks.extend(project.and_then(isolation));
    checks.extend(check_disk_space(patient));
    checks
}

fn git(patient: &Patient) -> HealthCheck {
    let mut command = match git_in(&patient.dir) {
        Ok(command) => command,
        Err(error) => {
            return HealthCheck::problem("git", format!("{error:#}"))
                .remedy("https://git-scm.com/downloads");
        }
    };

    let project = patient.project.as_ref().ok();
    let format = project.and_then(|project| project.repository.config("extensions.refStorage"));
    let oldest = match format.as_deref() {
        Some("reftable") => REFTABLE,
        _ => OLDEST,
    };
    let output = helper::probe(command.arg("--version"), LIMIT);
    check_version(output.as_deref().unwrap_or_default(), oldest)
}

fn check_version(output: &str, oldest: GitVersion) -> HealthCheck {
    let Some(version) = GitVersion::parse(output) else {
        let line = output.lines().next().unwrap_or("nothing");
        let reason = format!("git does not say its version, but: {}", sanitize_line(line));
        return HealthCheck::problem("git", reason).remedy("git --version");
    };

    if version < oldest {
        let why = match oldest {
            REFTABLE => "this repository keeps its refs in a reftable, which needs",
            _ => "TeDDy needs",
        };
        let reason = format!("git {version} is too old: {why} git {oldest} or newer");
        return HealthCheck::problem("git", reason).remedy("https://git-scm.com/downloads");
    }

    if BAD.contains(&version) {
        let reason = format!(
            "git {version} is a bad release: clones that install hooks, as Git LFS does, fail; the next release works"
        );
        return HealthCheck::warning("git", reason).remedy("https://git-scm.com/downloads");
    }
    HealthCheck::ok("git", format!("git {version}"))
}

fn sandbox(setting: Sandbox) -> HealthCheck {
    let shows = "cat /sys/kernel/security/lsm  # shows whether Landlock is on";
    match (setting, availability()) {
        (Sandbox::Off, _) => HealthCheck::note(
            "sandbox",
            "`execute.sandbox` is `off`: the commands of plans can do what you can",
        )
        .remedy("teddy -c execute.sandbox=on ..."),
        (_, Availability::Full) => HealthCheck::ok("sandbox", "commands can be sandboxed"),
        (Sandbox::Require, Availability::Partly(why) | Availability::None(why)) => {
            let reason = format!(
                "`execute.sandbox` is `require`, which this machine cannot do, so no command runs: {why}"
            );
            HealthCheck::problem("sandbox", reason).remedy(shows)
        }
        (_, Availability::Partly(why)) => HealthCheck::warning(
            "sandbox",
            format!("commands are only partly sandboxed: {why}"),
        )
        .remedy(shows),
        (_, Availability::None(why)) => HealthCheck::warning(
            "sandbox",
            format!("commands are not sandboxed, and can do what you can: {why}"),
        )
        .remedy(shows),
    }
}

fn command_files(project: &Project) -> HealthCheck {
    let backend = project.settings.worktree.backend;
    // A fresh probe, because the machine can have changed.
    match backend::tried(project) {
        CommandFiles::Overlay => HealthCheck::ok(
            "overlay",
            format!("{KINDS} run over your files, in an overlay"),
        ),
        CommandFiles::Checkout(why) if backend == Backend::Overlay => {
            let reason = format!(
                "`worktree.backend` is `overlay`, which this machine cannot do, so no command runs: {why}"
            );
            HealthCheck::problem("overlay", reason).remedy("teddy -c worktree.backend=auto ...")
        }
        CommandFiles::Checkout(why) => {
            let reason = format!(
                "{KINDS} run in a copy of your files, with links to ignored dependencies, and other ignored files only if `worktree.copy` or `worktree.link` names them: {why}"
            );
            let note = HealthCheck::note("overlay", reason);
            match backend {
                Backend::Checkout => note.remedy("teddy -c worktree.backend=auto ..."),
                // No change of the machine helps.
                _ if backend::chosen_copy(project).is_some() => note,
                _ if is_overlay(&project.worktrees()) => note.remedy(format!(
                    "docker run --volume teddy:{} ...  # no overlay can be on another one",
                    shell_word(project.worktrees().display().to_string())
                )),
                _ => note.remedy(namespace_remedy()),
            }
        }
    }
}

/// All runs that see the user's files in the same way.
const KINDS: &str = "commands, agents, the lanes and checks of races, `bisect run`, `compare --check`, `verify --rerun` and `worktree.setup`";

/// Returns whether a directory is, or would be made, on an overlay, such as the own files of a
/// container. No other overlay can be on it.
fn is_overlay(dir: &Path) -> bool {
    let known = dir.ancestors().find_map(|dir| rustix::fs::statfs(dir).ok());
    known.is_some_and(|stat| stat.f_type == libc::OVERLAYFS_SUPER_MAGIC)
}

/// What forbids namespaces on this machine, as a command that allows them.
fn namespace_remedy() -> String {
    let setting = |name: &str| {
        let text = std::fs::read_to_string(Path::new("/proc/sys").join(name));
        text.ok().and_then(|text| text.trim().parse().ok())
    };
    let in_container = CONTAINER_MARKS.iter().any(|mark| Path::new(mark).exists());
    choose_remedy(setting, in_container, &own_program())
}

/// The real path of this program, by which the kernel knows it.
fn own_program() -> PathBuf {
    let program = env::current_exe().and_then(std::fs::canonicalize);
    program.unwrap_or_else(|_| PathBuf::from("/usr/bin/teddy"))
}

fn choose_remedy(
    setting: impl Fn(&str) -> Option<u64>,
    in_container: bool,
    program: &Path,
) -> String {
    match () {
        () if setting("user/max_user_namespaces") == Some(0) => {
            "sudo sysctl user.max_user_namespaces=10000".to_owned()
        }
        () if setting("kernel/unprivileged_userns_clone") == Some(0) => {
            "sudo sysctl kernel.unprivileged_userns_clone=1".to_owned()
        }
        () if setting("kernel/apparmor_restrict_unprivileged_userns") == Some(1) => {
            app_armor_remedy(program)
        }
        () if in_container => {
            "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined ...  # podman needs only the first".to_owned()
        }
        () => "unshare --user --mount true  # shows whether the system allows namespaces".to_owned(),
    }
}

/// Files that container engines create.
const CONTAINER_MARKS: [&str; 2] = ["/.dockerenv", "/run/.containerenv"];

/// Ubuntu allows namespaces only to programs with a profile.
fn app_armor_remedy(program: &Path) -> String {
    let profile = format!(
        "profile teddy \"{}\" flags=(unconfined) {{ userns, }}",
        program.display()
    );
    // Lines as words: a word with a line break has a form that `sh` does not read.
    format!(
        "printf '%s\\n' 'abi <abi/4.0>,' 'include <tunables/global>' {} | sudo tee /etc/apparmor.d/teddy && sudo apparmor_parser -r /etc/apparmor.d/teddy",
        shell_word(profile)
    )
}

/// Starts a command to find out what it gets. `None` if commands are not sandboxed, which another
/// check reports.
fn isolation(project: &Project) -> Option<HealthCheck> {
    let shells = Shell::describe(project.settings.execute.shell.as_deref());
    match backend::try_isolation(project) {
        Ok(given) => {
            let given = given?;
            let network = match (project.settings.execute.network, given.network) {
                (true, _) => "your network",
                (false, true) => "a network of their own with loopback",
                (false, false) => "no network, not even loopback",
            };
            let terminals = match given.terminals {
                true => "pseudo-terminals",
                false => "no pseudo-terminals",
            };
            let reason =
                format!("commands have {network}, {terminals}, and these shells: {shells}");
            let is_whole = given.terminals && (given.network || project.settings.execute.network);
            Some(match is_whole {
                true => HealthCheck::ok("commands", reason),
                false => HealthCheck::note("commands", reason).remedy(namespace_remedy()),
            })
        }
        Err(why) => Some(HealthCheck::problem(
            "commands",
            format!("no command can be started: {}", sanitize_line(&why)),
        )),
    }
}

/// With less free space, recording a turn can fail.
const MIN_FREE: u64 = 64 << 20;

/// In bytes. Below it, the next build can fill the disk.
const LOW_FREE: u64 = 1 << 30;

const LOW_FREE_INODES: u64 = 10_000;

/// In bytes. More is worth a hint.
const LARGE_CACHES: u64 = 5 << 30;

const MAX_COUNTING: Duration = Duration::from_millis(500);

pub(super) fn check_disk_space(patient: &Patient) -> Vec<HealthCheck> {
    let mut devices = Vec::new();
    let mut checks = Vec::new();
    for (label, path) in list_dirs(patient) {
        // Directories on the same file system are reported once.
        let Some(space) = disk_space(&path).filter(|space| !devices.contains(&space.device)) else {
            continue;
        };
        devices.push(space.device);
        checks.push(check_space(
            &space,
            &format!("{label} (`{}`)", display_path(&path)),
        ));
    }

    checks.push(check_cache_size(patient));
    checks
}

fn list_dirs(patient: &Patient) -> Vec<(&'static str, PathBuf)> {
    let project = patient.project.as_ref().ok();
    let repository = project.map(|project| ("the repository", project.repository.common_dir()));
    let worktrees = match project {
        Some(project) if !project.repository.is_bare() => project.worktrees(),
        _ => patient.user_dirs.cache.join("worktrees"),
    };
    let others = [
        ("the worktrees of sessions", worktrees),
        ("temporary files", temporary_parent()),
    ];
    repository.into_iter().chain(others).collect()
}

fn check_space(space: &DiskSpace, location: &str) -> HealthCheck {
    let reason = format!("{} free for {location}", sized(space.free));
    let shows = "teddy gc  # frees space; `teddy gc -n` shows what uses it";
    match space.files {
        _ if space.read_only => {
            let reason = format!("nothing can be written for {location}: it is mounted read-only");
            HealthCheck::problem("room", reason)
        }
        _ if space.free < MIN_FREE => {
            let reason = format!("only {reason}: a turn may not be recorded");
            HealthCheck::problem("room", reason).remedy(shows)
        }
        _ if space.free < LOW_FREE => {
            HealthCheck::warning("room", format!("only {reason}")).remedy(shows)
        }
        Some(files) if files < LOW_FREE_INODES => {
            let files = counted(files, "more file");
            let reason = format!("there is space for {files} only for {location}");
            HealthCheck::warning("room", reason).remedy("df -i")
        }
        _ => HealthCheck::ok("room", reason),
    }
}

fn check_cache_size(patient: &Patient) -> HealthCheck {
    let mut dirs = Vec::new();
    match &patient.project {
        Ok(project) => {
            let listed = worktree::session_worktrees(&project.repository).into_iter();
            dirs.extend(listed.map(|listed| listed.path));
            dirs.push(confine::tool_caches(project));
            dirs.push(project.repository.teddy_dir());
        }
        Err(_) => dirs.push(patient.user_dirs.cache.clone()),
    }

    let (bytes, is_whole) = count_size(&dirs, Instant::now() + MAX_COUNTING);
    let least = if is_whole { "" } else { "at least " };
    let reason = format!(
        "worktrees, caches and undo data take {least}{}",
        sized(bytes)
    );
    if bytes > LARGE_CACHES {
        return HealthCheck::note("caches", reason)
            .remedy("teddy gc  # `teddy gc -n` shows what uses it");
    }
    HealthCheck::ok("caches", reason)
}

/// Bytes of the files that were found until the deadline, and whether these are all.
fn count_size(dirs: &[PathBuf], deadline: Instant) -> (u64, bool) {
    let mut bytes = 0;
    for file in dirs.iter().flat_map(|dir| files_below(dir)) {
        if Instant::now() > deadline {
            return (bytes, false);
        }
        bytes += file_size(&file);
    }
    (bytes, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::doctor::HealthState;

    fn check(output: &str, oldest: GitVersion, expected: (HealthState, &str)) {
        let actual = check_version(output, oldest);
        assert_eq!((actual.state, actual.reason.as_str()), expected, "{output}");
    }

    #[test]
    fn the_remedy_names_what_forbids_namespaces() {
        let check = |forbids: &[(&str, u64)], in_container: bool, expected: &str| {
            let setting = |name: &str| {
                let found = forbids.iter().find(|(forbidding, _)| *forbidding == name);
                found.map(|(_, value)| *value)
            };
            let actual = choose_remedy(setting, in_container, "/usr/bin/teddy".as_ref());
            assert_eq!(actual, expected, "{forbids:?}");
        };
        let limit = "user/max_user_namespaces";
        let debian = "kernel/unprivileged_userns_clone";
        let ubuntu = "kernel/apparmor_restrict_unprivileged_userns";
        check(
            &[(limit, 0)],
            true,
            "sudo sysctl user.max_user_namespaces=10000",
        );
        check(
            &[(limit, 9), (debian, 0)],
            false,
            "sudo sysctl kernel.unprivileged_userns_clone=1",
        );
        check(
            &[(ubuntu, 1)],
            false,
            "printf '%s\\n' 'abi <abi/4.0>,' 'include <tunables/global>' 'profile teddy \"/usr/bin/teddy\" flags=(unconfined) { userns, }' | sudo tee /etc/apparmor.d/teddy && sudo apparmor_parser -r /etc/apparmor.d/teddy",
        );
        check(
            &[(limit, 9), (debian, 1), (ubuntu, 0)],
            true,
            "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined ...  # podman needs only the first",
        );
        check(
            &[],
            false,
            "unshare --user --mount true  # shows whether the system allows namespaces",
        );
    }

    /// Bug: the profile was for `/proc/self/exe`, which names every program.
    #[test]
    fn the_remedy_is_for_the_program_by_its_real_path() {
        let started = std::env::args_os().next().unwrap();
        assert_eq!(own_program(), Path::new(&started).canonicalize().unwrap());
    }

    #[test]
    fn a_git_that_is_too_old_or_bad_is_found() {
        let ok = |text| (HealthState::Ok, text);
        check("git version 2.47.3\n", OLDEST, ok("git 2.47.3"));
        check(
            "git version 2.39.5 (Apple Git-154)\n",
            OLDEST,
            ok("git 2.39.5"),
        );
        check("git version 2.50.0.windows.1\n", OLDEST, ok("git 2.50.0"));
        check("git version 2.51.GIT\n", OLDEST, ok("git 2.51.0"));
        check(
            "git version 2.30.2\n",
            OLDEST,
            (
                HealthState::Problem,
                "git 2.30.2 is too old: TeDDy needs git 2.32.0 or newer",
            ),
        );
        check(
            "git version 2.44.0\n",
            REFTABLE,
            (
                HealthState::Problem,
                "git 2.44.0 is too old: this repository keeps its refs in a reftable, which needs git 2.45.0 or newer",
            ),
        );
        check(
            "git version 2.45.1\n",
            OLDEST,
            (
                HealthState::Warning,
                "git 2.45.1 is a bad release: clones that install hooks, as Git LFS does, fail; the next release works",
            ),
        );
        check(
            "hub 1\u{1b}\n",
            OLDEST,
            (
                HealthState::Problem,
                "git does not say its version, but: hub 1\\u{1b}",
            ),
        );
    }
}

#[cfg(test)]
mod disk_space_tests {
    use super::*;

    fn check(free: u64, files: Option<u64>, expected: &str) {
        let space = DiskSpace {
            free,
            files,
            read_only: false,
            device: 1,
        };
        let actual = check_space(&space, "x");
        assert_eq!(format!("{:?}: {}", actual.state, actual.reason), expected);
    }

    #[test]
    fn little_room_is_told_in_numbers() {
        check(17 << 30, None, "Ok: 17.0 GiB free for x");
        check(900 << 20, None, "Warning: only 900.0 MiB free for x");
        check(
            1 << 20,
            Some(1),
            "Problem: only 1.0 MiB free for x: a turn may not be recorded",
        );
        check(
            17 << 30,
            Some(12),
            "Warning: there is space for 12 more files only for x",
        );
    }

    #[test]
    fn counting_ends_in_time_and_follows_no_link() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("a")).unwrap();
        std::fs::write(dir.path().join("a/x"), "12345").unwrap();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("a/up")).unwrap();
        let later = Instant::now() + Duration::from_secs(60);
        let dirs = [dir.path().to_owned()];
        let (bytes, is_whole) = count_size(&dirs, later);
        assert!(is_whole && bytes < 1000, "{bytes}");
        assert!(!count_size(&dirs, Instant::now()).1);
    }
}
