//! Long random runs in partial worktrees.

#[path = "../it/worktree/partial_random.rs"]
mod partial_random;
