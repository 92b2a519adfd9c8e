//! The layered configuration and what a repository may decide before it is trusted.
//!
//! Defaults, then `git config teddy.*`, the user's own file, the repository's file as far as it
//! is trusted, the environment, and `-c` of one call; later layers win, key by key.

pub mod edit;
pub mod error;
pub mod layer;
mod nested;
pub mod range;
pub mod settings;
pub mod size;
pub mod trust;
pub mod unknown;
mod wording;
