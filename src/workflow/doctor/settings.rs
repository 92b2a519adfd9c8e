//! Settings: whether they can be read, what of a repository's is not trusted, and keys in them.

use super::{HealthCheck, Patient, keys};
use crate::config::error::ConfigError;
use crate::git::open::OpenError;
use crate::workflow::project::Project;

/// Looks at the settings.
pub(super) fn look(patient: &Patient) -> Vec<HealthCheck> {
    let mut checks = vec![configuration(patient)];
    checks.extend(match &patient.project {
        Ok(project) => (!project.repository.is_bare()).then(|| trust(project)),
        Err(error) => Some(repository(error)),
    });
    checks.extend(keys::look(patient));
    checks
}

/// Looks at whether they can be read.
fn configuration(patient: &Patient) -> HealthCheck {
    let Some(mistake) = &patient.mistake else {
        return HealthCheck::ok("configuration", "the configuration can be read");
    };
    let hint = mistake.downcast_ref().map(ConfigError::hint);
    let check = HealthCheck::problem("configuration", format!("{mistake:#}"));
    match hint {
        Some(hint) => check.remedy(hint),
        None => check,
    }
}

/// Says why there is no repository.
fn repository(error: &OpenError) -> HealthCheck {
    let check = match error {
        OpenError::None(_) => HealthCheck::note(
            "repository",
            format!("{error}: only what does not depend on one was looked at"),
        ),
        _ => HealthCheck::problem("repository", error.to_string()),
    };
    match error {
        OpenError::None(_) => check.remedy("teddy init"),
        _ => check.remedy(error.hint()),
    }
}

/// Looks at whether what a repository sets is trusted.
fn trust(project: &Project) -> HealthCheck {
    let files = project.proposed.len();
    match (files, project.trusted, project.ignored.as_slice()) {
        (0, ..) => HealthCheck::ok("trust", "this repository sets nothing"),
        (_, true, []) => HealthCheck::ok("trust", "what this repository sets is trusted"),
        (_, true, ignored) => HealthCheck::note(
            "trust",
            format!(
                "`.teddy/config.yaml` sets what a repository may not decide, which is ignored: {}",
                listed(ignored)
            ),
        )
        .remedy("teddy trust"),
        (_, false, []) => HealthCheck::note(
            "trust",
            "what is in `.teddy/` is not trusted: prompts, pipelines and files for the model there are not used",
        )
        .remedy("teddy trust"),
        (_, false, ignored) => HealthCheck::warning(
            "trust",
            format!(
                "`.teddy/config.yaml` is not trusted, and these settings in it are ignored: {}",
                listed(ignored)
            ),
        )
        .remedy("teddy trust"),
    }
}

/// Returns the names of settings, which a repository has written.
fn listed(names: &[String]) -> String {
    let shown = names.iter().take(8).map(|name| format!("`{name}`"));
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if names.len() > 8 {
        text.push_str(&format!(" and {} more", names.len() - 8));
    }
    crate::text::visible::visible(&text).into_owned()
}
