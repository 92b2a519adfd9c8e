//! TeDDy: git-native sessions for AI-assisted coding.
//!
//! A session is a chain of turns, a turn is a commit. The order of the modules below is the
//! law of dependency: a module uses only those that are declared above it.

pub mod text;

pub mod host;

pub mod git;

pub mod config;

pub mod model;

pub mod plan;

pub mod session;

pub mod change;

pub mod workspace;

pub mod project;

pub mod query;

pub mod workflow;

pub mod ui;

pub mod cli;
