//! Attacks that take long to run.

mod bombs;
mod builds;
mod endless;
#[allow(dead_code, reason = "the target `it` uses more of it")]
#[path = "../it/hostile/ground.rs"]
pub mod ground;
mod random_damage;
