//! The repository, and the only user of gix; knows nothing of sessions.
//!
//! Nothing here but [`land`] runs a hook, asks for a signing key, or writes a branch of the user's or
//! their index; nothing at all writes HEAD, stash or config. Objects are written before the ref that
//! reaches them.

pub mod absent;
pub mod batch;
pub mod blame;
pub mod command;
pub mod damaged;
pub mod diff;
pub mod diffstat;
pub mod durable;
pub(in crate::git) mod filter;
pub mod fingerprint;
mod fresh;
pub mod history;
pub mod hold;
pub mod id;
pub mod ignore;
pub mod incoming;
pub mod irregular;
pub mod land;
mod large;
pub mod merge;
pub mod object;
pub mod open;
pub mod pack;
pub(in crate::git) mod place;
pub mod planted;
pub mod publish;
pub mod read;
pub mod refs;
pub mod repository;
pub mod revision;
mod sink;
pub mod snapshot;
pub mod sound;
pub mod spread;
pub mod torn;
pub(in crate::git) mod version;
pub mod whole;
pub mod worktree;

use absent::MissingObject;

/// Turns gix's errors into ours, with what was being done.
pub(crate) trait During<T> {
    /// Says what was being done when it failed.
    fn during(self, what: impl std::fmt::Display) -> anyhow::Result<T>;
}

impl<T, E: Into<gix::Error>> During<T> for Result<T, E> {
    fn during(self, what: impl std::fmt::Display) -> anyhow::Result<T> {
        self.map_err(|error| {
            let error: gix::Error = error.into();
            let text = format!("{error:#}");
            let missing = MissingObject::named_in(&text).filter(|_| error.is_not_found());
            missing
                .map_or_else(|| anyhow::anyhow!("{text}"), anyhow::Error::new)
                .context(what.to_string())
        })
    }
}
