//! Opens a project despite invalid settings, for `doctor`.

use std::path::Path;

use super::{ManualIo, Project, ProjectOptions, UserDirs, proposed};
use crate::config::settings::Settings;
use crate::git::open::OpenError;
use crate::git::repository::Repository;

impl Project {
    /// Opens a project, possibly bare. With invalid settings it uses the defaults and also returns
    /// the error.
    pub fn open_degraded(
        dir: &Path,
        user_dirs: &UserDirs,
        options: &ProjectOptions,
    ) -> Result<(Project, Option<anyhow::Error>), OpenError> {
        let find = || Repository::discover_record(dir, user_dirs.home.as_deref());
        match Project::of(find()?, user_dirs.clone(), options.clone()) {
            Ok(project) => Ok((project, None)),
            Err(mistake) => {
                let project = Project::without_settings(find()?, user_dirs, options);
                Ok((project, Some(mistake)))
            }
        }
    }

    fn without_settings(
        repository: Repository,
        user_dirs: &UserDirs,
        options: &ProjectOptions,
    ) -> Project {
        Project {
            proposed: proposed(&repository),
            repository,
            settings: Settings::default(),
            trusted: false,
            ignored: Vec::new(),
            user_dirs: user_dirs.clone(),
            manual_io: ManualIo::default(),
            requested_session: options.session.clone(),
        }
    }
}
