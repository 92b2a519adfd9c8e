//! End-to-end tests. `tests/worlds` has what takes long.
#![allow(clippy::unwrap_used, reason = "a test fails where it must")]

mod agents;
mod cli;
mod crash;
mod docs;
mod files;
mod hostile;
mod house;
mod land;
mod look;
mod review;
mod share;
#[allow(dead_code, reason = "each of the two targets uses a part of it")]
mod support;
mod turn;
mod upkeep;
mod worktree;

use support::{fake, killed_repo, machine, plans, random_kills, screen, scripted_agent, server};

/// Whether this is the target of long runs.
const WORLDS: bool = false;
