//! Long runs in worktrees: any command in both kinds, random runs in partial ones.

#[path = "../it/worktree/overlay.rs"]
mod overlay;
#[path = "../it/worktree/partial_random.rs"]
mod partial_random;
