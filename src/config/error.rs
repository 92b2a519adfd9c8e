//! A mistake in a configuration, and what helps.

use crate::text::shell_word::shell_word;

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

/// Returns what takes a setting out of git's configuration.
fn unset(name: &str) -> String {
    let key = shell_word(format!("teddy.{name}"));
    format!("`git config --unset {key}` removes it")
}

impl ConfigError {
    /// Returns what the user can do about it.
    pub fn hint(&self) -> String {
        let origin = match self {
            ConfigError::Wrong { origin, .. } | ConfigError::Unknown { origin, .. } => {
                origin.as_str()
            }
            ConfigError::Read(_) => "",
        };
        let meant = self.meant();
        match (origin.strip_prefix(GIT), self) {
            (Some(_), ConfigError::Unknown { name, .. }) => {
                let meant = meant.map(|meant| format!("{meant} ")).unwrap_or_default();
                meant + &unset(name)
            }
            (Some(key), _) => unset(key.trim()),
            (None, _) if meant.is_some() => meant.unwrap_or_default(),
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
            ConfigError::Unknown { origin, meant, .. } => meant.as_ref().map(|meant| {
                let meant = match origin == GIT {
                    true => in_git(meant),
                    false => meant.clone(),
                };
                format!("did you mean `{meant}`?")
            }),
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

/// Returns the name that a setting has in git's configuration: `teddy.onFailure` for `on_failure`.
fn in_git(setting: &str) -> String {
    let (section, name) = match setting.rsplit_once('.') {
        Some((section, name)) => (format!("{section}."), name),
        None => (String::new(), setting),
    };
    let mut words = name.split('_');
    let mut spelled = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        spelled.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        spelled.push_str(letters.as_str());
    }

    format!("teddy.{section}{spelled}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_has_a_name_that_git_takes() {
        let check = |setting: &str, expected: &str| assert_eq!(in_git(setting), expected);
        check("model", "teddy.model");
        check("on_failure", "teddy.onFailure");
        check("snapshot.max_new_files", "teddy.snapshot.maxNewFiles");
        check("models.my_own.base_url", "teddy.models.my_own.baseUrl");
    }
}
