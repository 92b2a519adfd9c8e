//! Keeps objects: protects them until a ref reaches them, and flushes them before.
//!
//! After a crash, damaged objects are moved away.

pub mod corrupt;
pub mod damaged;
pub mod durable;
pub(in crate::git) mod fresh;
pub mod missing;
pub mod pack;
pub mod protect;
pub mod restore;
pub mod store_access;
pub mod truncated_packs;
