//! Landing: commits that git itself makes for the user, on one of their branches.
//!
//! Only this part of TeDDy runs the user's commit hooks, asks for their signing key and moves their
//! branch and index. git commits in the user's checkout if the files there are exactly what is
//! committed, so that a landing behaves like a commit by hand; otherwise in a separate directory
//! with the user's git directory.

pub mod branch;
pub mod commit;
pub mod index;

pub mod shared;
