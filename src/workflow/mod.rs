//! One file for each thing that a user does; no argument parsing, no printing.
//!
//! What several of them need has a room of its own: [`context`] is what the model is given,
//! [`model`] is who is asked, [`judge`] is whether a plan can run, [`confine`] is how its commands
//! do.
//!
//! The person is `&mut dyn user::User`, so that every workflow runs in a test, in CI and at a
//! terminal alike.

pub mod act;
pub mod adopt;
pub mod agent;
pub mod archive;
pub mod ask;
pub mod bisect;
pub mod blame;
pub mod branch;
pub mod carry;
pub mod chains;
pub mod change;
pub mod compare;
pub mod confine;
pub mod context;
pub mod demo;
pub mod doctor;
pub mod dry_run;
pub mod du;
pub mod execute;
pub mod fetch;
pub mod find;
pub mod gc;
pub mod hinted;
pub mod history;
pub mod hooks;
pub mod judge;
pub mod land;
pub mod log;
pub mod model;
pub mod new;
pub mod notice;
pub mod paths;
pub mod pick;
pub mod plan;
pub mod project;
pub mod push;
pub mod race;
pub mod record;
pub mod replay;
pub mod restore;
pub mod resume;
pub mod retry;
pub mod setup;
pub mod sign;
pub mod sum;
pub mod summary;
mod trial;
pub mod trust;
pub mod user;
pub mod verify;
pub mod view;
