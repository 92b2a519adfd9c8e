//! Opens a project despite invalid settings, for `doctor`.

use std::path::Path;

use super::{Hands, Project, ProjectOptions, UserFolders, proposed};
use crate::config::settings::Settings;
use crate::git::open::OpenError;
use crate::git::repository::Repository;

impl Project {
    /// Opens a project, possibly bare. With invalid settings it uses the defaults and also returns
    /// the error.
    pub fn open_ailing(
        folder: &Path,
        places: &UserFolders,
        wanted: &ProjectOptions,
    ) -> Result<(Project, Option<anyhow::Error>), OpenError> {
        let find = || Repository::discover_record(folder, places.home.as_deref());
        match Project::of(find()?, places.clone(), wanted.clone()) {
            Ok(project) => Ok((project, None)),
            Err(mistake) => {
                let project = Project::without_settings(find()?, places, wanted);
                Ok((project, Some(mistake)))
            }
        }
    }

    fn without_settings(
        repository: Repository,
        places: &UserFolders,
        wanted: &ProjectOptions,
    ) -> Project {
        Project {
            proposed: proposed(&repository),
            repository,
            settings: Settings::default(),
            trusted: false,
            ignored: Vec::new(),
            places: places.clone(),
            hands: Hands::default(),
            wanted: wanted.session.clone(),
        }
    }
}
