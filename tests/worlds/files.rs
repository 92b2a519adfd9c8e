//! Long random histories of the user's files.

#[path = "../it/files/merge.rs"]
mod merge;
#[path = "../it/files/publish_random.rs"]
mod publish_random;
#[path = "../it/files/snapshot_check.rs"]
mod snapshot_check;
#[path = "../it/files/snapshot_random.rs"]
mod snapshot_random;
#[path = "../it/files/stack.rs"]
mod stack;
#[path = "../it/files/unsound_trees.rs"]
mod unsound_trees;
