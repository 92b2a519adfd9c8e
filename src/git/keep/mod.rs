//! Keeps objects: protects them until a ref reaches them, and flushes them before.
//!
//! After a crash, damaged objects are moved away.

pub mod corrupt;
pub mod damaged;
pub mod durable;
pub(in crate::git) mod fresh;
pub mod hold;
pub mod missing;
pub mod pack;
pub mod put_back;
pub mod store_access;
pub mod torn_packs;
