//! End-to-end tests. Tests that take long are in `tests/worlds`.
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

/// `true` in the target `worlds`, in which shared modules do more runs.
const WORLDS: bool = false;
