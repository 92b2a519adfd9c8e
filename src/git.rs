//! Access to the repository, and the only user of gix. Does not know about sessions.
//!
//! Only [`land`] and [`remote`] run hooks. Only [`land`] writes a branch or the user's index. Only
//! these and [`sign`] use a signing key. No code here writes HEAD, the stash or the user's
//! configuration. Objects are written before the ref that reaches them.

pub mod blame;
pub mod bundle;
mod call_settings;
pub mod check_objects;
pub mod command;
pub mod diff;

pub(in crate::git) mod filter;
pub mod fingerprint;
pub mod history;
pub mod ignore;
pub mod incoming;
pub mod intake;
pub mod irregular;
pub mod keep;
pub mod land;
pub mod merge;
pub mod object;
pub mod open;
pub mod parallel;
pub(in crate::git) mod path_handle;
pub mod paths;
pub mod private_files;
pub mod publish;
pub mod reclean;
pub mod refs;
pub mod remote;
pub mod repository;

#[cfg(test)]
mod sample;
mod scratch;
pub mod sign;
pub mod snapshot;
pub mod sparse;
pub(in crate::git) mod stat;
mod user_git;
pub mod version;
pub mod worktree;

use std::io::ErrorKind;
use std::path::Path;

use anyhow::Context as _;

use object::absent::MissingObject;

/// Converts gix's errors, adding the failed operation.
pub(crate) trait During<T> {
    fn during(self, action: impl std::fmt::Display) -> anyhow::Result<T>;
}

impl<T, E: Into<gix::Error>> During<T> for Result<T, E> {
    fn during(self, action: impl std::fmt::Display) -> anyhow::Result<T> {
        self.map_err(|error| {
            let error: gix::Error = error.into();
            let text = format!("{error:#}");
            let missing = MissingObject::in_message(&text).filter(|_| error.is_not_found());
            missing
                .map_or_else(|| anyhow::anyhow!("{text}"), anyhow::Error::new)
                .context(action.to_string())
        })
    }
}

pub(in crate::git) fn remove_if_exists(path: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing `{}`", path.display()))
        }
        _ => Ok(()),
    }
}
