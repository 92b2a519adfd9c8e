//! Discovers models on this machine: keys in the environment, programs in `PATH`, local servers.
//!
//! All probes run in parallel, within [`program::LIMIT`]. Replies of programs and servers are
//! untrusted: they are size-limited and used only if they are plain versions or names.

pub mod offer;
pub mod program;
pub mod server;
pub mod service;

use std::path::Path;

use program::FoundProgram;
use server::{FoundServer, ServerAddress};
use service::FoundKey;

use super::outside::Variable;
use crate::host::threads::{join_both, parallel_map};

/// Everything that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundModels {
    /// Services whose key is in the environment.
    pub keys: Vec<FoundKey>,
    /// Installed programs.
    pub programs: Vec<FoundProgram>,
    /// Servers that answered.
    pub servers: Vec<FoundServer>,
}

/// Places to probe.
#[derive(Debug, Clone, Default)]
pub struct LookPlaces<'a> {
    /// The current repository. Programs inside it are never run.
    pub repository: Option<&'a Path>,
    /// Servers to query.
    pub servers: Vec<ServerAddress>,
    /// Enables the search for programs.
    pub programs: bool,
}

impl FoundModels {
    /// Runs all probes in parallel.
    pub fn look(places: &LookPlaces<'_>, variable: &Variable) -> FoundModels {
        let found = if places.programs {
            program::on_path(places.repository)
        } else {
            Vec::new()
        };
        let keys = service::keys(variable);

        let (programs, servers) = join_both(
            || parallel_map(&found, |(known, path)| program::ask(known, path)),
            || parallel_map(&places.servers, server::ask),
        );
        FoundModels {
            keys,
            programs,
            servers: servers.into_iter().flatten().collect(),
        }
    }
}
