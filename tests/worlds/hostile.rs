//! Attacks that take long to run.

mod bombs;
mod builds;
mod deep_directories;
#[path = "../it/hostile/disk_swaps.rs"]
mod disk_swaps;
mod endless;
#[path = "../it/hostile/escapes.rs"]
mod escapes;
#[path = "../it/hostile/git_settings.rs"]
mod git_settings;
#[allow(dead_code, reason = "the target `it` uses more of it")]
#[path = "../it/hostile/ground.rs"]
pub mod ground;
#[path = "../it/hostile/markdown.rs"]
mod markdown;
#[path = "../it/hostile/private_damage.rs"]
mod private_damage;
mod random_damage;
#[path = "../it/hostile/remote.rs"]
mod remote;
#[path = "../it/hostile/repository.rs"]
mod repository;
#[path = "../it/hostile/shown_text.rs"]
mod shown_text;
#[path = "../it/hostile/size.rs"]
mod size;
