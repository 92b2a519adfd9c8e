//! End-to-end tests. Tests that take long are in `tests/worlds`.
#![allow(clippy::unwrap_used, reason = "a test fails where it must")]

mod agents;
mod agents_walkthrough;
mod approval;
mod archive;
mod archive_walkthrough;
mod ask;
mod at_work;
mod bad_answers;
mod blame;
mod blocks;
mod browse;
mod catalogue;
mod change;
mod ci;
mod command;
mod completions;
mod concurrency;
mod context;
mod conversation;
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
mod take;
mod theirs;
mod tidy;
mod tidy_circles;
mod timeline;
mod tokens;
mod tools;
mod travel_random;
mod trials;
mod undo_redo;
mod unsound_trees;
mod upgrade;
mod verify;
mod web;
mod web_browser;
mod web_files;
mod worktree;

use support::{fake, killed_repo, machine, plans, random_kills, screen, scripted_agent, server};

/// `true` in the target `worlds`, in which shared modules do more runs.
const WORLDS: bool = false;
