//! The user's own folders, and the configuration file among them. They are no project's, and need
//! not be there.

use std::path::PathBuf;

use crate::config::error::ConfigError;
use crate::config::layer::Layer;

/// Where the user keeps what is not a project's.
#[derive(Debug, Clone)]
pub struct UserFolders {
    /// The home directory.
    pub home: Option<PathBuf>,
    /// `$XDG_CONFIG_HOME/teddy`
    pub config: PathBuf,
    /// The user's configuration file.
    pub config_file: PathBuf,
    /// Whether `TEDDY_CONFIG` names that file: then it has to be there.
    pub config_is_named: bool,
    /// `$XDG_CACHE_HOME/teddy`
    pub cache: PathBuf,
}

impl UserFolders {
    /// Reads the user's configuration file.
    ///
    /// # Errors
    /// Where it cannot be read, or was named and is not there.
    pub fn settings(&self) -> Result<Layer, ConfigError> {
        match self.config_is_named {
            true => Layer::read_named(&self.config_file),
            false => Layer::read(&self.config_file),
        }
    }
}
