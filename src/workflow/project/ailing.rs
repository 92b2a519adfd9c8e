//! A project in which something is wrong, opened to be looked at.

use std::path::Path;

use super::{Hands, Project, ProjectOptions, UserFolders, proposed};
use crate::config::settings::Settings;
use crate::git::open::OpenError;
use crate::git::repository::Repository;

impl Project {
    /// Opens the project of a folder to see what is wrong with it: a bare repository will do, and
    /// where a setting is wrong the defaults hold, and the mistake stands beside them.
    ///
    /// # Errors
    /// There is no fit repository.
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

    /// Returns the project of a repository whose settings cannot be read.
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
