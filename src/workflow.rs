//! Workflows: one module for each thing that a user does. They neither parse arguments nor print.
//!
//! Shared services have modules of their own: [`context`] assembles the model's input, [`model`]
//! chooses and asks models, [`validation`] validates plans, [`confine`] builds sandbox policies.
//! The user is a `&mut dyn user::User`, so that workflows run the same in tests, in CI and in a
//! terminal.

pub mod act;
pub mod archive;
pub mod ask;
pub mod bisect;
pub mod change;
pub mod compare;
pub mod confine;
pub mod context;
pub mod conversation;
pub mod damage;
pub mod demo;
pub mod doctor;
pub mod dry_run;
pub mod execute;
pub mod fetch;
pub mod gc;
pub mod hooks;
pub mod land;
pub mod lifecycle;
pub mod model;
pub mod open_session;
pub mod overlap;
pub mod pick;
pub mod plan;
pub mod push;
pub mod race;
pub mod record;
pub mod rerun;
pub mod restore;
pub mod resume;
pub mod retry;
pub mod setup;

mod trial;
pub mod trust;
pub mod user;
pub mod validation;
pub mod verify;
