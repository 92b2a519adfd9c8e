//! What of models is there on this machine: keys in the environment, programs on the `PATH`,
//! servers that listen here.
//!
//! Everything is looked for at once and within [`program::LIMIT`]. What a program or a server says
//! is a stranger's: it is bounded, and taken over only where it is a plain version or a plain name.

pub mod offer;
pub mod program;
pub mod server;
pub mod service;

use std::path::Path;

use program::FoundProgram;
use server::{FoundServer, ServerAddress};
use service::FoundKey;

use super::outside::Variable;
use crate::host::threads::{at_once, beside};

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundModels {
    /// The services whose key is in the environment.
    pub keys: Vec<FoundKey>,
    /// The programs.
    pub programs: Vec<FoundProgram>,
    /// The servers that answer.
    pub servers: Vec<FoundServer>,
}

/// Where is looked.
#[derive(Debug, Clone, Default)]
pub struct LookPlaces<'a> {
    /// The repository in use: what lies in it is never run.
    pub repository: Option<&'a Path>,
    /// The servers that are asked.
    pub servers: Vec<ServerAddress>,
    /// Whether programs are looked for.
    pub programs: bool,
}

impl FoundModels {
    /// Looks everywhere at once.
    pub fn look(places: &LookPlaces<'_>, variable: &Variable) -> FoundModels {
        let found = if places.programs {
            program::on_path(places.repository)
        } else {
            Vec::new()
        };
        let keys = service::keys(variable);

        let (programs, servers) = beside(
            || at_once(&found, |(known, path)| program::ask(known, path)),
            || at_once(&places.servers, server::ask),
        );
        FoundModels {
            keys,
            programs,
            servers: servers.into_iter().flatten().collect(),
        }
    }
}
