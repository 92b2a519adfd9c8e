//! `doctor`: what is wrong or risky here, each with the reason and the command that fixes it.
//!
//! It looks, and changes nothing; [`fix`] does what is harmless. Every look is bounded in time and
//! in what it reads, believes nothing that a repository says of itself, and sends nothing that
//! could cost something. What is broken is a finding and stops no other look.

mod agents;
pub mod fix;
mod hooks;
mod keys;
mod machine;
mod model;
mod refs;
mod room;
mod sessions;
mod settings;
mod stray;
mod worktrees;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::config::error::ConfigError;
use crate::config::layer::{self, Layer};
use crate::config::settings::Settings;
use crate::git::open::OpenError;
use crate::text::shell_word::shell_word;
use crate::text::visible::visible;
use crate::workflow::project::{Project, ProjectOptions, UserFolders};
use fix::Repair;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HealthState {
    /// As it should be.
    Ok,
    /// Worth knowing, and harmless.
    Note,
    /// It can do harm, or something does not work as well as it could.
    Warning,
    /// Something does not work, or is exposed.
    Problem,
}

/// What was found of one thing.
#[derive(Debug, Clone, Serialize)]
pub struct HealthCheck {
    /// What it belongs to.
    pub group: &'static str,
    /// What was looked at.
    pub name: &'static str,
    /// How bad it is.
    pub state: HealthState,
    /// What is so, and why that matters.
    pub reason: String,
    /// What fixes it: mostly a command.
    pub remedy: Option<String>,
    /// Whether `--fix` does that.
    pub fixable: bool,
    /// How.
    #[serde(skip)]
    repair: Option<Repair>,
}

impl HealthCheck {
    /// Makes a check; its group is that of the looks that it is among.
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

    /// Says that something is as it should be.
    fn ok(name: &'static str, reason: impl Into<String>) -> HealthCheck {
        HealthCheck::new(name, HealthState::Ok, reason)
    }

    /// Says something that is worth knowing.
    fn note(name: &'static str, reason: impl Into<String>) -> HealthCheck {
        HealthCheck::new(name, HealthState::Note, reason)
    }

    /// Warns.
    fn warning(name: &'static str, reason: impl Into<String>) -> HealthCheck {
        HealthCheck::new(name, HealthState::Warning, reason)
    }

    /// Says that something is wrong.
    fn problem(name: &'static str, reason: impl Into<String>) -> HealthCheck {
        HealthCheck::new(name, HealthState::Problem, reason)
    }

    /// Says what fixes it.
    fn remedy(mut self, remedy: impl Into<String>) -> HealthCheck {
        self.remedy = Some(remedy.into());
        self
    }

    /// Says that it can be fixed here.
    fn repair(mut self, repair: Repair) -> HealthCheck {
        self.fixable = true;
        self.repair = Some(repair);
        self
    }
}

/// What is looked at: a machine, and a repository if there is one.
pub struct Patient {
    /// The folder in use.
    folder: PathBuf,
    /// Where the user's things are.
    places: UserFolders,
    /// The settings that hold.
    settings: Settings,
    /// What is wrong with them, so that the defaults hold.
    mistake: Option<anyhow::Error>,
    /// The project, or why there is none.
    project: Result<Project, OpenError>,
}

impl Patient {
    /// Opens what can be opened.
    ///
    /// # Errors
    /// A setting of this very call is wrong.
    pub fn admit(
        folder: &Path,
        places: UserFolders,
        wanted: ProjectOptions,
    ) -> anyhow::Result<Patient> {
        let opened = Project::open_ailing(folder, &places, &wanted);
        let (project, settings, mistake) = match opened {
            Ok((project, mistake)) => {
                let settings = project.settings.clone();
                (Ok(project), settings, mistake)
            }
            Err(error) => {
                let (settings, mistake) = users_settings(&places, &wanted);
                (Err(error), settings, mistake)
            }
        };

        let is_of_call = |error: &ConfigError| error.is_of_call();
        match mistake {
            Some(error) if error.downcast_ref().is_some_and(is_of_call) => Err(error),
            mistake => Ok(Patient {
                folder: folder.to_owned(),
                places,
                settings,
                mistake,
                project,
            }),
        }
    }

    /// Looks at everything, group by group.
    pub fn examine(&self) -> Vec<HealthCheck> {
        // It may take its time, while the others look.
        let reached = model::begin(self);
        let looks: [(&'static str, Vec<HealthCheck>); 6] = [
            ("machine", machine::look(self)),
            ("settings", settings::look(self)),
            ("git", refs::look(self)),
            ("worktrees", worktrees::look(self)),
            ("sessions", sessions::look(self)),
            ("agents", agents::look(self)),
        ];
        let mut checks = Vec::new();

        for (group, found) in looks {
            checks.extend(in_group(group, found));
            if group == "settings" {
                checks.extend(in_group("model", model::look(self, &reached)));
            }
        }
        checks
    }
}

/// Puts checks into a group, the worst first.
fn in_group(group: &'static str, mut found: Vec<HealthCheck>) -> Vec<HealthCheck> {
    found.sort_by_key(|check| std::cmp::Reverse(check.state));
    for check in &mut found {
        check.group = group;
    }
    found
}

/// Returns the settings of the user, where there is no project.
fn users_settings(
    places: &UserFolders,
    wanted: &ProjectOptions,
) -> (Settings, Option<anyhow::Error>) {
    let read = || {
        let user = Layer::read(&places.config_file)?;
        let call = Layer::from_pairs(crate::config::error::CALL, &wanted.settings)?;
        layer::merge(&[user, call])
    };
    match read() {
        Ok(settings) => (settings, None),
        Err(error) => (Settings::default(), Some(error.into())),
    }
}

/// Returns a path as one word of a command line.
fn path_word(path: &Path) -> String {
    shell_word(path.as_os_str().as_encoded_bytes())
}

/// Returns a path as it is shown.
fn shown(path: &Path) -> String {
    visible(&path.display().to_string()).into_owned()
}
