//! End-to-end tests.
#![allow(clippy::unwrap_used, reason = "a test fails where it must")]

mod command;
mod fingerprint;
mod merge;
mod prompts;
mod publish;
mod review;
mod snapshot;
mod snapshot_random;
mod storm;
mod support;
mod worktree;
