//! End-to-end tests that take long: random histories, storms, fault matrices, power cuts, a
//! browser, packages, recordings. Run with `cargo test --test worlds`; a plain `cargo test` leaves
//! them out.
#![allow(clippy::unwrap_used, reason = "a test fails where it must")]

mod cli;
mod crash;
mod files;
mod first_change;
mod hostile;
mod house;
mod installing;
mod land;
mod large;
mod packages;
mod power;
mod recording;
mod replay;
mod share;
#[allow(dead_code, reason = "each of the two targets uses a part of it")]
#[path = "../it/support.rs"]
mod support;
mod web_browser;
mod worktree;

use support::{fake, killed_repo, plans, random_kills, screen, scripted_agent};

/// `true` in the target `worlds`, in which shared modules do more runs.
const WORLDS: bool = true;
