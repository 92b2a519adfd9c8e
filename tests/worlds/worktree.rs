//! Long runs in worktrees: any command in both kinds, random runs in partial ones, every kernel that
//! lacks one feature, whole projects.

#[path = "../it/worktree/included.rs"]
mod included;
#[path = "../it/worktree/kernels.rs"]
mod kernels;
#[path = "../it/worktree/overlay_random.rs"]
mod overlay_random;
#[path = "../it/worktree/partial_random.rs"]
mod partial_random;
#[path = "../it/worktree/walkthroughs.rs"]
mod walkthroughs;
