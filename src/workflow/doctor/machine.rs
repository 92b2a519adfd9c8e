//! Checks that do not depend on the repository: git, sandbox, overlay, disk space.

use std::time::Duration;

use super::{HealthCheck, Patient, disk_space};
use crate::config::settings::{Backend, Sandbox};
use crate::git::command::git_in;
use crate::host::probe;
use crate::host::sandbox::{Availability, availability};
use crate::text::sanitize::sanitize_line;
use crate::workflow::confine::backend::{self, CommandFiles};
use crate::workflow::project::Project;

const LIMIT: Duration = Duration::from_secs(2);
/// Needed for `git repack --geometric` (git 2.32).
const OLDEST: GitVersion = GitVersion([2, 32, 0]);
/// Needed for reftables.
const REFTABLE: GitVersion = GitVersion([2, 45, 0]);
/// Releases in which cloning a repository with hooks fails, for example with Git LFS. Fixed in the
/// next patch release of each.
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
    checks.extend(disk_space::check_disk_space(patient));
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
    let output = probe::probe(command.arg("--version"), LIMIT);
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
        CommandFiles::Overlay => {
            HealthCheck::ok("overlay", "commands run over your files, in an overlay")
        }
        CommandFiles::Checkout(why) if backend == Backend::Overlay => {
            let reason = format!(
                "`worktree.backend` is `overlay`, which this machine cannot do, so no command runs: {why}"
            );
            HealthCheck::problem("overlay", reason).remedy("teddy -c worktree.backend=auto ...")
        }
        CommandFiles::Checkout(why) => {
            let reason = format!("commands run in a copy of your files: {why}");
            HealthCheck::note("overlay", reason)
                .remedy("cat /proc/sys/user/max_user_namespaces  # 0 forbids views of their own")
        }
    }
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
