//! `doctor`: finds problems and risks, each with a reason and a command that fixes it.
//!
//! Read-only; [`recover`] and [`Patient::repair`] apply harmless repairs. Every check is bounded in time and input size, does
//! not trust the repository, and sends nothing that could cost money. A failing check is a finding
//! and does not stop the others.

mod machine;
mod model;
mod refs;
mod sessions;
mod settings;
mod worktrees;

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;

use crate::config::layer::{self, ConfigError, Layer};
use crate::config::settings::Settings;
use crate::git::command::run_checked;
use crate::git::open::OpenError;
use crate::git::refs::repair::{ForeignLock, foreign_locks};
use crate::git::worktree;
use crate::host::file::{ForeignOwner, foreign_owner, open_regular};
use crate::project::{Project, ProjectOptions, UserDirs};
use crate::text::sanitize::sanitize_line;
use crate::text::shell_word::shell_word;
use crate::workflow::user::{User, telling};
use crate::workspace::notice::FilesNotice;
use crate::workspace::recover::{Depth, try_lock_worktree};
use crate::workspace::set_aside::PutBackResult;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HealthState {
    Ok,
    /// Harmless, but worth knowing.
    Note,
    /// A risk, or something that works less well than it could.
    Warning,
    /// Broken or exposed.
    Problem,
}

#[derive(Debug, Clone, Serialize)]
pub struct HealthCheck {
    /// For display.
    pub group: &'static str,
    pub name: &'static str,
    pub state: HealthState,
    /// What was found and why it matters.
    pub reason: String,
    /// Usually a command.
    pub remedy: Option<String>,
    /// By `--fix`.
    pub fixable: bool,
    #[serde(skip)]
    repair: Option<Repair>,
}

impl HealthCheck {
    fn new(name: &'static str, state: HealthState, reason: impl Into<String>) -> HealthCheck {
        HealthCheck {
            group: "",
            name,
            state,
            reason: reason.into(),
            remedy: None,
            fixable: false,
            repair: None,
        }
    }

    fn ok(name: &'static str, reason: impl Into<String>) -> HealthCheck {
        HealthCheck::new(name, HealthState::Ok, reason)
    }

    fn note(name: &'static str, reason: impl Into<String>) -> HealthCheck {
        HealthCheck::new(name, HealthState::Note, reason)
    }

    fn warning(name: &'static str, reason: impl Into<String>) -> HealthCheck {
        HealthCheck::new(name, HealthState::Warning, reason)
    }

    fn problem(name: &'static str, reason: impl Into<String>) -> HealthCheck {
        HealthCheck::new(name, HealthState::Problem, reason)
    }

    fn remedy(mut self, remedy: impl Into<String>) -> HealthCheck {
        self.remedy = Some(remedy.into());
        self
    }

    fn repair(mut self, repair: Repair) -> HealthCheck {
        self.fixable = true;
        self.repair = Some(repair);
        self
    }
}

/// The machine, and the repository if there is one.
pub struct Patient {
    dir: PathBuf,
    user_dirs: UserDirs,
    settings: Settings,
    /// Set if the settings are invalid and the defaults apply.
    mistake: Option<anyhow::Error>,
    project: Result<Project, OpenError>,
}

impl Patient {
    /// Fails only on an invalid option of the call itself.
    pub fn admit(
        dir: &Path,
        user_dirs: UserDirs,
        options: ProjectOptions,
    ) -> anyhow::Result<Patient> {
        let opened = Project::open_degraded(dir, &user_dirs, &options);
        let (project, settings, mistake) = match opened {
            Ok((project, mistake)) => {
                let settings = project.settings.clone();
                (Ok(project), settings, mistake)
            }
            Err(error) => {
                let (settings, mistake) = users_settings(&user_dirs, &options);
                (Err(error), settings, mistake)
            }
        };

        let is_of_call = |error: &ConfigError| error.is_of_call();
        match mistake {
            Some(error) if error.downcast_ref().is_some_and(is_of_call) => Err(error),
            mistake => Ok(Patient {
                dir: dir.to_owned(),
                user_dirs,
                settings,
                mistake,
                project,
            }),
        }
    }

    /// With what an earlier recovery found.
    pub fn examine(&self, recovery: Option<&RecoveryResult>) -> Vec<HealthCheck> {
        // The network request runs in the background during the other checks.
        let server_answer = model::begin(self);
        let mut sessions = sessions::run_checks(self);
        sessions.extend(recovery.into_iter().flat_map(RecoveryResult::damage));
        let groups: [(&'static str, Vec<HealthCheck>); 6] = [
            ("machine", machine::run_checks(self)),
            ("settings", settings::run_checks(self)),
            ("git", refs::run_checks(self)),
            ("worktrees", worktrees::run_checks(self)),
            ("sessions", sessions),
            ("agents", settings::check_agents(self)),
        ];
        let mut checks = Vec::new();

        for (group, group_checks) in groups {
            checks.extend(in_group(group, group_checks));
            if group == "settings" {
                checks.extend(in_group("model", model::run_checks(self, &server_answer)));
            }
        }
        checks
    }
}

/// Sorts by severity, worst first.
fn in_group(group: &'static str, mut checks: Vec<HealthCheck>) -> Vec<HealthCheck> {
    checks.sort_by_key(|check| std::cmp::Reverse(check.state));
    for check in &mut checks {
        check.group = group;
    }
    checks
}

fn users_settings(
    user_dirs: &UserDirs,
    options: &ProjectOptions,
) -> (Settings, Option<anyhow::Error>) {
    let read = || {
        let user = Layer::read(&user_dirs.config_file)?;
        let call = Layer::from_pairs(layer::CALL, &options.settings)?;
        layer::merge(&[user, call])
    };
    match read() {
        Ok(settings) => (settings, None),
        Err(error) => (Settings::default(), Some(error.into())),
    }
}

fn path_word(path: &Path) -> String {
    shell_word(path.as_os_str().as_encoded_bytes())
}

fn display_path(path: &Path) -> String {
    sanitize_line(&path.display().to_string()).into_owned()
}

// The repairs of checks are harmless: they delete nothing that a user made, move no session, and
// cost nothing. Recovery comes before them.

#[derive(Debug, Clone, PartialEq, Eq)]
enum Repair {
    HideDecoration,
    Close(PathBuf),
    /// Of a missing worktree.
    ForgetWorktree(String),
}

/// What `--fix` did besides the repairs of checks.
#[derive(Debug, Serialize)]
pub struct RecoveryResult {
    /// Whether there was anything to do.
    pub recovered: bool,
    /// Refs that reach something that is gone, and have no earlier state that is whole. They are
    /// among the checks.
    #[serde(skip)]
    incomplete: Vec<String>,
    pub put_back: Vec<PutBackResult>,
    /// Of git's own. Reported only: a git process might still hold them.
    pub foreign_locks: Vec<ForeignLock>,
}

impl RecoveryResult {
    fn damage(&self) -> impl Iterator<Item = HealthCheck> {
        self.incomplete.iter().map(|name| {
            let reason = format!("some of what `{}` reaches is gone", sanitize_line(name));
            HealthCheck::problem("objects", reason).remedy("git fsck")
        })
    }
}

#[derive(Debug)]
pub struct RepairOutcome {
    pub check: HealthCheck,
    pub result: anyhow::Result<String>,
}

/// Completes or rolls back what a crash interrupted, and checks every object that refs reach.
pub fn recover(
    project: &Project,
    puts_back: bool,
    user: &mut dyn User,
) -> anyhow::Result<RecoveryResult> {
    let put_back = match puts_back {
        true => project.put_back()?,
        false => Vec::new(),
    };
    let mut incomplete = Vec::new();
    let mut tell = telling(user);
    let recovered = project.recover(Depth::Everything, &mut |notice| {
        if let FilesNotice::ReferenceIncomplete(name) = &notice {
            incomplete.push(name.clone());
        }
        tell(notice);
    })?;
    Ok(RecoveryResult {
        recovered,
        incomplete,
        put_back,
        foreign_locks: foreign_locks(&project.repository),
    })
}

impl Patient {
    /// The project whose checkout can be recovered; a bare repository has none.
    pub fn checkout(&self) -> Option<&Project> {
        let project = self.project.as_ref().ok();
        project.filter(|project| !project.repository.is_bare())
    }

    pub fn repair(&self, checks: &[HealthCheck]) -> Vec<RepairOutcome> {
        let repairs = checks
            .iter()
            .filter_map(|check| Some((check, check.repair.as_ref()?)));
        let outcomes = repairs.map(|(check, repair)| RepairOutcome {
            check: check.clone(),
            result: self.apply(repair),
        });
        outcomes.collect()
    }

    fn apply(&self, repair: &Repair) -> anyhow::Result<String> {
        match (repair, self.project.as_ref().ok()) {
            (Repair::Close(file), _) => restrict_permissions(file),
            (Repair::HideDecoration, Some(project)) => hide_decoration(project),
            (Repair::ForgetWorktree(session), Some(project)) => forget_worktree(project, session),
            (_, None) => anyhow::bail!("there is no repository any more"),
        }
    }
}

fn hide_decoration(project: &Project) -> anyhow::Result<String> {
    let mut command = project.repository.git()?;
    command.args(["config", "--add", "log.excludeDecoration", "refs/teddy/"]);
    run_checked(&mut command, "change its settings")?;
    Ok("set `log.excludeDecoration` to `refs/teddy/` in this repository".to_owned())
}

fn restrict_permissions(path: &Path) -> anyhow::Result<String> {
    anyhow::ensure!(!path.is_symlink(), "`{}` is a link", display_path(path));
    let file = open_regular(path).with_context(|| format!("opening `{}`", display_path(path)))?;
    let mut permissions = file.metadata()?.permissions();
    permissions.set_mode(permissions.mode() & !0o077);
    file.set_permissions(permissions)
        .with_context(|| format!("closing `{}`", display_path(path)))?;
    Ok(format!("closed `{}` to others", display_path(path)))
}

fn forget_worktree(project: &Project, session: &str) -> anyhow::Result<String> {
    let Some(_lock) = try_lock_worktree(&project.checkout(), session, "doctor") else {
        anyhow::bail!(
            "a process is at work in session `{}`",
            sanitize_line(session)
        );
    };
    // It can have been created again since the check.
    let listed = worktree::session_worktrees(&project.repository);
    let one = listed.iter().find(|one| one.session == session);
    if one.is_some_and(|one| !one.path.exists()) {
        worktree::remove_session_worktree(&project.repository, session)?;
    }
    Ok(format!(
        "forgot the worktree of `{}`, which is gone",
        sanitize_line(session)
    ))
}

/// Another user's directory of TeDDy in this repository. Nothing in it can be read.
fn owned_by_another(project: &Project) -> Option<ForeignOwner> {
    foreign_owner(&project.repository.teddy_dir()).filter(|_| {
        let listed = std::fs::read_dir(project.repository.teddy_dir());
        listed.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    })
}
