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

use super::model_env::Variable;
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
pub struct ProbeTargets<'a> {
    /// The current repository. Programs inside it are never run.
    pub repository: Option<&'a Path>,
    /// Servers to query.
    pub servers: Vec<ServerAddress>,
    /// Enables the search for programs.
    pub programs: bool,
}

impl FoundModels {
    /// Runs all probes in parallel.
    pub fn discover(targets: &ProbeTargets<'_>, variable: &Variable) -> FoundModels {
        let installed = if targets.programs {
            program::on_path(targets.repository)
        } else {
            Vec::new()
        };
        let keys = service::keys(variable);

        let (programs, servers) = join_both(
            || parallel_map(&installed, |(entry, path)| program::ask(entry, path)),
            || parallel_map(&targets.servers, server::ask),
        );
        FoundModels {
            keys,
            programs,
            servers: servers.into_iter().flatten().collect(),
        }
    }
}
