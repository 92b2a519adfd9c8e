//! End-to-end tests.
#![allow(clippy::unwrap_used, reason = "a test fails where it must")]

mod agents;
mod approval;
mod bad_answers;
mod blocks;
mod change;
mod command;
mod completions;
mod concurrency;
mod context;
mod conversation;
mod crash;
mod demo;
mod disk;
mod documents;
mod drafts;
mod execute;
#[allow(dead_code, reason = "the tests of the remote model use more of it")]
mod fake;
mod faults;
mod fingerprint;
mod flushes;
mod formats;
#[path = "../storm/gale.rs"]
mod gale;
mod gc;
mod history;
mod hostile;
mod interrupted;
mod invoke;
mod json;
mod kept;
mod large;
mod long;
mod loops;
mod merge;
mod mistakes;
mod models;
mod permissions;
mod pipeline;
mod places;
mod plan;
mod plans;
mod power;
mod preprocess;
mod promise_plan;
mod prompts;
mod publish;
mod repairs;
mod replan;
mod replay;
mod reports;
mod research;
mod restore;
mod retry;
mod review;
mod review_edits;
mod review_screens;
mod review_terminal;
#[path = "../storm/rig.rs"]
#[allow(dead_code, reason = "the storm uses more of it")]
mod rig;
mod sandbox;
mod screen;
mod sessions;
mod shell;
mod snapshot;
mod snapshot_random;
mod stack;
mod storm;
mod support;
mod theirs;
mod tidy;
mod tidy_circles;
mod tools;
mod worktree;
