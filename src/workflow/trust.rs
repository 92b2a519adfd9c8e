//! `trust`: shows what a repository's `.teddy/` contains, or how it changed since it was trusted,
//! and remembers the decision.

use crate::config::trust::{Trust, TrustRecord};
use crate::text::diff::unified;
use crate::text::sanitize::{sanitize_block, sanitize_line};
use crate::workflow::project::Project;

/// What to decide about.
pub struct TrustProposal {
    /// The contents, or a diff to the trusted ones.
    pub text: String,
    /// Exactly this is already trusted.
    pub is_trusted: bool,
    /// No file requires trust.
    pub is_empty: bool,
}

/// Returns what trust would allow.
pub fn trust_proposal(project: &Project) -> anyhow::Result<TrustProposal> {
    let now = &project.proposed;
    let record = trust_store(project).record();
    let mut text = String::new();
    let names: std::collections::BTreeSet<&String> =
        now.keys().chain(record.files.keys()).collect();

    for name in names {
        let (old, new) = (record.files.get(name), now.get(name));
        let diff = match (old, new) {
            (Some(old), Some(new)) if old == new => continue,
            (None, Some(new)) => format!(
                "--- .teddy/{}\n{}\n",
                sanitize_line(name),
                sanitize_block(new)
            ),
            (Some(old), new) => sanitize_block(&unified(
                old,
                new.map_or("", String::as_str),
                ("trusted", &sanitize_line(name)),
            ))
            .into_owned(),
            (None, None) => continue,
        };
        text.push_str(&diff);
    }

    Ok(TrustProposal {
        text,
        is_trusted: record.covers(now),
        is_empty: now.is_empty(),
    })
}

/// Trusts exactly what [`trust_proposal`] showed, even if the files changed since, or revokes all trust.
pub fn remember_trust(project: &Project, trusted: bool) -> anyhow::Result<()> {
    let record = if trusted {
        TrustRecord {
            files: project.proposed.clone(),
        }
    } else {
        TrustRecord::default()
    };
    Ok(trust_store(project).remember(&record)?)
}

fn trust_store(project: &Project) -> Trust {
    Trust::of(&project.user_dirs.config, &project.repository.common_dir())
}
