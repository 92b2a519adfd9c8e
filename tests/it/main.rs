//! End-to-end tests. `tests/worlds` has what takes long.
#![allow(clippy::unwrap_used, reason = "a test fails where it must")]

mod agents;
mod cli;
mod crash;
mod data;
mod demo;
mod disk;
mod doctor;
mod documents;
mod drafts;
mod encodings;
mod every_repository;
mod execute;
#[allow(dead_code, reason = "the tests of the remote model use more of it")]
mod fake;
mod faults;
mod fetch;
mod filling;
mod filters;
mod find;
mod fingerprint;
mod first_change;
mod first_use;
mod flushes;
mod formats;
#[path = "../storm/gale.rs"]
mod gale;
mod gc;
mod hand;
mod history;
mod hooks;
mod hostile;
mod house;
mod land;
mod look;
mod review;
mod share;
#[allow(dead_code, reason = "each of the two targets uses a part of it")]
mod support;
mod take;
mod theirs;
mod tidy;
mod tidy_circles;
mod timeline;
mod tokens;
mod tools;
mod travel_random;
mod trials;
mod unreadable;
mod upgrade;
mod verify;
mod web;
mod web_browser;
mod web_files;
mod worktree;

use support::{fake, killed_repo, machine, plans, random_kills, screen, scripted_agent, server};

/// Whether this is the target of long runs.
const WORLDS: bool = false;
