//! End-to-end tests.
#![allow(clippy::unwrap_used, reason = "a test fails where it must")]

mod change;
mod command;
mod context;
mod demo;
mod execute;
mod fingerprint;
mod formats;
mod history;
mod hostile;
mod invoke;
mod merge;
mod mistakes;
mod places;
mod plan;
mod plans;
mod prompts;
mod publish;
mod repairs;
mod replan;
mod restore;
mod review;
mod sessions;
mod snapshot;
mod snapshot_random;
mod storm;
mod support;
mod theirs;
mod tidy;
mod tools;
mod worktree;
