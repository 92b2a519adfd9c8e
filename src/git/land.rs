//! Landing: commits that git itself makes for the user, on a branch of theirs.
//!
//! The one part of TeDDy that runs the user's hooks, asks for their signing key and moves one of their
//! branches and their index. git commits in the user's checkout if the files there are what is to be
//! committed, so that a landing behaves like the same commit made by hand; otherwise in a separate
//! directory with the user's git directory.

pub mod branch;
pub mod commit;
pub mod index;

pub mod shared;
