//! Layered configuration, and trust in a repository's part of it.
//!
//! The layers are defaults, `git config teddy.*`, the user's file, the repository's file as far as
//! it is allowed, the environment, and `-c`. Later ones take precedence, key by key.

pub mod edit;
pub mod layer;
pub mod settings;
pub mod trust;
pub mod unknown;
