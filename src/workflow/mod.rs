//! One file for each thing that a user does; no argument parsing, no printing.
//!
//! The person is `&mut dyn user::User`, so that every workflow runs in a test, in CI and at a terminal alike.

pub mod user;
