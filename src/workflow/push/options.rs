//! What is wanted of a push.

use crate::config::settings::{PushMode, Settings};
use crate::session::name::SessionName;
use crate::text::leak::{LeakKind, LeakKinds};

use super::findings::LeakFinding;

/// What is wanted of a push.
#[derive(Debug, Clone, Default)]
pub struct PushOptions {
    /// The sessions; the one in use if none is named.
    pub sessions: Vec<SessionName>,
    /// The remote.
    pub remote: Option<String>,
    /// Whether the code goes with them.
    pub mode: Option<PushMode>,
    /// Findings that may go: names, fronts of them, kinds.
    pub allow: Vec<String>,
    /// Whether what is found is taken out of the copy that is sent.
    pub redact: bool,
    /// The name on the remote.
    pub target: Option<SessionName>,
}

impl PushOptions {
    /// Returns whether the user lets a finding go.
    pub(super) fn allows(&self, settings: &Settings, finding: &LeakFinding) -> bool {
        let kinds = settings.push.allow.iter().map(|kind| kind.name());
        let mut names = self.allow.iter().map(String::as_str).chain(kinds);
        names.any(|name| finding.is_named(name))
    }

    /// Returns the kinds that are taken out, if that is wanted.
    pub(super) fn redacted(&self, settings: &Settings) -> Option<LeakKinds> {
        let is_allowed = |kind: LeakKind| {
            settings.push.allow.contains(&kind) || self.allow.iter().any(|name| name == kind.name())
        };
        self.redact.then(|| LeakKinds {
            keys: !is_allowed(LeakKind::Keys),
            paths: !is_allowed(LeakKind::Paths),
        })
    }
}
