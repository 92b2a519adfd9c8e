//! A mistake in a configuration, and what helps.

/// What stands for the settings of one call.
pub const CALL: &str = "-c";
/// What stands for the settings in git's configuration.
pub const GIT: &str = "git config";

/// A mistake in a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(std::io::Error),
    /// The text is wrong.
    #[error("{origin}: {message}")]
    Wrong {
        /// The file, or what stands for it.
        origin: String,
        /// What is wrong.
        message: String,
    },
    /// A setting that nobody knows.
    #[error("{origin}: unknown setting `{name}`")]
    Unknown {
        /// The file and its line, or what stands for it.
        origin: String,
        /// The setting, dotted.
        name: String,
        /// The one that was probably meant.
        meant: Option<String>,
    },
}

impl ConfigError {
    /// Returns what the user can do about it.
    pub fn hint(&self) -> String {
        if let Some(meant) = self.meant() {
            return meant;
        }

        let origin = match self {
            ConfigError::Wrong { origin, .. } | ConfigError::Unknown { origin, .. } => {
                origin.as_str()
            }
            ConfigError::Read(_) => "",
        };
        match (origin.strip_prefix(GIT), self) {
            (Some(_), ConfigError::Unknown { name, .. }) => {
                format!("`git config --unset teddy.{name}` removes it")
            }
            (Some(key), _) => format!("`git config --unset teddy.{}` removes it", key.trim()),
            (None, _) if origin.contains("/.teddy/") => {
                "correct the file; every command reads it".to_owned()
            }
            (None, _) => {
                "correct the file; `TEDDY_CONFIG=/dev/null teddy <command>` runs without it"
                    .to_owned()
            }
        }
    }

    /// Asks whether another setting was meant, if one is like it.
    pub fn meant(&self) -> Option<String> {
        match self {
            ConfigError::Unknown { meant, .. } => meant
                .as_ref()
                .map(|meant| format!("did you mean `{meant}`?")),
            _ => None,
        }
    }

    /// Tells whether the settings of this call are wrong.
    pub fn is_of_call(&self) -> bool {
        matches!(
            self,
            ConfigError::Wrong { origin, .. } | ConfigError::Unknown { origin, .. }
                if origin.split(' ').next() == Some(CALL)
        )
    }
}
