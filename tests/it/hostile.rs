//! Attacks by models, repositories, web pages and plan commands, most of them as tables with one
//! attack per row.

mod bundles;
mod claims;
mod confined;
mod disk;
mod disk_swaps;
mod environment;
mod escapes;
mod git_settings;
pub mod ground;
mod ignored_secrets;
mod markdown;
mod modes;
mod namespaces;
mod object_permissions;
mod objects;
mod other_worktrees;
mod own_files;
mod paths;
mod private;
mod private_damage;
mod private_git;
mod processes;
mod remote;
mod repository;
mod sandbox;
mod shown_text;
mod size;
mod trust;
mod unreachable_objects;
mod unusual_worktrees;
