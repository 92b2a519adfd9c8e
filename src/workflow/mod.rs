//! One file for each thing that a user does; no argument parsing, no printing.
//!
//! The person is `&mut dyn user::User`, so that every workflow runs in a test, in CI and at a
//! terminal alike.

pub mod adopt;
pub mod asking;
pub mod bisect;
pub mod blame;
pub mod branch;
pub mod carry;
pub mod chains;
pub mod change;
pub mod compare;
pub mod confine;
pub mod context;
pub mod cost_budget;
pub mod demo;
pub mod dry_run;
pub mod du;
pub mod execute;
pub mod facts;
pub mod find;
pub mod gather;
pub mod gc;
pub mod hinted;
pub mod history;
pub mod judge;
pub mod land;
pub mod lists;
pub mod log;
pub mod look;
pub mod lookup;
pub mod message;
pub mod models;
pub mod modified;
pub mod new;
pub mod pages;
pub mod paths;
pub mod pick;
pub mod pipelines;
pub mod plan;
pub mod plan_source;
pub mod project;
pub mod replay;
pub mod requests;
pub mod restore;
pub mod resume;
pub mod retry;
mod teddy_files;
pub mod tools;
mod trial;
pub mod trust;
pub mod turn_input;
pub mod user;
pub mod verify;
