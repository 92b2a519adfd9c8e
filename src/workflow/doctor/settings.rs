//! Checks the settings: validity, trust in the repository's settings, and keys in them.

use super::{HealthCheck, Patient, keys};
use crate::config::error::ConfigError;
use crate::config::layer::takes_trust;
use crate::git::open::OpenError;
use crate::workflow::project::Project;

pub(super) fn run_checks(patient: &Patient) -> Vec<HealthCheck> {
    let mut checks = vec![configuration(patient)];
    checks.extend(match &patient.project {
        Ok(project) if project.repository.is_bare() => Vec::new(),
        Ok(project) => [trust(project)]
            .into_iter()
            .chain(forbidden(project))
            .collect(),
        Err(error) => vec![repository(error)],
    });
    checks.extend(keys::check_keys(patient));
    checks
}

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

fn trust(project: &Project) -> HealthCheck {
    let files = project.proposed.len();
    let waiting = ignored(project, takes_trust);
    match (files, project.trusted, waiting.as_slice()) {
        (0, ..) => HealthCheck::ok("trust", "this repository sets nothing"),
        (_, true, _) => HealthCheck::ok("trust", "what this repository sets is trusted"),
        (_, false, []) => HealthCheck::note(
            "trust",
            "what is in `.teddy/` is not trusted: prompts, pipelines and files for the model there are not used",
        )
        .remedy("teddy trust"),
        (_, false, waiting) => HealthCheck::warning(
            "trust",
            format!(
                "`.teddy/config.yaml` is not trusted, and these settings in it are ignored: {}",
                listed(waiting)
            ),
        )
        .remedy("teddy trust"),
    }
}

/// Finds settings that a repository can never set, even if trusted.
fn forbidden(project: &Project) -> Option<HealthCheck> {
    let forbidden = ignored(project, |key| !takes_trust(key));
    let check = || {
        HealthCheck::note(
            "ignored",
            format!(
                "`.teddy/config.yaml` sets what a repository may not decide, trusted or not: {}",
                listed(&forbidden)
            ),
        )
        .remedy("remove that from `.teddy/config.yaml`; your own configuration may set it")
    };
    (!forbidden.is_empty()).then(check)
}

fn ignored(project: &Project, is_kind: impl Fn(&str) -> bool) -> Vec<&String> {
    let names = project.ignored.iter();
    names.filter(|name| is_kind(name)).collect()
}

fn listed(names: &[&String]) -> String {
    let quoted = names.iter().take(8).map(|name| format!("`{name}`"));
    let mut text = quoted.collect::<Vec<_>>().join(", ");
    if names.len() > 8 {
        text.push_str(&format!(" and {} more", names.len() - 8));
    }
    // The names come from the repository and are untrusted.
    crate::text::sanitize::sanitize_line(&text).into_owned()
}
