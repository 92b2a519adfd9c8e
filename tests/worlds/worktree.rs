//! Long runs in worktrees: any command in both kinds, random runs in partial ones.

#[path = "../it/worktree/overlay_random.rs"]
mod overlay_random;
#[path = "../it/worktree/partial_random.rs"]
mod partial_random;
