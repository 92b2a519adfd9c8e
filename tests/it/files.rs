//! The user's files: snapshots, publication, restore, undo and redo.

mod damage;
mod encodings;
mod filters;
mod fingerprint;
mod ignored_and_nested;
mod merge;
mod permissions;
mod pick;
mod publish;
mod publish_random;
mod record;
mod restore;
mod restore_output;
mod snapshot;
mod snapshot_check;
mod snapshot_random;
mod stack;
mod undo_redo;
mod unsound_trees;
mod untouched;
