//! Options of a push.

use crate::config::settings::{PushMode, Settings};
use crate::session::name::SessionName;
use crate::text::leak::{LeakKind, LeakKinds};

use super::findings::LeakFinding;

/// Options of a push.
#[derive(Debug, Clone, Default)]
pub struct PushOptions {
    /// Sessions; empty for the current one.
    pub sessions: Vec<SessionName>,
    /// The remote.
    pub remote: Option<String>,
    /// Record, or with code.
    pub mode: Option<PushMode>,
    /// Allowed findings: names, prefixes of names, or kinds.
    pub allow: Vec<String>,
    /// Redact findings in the pushed copy.
    pub redact: bool,
    /// Name on the remote.
    pub target: Option<SessionName>,
}

impl PushOptions {
    pub(super) fn allows(&self, settings: &Settings, finding: &LeakFinding) -> bool {
        let kinds = settings.push.allow.iter().map(|kind| kind.name());
        let mut names = self.allow.iter().map(String::as_str).chain(kinds);
        names.any(|name| finding.is_named(name))
    }

    /// The kinds to redact; `None` if redaction is not requested.
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
