//! Errors in a configuration, with hints.

use crate::text::shell_word::shell_word;

pub const CALL: &str = "-c";
pub const GIT: &str = "git config";

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error(transparent)]
    Read(std::io::Error),
    #[error("{origin}: {message}")]
    Wrong {
        /// The file, [`CALL`] or [`GIT`], with details.
        origin: String,
        message: String,
    },
    #[error("{origin}: unknown setting `{name}`")]
    Unknown {
        /// The file and line, [`CALL`] or [`GIT`].
        origin: String,
        name: String,
        suggestion: Option<String>,
    },
}

fn unset(name: &str) -> String {
    let key = shell_word(format!("teddy.{name}"));
    format!("`git config --unset {key}` removes it")
}

impl ConfigError {
    pub fn hint(&self) -> String {
        let origin = match self {
            ConfigError::Wrong { origin, .. } | ConfigError::Unknown { origin, .. } => {
                origin.as_str()
            }
            ConfigError::Read(_) => "",
        };
        let suggestion = self.suggestion();
        match (origin.strip_prefix(GIT), self) {
            (Some(_), ConfigError::Unknown { name, .. }) => {
                let suggestion = suggestion
                    .map(|suggestion| format!("{suggestion} "))
                    .unwrap_or_default();
                suggestion + &unset(name)
            }
            (Some(key), _) => unset(key.trim()),
            (None, _) if suggestion.is_some() => suggestion.unwrap_or_default(),
            (None, _) if origin.contains("/.teddy/") => {
                "correct the file; only commands that run and record nothing do without it"
                    .to_owned()
            }
            (None, _) => {
                "correct the file; `TEDDY_CONFIG=/dev/null teddy <command>` runs without it"
                    .to_owned()
            }
        }
    }

    /// `did you mean ..?`
    pub fn suggestion(&self) -> Option<String> {
        match self {
            ConfigError::Unknown {
                origin, suggestion, ..
            } => suggestion.as_ref().map(|suggestion| {
                let suggestion = match origin == GIT {
                    true => in_git(suggestion),
                    false => suggestion.clone(),
                };
                format!("did you mean `{suggestion}`?")
            }),
            _ => None,
        }
    }

    pub fn is_of_call(&self) -> bool {
        matches!(
            self,
            ConfigError::Wrong { origin, .. } | ConfigError::Unknown { origin, .. }
                if origin.split(' ').next() == Some(CALL)
        )
    }
}

/// `on_failure` becomes `teddy.onFailure`.
fn in_git(setting: &str) -> String {
    let (section, name) = match setting.rsplit_once('.') {
        Some((section, name)) => (format!("{section}."), name),
        None => (String::new(), setting),
    };
    let mut parts = name.split('_');
    let mut spelled = parts.next().unwrap_or_default().to_owned();
    for word in parts {
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
