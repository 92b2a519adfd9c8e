//! Landing: commits that git itself makes for the user, on a branch of theirs.
//!
//! The one part of TeDDy that runs the user's hooks, asks for their signing key and writes one of
//! their branches and their index. The commit is made in a scratch worktree, so that hooks see and
//! change exactly what is committed; the branch moves by compare-and-swap once everything else is
//! ready, and the index with it.

pub mod branch;
pub mod hooks;
pub mod index;
mod links;
pub mod scratch;
